// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/sums.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>

namespace Bracewell::Impl {

/// Problems side by side, as many values each, in parts that teams sum.
struct ProblemParts {
  static constexpr std::int64_t part = 8192; ///< values, at most
  int problems = 0, parts = 0;
  std::int64_t size = 0; ///< values of a problem

  static ProblemParts make(std::int64_t problems, std::int64_t size) {
    return {static_cast<int>(problems), static_cast<int>(std::max<std::int64_t>(1, (size + part - 1) / part)),
            size};
  }
  int all() const { return problems * parts; }
};

/// body(problem, index in the array) for all values, which returns what is summed; one sum per part, which does not
/// depend on the number of threads.
template <class ExecutionSpace, class Body, int Count>
struct SumParts {
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  Body body;
  ProblemParts layout;
  Sums<Count>* partial; ///< [problems, parts]

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int problem = member.league_rank() / layout.parts, part = member.league_rank() % layout.parts;
    const std::int64_t begin = part * ProblemParts::part, first = problem * layout.size + begin;
    const int count = static_cast<int>(Kokkos::min(std::int64_t(ProblemParts::part), layout.size - begin));
    Sums<Count> sums;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member, count),
        [&](int i, Sums<Count>& own) { own += body(problem, first + i); }, sums);
    Kokkos::single(Kokkos::PerTeam(member),
                   [&] { partial[std::int64_t(problem) * layout.parts + part] = sums; });
  }
};

/// The sums of a problem, handed to body(problem, sums) by one lane of its team.
template <class ExecutionSpace, int Count, class Body>
struct FinishSums {
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  Body body;
  ProblemParts layout;
  const Sums<Count>* partial;

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int problem = member.league_rank();
    const Sums<Count>* const own_parts = partial + std::int64_t(problem) * layout.parts;
    Sums<Count> sums;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member, layout.parts),
        [&](int part, Sums<Count>& own) { own += own_parts[part]; }, sums);
    Kokkos::single(Kokkos::PerTeam(member), [&] { body(problem, sums); });
  }
};

/// Runs `body` on all values and hands the sums of every problem to `finish`.
template <int Count, class ExecutionSpace, class Body, class Finish>
void sum_problems(const ExecutionSpace& space, const char* label, const ProblemParts& layout, void* partial,
                  const Body& body, const Finish& finish) {
  auto* const sums = static_cast<Sums<Count>*>(partial);
  const int threads = is_host<ExecutionSpace> ? 1 : 256;
  using Teams = Kokkos::TeamPolicy<ExecutionSpace>;
  Kokkos::parallel_for(label, Teams(space, layout.all(), threads),
                       SumParts<ExecutionSpace, Body, Count>{body, layout, sums});
  Kokkos::parallel_for(label, Teams(space, layout.problems, threads),
                       FinishSums<ExecutionSpace, Count, Finish>{finish, layout, sums});
}

} // namespace Bracewell::Impl
