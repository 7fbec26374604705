// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/row_loop.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

/// How raw frames become attenuation.
struct ProjectionNormalisation {
  /// Minus the logarithm of the transmission; without it values are attenuation already.
  bool logarithm = true;
  /// Columns [begin, end) see air: each row is divided by its mean there, or without logarithm less that mean;
  /// none if empty.
  int air_begin = 0;
  int air_end = 0; ///< behind the last of these columns
};

namespace Impl {

/// Turns rows of raw frames into rows of sinograms: see normalise_projections.
template <class T>
struct NormaliseProjections {
  const T *raw, *dark, *flat; ///< raw [P, S, n]; dark and flat [S, n], or null
  T* sinograms;               ///< [S, P, n]
  int angles, slices, width;
  ProjectionNormalisation options;

  /// Transmission; not a number where the raw data say nothing: not finite, or no light where there is a
  /// logarithm to take.
  KOKKOS_FUNCTION T transmission(const T* row, std::int64_t slice, int i) const {
    const T invalid = Kokkos::Experimental::quiet_NaN_v<T>;
    T value = row[i];
    if (flat != nullptr) {
      const T shade = dark != nullptr ? dark[slice * width + i] : T(0),
              light = flat[slice * width + i] - shade;
      value = light > T(0) ? (value - shade) / light : invalid;
    }
    return Kokkos::isfinite(value) && (!options.logarithm || value > T(0)) ? value : invalid;
  }

  /// The value itself, or the mean of the next valid ones on either side; 0 where the row has none.
  KOKKOS_FUNCTION T repaired(const T* row, std::int64_t slice, int i, T air) const {
    const auto finish = [&](T value) { return options.logarithm ? -Kokkos::log(value / air) : value - air; };
    const T value = transmission(row, slice, i);
    if (!Kokkos::isnan(value))
      return finish(value);
    T sum = 0;
    int found = 0;
    for (const int step : {-1, 1})
      for (int j = i + step; j >= 0 && j < width; j += step) {
        const T other = transmission(row, slice, j);
        if (Kokkos::isnan(other))
          continue;
        sum += finish(other);
        ++found;
        break;
      }
    return found > 0 ? sum / T(found) : T(0);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t line, const Member& member) const {
    const std::int64_t slice = line / angles, p = line % angles;
    const T* row = raw + (p * slices + slice) * width;
    T air = options.logarithm ? T(1) : T(0);
    if (options.air_end > options.air_begin) {
      T sum = 0, count = 0;
      const auto add = [&](int i, T& s) {
        const T value = transmission(row, slice, i);
        s += Kokkos::isnan(value) ? T(0) : value;
      };
      const auto valid = [&](int i, T& c) { c += Kokkos::isnan(transmission(row, slice, i)) ? T(0) : T(1); };
      const auto columns = Kokkos::ThreadVectorRange(member, options.air_begin, options.air_end);
      Kokkos::parallel_reduce(columns, add, sum);
      Kokkos::parallel_reduce(columns, valid, count);
      if (count > T(0) && (sum > T(0) || !options.logarithm))
        air = sum / count;
    }
    T* out = sinograms + line * width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width),
                         [&](int i) { out[i] = repaired(row, slice, i, air); });
  }
};

} // namespace Impl

/// Raw frames to sinograms: (raw - dark) / (flat - dark), divided by its mean where there is air, minus the
/// logarithm (Beer-Lambert); without logarithm less that mean. Values that are not finite, without light in the flat field or, where there is a
/// logarithm, not positive become the mean of their next valid neighbours in the row.
/// @param raw        [P, S, n] frames by angle
/// @param dark       [S, n] mean frame without beam, or a View that is not allocated
/// @param flat       [S, n] mean frame without object, or a View that is not allocated: raw is transmission
/// @param sinograms  [S, P, n], overwritten
/// @throws Error on shapes that do not fit, air columns outside the row, shared memory, dark without flat
template <class ExecutionSpace, class Raw, class Dark, class Flat, class Sinograms>
void normalise_projections(const ExecutionSpace& space, const Raw& raw, const Dark& dark, const Flat& flat,
                           const Sinograms& sinograms, const ProjectionNormalisation& options = {}) {
  using T = typename Sinograms::value_type;
  using MemorySpace = typename ExecutionSpace::memory_space;
  constexpr Impl::Arguments arguments{"normalise_projections"};
  const Array<const T, MemorySpace> in(raw), shade(dark), light(flat);
  const Array<T, MemorySpace> out(sinograms);
  arguments.require(in && in.rank == 3, "raw", "[angles, slices, width]", [&] { return in.shape(); });
  const std::int64_t P = in.extents[0], S = in.extents[1], n = in.extents[2];
  arguments.require(P <= (1 << 30) && S <= (1 << 30) && n <= (1 << 30), "raw", "axes of at most 2^30",
                    [&] { return in.shape(); });
  arguments.shape("sinograms", out, {S, P, n});
  if (shade)
    arguments.shape("dark", shade, {S, n});
  if (light)
    arguments.shape("flat", light, {S, n});
  arguments.require(light || !shade, "flat", "a View, as there is one of the dark field",
                    "one that is not allocated");
  arguments.require(
      options.air_begin >= 0 && options.air_end >= options.air_begin && options.air_end <= n,
      "options.air_begin, options.air_end", [&] { return "columns within 0 and " + Impl::number(n); },
      [&] { return Impl::number(options.air_begin) + " and " + Impl::number(options.air_end); });
  arguments.disjoint({{"sinograms", out}}, {{"raw", in}, {"dark", shade}, {"flat", light}});
  if (out.size() == 0)
    return;
  Kokkos::Profiling::ScopedRegion region("Bracewell::normalise_projections");
  Impl::for_each_row(space, "Bracewell::normalise_projections::normalise", S * P,
                     Impl::NormaliseProjections<T>{in.data, shade.data, light.data, out.data, int(P), int(S),
                                                   int(n), options});
}

} // namespace Bracewell
