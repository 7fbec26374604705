// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/tomography/detail/log_polar/grid.hpp>

namespace Bracewell::Impl {

/// Rows of two real slices as one row of complex numbers.
template <class T>
struct PairOfRows {
  T *first, *second; ///< null where there is no second slice

  KOKKOS_FUNCTION Kokkos::complex<std::remove_const_t<T>> get(int i) const {
    return {first[i], second ? second[i] : T(0)};
  }
  KOKKOS_FUNCTION void put(int i, const Kokkos::complex<T>& value) const {
    first[i] = value.real();
    if (second)
      second[i] = value.imag();
  }
};

/// A team's part of a row: values in scratch memory, for positions `begin` to `end`, and as much again for
/// their B-spline coefficients.
template <class T>
struct LogPolarRowPart {
  using Complex = Kokkos::complex<T>;
  static constexpr int reach = sizeof(T) == 4 ? 12 : 28; ///< where the prefilter's (2 - sqrt 3)^k is gone
  static constexpr int at_once = 8;                      ///< coefficients of a thread
  static constexpr int most_values = log_polar_row_values<T>; ///< with `reach` ones on either side

  Complex *values, *coefficients;

  /// Where value i lies: threads that take neighbouring groups of eight meet in no memory bank.
  KOKKOS_FUNCTION static int slot(int i) { return i + i / at_once; }
  KOKKOS_FUNCTION static constexpr std::size_t bytes() {
    return 2 * (most_values + most_values / at_once) * sizeof(Complex);
  }

  /// Prefilter (Unser, Aldroubi and Eden, IEEE Trans. Signal Process. 41(2), 1993) of `count` values, those
  /// `reach` behind the first one.
  template <class Member>
  KOKKOS_FUNCTION void prefilter(const Member& member, int count) const {
    const T pole = T(-0.26794919243112270647), gain = T(1.7320508075688772935);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, (count + at_once - 1) / at_once), [&](int group) {
      const int begin = group * at_once;
      const int end = Kokkos::min(count, begin + at_once);
      Complex sum(0);
      for (int i = begin; i < begin + reach; ++i)
        sum = pole * sum + values[slot(i)];
      for (int i = begin; i < end; ++i) {
        sum = pole * sum + values[slot(i + reach)];
        coefficients[slot(i)] = sum;
      }
      sum = Complex(0);
      for (int i = end + 2 * reach - 1; i >= end + reach; --i)
        sum = pole * (sum + values[slot(i)]);
      for (int i = end - 1; i >= begin; --i) {
        coefficients[slot(i)] = gain * (coefficients[slot(i)] + sum);
        sum = pole * (sum + values[slot(i + reach)]);
      }
    });
  }
};

/// Where the log-polar samples of an angle lie on its row of the projections.
template <class T>
struct LogPolarRow {
  T scale, origin, begin, step, centre, limit;
  int upsampling, values;

  KOKKOS_FUNCTION LogPolarRow(const LogPolarGrid& grid, T origin_)
      : scale(T(grid.radius / grid.shrink)), origin(origin_), begin(T(grid.rho_begin)),
        step(T(grid.rho_step)), centre(T(grid.centre)), limit(T(grid.radius + LogPolarGrid::margin)),
        upsampling(grid.row_upsampling), values(grid.row_values()) {}

  /// Of column j: the distance from the axis, and from there the position on the row.
  KOKKOS_FUNCTION T distance(int j) const { return (Kokkos::exp(begin + T(j) * step) - origin) * scale; }
  KOKKOS_FUNCTION T position(T s) const { return (s + centre) * T(upsampling); }
  KOKKOS_FUNCTION bool sees(T s) const { return Kokkos::abs(s) <= limit; }
  /// The column that a position has, not rounded.
  KOKKOS_FUNCTION T column(T x) const {
    const T z = (x / T(upsampling) - centre) / scale + origin;
    return (Kokkos::log(Kokkos::max(z, Kokkos::exp(begin))) - begin) / step;
  }
  /// Rows go on periodically.
  KOKKOS_FUNCTION int wrap(int i) const {
    if (i >= 0 && i < values)
      return i;
    i %= values;
    return i < 0 ? i + values : i;
  }
};

/// What the two kernels of rows share: a team has a part of the row of an angle, for a pair of slices.
template <class ExecutionSpace, class T, class Value>
struct LogPolarRows {
  using Complex = Kokkos::complex<T>;
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Part = LogPolarRowPart<T>;
  static constexpr int level = is_host<ExecutionSpace> ? 1 : 0,
                       team_size = TomographyTuning<ExecutionSpace>::row_threads;
  static constexpr int part_values = Part::most_values - 2 * Part::reach - 8;

  LogPolarGrid grid;
  const T* origins;   ///< [angles], LogPolarGrid::origin
  Value* projections; ///< [slices, angles, row_upsampling * width]
  int slices, parts;

  struct Task {
    int p, part, row; ///< angle; row of [pairs, angles]
    PairOfRows<Value> rows;
    Part scratch;
  };

  KOKKOS_FUNCTION Task task(const Member& member) const {
    Task at;
    at.part = member.league_rank() % parts;
    at.row = member.league_rank() / parts;
    at.p = at.row % grid.angles;
    const int pair = at.row / grid.angles;
    const std::int64_t n = grid.row_values();
    Value* const first = projections + (std::int64_t(2 * pair) * grid.angles + at.p) * n;
    at.rows = {first, 2 * pair + 1 < slices ? first + grid.angles * n : nullptr};
    at.scratch.values =
        static_cast<Complex*>(member.team_scratch(+level).get_shmem_aligned(Part::bytes(), 16));
    at.scratch.coefficients = at.scratch.values + Part::slot(Part::most_values);
    return at;
  }

  template <class Functor>
  static void launch(const ExecutionSpace& space, const char* label, const Functor& functor) {
    const int pairs = (functor.slices + 1) / 2;
    launch_kernel(
        label,
        Kokkos::TeamPolicy<ExecutionSpace>(space, pairs * functor.grid.angles * functor.parts, +team_size)
            .set_scratch_size(level, Kokkos::PerTeam(Part::bytes() + 16)),
        functor);
  }
};

/// Projections to log-polar samples: B-spline coefficients of a part of a row in scratch memory, and their
/// values where the columns are.
template <class ExecutionSpace, class T>
struct LogPolarSample : LogPolarRows<ExecutionSpace, T, const T> {
  using Base = LogPolarRows<ExecutionSpace, T, const T>;
  using typename Base::Complex, typename Base::Member, typename Base::Part;

  Complex* samples; ///< [pairs, angles, columns]
  int columns;      ///< of a part

  LogPolarSample(const LogPolarGrid& grid_, const T* origins_, const T* projections_, int slices_,
                 Complex* samples_)
      : Base{grid_, origins_, projections_, slices_, 0}, samples(samples_) {
    // So many that their positions fit in a part.
    const double farthest = std::exp(grid_.rho_begin + grid_.columns * grid_.rho_step);
    const double apart = farthest * grid_.rho_step * grid_.radius / grid_.shrink * grid_.row_upsampling;
    columns = std::max(1, static_cast<int>((Base::part_values - 8) / apart));
    this->parts = (grid_.columns + columns - 1) / columns;
    columns = (grid_.columns + this->parts - 1) / this->parts;
  }

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const auto at = this->task(member);
    const LogPolarRow<T> row(this->grid, this->origins[at.p]);
    const int begin = at.part * columns, end = Kokkos::min(begin + columns, this->grid.columns);
    Complex* const out = samples + std::int64_t(at.row) * this->grid.columns;
    const auto cell = [&](int j) { // of the nearest position that the row sees
      const T s = Kokkos::max(-row.limit, Kokkos::min(row.distance(j), row.limit));
      return static_cast<int>(Kokkos::floor(row.position(s)));
    };
    const int first = cell(begin) - 2, count = Kokkos::min(cell(end - 1) + 4 - first, +Base::part_values);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, count + 2 * Part::reach), [&](int i) {
      at.scratch.values[Part::slot(i)] = at.rows.get(row.wrap(first - Part::reach + i));
    });
    member.team_barrier();
    at.scratch.prefilter(member, count);
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, begin, end), [&](int j) {
      const T s = row.distance(j);
      Complex value(0);
      if (row.sees(s)) {
        const T x = row.position(s), floor = Kokkos::floor(x);
        T weights[4];
        CubicBSpline::weights(x - floor, weights);
        const int i = Kokkos::max(0, Kokkos::min(static_cast<int>(floor) - 1 - first, count - 4));
        for (int k = 0; k < 4; ++k)
          value += weights[k] * at.scratch.coefficients[Part::slot(i + k)];
      }
      out[j] = value;
    });
  }
};

/// The transpose: every position gathers from the columns around it, then the prefilter, which is symmetric.
template <class ExecutionSpace, class T>
struct LogPolarSampleTransposed : LogPolarRows<ExecutionSpace, T, T> {
  using Base = LogPolarRows<ExecutionSpace, T, T>;
  using typename Base::Complex, typename Base::Member, typename Base::Part;

  const Complex* samples; ///< [pairs, angles, columns]
  T scale;

  LogPolarSampleTransposed(const LogPolarGrid& grid_, const T* origins_, const Complex* samples_,
                           T* projections_, int slices_, T scale_)
      : Base{grid_, origins_, projections_, slices_,
             (grid_.row_values() + Base::part_values - 1) / Base::part_values},
        samples(samples_), scale(scale_) {}

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const auto at = this->task(member);
    const LogPolarRow<T> row(this->grid, this->origins[at.p]);
    const Complex* const in = samples + std::int64_t(at.row) * this->grid.columns;
    const int first = at.part * Base::part_values,
              count = Kokkos::min(+Base::part_values, row.values - first);
    const int least = static_cast<int>(Kokkos::floor(row.position(-row.limit))) - 2,
              most = static_cast<int>(Kokkos::floor(row.position(row.limit))) + 3;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, count + 2 * Part::reach), [&](int i) {
      Complex sum(0);
      // All positions that the row's period makes one, from the first that columns reach.
      for (int x = least + row.wrap(first - Part::reach + i - least); x <= most; x += row.values) {
        const int begin = Kokkos::max(0, static_cast<int>(Kokkos::floor(row.column(T(x - 2))))),
                  end = Kokkos::min(this->grid.columns, static_cast<int>(row.column(T(x + 2))) + 2);
        for (int j = begin; j < end; ++j) {
          const T s = row.distance(j);
          if (row.sees(s))
            sum += CubicBSpline::value(row.position(s) - T(x)) * in[j];
        }
      }
      at.scratch.values[Part::slot(i)] = sum;
    });
    member.team_barrier();
    at.scratch.prefilter(member, count);
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, count), [&](int i) {
      at.rows.put(first + i, scale * at.scratch.coefficients[Part::slot(i)]);
    });
  }
};

} // namespace Bracewell::Impl
