// Prints the times that the numbers of the room `project` were read from, and where they cross: the thresholds of
// the choices of kernels, and what the kernels in scratch memory take with the shapes of project/detail/tuning.hpp. Change a
// number there, build, and run again. float, rotations at random.

#include "tuning.hpp"

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/detail/insertion/insertion.hpp>
#include <bracewell/project/detail/sampling/sampling.hpp>

namespace {

using namespace Tuning;
using Bracewell::CatmullRom;
using Bracewell::Linear;
using Bracewell::Impl::Mates;
namespace Impl = Bracewell::Impl;
template <class Value>
using Values = Kokkos::View<Value*, Kokkos::LayoutRight, Space>;

/// Reconstructions of `box` elements a side, and flat projections of them.
template <class Kernel_, int D>
struct Problem {
  using Kernel = Kernel_;
  static constexpr int width = Kernel::width;

  Space space;
  Impl::Samples<float, 2, D> samples = {};
  Values<float> matrices, weights, weight_volume;
  Values<Complex> volume, images;

  Problem(int box, std::int64_t batches, std::int64_t poses, bool weighted = false)
      : matrices(random_rotations<D>(batches * poses)) {
    samples.projection = {{box, box}};
    for (int& size : samples.reconstruction.size)
      size = box;
    samples.batches = batches;
    samples.poses = poses;
    samples.matrices = {matrices.data(), poses * D * D, D * D};
    samples.oversampling = 1;
    samples.inverse_size[0] = samples.inverse_size[1] = 1.f / float(box);
    samples.radius = float(box) / 2;
    samples.squared_radius = box * box / 4;
    volume = random_values<Complex>("volume", elements());
    images = random_values<Complex>("images", stored_samples());
    if (weighted) {
      weight_volume = random_values<float>("weight volume", elements());
      weights = random_values<float>("weights", stored_samples());
    }
  }

  std::int64_t elements() const { return samples.batches * samples.reconstruction.elements(); }
  std::int64_t stored_samples() const {
    return samples.batches * samples.poses * samples.projection.elements();
  }

  // Each alternative: seconds.
  double tiles() const {
    return median_seconds(space, [&] { Impl::sample_tiles(space, "tiles", sampling<Mates::Single>()); });
  }
  double tiles_weighted() const {
    return median_seconds(space, [&] { Impl::sample_tiles(space, "tiles", sampling<Mates::Both>()); });
  }
  double atomic() const {
    return median_seconds(space, [&] {
      Impl::InsertAtomic<Kernel, Impl::Amplitudes<float, 2, D, Mates::Both>>{amplitudes<Mates::Both>(),
                                                                             target()}
          .launch(space, "atomic");
    });
  }
  double patches() const {
    return median_seconds(space, [&] {
      Impl::InsertPatches<Space, Kernel, Impl::Amplitudes<float, 2, D, Mates::Both>, true>(
          space, amplitudes<Mates::Both>(), target())
          .launch(space, "patches");
    });
  }
  double owned() const {
    using Owned = std::conditional_t<host, Impl::InsertBricksHost<Space, Kernel, float, 2, D, Mates::Both>,
                                     Impl::InsertOwnedGpu<Space, Kernel, float, 2, D, Mates::Both>>;
    return median_seconds(space, [&] { Owned(amplitudes<Mates::Both>(), target()).launch(space, "owned"); });
  }

private:
  template <Mates mates>
  Impl::Amplitudes<float, 2, D, mates> amplitudes() const {
    Impl::Amplitudes<float, 2, D, mates> result{.samples = samples, .values = images.data()};
    if constexpr (mates == Mates::Both) {
      const std::int64_t stored = samples.projection.elements();
      result.weights = {weights.data(), samples.poses * stored, stored};
    }
    return result;
  }
  template <Mates mates>
  Impl::Sampler<Kernel, float, 2, D, mates> sampling() const {
    const std::int64_t stride = samples.reconstruction.elements();
    return {.amplitudes = amplitudes<mates>(),
            .volumes = {volume.data(), stride},
            .weight_volumes = {weight_volume.data(), stride},
            .values = images.data(),
            .weights = weights.data()};
  }
  Impl::InsertionTarget<float> target() const {
    return {volume.data(), weight_volume.data(), samples.batches, samples.reconstruction.elements()};
  }
};

/// Least quantity, from `least` on in small steps, for which `pays` holds.
template <class Pays>
double threshold(double least, const Pays& pays) {
  while (least < 1e12 && !pays(std::int64_t(least)))
    least *= 1.02;
  return least;
}

/// Patches or samples one by one, over the samples.
template <class Kernel, int D>
void patches(const char* name) {
  Crossing crossing(std::string("* patches_pay, ") + name + ", box 32: samples", "one by one", "patches");
  for (int poses = host ? 2 : 4; poses <= (host ? 16 : 1024); poses *= 2) {
    const Problem<Kernel, D> problem(32, 1, poses, true);
    crossing.add(double(problem.stored_samples()), problem.atomic(), problem.patches());
  }
  crossing.print(threshold(1, [](std::int64_t samples) {
    return Impl::patches_pay({.dimensions = D,
                              .projection_dimensions = 2,
                              .width = Kernel::width,
                              .batches = 1,
                              .poses = 1,
                              .projection_elements = samples,
                              .threads = Space().concurrency()});
  }));
}

/// The kernels with the shapes in use.
template <class Kernel, int D>
void shapes(const char* name) {
  const Problem<Kernel, D> problem(host ? 32 : 128, 1, host ? 64 : 2048, true);
  const double each = 1e9 / double(problem.stored_samples());
  std::printf("%-16s patches* %8.4f  owned %8.4f", name, each * problem.patches(), each * problem.owned());
  std::printf("\n");
}

} // namespace

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  print_device("tune_projection", true);
  std::printf("\nShapes in tuning.hpp, nanoseconds per sample\n");
  shapes<Linear, 2>("linear 2D");
  shapes<CatmullRom, 2>("Catmull-Rom 2D");
  shapes<Linear, 3>("linear 3D");
  shapes<CatmullRom, 3>("Catmull-Rom 3D");
  patches<Linear, 2>("linear 2D");
  patches<CatmullRom, 2>("Catmull-Rom 2D");
  patches<Linear, 3>("linear 3D");
  patches<CatmullRom, 3>("Catmull-Rom 3D");
}
