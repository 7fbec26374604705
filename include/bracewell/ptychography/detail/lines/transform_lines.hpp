// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/division.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/plain_complex.hpp>
#include <bracewell/impl/radix_passes.hpp>
#include <bracewell/ptychography/detail/line_teams.hpp>
#include <bracewell/ptychography/detail/lines/line_waves.hpp>
#include <bracewell/ptychography/detail/team_sums.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Transforms all lines of waves: store.of(wave)(line, index, DFT of load.of(wave)(line, index)). A team does a block
/// of lines; it reads all of them before it writes, so that it may work in place.
/// @tparam transfers  whether spectra are multiplied by phases, and transformed back
template <class Space, class T, bool adjacent, bool inverse, class Load, class Store, bool transfers = false>
struct TransformLines {
  static constexpr int resident = 3; ///< teams on a multiprocessor, at least
  using Number = PlainComplex<T>;
  using Scratch = Kokkos::View<Number*, typename Space::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  using Member = typename Kokkos::TeamPolicy<Space>::member_type;

  RadixPasses<T> passes, passes_back; ///< the latter where it transfers
  LineTeams teams;
  int lines; ///< of a wave
  Load load;
  Store store;
  double* energies;                 ///< [waves, blocks, 2]: energy of what is loaded, or null
  const Kokkos::complex<T>* phases; ///< TransferPhases, of this axis
  QuickDivision sharing;            ///< waves that have the same phases
  bool conjugate;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(const Member& member) const {
    const int wave = teams.blocks.quotient(member.league_rank());
    const int begin = teams.blocks.remainder(member.league_rank()) * teams.lines.by();
    const int own = Kokkos::min(teams.lines.by(), lines - begin);
    const Scratch scratch(member.team_scratch(LineTeams::scratch_level<Space>()),
                          LineTeams::bytes<Space>(passes, teams.lines.by(), 0) / sizeof(Number));
    const TeamLines<Space, Member, T, adjacent> work(member, teams, own, passes, scratch.data());
    const auto source = load.of(wave, begin);
    const auto target = store.of(wave, begin);
    T energy = 0;
    work.template first<inverse>(passes, [&](int line, int index) {
      const Number value = source(line, index);
      energy += value.re * value.re + value.im * value.im;
      return value;
    });
    work.template middle<inverse>(passes);
    if constexpr (transfers) {
      const Kokkos::complex<T>* const own_phases =
          phases + std::int64_t(2) * sharing.quotient(wave) * passes.n;
      work.template use_transform<inverse>(passes, TransferLine<T>{own_phases, conjugate});
      work.template middle<!inverse>(passes_back);
      work.template last<!inverse>(passes_back, target);
    } else {
      work.template last<inverse>(passes, target);
    }
    if (energies)
      write_team_sums<Space>(member, energy, 0, energies + 2 * member.league_rank());
  }
};

/// Launches a kernel over the blocks of lines of `count` patterns or waves.
template <class Space, class Kernel>
void launch_lines(const Space& space, const char* label, const LineTeams& teams, std::int64_t count,
                  std::size_t bytes, const Kernel& kernel) {
  using Policy = Kokkos::TeamPolicy<
      Space, Kokkos::LaunchBounds<PtychographyTuning::line_threads, resident_teams<Space>(Kernel::resident)>>;
  Policy policy(space, static_cast<int>(count * teams.blocks.by()), teams.threads);
  policy.set_scratch_size(LineTeams::scratch_level<Space>(), Kokkos::PerTeam(static_cast<int>(bytes)));
  launch_kernel(label, policy, kernel);
}

/// What spectra are multiplied by.
template <class T>
struct LineTransfer {
  const Kokkos::complex<T>* phases = nullptr; ///< TransferPhases, of this axis
  QuickDivision waves;                        ///< that have the same
  bool conjugate = false;
};

/// TransformLines of all lines of so many waves, `lines` of a wave.
template <bool adjacent, bool inverse, bool transfers = false, class Space, class T, class Load, class Store>
void transform_lines(const Space& space, const char* label, const RadixPlan<Space, T>& plan, int lines,
                     std::int64_t waves, const Load& load, const Store& store, double* energies = nullptr,
                     const LineTransfer<T>& transfer = {}) {
  const RadixPasses<T>& passes = inverse ? plan.inverse() : plan.forward();
  const LineTeams teams = LineTeams::choose<Space>(passes, lines, 0);
  launch_lines(space, label, teams, waves, LineTeams::bytes<Space>(passes, teams.lines.by(), 0),
               TransformLines<Space, T, adjacent, inverse, Load, Store, transfers>{
                   passes, inverse ? plan.forward() : plan.inverse(), teams, lines, load, store, energies,
                   transfer.phases, transfer.waves, transfer.conjugate});
}

/// The probe of every pattern of a selection, [patterns, modes, m, m].
template <class Space, class T>
Probes<T> shift_probes(const Space& space, const RadixPlan<Space, T>& window,
                       const ShiftedSpectra<T>& spectra, Kokkos::complex<T>* probes) {
  const int m = spectra.ramp.m, modes = spectra.ramp.modes;
  const std::int64_t waves = spectra.ramp.selection.count * modes;
  const WaveLines<T, true> columns{probes, m, m};
  transform_lines<false, true>(space, "Bracewell::PtychographyLoss::shift_rows", window, m, waves,
                               LoadShiftedSpectrum<T>{spectra}, WaveLines<T, false>{probes, m, m});
  transform_lines<true, true>(space, "Bracewell::PtychographyLoss::shift_columns", window, m, waves, columns,
                              columns);
  return {probes, spectra.elements(), modes};
}

/// DFT(conj(O) G), [patterns, modes, m, m].
template <class Space, class T>
void transform_terms(const Space& space, const RadixPlan<Space, T>& window, const LoadProbeTerms<T>& terms,
                     Kokkos::complex<T>* to) {
  const int m = terms.scan.probe;
  const std::int64_t waves = terms.selection.count * terms.modes;
  const WaveLines<T, false> rows{to, m, m};
  transform_lines<true, false>(space, "Bracewell::PtychographyLoss::probe_columns", window, m, waves, terms,
                               WaveLines<T, true>{to, m, m});
  transform_lines<false, false>(space, "Bracewell::PtychographyLoss::probe_rows", window, m, waves, rows,
                                rows);
}

} // namespace Bracewell::Impl
