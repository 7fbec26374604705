// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/plain_complex.hpp>
#include <bracewell/ptychography/detail/line_teams.hpp>
#include <bracewell/ptychography/detail/patterns/compare_patterns.hpp>
#include <bracewell/ptychography/detail/patterns/pattern_sums.hpp>
#include <bracewell/ptychography/detail/team_sums.hpp>

namespace Bracewell::Impl {

/// The middle of a pattern, a block of its rows at a time: the last transforms of the modes (along rows) to the
/// detector, the comparison of the intensity with the targets, and the adjoints of the transforms, in place on
/// waves [patterns, modes, n, m]. With more than one mode, the intensity of all is known when the last one has been
/// transformed; its adjoint follows at once, the others are transformed again.
/// @tparam far  I = sum |Psi_l|^2 in the far field; otherwise what `detector` and `phases` say
template <class Space, class T, class Storage, bool far>
struct CompareLines {
  static constexpr int resident = 2; ///< teams on a multiprocessor, at least
  using Number = PlainComplex<T>;
  using Scratch = Kokkos::View<Number*, typename Space::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  using Member = typename Kokkos::TeamPolicy<Space>::member_type;

  using Task = CompareTask;

  RadixPasses<T> forward, inverse;
  LineTeams teams;
  int m, modes;
  Selection selection;
  Targets<T, Storage> targets;
  PatternLoss loss;
  T background, norm;
  Kokkos::complex<T>* waves;
  const PatternSums<T>* patterns;
  double* sums; ///< [patterns, blocks, 2]
  Task task;
  bool gradients;
  DetectorTerms<T> detector;        ///< but for the gradient of factors
  const Kokkos::complex<T>* phases; ///< TransferPhases in the near field, or null

  using Lines = TeamLines<Space, Member, T, false>;

  /// Of the block of a team.
  struct Block {
    const CompareLines& all;
    const Lines& lines;
    int n;            ///< of a line
    std::int64_t i;   ///< in the selection
    std::int64_t j;   ///< the pattern
    std::int64_t row; ///< of the targets
    int begin;        ///< its first row
    PatternSums<T> pattern;
    T* shared; ///< [lines, pitch(n)]: intensities of the modes before, in the end what a wave is multiplied by
    double* sum;
  };

  /// What numbers of one mode at the detector are needed for.
  struct Detector {
    const Block& block;
    enum class Use {
      Add,
      Compare,
      Multiply
    } use; ///< of the intensity, of the wave by what the comparison left

    template <int radix>
    KOKKOS_FORCEINLINE_FUNCTION void operator()(const LineButterfly& at, int apart,
                                                Number (&x)[radix]) const {
      T* const shared = block.shared + at.line * LineTeams::pitch(block.n) + at.j;
      if (use == Use::Add) {
        BRACEWELL_UNROLL_FOR (int q = 0; q < radix; ++q)
          shared[apart * q] += x[q].re * x[q].re + x[q].im * x[q].im;
      } else if (use == Use::Compare)
        visit_loss_in_kernel(block.all.loss, [&](auto kind) {
          compare<decltype(kind)::value>(at.line, at.j, apart, x, shared);
        });
      else {
        BRACEWELL_UNROLL_FOR (int q = 0; q < radix; ++q)
          x[q] = {x[q].re * shared[apart * q], x[q].im * shared[apart * q]};
      }
    }

    template <PatternLoss kind, int radix>
    KOKKOS_FORCEINLINE_FUNCTION void compare(int line, int j, int apart, Number (&x)[radix],
                                             T* shared) const {
      const CompareLines& all = block.all;
      const Targets<T, Storage>& read = all.targets;
      const bool several = all.modes > 1;
      const std::int64_t in_pattern = (block.begin + line) * block.n + j, n = block.n,
                         at = block.row * n * n + in_pattern;
      const auto pixel =
          compare_pixel<kind>(all.task, read, block.j, all.background, all.norm, block.pattern);
      const T h = !far && all.detector.factors ? all.detector.factors[block.j] : T(1);
      T first = 0, second = 0;
      BRACEWELL_UNROLL_FOR (int q = 0; q < radix; ++q) {
        const T t = static_cast<T>(read.values[at + apart * q]);
        T energy = x[q].re * x[q].re + x[q].im * x[q].im;
        if (several)
          energy += shared[apart * q];
        T intensity = energy;
        if constexpr (!far) {
          intensity *= h;
          if (all.detector.background)
            intensity += all.detector.background[in_pattern + apart * q];
        }
        T factor = pixel(energy, intensity, t, pixel_weight(read, at + apart * q, t), first, second);
        if constexpr (!far) {
          if (all.detector.slopes && all.task == Task::Compare)
            all.detector.slopes[block.i * n * n + in_pattern + apart * q] = factor / 2;
          factor *= h;
        }
        if (several)
          shared[apart * q] = factor;
        x[q] = {x[q].re * factor, x[q].im * factor};
      }
      block.sum[0] += first;
      block.sum[1] += second;
    }
  };

  KOKKOS_FORCEINLINE_FUNCTION void operator()(const Member& member) const {
    const int n = forward.n;
    const std::int64_t i = teams.blocks.quotient(member.league_rank()), j = selection(i);
    const int begin = teams.blocks.remainder(member.league_rank()) * teams.lines.by();
    const int own = Kokkos::min(teams.lines.by(), n - begin);
    const std::size_t numbers = LineTeams::bytes<Space>(forward, teams.lines.by(), 0) / sizeof(Number);
    const Scratch scratch(member.team_scratch(LineTeams::scratch_level<Space>()),
                          LineTeams::bytes<Space>(forward, teams.lines.by(), kept()) / sizeof(Number));
    const Lines work(member, teams, own, forward, scratch.data());
    double sum[2] = {0, 0};
    const Block block{*this, work,        n,
                      i,     j,           targets.row(i, j),
                      begin, patterns[i], reinterpret_cast<T*>(scratch.data() + numbers),
                      sum};
    if (!(targets.means[j] > 0)) { // the whole team
      if (gradients && task == Task::Compare)
        clear(member, i, begin, own);
      if (member.team_rank() == 0)
        sums[2 * member.league_rank()] = sums[2 * member.league_rank() + 1] = 0;
      return;
    }
    if (modes > 1) {
      for (int k = member.team_rank(); k < own * LineTeams::pitch(n); k += member.team_size())
        block.shared[k] = 0;
      member.team_barrier();
    }
    for (int mode = 0; mode < modes; ++mode)
      to_detector(block, wave(i, mode, begin),
                  mode + 1 < modes ? Detector::Use::Add : Detector::Use::Compare);
    write_team_sums<Space>(member, sum[0], sum[1], sums + 2 * member.league_rank());
    if (!gradients || task != Task::Compare)
      return;
    from_detector(block, wave(i, modes - 1, begin));
    for (int mode = 0; mode + 1 < modes; ++mode) {
      to_detector(block, wave(i, mode, begin), Detector::Use::Multiply);
      from_detector(block, wave(i, mode, begin));
    }
  }

  /// Numbers that are kept for every element of a line.
  KOKKOS_INLINE_FUNCTION int kept() const { return modes > 1 ? 1 : 0; }

  KOKKOS_FORCEINLINE_FUNCTION Kokkos::complex<T>* wave(std::int64_t i, int mode, int row) const {
    return waves + ((i * modes + mode) * forward.n + row) * m;
  }

  /// To the numbers at the detector, which are used, and on to the first pass of the way back.
  KOKKOS_FORCEINLINE_FUNCTION void to_detector(const Block& block, const Kokkos::complex<T>* rows,
                                               typename Detector::Use use) const {
    const bool back = use != Detector::Use::Add && gradients && task == Task::Compare;
    block.lines.template first<false>(forward, [&](int line, int x) {
      return x < m ? plain(rows[line * m + x]) : Number{0, 0};
    });
    block.lines.template middle<false>(forward);
    if constexpr (!far) {
      if (phases) {
        block.lines.template use_transform<false>(forward, transfer(block.i, false));
        block.lines.template middle<true>(inverse);
        block.lines.template use_transform<true>(inverse, Detector{block, use}, back);
        return;
      }
    }
    block.lines.template use_transform<false>(forward, Detector{block, use}, back);
  }

  KOKKOS_FORCEINLINE_FUNCTION void from_detector(const Block& block, Kokkos::complex<T>* rows) const {
    if constexpr (!far) {
      if (phases) {
        block.lines.template middle<false>(forward);
        block.lines.template use_transform<false>(forward, transfer(block.i, true));
      }
    }
    block.lines.template middle<true>(inverse);
    block.lines.template last<true>(inverse, [&](int line, int x, const Number& value) {
      if (x < m)
        rows[line * m + x] = Kokkos::complex<T>(value.re, value.im);
    });
  }

  /// Along rows.
  KOKKOS_FORCEINLINE_FUNCTION TransferLine<T> transfer(std::int64_t i, bool conjugate) const {
    return {phases + (2 * i + 1) * forward.n, conjugate};
  }

  KOKKOS_INLINE_FUNCTION void clear(const Member& member, std::int64_t i, int begin, int own) const {
    for (int mode = 0; mode < modes; ++mode)
      for (int k = member.team_rank(); k < own * m; k += member.team_size())
        wave(i, mode, begin)[k] = 0;
    if (!far && detector.slopes)
      for (int k = member.team_rank(); k < own * forward.n; k += member.team_size())
        detector.slopes[(i * forward.n + begin) * forward.n + k] = 0;
  }
};

} // namespace Bracewell::Impl
