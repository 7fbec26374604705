// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/reconstruct/shells.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <limits>
#include <optional>

namespace Bracewell {

/// How data are divided by weights that are small, zero or (with signed kernel weights) negative.
template <class MemorySpace>
struct NormaliseOptions {
  double wiener = 0; ///< added to every weight: noise power / signal power, in units of the weight
  double floor = 0;  ///< least divisor
  /// double [B, S] of the weight, from shell_averages. Given, the divisor is at least shell_floor times
  /// (average of its shell + wiener), up to the last shell; the default 1/1000 is RELION's rule for sparsely
  /// sampled directions (BackProjector::reconstruct).
  Array<const double, MemorySpace> shell_averages = {};
  double shell_floor = 1e-3; ///< see shell_averages
  /// Frequencies with |k| > radius are set to zero, |k| in periods per box width of data, as shells count:
  /// give oversampling times the radius of backproject. Beyond it signed kernel weights leave only the
  /// negative tails of the kernel.
  std::optional<double> radius = std::nullopt;
};

namespace Impl {

template <class T, int Dim>
struct Normalise {
  const Kokkos::complex<T>* data;
  const T* weight;
  const double* averages; ///< [B, shells] or null
  Kokkos::complex<T>* volume;
  Box<Dim> box;
  Shells<Dim> radii;
  int shells;
  T wiener, floor, shell_floor;
  double squared_radius;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    int index[Dim];
    const std::int64_t batch = box.locate(row, index);
    double squared = 0;
    for (int d = 1; d < Dim; ++d)
      squared += radii.squared(HalfSpectrumLayout<Dim>::frequency(index[d], box.size[d]), d);
    const std::int64_t begin = row * box.columns;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, box.columns), [&](int x) {
      T least = floor;
      if (shells > 0) {
        const int s = radii.shell(x, squared);
        if (s < shells)
          least = Kokkos::max(least, shell_floor * (T(averages[batch * shells + s]) + wiener));
      }
      const T divisor =
          squared + double(x) * x <= squared_radius ? Kokkos::max(weight[begin + x] + wiener, least) : T(0);
      volume[begin + x] = divisor > 0 ? data[begin + x] * (1 / divisor) : Kokkos::complex<T>(0);
    });
  }
};

} // namespace Impl

/// Volume from what backproject gathered: data / max(weight + wiener, floors), zero where the divisor is not
/// positive. All arrays are half spectra and the Hermitian symmetry of data is kept: there is nothing to
/// complete.
///
/// With signed kernel weights the weight is small or negative where samples lie farther apart than a voxel;
/// near zero frequency that is so when images are not padded as much as the volume. Pad the images, or use
/// the linear kernel.
/// @param data    complex [B, (D,) H, W/2+1]
/// @param weight  real, like data
/// @param volume  complex, like data; overwritten; may be data itself
/// @throws Error on shapes that do not fit, shared memory, and options that are negative or not finite
template <class ExecutionSpace, class Data, class Weight, class Volume>
void normalise(const ExecutionSpace& space, const Data& data, const Weight& weight, const Volume& volume,
               const NormaliseOptions<typename ExecutionSpace::memory_space>& options = {}) {
  constexpr int Dim = int(Impl::view_of<Data>::rank()) - 1;
  using T = Impl::real_of<Data>;
  using MemorySpace = typename ExecutionSpace::memory_space;
  const Array<const Kokkos::complex<T>, MemorySpace> in(data);
  const Array<const T, MemorySpace> weights(weight);
  const Array<Kokkos::complex<T>, MemorySpace> out(volume);
  const auto& averages = options.shell_averages;
  constexpr Impl::Arguments arguments{"normalise"};
  const auto box = Impl::spectrum_box<Dim>(arguments, "data", in);
  arguments.same_spectrum("weight", weights, in);
  arguments.same_spectrum("volume", out, in);
  const bool averages_fit = averages.rank == 2 && averages.extents[0] == box.batches &&
                            averages.extents[1] <= std::numeric_limits<int>::max();
  arguments.require(
      !averages || averages_fit, "options.shell_averages",
      [&] { return "[" + std::to_string(box.batches) + ", shells]"; }, [&] { return averages.shape(); });
  const Impl::NamedMemory data_memory("data", in), volume_memory("volume", out);
  arguments.require(out.data == in.data || !volume_memory.overlaps(data_memory), "volume",
                    "the memory of data or memory of its own", "memory shared in part");
  arguments.disjoint({volume_memory}, {{"weight", weights}, {"options.shell_averages", averages}});
  arguments.not_negative("options.wiener", options.wiener);
  arguments.not_negative("options.floor", options.floor);
  arguments.not_negative("options.shell_floor", options.shell_floor);
  const double radius = options.radius.value_or(1e9);
  arguments.within("options.radius", radius, 0.0, 1e9);
  const Kokkos::Profiling::ScopedRegion region("Bracewell::normalise");
  const int shells = averages ? static_cast<int>(averages.extents[1]) : 0;
  Impl::for_each_row(space, "Bracewell::normalise::divide", box.rows(),
                     Impl::Normalise<T, Dim>{in.data, weights.data, averages.data, out.data, box,
                                             Impl::Shells<Dim>(box), shells, T(options.wiener),
                                             T(options.floor), T(options.shell_floor),
                                             radius * radius * (1 + 1e-12)});
}

} // namespace Bracewell
