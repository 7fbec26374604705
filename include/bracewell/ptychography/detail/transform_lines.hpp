// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/plain_complex.hpp>
#include <bracewell/impl/quick_division.hpp>
#include <bracewell/impl/radix_passes.hpp>
#include <bracewell/ptychography/detail/line_teams.hpp>
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

} // namespace Bracewell::Impl
