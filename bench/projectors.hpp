// What bench_projectors measures of one kernel, precision and pair of dimensions: projectors_unit.cpp instantiates it.
#pragma once

#include "definition.hpp"

#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/project.hpp>

#include <Kokkos_Random.hpp>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace Bench {

using namespace Bracewell;
using Space = Kokkos::DefaultExecutionSpace;

template <class View>
void fill_random(const View& view) {
  using T = typename Impl::RealOf<typename View::value_type>::type;
  const Kokkos::View<T*, Kokkos::LayoutRight, Space> flat(
      reinterpret_cast<T*>(view.data()), view.size() * sizeof(typename View::value_type) / sizeof(T));
  Kokkos::fill_random(flat, Kokkos::Random_XorShift64_Pool<Space>(20260101), T(-1), T(1));
}

/// Uniformly distributed rotations [batch, poses, D, D]: from normalised Gaussian quaternions, or a uniform
/// angle in 2D.
template <class T, int D>
auto random_rotations(std::int64_t batch, std::int64_t poses) {
  const Kokkos::View<T****, Kokkos::LayoutRight, Space> matrices("matrices", batch, poses, D, D);
  const auto host = Kokkos::create_mirror_view(matrices);
  std::mt19937 engine(7);
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < batch * poses; ++i) {
    double w = normal(engine), x = normal(engine), y = normal(engine), z = normal(engine);
    if (D == 2)
      x = y = 0;
    const double norm = std::sqrt(w * w + x * x + y * y + z * z);
    w /= norm, x /= norm, y /= norm, z /= norm;
    const double m[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
                            {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
                            {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}};
    for (int r = 0; r < D; ++r)
      for (int c = 0; c < D; ++c)
        host.data()[(i * D + r) * D + c] = static_cast<T>(m[r][c]);
  }
  Kokkos::deep_copy(matrices, host);
  return matrices;
}

template <class Kernel, class T, int M, int D>
struct Problem {
  using Complex = Kokkos::complex<T>;
  template <class Value, int rank>
  using View = Kokkos::View<
      std::conditional_t<rank == 3, Value***, std::conditional_t<rank == 4, Value****, Value*****>>,
      Kokkos::LayoutRight, Space>;

  std::int64_t box, batch, poses;
  View<Complex, D + 1> volume;
  View<Complex, M + 2> images;
  View<T, 4> matrices;
  View<T, 3> shifts;

  explicit Problem(const benchmark::State& state)
      : box(state.range(0)), batch(state.range(1)), poses(state.range(2)), volume(make_volume<Complex>()),
        images(make_images<Complex>()), matrices(random_rotations<T, D>(batch, poses)),
        shifts("shifts", batch, poses, M) {
    fill_random(volume);
    fill_random(images);
    fill_random(shifts);
    space.fence();
  }

  Space space;

  template <class Value>
  View<Value, D + 1> make_volume() const {
    if constexpr (D == 2)
      return View<Value, D + 1>("volume", batch, box, box / 2 + 1);
    else
      return View<Value, D + 1>("volume", batch, box, box, box / 2 + 1);
  }

  template <class Value>
  View<Value, M + 2> make_images() const {
    if constexpr (M == 2)
      return View<Value, M + 2>("images", batch, poses, box, box / 2 + 1);
    else
      return View<Value, M + 2>("images", batch, poses, box, box, box / 2 + 1);
  }

  Poses<T, Space::memory_space> pose_arrays() const { return {.matrices = matrices, .shifts = shifts}; }

  /// The last batch, by definition.
  Definition<Kernel, T, M, D> definition() const {
    return {static_cast<int>(box), poses, last(matrices), last(shifts)};
  }
  /// Where the last batch begins.
  template <class AnyView>
  auto* last(const AnyView& view) const {
    return view.data() + (batch - 1) * (std::int64_t(view.size()) / batch);
  }

  /// Of a projection, within the radius.
  double samples() const {
    return M == 2 ? std::acos(-1.) / 8 * std::pow(box, 2) : std::acos(-1.) / 12 * std::pow(box, 3);
  }

  /// Projections, taps and the least bytes (projections, and volumes once) per second.
  void count(benchmark::State& state, double seconds, int taps_per_axis, double image_bytes,
             double volume_bytes) const {
    const double elements = std::pow(box, M - 1) * double(box / 2 + 1),
                 voxels = std::pow(box, D - 1) * double(box / 2 + 1);
    const double projections = double(batch * poses);
    state.counters["kproj_per_s"] = projections / 1e3 / seconds;
    state.counters["Gtaps_per_s"] = projections * samples() * std::pow(taps_per_axis, D) / 1e9 / seconds;
    state.counters["GB_per_s"] =
        (projections * elements * image_bytes + double(batch) * voxels * volume_bytes) / 1e9 / seconds;
  }
};

/// Runs once, compares (check() gives a relative error), and measures: the median of at least 15 runs, each
/// up to a fence, in seconds.
template <class Run, class Check>
double measure(benchmark::State& state, const Space& space, double tolerance, const Run& run,
               const Check& check) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  const auto timed = [&] {
    const auto start = Clock::now();
    run();
    space.fence();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  };
  try {
    run();
    const double error = check();
    state.counters["error"] = error;
    if (!(error < tolerance)) {
      state.SkipWithError(("differs from the definition by " + std::to_string(error)).c_str());
      return std::numeric_limits<double>::infinity();
    }
    for (auto _ : state)
      timed();
    while (seconds.size() < 15)
      timed();
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
    return std::numeric_limits<double>::infinity();
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  return seconds[seconds.size() / 2];
}

template <class Functor>
double relative_error(const Space& space, std::int64_t count, const Functor& compare) {
  Squares squares;
  Kokkos::parallel_reduce("check", Kokkos::RangePolicy<Space>(space, 0, count), compare,
                          Kokkos::Sum<Squares>(squares));
  return squares.relative_error();
}

inline constexpr std::int64_t checked_samples = 512;

/// Positions are rounded at up to box / 2, which costs that many roundings of values that change from voxel
/// to voxel, as random ones do.
template <class T>
double tolerance(std::int64_t box) {
  return 2 * double(box) * std::numeric_limits<T>::epsilon();
}

/// What `project` reads of a problem: the View, or a reference prepared from it.
struct AsView {
  template <class Kernel, class Problem>
  static auto of(const Problem& problem) {
    return [&problem](auto... arguments) { project<Kernel>(problem.space, problem.volume, arguments...); };
  }
};
template <class Stored>
struct Prepared {
  template <class Kernel, class Problem>
  static auto of(const Problem& problem) {
    return [&space = problem.space, reference = prepare<Kernel, Stored>(problem.space, problem.volume)](
               auto... arguments) { project(space, reference, arguments...); };
  }
};

template <class Source, class Kernel, class T, int M, int D>
void project_benchmark(benchmark::State& state) {
  const Problem<Kernel, T, M, D> problem(state);
  const auto project_all = Source::template of<Kernel>(problem);
  const double rounding = std::is_same_v<Source, Prepared<HalfComplex>> ? 5e-4 : 0;
  const double seconds = measure(
      state, problem.space, tolerance<T>(problem.box) + rounding,
      [&] { project_all(problem.pose_arrays(), problem.images, ProjectionOptions()); },
      [&] {
        return relative_error(problem.space, checked_samples,
                              CheckProjections<Kernel, T, M, D>{problem.definition(),
                                                                problem.last(problem.volume),
                                                                problem.last(problem.images)});
      });
  problem.count(state, seconds, Kernel::width, sizeof(Kokkos::complex<T>), sizeof(Kokkos::complex<T>));
}

/// Relative error of sums over all samples at some voxels.
template <class Kernel, class T, int M, int D, class Data, class Weight, class Weights>
double scatter_error(const Problem<Kernel, T, M, D>& problem, bool both, const Data& data,
                     const Weight& weight, const Weights& weights) {
  using Sums = SumAtVoxels<Kernel, T, M, D>;
  const Kokkos::View<Kokkos::complex<double>*, Space> sums("sums", +Sums::voxels);
  const Kokkos::View<double*, Space> weight_sums("weight_sums", +Sums::voxels);
  const bool weighted = weights.data() != nullptr;
  const Sums sum{problem.definition(),
                 both,
                 problem.last(problem.images),
                 weighted ? problem.last(weights) : nullptr,
                 sums.data(),
                 weight_sums.data()};
  Kokkos::parallel_for("sum_at_voxels",
                       Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                           problem.space, 0, problem.poses * sum.defined.elements(M)),
                       sum);
  return relative_error(
      problem.space, Sums::voxels,
      CheckVoxels<Kernel, T, M, D>{sum, problem.last(data), weighted ? problem.last(weight) : nullptr});
}

template <class Kernel, class T, int M, int D>
void backproject_benchmark(benchmark::State& state, Strategy strategy) {
  const Problem<Kernel, T, M, D> problem(state);
  Kokkos::deep_copy(problem.volume, 0);
  const auto weight = problem.template make_volume<T>();
  const auto weights = problem.template make_images<T>();
  fill_random(weights);
  const double seconds = measure(
      state, problem.space, tolerance<T>(problem.box),
      [&] {
        backproject<Kernel>(problem.space, problem.images, problem.pose_arrays(),
                            {.data = problem.volume, .weight = weight, .weights = weights},
                            {.strategy = strategy});
      },
      [&] { return scatter_error(problem, true, problem.volume, weight, weights); });
  problem.count(state, seconds, Kernel::width, 1.5 * sizeof(Kokkos::complex<T>),
                3 * sizeof(Kokkos::complex<T>));
}

enum class Gradients { Reconstruction, Poses, All };

/// Relative error of the gradients of a few poses.
template <class Kernel, class T, int M, int D, class Matrices, class Shifts>
double pose_error(const Problem<Kernel, T, M, D>& problem, const Matrices& matrices, const Shifts& shifts) {
  Squares squares;
  const auto found_matrices = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), matrices);
  const auto found_shifts = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), shifts);
  for (std::int64_t pose = 0; pose < problem.poses; pose += (problem.poses + 3) / 4)
    for (int entry = 0; entry < (D + 1) * M; ++entry) {
      double expected = 0;
      const PoseDerivative<Kernel, T, M, D> derivative{problem.definition(), problem.last(problem.volume),
                                                       problem.last(problem.images), pose, entry};
      Kokkos::parallel_reduce("pose_derivative",
                              Kokkos::RangePolicy<Space>(problem.space, 0, derivative.defined.elements(M)),
                              derivative, expected);
      squares.add(double(entry < D * M ? problem.last(found_matrices)[(pose * D + entry / M) * D + entry % M]
                                       : problem.last(found_shifts)[pose * M + entry - D * M]),
                  expected);
    }
  return squares.relative_error();
}

template <class Kernel, class T, int M, int D>
void project_gradients_benchmark(benchmark::State& state, Gradients wanted, Strategy strategy) {
  const Problem<Kernel, T, M, D> problem(state);
  const auto gradient = problem.template make_volume<Kokkos::complex<T>>();
  const auto matrices = Kokkos::create_mirror(Space(), problem.matrices);
  const auto shifts = Kokkos::create_mirror(Space(), problem.shifts);
  ProjectGradients<T, Space::memory_space> gradients;
  if (wanted != Gradients::Poses)
    gradients.reconstruction = gradient;
  if (wanted != Gradients::Reconstruction)
    gradients.matrices = matrices, gradients.shifts = shifts;
  // The slope of a linear kernel jumps from voxel to voxel. Rounding puts about 3 box epsilon of the samples
  // on the other side; each of them is off by as much as a sample brings.
  double bound = tolerance<T>(problem.box);
  const double samples = problem.samples(),
               flips = 3 * samples * double(problem.box) * std::numeric_limits<T>::epsilon();
  if (wanted != Gradients::Reconstruction && Kernel::width == 2 && flips > 1e-3)
    bound = std::sqrt((flips + 3) / samples);
  const double seconds = measure(
      state, problem.space, bound,
      [&] {
        project_gradients<Kernel>(problem.space, problem.volume, problem.pose_arrays(), problem.images,
                                  gradients, {.strategy = strategy});
      },
      [&] {
        double error = 0;
        if (gradients.reconstruction)
          error =
              scatter_error(problem, false, gradient, Kokkos::View<T*, Space>(), Kokkos::View<T*, Space>());
        if (gradients.matrices)
          error = std::max(error, pose_error(problem, matrices, shifts));
        return error;
      });
  problem.count(state, seconds, Kernel::width, sizeof(Kokkos::complex<T>), 2 * sizeof(Kokkos::complex<T>));
}

/// @tparam prepared  whether the cotangent of the data is a PreparedReference; that of the weights is a View
template <bool prepared, class Kernel, class T, int M, int D>
void backproject_gradients_benchmark(benchmark::State& state) {
  const Problem<Kernel, T, M, D> problem(state);
  const auto weight = problem.template make_volume<T>();
  const auto weights = problem.template make_images<T>();
  const auto gradient = problem.template make_images<Kokkos::complex<T>>();
  const auto weights_gradient = problem.template make_images<T>();
  fill_random(weight);
  fill_random(weights);
  BackprojectGradients<T, typename Space::memory_space, D> outputs{
      .weight = weight, .weights = weights, .projections = gradient, .projection_weights = weights_gradient};
  std::optional<PreparedReference<Kernel, Space, D, Kokkos::complex<T>>> cotangent;
  if (prepared)
    cotangent.emplace(prepare<Kernel>(problem.space, problem.volume, ReadBy::BackprojectGradients));
  else
    outputs.data = problem.volume;
  const double seconds = measure(
      state, problem.space, tolerance<T>(problem.box),
      [&] {
        if (prepared)
          backproject_gradients(problem.space, problem.images, problem.pose_arrays(), *cotangent, outputs);
        else
          backproject_gradients<Kernel>(problem.space, problem.images, problem.pose_arrays(), outputs);
      },
      [&] {
        return relative_error(problem.space, checked_samples,
                              CheckProjectionGradients<Kernel, T, M, D>{
                                  problem.definition(), problem.last(problem.volume), problem.last(weight),
                                  problem.last(gradient), problem.last(weights_gradient)});
      });
  problem.count(state, seconds, Kernel::width, 1.5 * sizeof(Kokkos::complex<T>),
                1.5 * sizeof(Kokkos::complex<T>));
}

/// Whether projections have the values of every second frequency of others of twice the box.
struct CompareFrequencies {
  Kokkos::View<const Kokkos::complex<float>****, Kokkos::LayoutRight, Space> coarse, fine;

  KOKKOS_FUNCTION void operator()(std::int64_t i, Squares& squares) const {
    const std::int64_t columns = std::int64_t(coarse.extent(3)), rows = std::int64_t(coarse.extent(2));
    const std::int64_t x = i % columns, y = i / columns % rows, p = i / columns / rows;
    const std::int64_t ky = y <= rows / 2 ? y : y - rows;
    if (4 * (x * x + ky * ky) <= rows * rows)
      squares.add(Kokkos::complex<double>(coarse(0, p, y, x)),
                  Kokkos::complex<double>(fine(0, p, (2 * ky + 2 * rows) % (2 * rows), 2 * x)));
  }
};

struct RealProduct {
  const Kokkos::complex<float>*a, *b;

  KOKKOS_FUNCTION void operator()(std::int64_t i, double& sum) const {
    sum += double(a[i].real()) * double(b[i].real()) + double(a[i].imag()) * double(b[i].imag());
  }
};

/// The sum of products of real and of imaginary parts of all that is stored.
template <class View>
double real_product(const Space& space, const View& a, const View& b) {
  double sum = 0;
  Kokkos::parallel_reduce(
      "product",
      Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, std::int64_t(a.size())),
      RealProduct{a.data(), b.data()}, sum);
  return sum;
}

/// Projections of half the box of what they are sampled from, with oversampling 2, or the gradient of the reconstruction.
/// Projections are compared with every second frequency of what the definition is compared with at the box of the
/// reconstruction; the gradient is their transpose.
template <class Kernel>
void oversampled_benchmark(benchmark::State& state, bool gradient) {
  using Complex = Kokkos::complex<float>;
  using Images = Kokkos::View<Complex****, Kokkos::LayoutRight, Space>;
  using Volumes = Kokkos::View<Complex***, Kokkos::LayoutRight, Space>;
  const std::int64_t box = state.range(0), batch = state.range(1), poses = state.range(2), padded = 2 * box;
  const Space space;
  const Volumes volume("volume", batch, padded, padded / 2 + 1),
      of_volume("gradient", batch, padded, padded / 2 + 1);
  const Images images("images", batch, poses, box, box / 2 + 1);
  const auto matrices = random_rotations<float, 2>(batch, poses);
  const Kokkos::View<float***, Kokkos::LayoutRight, Space> shifts("shifts", batch, poses, 2);
  fill_random(volume);
  fill_random(shifts);
  const Poses<float, Space::memory_space> pose_arrays{.matrices = matrices, .shifts = shifts};
  const ProjectionOptions options{.oversampling = 2};
  project<Kernel>(space, volume, pose_arrays, images, options);
  const auto run = [&] {
    if (gradient)
      project_gradients<Kernel>(space, volume, pose_arrays, images,
                                ProjectGradients<float, Space::memory_space>{.reconstruction = of_volume},
                                options);
    else
      project<Kernel>(space, volume, pose_arrays, images, options);
  };
  const auto check = [&] {
    if (gradient) // <P v, P v> = <P^T P v, v>
      return std::abs(real_product(space, of_volume, volume) / real_product(space, images, images) - 1);
    const Images fine("fine", 1, poses, padded, padded / 2 + 1);
    const auto one = std::pair<std::int64_t, std::int64_t>(batch - 1, batch);
    const auto all = Kokkos::ALL;
    project<Kernel>(
        space, Kokkos::subview(volume, one, all, all),
        Poses<float, Space::memory_space>{.matrices = Kokkos::subview(matrices, one, all, all, all),
                                          .shifts = Kokkos::subview(shifts, one, all, all)},
        fine);
    return relative_error(space, poses * box * (box / 2 + 1),
                          CompareFrequencies{Kokkos::subview(images, one, all, all, all), fine});
  };
  const double seconds = measure(state, space, tolerance<float>(padded), run, check);
  state.counters["kproj_per_s"] = double(batch * poses) / 1e3 / seconds;
}

/// Registers what is measured of a kernel, a precision and a pair of dimensions.
template <class Kernel, class T, int M, int D>
void register_operators(const std::string& suffix) {
  const std::string m = std::to_string(M) + "d", d = std::to_string(D) + "d";
  const auto add = [&](const std::string& operation, bool forward, auto run) {
    const std::string dimensions = forward ? d + "_to_" + m : m + "_to_" + d;
    auto* const made = benchmark::RegisterBenchmark(
                           (operation + "/" + dimensions + "/" + Kernel::name + suffix).c_str(), run)
                           ->ArgNames({"box", "batch", "poses"})
                           ->Unit(benchmark::kMillisecond)
                           ->UseRealTime();
    if (M == 3)
      made->ArgsProduct({{32, 64, 128}, {1, 8}, {8, 64}});
    else
      made->ArgsProduct({{32, 64, 128, 256}, {1, 8}, {8, 128, 512, 2048}});
    return made;
  };
  // A reference for every projection, of which they fill half the box of the reference or all of it.
  [[maybe_unused]] const auto one_each = [](auto* made) {
    made->Args({128, 4096, 1})->Args({128, 16384, 1});
  };
  [[maybe_unused]] auto* const projecting = add("project", true, project_benchmark<AsView, Kernel, T, M, D>);
  if constexpr (M == 2 && D == 2 && sizeof(T) == 4) {
    one_each(projecting);
    for (const bool gradient : {false, true})
      one_each(benchmark::RegisterBenchmark(
                   (std::string(gradient ? "project_gradients_reconstruction" : "project") +
                    "_oversampled/2d_to_2d/" + Kernel::name)
                       .c_str(),
                   [gradient](benchmark::State& state) { oversampled_benchmark<Kernel>(state, gradient); })
                   ->ArgNames({"box", "batch", "poses"})
                   ->Unit(benchmark::kMillisecond)
                   ->UseRealTime());
  }
  if constexpr (M == 3) {
    add("backproject", false,
        [](benchmark::State& state) { backproject_benchmark<Kernel, T, M, D>(state, Strategy::Automatic); });
    add("project_gradients_reconstruction", true, [](benchmark::State& state) {
      project_gradients_benchmark<Kernel, T, M, D>(state, Gradients::Reconstruction, Strategy::Automatic);
    });
    add("backproject_gradients", false, backproject_gradients_benchmark<false, Kernel, T, M, D>);
  } else {
    add("project_prepared", true, project_benchmark<Prepared<Kokkos::complex<T>>, Kernel, T, M, D>);
    if constexpr (sizeof(T) == 4)
      add("project_prepared_half", true, project_benchmark<Prepared<HalfComplex>, Kernel, T, M, D>);
    for (const auto& [strategy, name] :
         {std::pair{Strategy::Automatic, ""}, {Strategy::Atomic, "_atomic"}, {Strategy::Owned, "_owned"}}) {
      const auto tag = strategy;
      const std::string tail = name;
      add("backproject" + tail, false,
          [tag](benchmark::State& state) { backproject_benchmark<Kernel, T, M, D>(state, tag); });
      for (const auto& [wanted, which] : {std::pair{Gradients::Reconstruction, "reconstruction"},
                                          {Gradients::Poses, "poses"},
                                          {Gradients::All, "all"}}) {
        const auto gradients = wanted;
        auto* const made =
            add("project_gradients_" + (which + tail), true, [tag, gradients](benchmark::State& state) {
              project_gradients_benchmark<Kernel, T, M, D>(state, gradients, tag);
            });
        if (M == 2 && D == 2 && sizeof(T) == 4 && wanted == Gradients::Reconstruction &&
            strategy == Strategy::Automatic)
          one_each(made);
      }
    }
    add("backproject_gradients", false, backproject_gradients_benchmark<false, Kernel, T, M, D>);
    add("backproject_gradients_prepared", false, backproject_gradients_benchmark<true, Kernel, T, M, D>);
  }
}

} // namespace Bench
