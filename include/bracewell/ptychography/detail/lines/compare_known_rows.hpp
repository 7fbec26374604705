// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/ptychography/detail/lines/known_lines.hpp>
#include <bracewell/ptychography/detail/patterns/pattern_sums.hpp>
#include <bracewell/ptychography/detail/team_sums.hpp>

namespace Bracewell::Impl {

/// The rows of patterns: the last transforms of the modes, the comparison of sum |Psi_l|^2 with the targets, and the
/// adjoints of the transforms, in place on waves. Each mode has an exchange of its own, where its numbers wait between the
/// inner and the outer sums until the comparison is known; modes for which there is no room share the last one and are
/// read again.
template <class Space, class T, class Storage, class Sizes, PatternLoss kind>
struct CompareRows : KnownKernel<Space, T, Sizes> {
  using Base = KnownKernel<Space, T, Sizes>;
  using typename Base::Complex, typename Base::Number, typename Base::Line;
  static constexpr int n = Base::n, lanes = Base::lanes, per_lane = Base::per_lane,
                       outer_sums = Base::outer_sums;
  static constexpr int on_chip = PtychographyTuning::compare_threads, numbers = Sizes::exchange,
                       of_mode = Sizes::exchange;

  int exchanges;
  Selection selection;
  Targets<T, Storage> targets;
  T background, norm;
  Complex* waves;
  const PatternSums<T>* patterns;
  double* sums; ///< [patterns, blocks, 2]
  CompareTask task;
  bool gradients; ///< with CompareTask::Compare
  bool backwards; ///< begins with the last pattern

  KOKKOS_FUNCTION void operator()(const typename Base::Member& member) const {
    const int team = backwards ? member.league_size() - 1 - member.league_rank() : member.league_rank();
    const int i = team / Sizes::blocks, count = this->modes.by();
    const std::int64_t j = selection(i);
    const typename Base::Scratch memory(member.team_scratch(0), std::size_t(numbers * exchanges));
    Line at(member.team_rank(), memory.data(), this->table);
    const int row = team % Sizes::blocks * Sizes::lines + at.group;
    const PatternSums<T> pattern = patterns[i];
    Complex* const wave =
        waves + (std::int64_t(i) * count * (n * n) + Base::in_row(at, row)); // of the first mode
    Number x[per_lane] = {}, y[outer_sums][lanes];
    if (!(targets.means[j] > 0)) { // the whole team
      for (int mode = 0; gradients && mode < count; ++mode)
        Line::template store_inner<n>(wave + mode * (n * n), x);
      if (member.team_rank() == 0)
        sums[2 * team] = sums[2 * team + 1] = 0;
      return;
    }
    Line::template load_inner<n>(wave, x);
    const std::int64_t pixel = (targets.row(i, j) * n + row) * n + at.lane;
    T t[outer_sums][lanes], intensity[outer_sums][lanes] = {};
    Line::for_outer(
        [&](int c, int g) { t[c][g] = static_cast<T>(targets.values[pixel + Line::outer(c, g)]); });
    Number* const first_exchange = at.exchange;
    to_detector(at, first_exchange, wave, x, y, intensity);
    T first = 0, second = 0; // intensities become what the waves are multiplied by
    const auto compare = [&](CompareTask what) {
      const auto each = compare_pixel<kind>(what, targets, j, background, norm, pattern);
      Line::for_outer([&](int c, int g) {
        intensity[c][g] = each(intensity[c][g], intensity[c][g], t[c][g],
                               pixel_weight(targets, pixel + Line::outer(c, g), t[c][g]), first, second);
      });
    };
    if (task == CompareTask::Compare)
      compare(CompareTask::Compare);
    else
      compare(task);
    if (gradients)
      from_detector(at, first_exchange, wave, x, y, intensity);
    write_team_sums<Space>(member, first, second, sums + 2 * team);
  }

private:
  KOKKOS_FORCEINLINE_FUNCTION void use_exchange(Line& at, Number* first_exchange, int mode) const {
    at.exchange = first_exchange + numbers * Kokkos::min(mode, exchanges - 1);
  }

  /// The modes at the detector, and their intensities. x: the numbers of the first; y: those of the last at the detector.
  KOKKOS_FORCEINLINE_FUNCTION void to_detector(Line& at, Number* first_exchange, const Complex* wave,
                                               Number (&x)[per_lane], Number (&y)[outer_sums][lanes],
                                               T (&intensity)[outer_sums][lanes]) const {
    const int count = this->modes.by();
    for (int mode = 0; mode < count; ++mode) {
      use_exchange(at, first_exchange, mode);
      at.inner_forward(x);
      if (mode + 1 < count)
        Line::template load_inner<n>(wave + (mode + 1) * (n * n), x); // on its way during the other half
      synchronise_lanes();
      at.outer_forward([&](int c, const Number(&value)[lanes]) {
        BRACEWELL_UNROLL_FOR (int g = 0; g < lanes; ++g) {
          y[c][g] = value[g];
          intensity[c][g] += value[g].re * value[g].re + value[g].im * value[g].im;
        }
      });
      if (mode + 1 >= exchanges)
        synchronise_lanes(); // the next mode takes this exchange
    }
  }

  /// The modes back from the detector, multiplied by `factor` there, from the last on. y: as to_detector leaves it.
  KOKKOS_FORCEINLINE_FUNCTION void from_detector(Line& at, Number* first_exchange, Complex* wave,
                                                 Number (&x)[per_lane], Number (&y)[outer_sums][lanes],
                                                 const T (&factor)[outer_sums][lanes]) const {
    for (int mode = this->modes.by() - 1; mode >= 0; --mode) { // y: numbers of this mode
      Line::for_outer([&](int c, int g) {
        y[c][g] = {y[c][g].re * factor[c][g], y[c][g].im * factor[c][g]};
      });
      at.outer_adjoint(y);
      synchronise_lanes();
      at.inner_adjoint(x);
      Line::template store_inner<n>(wave + mode * (n * n), x);
      if (mode == 0)
        break;
      use_exchange(at, first_exchange, mode - 1);
      if (mode >= exchanges) {
        Line::template load_inner<n>(wave + (mode - 1) * (n * n), x);
        at.inner_forward(x);
        synchronise_lanes();
      }
      at.outer_forward([&](int c, const Number(&value)[lanes]) {
        BRACEWELL_UNROLL_FOR (int g = 0; g < lanes; ++g)
          y[c][g] = value[g];
      });
    }
  }
};

} // namespace Bracewell::Impl
