// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/row_loop.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <vector>

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
  const T *raw, *dark, *flat; ///< raw [P, S, n]; dark [S, n] and flat [flats, S, n], or null
  const T* places;            ///< [P] in the flat frames, or null: the first one is that of all
  T* sinograms;               ///< [S, P, n]
  int angles, slices, width, flats;
  ProjectionNormalisation options;

  /// Between two flat frames.
  struct Flat {
    const T *first, *second; ///< rows
    T share;                 ///< of the second one
  };

  KOKKOS_FUNCTION Flat flat_of(std::int64_t p, std::int64_t slice) const {
    const T* const row = flat + slice * width;
    if (flat == nullptr || places == nullptr)
      return {row, row, T(0)};
    const T place = Kokkos::clamp(places[p], T(0), T(flats - 1));
    const int first = Kokkos::min(static_cast<int>(place), Kokkos::max(flats - 2, 0)),
              second = Kokkos::min(first + 1, flats - 1);
    const std::int64_t frame = std::int64_t(slices) * width;
    return {row + first * frame, row + second * frame, place - T(first)};
  }

  /// Transmission; not a number where the raw data say nothing: not finite, or no light where there is a
  /// logarithm to take.
  KOKKOS_FUNCTION T transmission(const T* row, const Flat& light_of, std::int64_t slice, int i) const {
    const T invalid = Kokkos::Experimental::quiet_NaN_v<T>;
    T value = row[i];
    if (flat != nullptr) {
      const T shade = dark != nullptr ? dark[slice * width + i] : T(0), one = light_of.first[i],
              light = (places != nullptr ? one + light_of.share * (light_of.second[i] - one) : one) - shade;
      value = light > T(0) ? (value - shade) / light : invalid;
    }
    return Kokkos::isfinite(value) && (!options.logarithm || value > T(0)) ? value : invalid;
  }

  /// The value itself, or the mean of the next valid ones on either side; 0 where the row has none.
  KOKKOS_FUNCTION T repaired(const T* row, const Flat& light, std::int64_t slice, int i, T air) const {
    const auto finish = [&](T value) { return options.logarithm ? -Kokkos::log(value / air) : value - air; };
    const T value = transmission(row, light, slice, i);
    if (!Kokkos::isnan(value))
      return finish(value);
    T sum = 0;
    int found = 0;
    for (const int step : {-1, 1})
      for (int j = i + step; j >= 0 && j < width; j += step) {
        const T other = transmission(row, light, slice, j);
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
    const Flat light = flat_of(p, slice);
    T air = options.logarithm ? T(1) : T(0);
    if (options.air_end > options.air_begin) {
      T sum = 0, count = 0;
      const auto add = [&](int i, T& s) {
        const T value = transmission(row, light, slice, i);
        s += Kokkos::isnan(value) ? T(0) : value;
      };
      const auto valid = [&](int i, T& c) {
        c += Kokkos::isnan(transmission(row, light, slice, i)) ? T(0) : T(1);
      };
      const auto columns = Kokkos::ThreadVectorRange(member, options.air_begin, options.air_end);
      Kokkos::parallel_reduce(columns, add, sum);
      Kokkos::parallel_reduce(columns, valid, count);
      if (count > T(0) && (sum > T(0) || !options.logarithm))
        air = sum / count;
    }
    T* out = sinograms + line * width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width),
                         [&](int i) { out[i] = repaired(row, light, slice, i, air); });
  }
};

} // namespace Impl

namespace Impl {

template <class ExecutionSpace, class T, class MemorySpace, class Places>
void normalise(const ExecutionSpace& space, const Array<const T, MemorySpace>& in,
               const Array<const T, MemorySpace>& shade, const Array<const T, MemorySpace>& light,
               const Places& places, const Array<T, MemorySpace>& out,
               const ProjectionNormalisation& options) {
  constexpr Arguments arguments{"normalise_projections"};
  arguments.require(in && in.rank == 3, "raw", "[angles, slices, width]", [&] { return in.shape(); });
  const std::int64_t P = in.extents[0], S = in.extents[1], n = in.extents[2];
  arguments.require(P <= (1 << 30) && S <= (1 << 30) && n <= (1 << 30), "raw", "axes of at most 2^30",
                    [&] { return in.shape(); });
  arguments.shape("sinograms", out, {S, P, n});
  if (shade)
    arguments.shape("dark", shade, {S, n});
  if (places) {
    arguments.shape("places", places, {P});
    arguments.require(light && light.rank == 3 && light.extents[0] >= 1 && light.extents[0] <= (1 << 20),
                      "flats", "[frames, slices, width]", [&] { return light.shape(); });
    arguments.shape("flats", light, {light.extents[0], S, n});
  } else if (light) {
    arguments.shape("flat", light, {S, n});
  }
  arguments.require(light || !shade, "flat", "a View, as there is one of the dark field",
                    "one that is not allocated");
  arguments.require(
      options.air_begin >= 0 && options.air_end >= options.air_begin && options.air_end <= n,
      "options.air_begin, options.air_end", [&] { return "columns within 0 and " + number(n); },
      [&] { return number(options.air_begin) + " and " + number(options.air_end); });
  arguments.disjoint({{"sinograms", out}},
                     {{"raw", in}, {"dark", shade}, {"flat", light}, {"places", places}});
  if (out.size() == 0)
    return;
  Kokkos::Profiling::ScopedRegion region("Bracewell::normalise_projections");
  for_each_row(space, "Bracewell::normalise_projections::normalise", S * P,
               NormaliseProjections<T>{in.data, shade.data, light.data, places.data, out.data, int(P), int(S),
                                       int(n), places ? int(light.extents[0]) : 1, options});
}

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
  using Input = Array<const T, MemorySpace>;
  Impl::normalise(space, Input(raw), Input(dark), Input(flat), Input(), Array<T, MemorySpace>(sinograms),
                  options);
}

/// The same where the beam drifts: the flat field changes from projection to projection.
/// @param flats   [F, S, n] mean frames without object, of F times
/// @param places  [P] for every projection its place among them: 0.25 is a quarter of the way from the first to the
///                second one, whole numbers take one as it is; places beyond the ends take the first or last
/// @throws Error as above
template <class ExecutionSpace, class Raw, class Dark, class Flats, class Places, class Sinograms>
requires(Kokkos::is_view_v<Sinograms>) void normalise_projections(
    const ExecutionSpace& space, const Raw& raw, const Dark& dark, const Flats& flats, const Places& places,
    const Sinograms& sinograms, const ProjectionNormalisation& options = {}) {
  using T = typename Sinograms::value_type;
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Input = Array<const T, MemorySpace>;
  const Input of_projections(places);
  constexpr Impl::Arguments arguments{"normalise_projections"};
  arguments.given("places", of_projections);
  Impl::normalise(space, Input(raw), Input(dark), Input(flats), of_projections,
                  Array<T, MemorySpace>(sinograms), options);
}

namespace Impl {

/// A polynomial without constant term.
template <class T>
struct HardenRow {
  static constexpr int most = 8;

  T* values;
  T coefficients[most]; ///< of the first power on
  int count, width;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t line, const Member& member) const {
    T* const row = values + line * width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int i) {
      T sum = 0;
      for (int k = count - 1; k >= 0; --k)
        sum = (sum + coefficients[k]) * row[i];
      row[i] = sum;
    });
  }
};

} // namespace Impl

/// Attenuation of a beam of many energies to that of one, by a polynomial: c0 a + c1 a^2 + c2 a^3 ... (Herman,
/// Phys. Med. Biol. 24, 1979): the harder part of the beam is what is left behind much material.
/// @param sinograms     [S, P, n] attenuation, changed in place
/// @param coefficients  c0, c1 ...: 1 to 8 of them
/// @throws Error on another rank or number, and coefficients that are not finite
template <class ExecutionSpace, class Sinograms>
void correct_beam_hardening(const ExecutionSpace& space, const Sinograms& sinograms,
                            const std::vector<double>& coefficients) {
  using T = typename Sinograms::value_type;
  using Harden = Impl::HardenRow<T>;
  constexpr Impl::Arguments arguments{"correct_beam_hardening"};
  const Array<T, typename ExecutionSpace::memory_space> array(sinograms);
  arguments.require(array && array.rank == 3 && array.extents[2] < (1 << 30), "sinograms",
                    "[slices, angles, width]", [&] { return array.shape(); });
  arguments.within("coefficients", coefficients.size(), std::size_t(1), std::size_t(Harden::most),
                   " of them");
  Harden harden{array.data, {}, int(coefficients.size()), int(array.extents[2])};
  for (std::size_t k = 0; k < coefficients.size(); ++k) {
    arguments.finite("coefficients", coefficients[k]);
    harden.coefficients[k] = T(coefficients[k]);
  }
  Kokkos::Profiling::ScopedRegion region("Bracewell::correct_beam_hardening");
  Impl::for_each_row(space, "Bracewell::correct_beam_hardening::polynomial",
                     array.extents[0] * array.extents[1], harden);
}

} // namespace Bracewell
