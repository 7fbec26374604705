// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/reconstruct/shells.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <optional>

namespace Bracewell {

/// How data are divided by weights that are small, zero or (with signed kernel weights) negative.
struct NormaliseOptions {
  double wiener = 0; ///< added to every weight: noise power / signal power, in units of the weight
  /// Least divisor, as a part of (average weight of its shell + what is added). By default 1/1000, as in RELION
  /// (BackProjector::reconstruct), and 0.2 for a kernel with negative lobes, whose weights can be small by cancellation.
  /// Directions with less than this part of the average are damped.
  std::optional<double> floor = std::nullopt;
  /// Frequencies with |k| > radius are set to zero, |k| in periods per box width of data, as shells count: by
  /// default half the width, the Nyquist limit. Give oversampling times the radius of backproject where that
  /// is less: beyond it signed kernel weights leave only the negative tails of the kernel.
  std::optional<double> radius = std::nullopt;
  /// Frequencies that are less than this below the radius fall to zero by a cosine: those next to the Nyquist limit were
  /// sampled from one side only, and their noise spreads to others with a mask.
  double edge = 0;
};

/// Divides what backproject gathered: data / max(weight + wiener + prior, floor), see NormaliseOptions. The result is zero
/// where the divisor is not positive. All arrays are half spectra. The Hermitian symmetry of data is kept, so there
/// is nothing to complete. backproject says which kernel and oversampling go together.
/// @tparam Kernel   that inserted: the default of the floor depends on it
/// @param data      complex [B, (D,) H, W/2+1]
/// @param weight    real, like data
/// @param volume    complex, like data; overwritten; may be data itself
/// @param averages  double [B, S]: overwritten with the averages of weight over shells (shell_averages), which the floor
/// takes. Frequencies beyond the last shell take the average of the last shell. S is at least 1, best W/2+1
/// @param prior     double, like averages: added to the weights of each shell, for instance what wiener_prior says (noise
/// over signal power, Scheres, J. Struct. Biol. 180 (2012) 519); optional
/// @throws Error on shapes that do not fit, shared memory, and options that are negative or not finite
template <class Kernel = CatmullRom, class ExecutionSpace, class Data, class Weight, class Volume,
          class Averages>
void normalise(const ExecutionSpace& space, const Data& data, const Weight& weight, const Volume& volume,
               const Averages& averages, const NormaliseOptions& options = {},
               const Array<const double, typename ExecutionSpace::memory_space>& prior = {});

namespace Impl {

template <class T, int Dim>
struct Normalise {
  const Kokkos::complex<T>* data;
  const T* weight;
  const double* averages; ///< [B, shells], of weight
  const double* prior;    ///< likewise, added to it; or null
  Kokkos::complex<T>* volume;
  Box<Dim> box;
  Shells<Dim> radii;
  int shells;
  T wiener, floor;
  double squared_radius;
  double inner, edge; ///< where the edge begins, and its width

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    int index[Dim];
    const std::int64_t batch = box.locate(row, index);
    const double squared = radii.squared(index, box);
    const std::int64_t begin = row * box.columns;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, box.columns), [&](int x) {
      const int shell = Kokkos::min(radii.shell(x, squared), shells - 1);
      const T added = prior ? wiener + T(prior[batch * shells + shell]) : wiener;
      const T least = floor * (T(averages[batch * shells + shell]) + added);
      const T divisor =
          squared + double(x) * x <= squared_radius ? Kokkos::max(weight[begin + x] + added, least) : T(0);
      // Quotients of both parts: the inverse of the least weights is beyond the largest number.
      const Kokkos::complex<T> sum = kept(squared + double(x) * x) * data[begin + x];
      volume[begin + x] = divisor > 0 ? Kokkos::complex<T>(sum.real() / divisor, sum.imag() / divisor)
                                      : Kokkos::complex<T>(0);
    });
  }

  KOKKOS_INLINE_FUNCTION T kept(double squared) const {
    if (edge <= 0 || squared <= inner * inner)
      return T(1);
    const double along = Kokkos::min(1.0, (Kokkos::sqrt(squared) - inner) / edge);
    return T(0.5 + 0.5 * Kokkos::cos(Kokkos::numbers::pi * along));
  }
};

} // namespace Impl

template <class Kernel, class ExecutionSpace, class Data, class Weight, class Volume, class Averages>
void normalise(const ExecutionSpace& space, const Data& data, const Weight& weight, const Volume& volume,
               const Averages& averages, const NormaliseOptions& options,
               const Array<const double, typename ExecutionSpace::memory_space>& prior) {
  constexpr int Dim = int(Impl::view_of<Data>::rank()) - 1;
  using T = Impl::real_of<Data>;
  using MemorySpace = typename ExecutionSpace::memory_space;
  const Array<const Kokkos::complex<T>, MemorySpace> in(data);
  const Array<const T, MemorySpace> weights(weight);
  const Array<Kokkos::complex<T>, MemorySpace> out(volume);
  const Array<double, MemorySpace> means(averages);
  constexpr Impl::Arguments arguments{"normalise"};
  const auto box = Impl::spectrum_box<Dim>(arguments, "data", in);
  arguments.same_spectrum("weight", weights, in);
  arguments.same_spectrum("volume", out, in);
  const Impl::NamedMemory data_memory("data", in), volume_memory("volume", out);
  arguments.require(out.data == in.data || !volume_memory.overlaps(data_memory), "volume",
                    "the memory of data or memory of its own", "memory shared in part");
  arguments.disjoint({volume_memory, {"averages", means}}, {{"weight", weights}, {"prior", prior}});
  arguments.disjoint({{"averages", means}}, {data_memory});
  arguments.require(
      means.rank == 2 && means.extents[1] > 0, "averages",
      [&] { return "[" + std::to_string(box.batches) + ", at least one shell]"; },
      [&] { return means.shape(); });
  arguments.not_negative("options.wiener", options.wiener);
  const double floor = options.floor.value_or(Kernel::width > 2 && Kernel::value(1.5) < 0 ? 0.2 : 1e-3);
  arguments.not_negative("options.floor", floor);
  if (prior)
    arguments.same_shape("prior", prior, means);
  const double radius = options.radius.value_or(box.size[0] / 2.0);
  arguments.within("options.radius", radius, 0.0, 1e9);
  arguments.within("options.edge", options.edge, 0.0, radius);
  const Kokkos::Profiling::ScopedRegion region("Bracewell::normalise");
  Impl::reduce_shells<Dim>(space, arguments, "averages", "Bracewell::normalise::average", box, means,
                           Impl::MeanOfShell<T>{weights.data});
  const auto shells = static_cast<int>(means.extents[1]);
  Impl::for_each_row(space, "Bracewell::normalise::divide", box.rows(),
                     Impl::Normalise<T, Dim>{in.data, weights.data, means.data, prior.data, out.data, box,
                                             Impl::Shells<Dim>(box), shells, T(options.wiener), T(floor),
                                             radius * radius * (1 + 1e-12), radius - options.edge,
                                             options.edge});
}

} // namespace Bracewell
