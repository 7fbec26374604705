// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/row_loop.hpp>
#include <bracewell/impl/turns.hpp>
#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/kernel.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <array>

namespace Bracewell {

/// Removes the attenuation of an interpolation kernel, in place: divides by the product over axes of
/// Kernel::transform(x / N), x the distance from the centre floor(n/2), N the size of the box that was
/// interpolated in Fourier space. Apply it to a map before the transform that `project`
/// reads, or after the inverse transform of what `backproject` wrote (O'Sullivan, IEEE Trans. Med. Imaging 4 (1985) 200). It is its own transpose: the
/// chain rule through it is the same call.
/// @param volume  real [B, (d,) h, w]
/// @param padded  {(D,) H, W}: sizes in the order of the axes
/// @throws Error on an empty View and a padded size below the volume's
template <class Kernel = CatmullRom, class ExecutionSpace, class Volume>
void correct_rolloff(const ExecutionSpace& space, const Volume& volume,
                     const std::array<int, Volume::rank() - 1>& padded);

/// Multiplies by the attenuation of an interpolation kernel, in place: by what correct_rolloff divides by. A map of ones becomes the
/// roll-off as a factor, which models can take in where a division would amplify noise at the edges.
/// @param volume  real [B, (d,) h, w]
/// @param padded  {(D,) H, W}: sizes in the order of the axes
/// @throws Error on an empty View and a padded size below the volume's
template <class Kernel = CatmullRom, class ExecutionSpace, class Volume>
void apply_rolloff(const ExecutionSpace& space, const Volume& volume,
                   const std::array<int, Volume::rank() - 1>& padded);

/// RELION's form of the correction for trilinear interpolation, in place: divides by sinc^2 of the radius
/// |x / N| (Projector::griddingCorrect). It equals the separable one on the axes only; use it to match RELION.
/// @param volume  real [B, (d,) h, w]
/// @param padded  {(D,) H, W}: sizes in the order of the axes
/// @throws Error on an empty View and a padded size below the volume's
template <class ExecutionSpace, class Volume>
void correct_radial_rolloff(const ExecutionSpace& space, const Volume& volume,
                            const std::array<int, Volume::rank() - 1>& padded);

namespace Impl {

/// Multiplies a block of rows x columns by the product over axes of Kernel::transform((index - n/2) / N), or
/// divides it. The factors of its columns and rows are worked out once.
template <class ExecutionSpace, class Kernel, class T, int Dim>
struct SeparableRolloff {
  static constexpr int rows = 64, columns = 512, factor_count = columns + (Dim - 1) * rows;
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Factors = Kokkos::View<T*, typename ExecutionSpace::scratch_memory_space, Kokkos::MemoryUnmanaged>;

  T* values;
  Box<Dim> box;
  T inverse_size[Dim]; ///< 1 / N (x, y[, z])
  bool divides;

  KOKKOS_FUNCTION int across() const { return (box.columns + columns - 1) / columns; }

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int first_column = member.league_rank() % across() * columns;
    const int column_count = Kokkos::min(int(columns), box.columns - first_column);
    const std::int64_t first_row = std::int64_t(member.league_rank() / across()) * rows;
    const int row_count = static_cast<int>(Kokkos::min(std::int64_t(rows), box.rows() - first_row));
    const Factors factors(member.team_scratch(0), factor_count);
    Kokkos::parallel_for(Kokkos::TeamVectorRange(member, column_count + (Dim - 1) * row_count), [&](int i) {
      int index[Dim] = {first_column + i}, d = 0;
      if (i >= column_count) {
        box.locate(first_row + (i - column_count) / (Dim - 1), index);
        d = 1 + (i - column_count) % (Dim - 1);
      }
      const T factor = Kernel::transform(T(index[d] - box.size[d] / 2) * inverse_size[d]);
      factors(i) = divides ? 1 / factor : factor;
    });
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, row_count), [&](int r) {
      T across_rows = 1;
      for (int d = 0; d < Dim - 1; ++d)
        across_rows *= factors(column_count + r * (Dim - 1) + d);
      T* row = values + (first_row + r) * box.columns + first_column;
      const T* along = factors.data();
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, column_count),
                           [&](int i) { row[i] *= across_rows * along[i]; });
    });
  }
};

template <class T, int Dim>
struct RadialRolloff {
  T* values;
  Box<Dim> box;
  T inverse_size[Dim];

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    int index[Dim];
    box.locate(row, index);
    T squared = 0;
    for (int d = 1; d < Dim; ++d) {
      const T v = T(index[d] - box.size[d] / 2) * inverse_size[d];
      squared += v * v;
    }
    T* out = values + row * box.columns;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, box.columns), [&](int i) {
      const T v = T(i - box.size[0] / 2) * inverse_size[0];
      const T attenuation = sinc(Kokkos::sqrt(squared + v * v));
      out[i] /= attenuation * attenuation;
    });
  }
};

/// 1 / N in the order (x, y[, z]). |v| = (n/2) / N has to stay in the main lobe of the kernels' transforms.
template <class T, std::size_t Dim>
void invert_padded_sizes(const Arguments& arguments, const std::array<int, Dim>& padded,
                         const Box<int(Dim)>& box, T (&inverse)[Dim]) {
  for (std::size_t d = 0; d < Dim; ++d) {
    const int N = padded[Dim - 1 - d];
    arguments.require(
        N >= box.size[d], "padded",
        [&] { return "at least " + std::to_string(box.size[d]) + " along " + "xyz"[d]; },
        [&] { return std::to_string(N); });
    inverse[d] = T(1) / T(N);
  }
}

template <class Kernel, class ExecutionSpace, class Volume>
void separable_rolloff(const ExecutionSpace& space, const Arguments& arguments, const char* name,
                       const char* label, const Volume& volume,
                       const std::array<int, Volume::rank() - 1>& padded, bool divides) {
  constexpr int Dim = int(Volume::rank()) - 1;
  using T = typename Volume::value_type;
  static_assert(HasTransform<Kernel, T>, "Bracewell::correct_rolloff, apply_rolloff: Kernel: expected "
                                         "transform(T v), the Fourier transform of the "
                                         "kernel, found no such member.");
  if constexpr (HasTransform<Kernel, T>) {
    const Array<T, typename ExecutionSpace::memory_space> array(volume);
    SeparableRolloff<ExecutionSpace, Kernel, T, Dim> functor{
        array.data, image_box<Dim>(arguments, "volume", array), {}, divides};
    invert_padded_sizes(arguments, padded, functor.box, functor.inverse_size);
    const std::int64_t rows = functor.box.rows();
    if (rows == 0)
      return;
    const Kokkos::Profiling::ScopedRegion region(name);
    const auto league = static_cast<int>((rows + functor.rows - 1) / functor.rows * functor.across());
    const int threads = is_host<ExecutionSpace> ? 1 : 8, lanes = is_host<ExecutionSpace> ? 1 : 32;
    const auto scratch = decltype(functor)::Factors::shmem_size(functor.factor_count);
    Kokkos::parallel_for(label,
                         Kokkos::TeamPolicy<ExecutionSpace>(space, league, threads, lanes)
                             .set_scratch_size(0, Kokkos::PerTeam(scratch)),
                         functor);
  }
}

} // namespace Impl

template <class Kernel, class ExecutionSpace, class Volume>
void correct_rolloff(const ExecutionSpace& space, const Volume& volume,
                     const std::array<int, Volume::rank() - 1>& padded) {
  Impl::separable_rolloff<Kernel>(space, {"correct_rolloff"}, "Bracewell::correct_rolloff",
                                  "Bracewell::correct_rolloff::divide", volume, padded, true);
}

template <class Kernel, class ExecutionSpace, class Volume>
void apply_rolloff(const ExecutionSpace& space, const Volume& volume,
                   const std::array<int, Volume::rank() - 1>& padded) {
  Impl::separable_rolloff<Kernel>(space, {"apply_rolloff"}, "Bracewell::apply_rolloff",
                                  "Bracewell::apply_rolloff::multiply", volume, padded, false);
}

template <class ExecutionSpace, class Volume>
void correct_radial_rolloff(const ExecutionSpace& space, const Volume& volume,
                            const std::array<int, Volume::rank() - 1>& padded) {
  constexpr int Dim = int(Volume::rank()) - 1;
  using T = typename Volume::value_type;
  const Array<T, typename ExecutionSpace::memory_space> array(volume);
  constexpr Impl::Arguments arguments{"correct_radial_rolloff"};
  Impl::RadialRolloff<T, Dim> body{array.data, Impl::image_box<Dim>(arguments, "volume", array), {}};
  Impl::invert_padded_sizes(arguments, padded, body.box, body.inverse_size);
  const Kokkos::Profiling::ScopedRegion region("Bracewell::correct_radial_rolloff");
  Impl::for_each_row(space, "Bracewell::correct_radial_rolloff::divide", body.box.rows(), body);
}

} // namespace Bracewell
