// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/half.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/row_loop.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <cstdint>

namespace Bracewell::Impl {

/// Makes rows of sinograms from rows of raw frames: see normalise_projections.
template <class T, class Options>
struct NormaliseProjections {
  const T *raw, *dark, *flat; ///< raw [P, S, n]; dark [S, n] and flat [flats, S, n], or null
  const T* places;            ///< [P] in the flat frames, or null: the first one is that of all
  T* sinograms;               ///< [S, P, n]
  T* valid;                   ///< likewise, or null: 1 where the raw data say something
  int angles, slices, width, flats;
  Options options; ///< ProjectionNormalisation

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
    return is_finite(value) && (!options.logarithm || value > T(0)) ? value : invalid;
  }

  /// The value itself, or that of a straight line between the next valid ones on either side; 0 where the row has none.
  KOKKOS_FUNCTION T repaired(const T* row, const Flat& light, std::int64_t slice, int i, T air,
                             bool& is_valid) const {
    const auto finish = [&](T value) { return options.logarithm ? -Kokkos::log(value / air) : value - air; };
    const T value = transmission(row, light, slice, i);
    is_valid = !is_nan(value);
    if (is_valid)
      return finish(value);
    T beside[2] = {};
    int distance[2] = {};
    for (const int side : {0, 1})
      for (int j = i + 2 * side - 1; j >= 0 && j < width && distance[side] == 0; j += 2 * side - 1)
        if (const T other = transmission(row, light, slice, j); !is_nan(other))
          beside[side] = finish(other), distance[side] = Kokkos::abs(j - i);
    if (distance[0] == 0 || distance[1] == 0)
      return beside[0] + beside[1]; // the other one is 0
    return (beside[0] * T(distance[1]) + beside[1] * T(distance[0])) / T(distance[0] + distance[1]);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const std::int64_t slice = row / angles, p = row % angles;
    const T* counts = raw + (p * slices + slice) * width;
    const Flat light = flat_of(p, slice);
    T air = options.logarithm ? T(1) : T(0);
    if (options.air_end > options.air_begin) {
      T sum = 0, count = 0;
      const auto add = [&](int i, T& s) {
        const T value = transmission(counts, light, slice, i);
        s += is_nan(value) ? T(0) : value;
      };
      const auto is_valid = [&](int i, T& c) {
        c += is_nan(transmission(counts, light, slice, i)) ? T(0) : T(1);
      };
      const auto columns = Kokkos::ThreadVectorRange(member, options.air_begin, options.air_end);
      Kokkos::parallel_reduce(columns, add, sum);
      Kokkos::parallel_reduce(columns, is_valid, count);
      if (count > T(0) && (sum > T(0) || !options.logarithm))
        air = sum / count;
    }
    T* const out = sinograms + row * width;
    T* const marks = valid == nullptr ? nullptr : valid + row * width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int i) {
      bool is_valid = false;
      out[i] = repaired(counts, light, slice, i, air, is_valid);
      if (marks != nullptr)
        marks[i] = is_valid ? T(1) : T(0);
    });
  }
};

template <class ExecutionSpace, class T, class MemorySpace, class Places, class Options>
void normalise(const ExecutionSpace& space, const Array<const T, MemorySpace>& in,
               const Array<const T, MemorySpace>& shade, const Array<const T, MemorySpace>& light,
               const Places& places, const Array<T, MemorySpace>& out, const Options& options,
               const Array<T, MemorySpace>& valid) {
  constexpr Arguments arguments{"normalise_projections"};
  if (!in || in.rank != 3)
    arguments.refuse("raw", "[angles, slices, width], found %s", in.shape_text().characters);
  const std::int64_t P = in.extents[0], S = in.extents[1], n = in.extents[2];
  if (std::max({P, S, n}) > 1 << 30)
    arguments.refuse("raw", "axes of at most 2^30, found %s", in.shape_text().characters);
  arguments.shape("sinograms", out, {S, P, n});
  if (valid)
    arguments.shape("valid", valid, {S, P, n});
  if (shade)
    arguments.shape("dark", shade, {S, n});
  if (places) {
    arguments.shape("places", places, {P});
    if (!light || light.rank != 3 || light.extents[0] < 1 || light.extents[0] > 1 << 20)
      arguments.refuse("flats", "[frames, slices, width], found %s", light.shape_text().characters);
    arguments.shape("flats", light, {light.extents[0], S, n});
  } else if (light) {
    arguments.shape("flat", light, {S, n});
  }
  arguments.require(light || !shade, "flat", "a View, as there is one of the dark field",
                    "one that is not allocated");
  if (options.air_begin < 0 || options.air_end < options.air_begin || options.air_end > n)
    arguments.refuse("options.air_begin, options.air_end", "columns within 0 and %s, found %s and %s",
                     Digits(n).characters, Digits(options.air_begin).characters,
                     Digits(options.air_end).characters);
  arguments.disjoint({{"sinograms", out}, {"valid", valid}},
                     {{"raw", in}, {"dark", shade}, {"flat", light}, {"places", places}});
  if (out.size() == 0)
    return;
  Kokkos::Profiling::ScopedRegion region("Bracewell::normalise_projections");
  for_each_row(space, "Bracewell::normalise_projections::normalise", S * P,
               NormaliseProjections<T, Options>{in.data, shade.data, light.data, places.data, out.data,
                                                valid.data, int(P), int(S), int(n),
                                                places ? int(light.extents[0]) : 1, options});
}

/// Straight lines between the nearest valid values of a row, in place of those that are not; rows without any stay as they
/// are.
template <class T>
struct BridgeInvalid {
  T* values;
  const T* valid;
  int width;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    T* const own = values + row * width;
    const T* const marks = valid + row * width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int i) {
      if (marks[i] > T(0))
        return;
      int left = i, right = i;
      while (left >= 0 && !(marks[left] > T(0)))
        --left;
      while (right < width && !(marks[right] > T(0)))
        ++right;
      if (left >= 0 && right < width)
        own[i] = own[left] + (own[right] - own[left]) * T(i - left) / T(right - left);
      else if (left >= 0 || right < width)
        own[i] = own[left >= 0 ? left : right];
    });
  }
};

/// A polynomial without constant term.
template <class T>
struct HardenRow {
  static constexpr int most = 8;

  T* values;
  T coefficients[most]; ///< of the first power on
  int count, width;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    T* const own = values + row * width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int i) {
      T sum = 0;
      for (int k = count - 1; k >= 0; --k)
        sum = (sum + coefficients[k]) * own[i];
      own[i] = sum;
    });
  }
};

} // namespace Bracewell::Impl
