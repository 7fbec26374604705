// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/error.hpp>
#include <bracewell/impl/host_tasks.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <string>
#include <type_traits>

namespace Bracewell::Impl {

/// Two sums over the lanes of a team.
template <class T>
struct TeamSums {
  T first, second;
};

/// What a kernel asks of its team, asked of a team of a Kokkos policy.
template <class Member>
struct PolicyTeam {
  const Member& member;

  KOKKOS_INLINE_FUNCTION int rank() const { return member.team_rank(); }
  KOKKOS_INLINE_FUNCTION std::int64_t number() const { return member.league_rank(); }
  KOKKOS_INLINE_FUNCTION std::int64_t count() const { return member.league_size(); }
  KOKKOS_INLINE_FUNCTION void barrier() const { member.team_barrier(); }
  /// Known to all lanes; waits for all of them, as the barrier does.
  KOKKOS_INLINE_FUNCTION TeamSums<double> sum(const TeamSums<double>& own) const {
    TeamSums<double> sums{0, 0};
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member, member.team_size()),
        [&](int, double& first, double& second) {
          first += own.first;
          second += own.second;
        },
        sums.first, sums.second);
    return sums;
  }
};

/// Whether there is launch_on_chip for a space.
#if defined(KOKKOS_ENABLE_CUDA)
template <class Space>
inline constexpr bool has_chip_memory = std::is_same_v<Space, Kokkos::Cuda>;
#else
template <class Space>
inline constexpr bool has_chip_memory = false;
#endif

/// Bytes of memory on the chip that a team of launch_on_chip may have: Kokkos grants 48 KB on NVIDIA GPUs,
/// a quarter or less of what there is. 0 where a policy of Kokkos gives all. BRACEWELL_CHIP_MEMORY emulates a GPU that has less.
template <class Space>
std::size_t chip_memory([[maybe_unused]] const Space& space) {
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (std::is_same_v<Space, Kokkos::Cuda>) {
#if defined(BRACEWELL_CHIP_MEMORY)
    return std::min<std::size_t>(space.cuda_device_prop().sharedMemPerBlockOptin, BRACEWELL_CHIP_MEMORY);
#else
    return space.cuda_device_prop().sharedMemPerBlockOptin;
#endif
  }
#endif
  return 0;
}

#if defined(KOKKOS_ENABLE_CUDA)

/// The same asked of a team of launch_on_chip, of a power of two of warps.
struct ChipTeam {
  void* partials = nullptr; ///< memory on the chip for sums: [2, warps] of them
  mutable int parity = 0;

  KOKKOS_FUNCTION int rank() const {
    KOKKOS_IF_ON_DEVICE((return threadIdx.x;))
    KOKKOS_IF_ON_HOST((return 0;))
  }
  KOKKOS_FUNCTION std::int64_t number() const {
    KOKKOS_IF_ON_DEVICE((return blockIdx.x;))
    KOKKOS_IF_ON_HOST((return 0;))
  }
  KOKKOS_FUNCTION std::int64_t count() const {
    KOKKOS_IF_ON_DEVICE((return gridDim.x;))
    KOKKOS_IF_ON_HOST((return 1;))
  }
  KOKKOS_FUNCTION void barrier() const { KOKKOS_IF_ON_DEVICE((__syncthreads();)) }
  /// The partial sums of two calls lie apart, so that one barrier is enough.
  template <class T>
  KOKKOS_FUNCTION TeamSums<T> sum(TeamSums<T> own) const {
    KOKKOS_IF_ON_DEVICE((const int warps = blockDim.x / 32;
                         TeamSums<T>* const of_warps = static_cast<TeamSums<T>*>(partials) + parity * warps;
                         add_lanes(own, 32); if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
                         __syncthreads(); own = of_warps[threadIdx.x % warps]; add_lanes(own, warps);
                         parity = 1 - parity;))
    return own;
  }

private:
  template <class T>
  KOKKOS_FUNCTION static void add_lanes([[maybe_unused]] TeamSums<T>& sums, [[maybe_unused]] int lanes) {
    KOKKOS_IF_ON_DEVICE((for (int distance = lanes / 2; distance > 0; distance /= 2) {
      sums.first += __shfl_xor_sync(~0u, sums.first, distance);
      sums.second += __shfl_xor_sync(~0u, sums.second, distance);
    }))
  }
};

/// A function of its own: nvcc 13 compiles run() to other code within a kernel.
template <class Kernel>
KOKKOS_FUNCTION void run_chip_team(const Kernel& kernel, void* scratch) {
  kernel.run(ChipTeam{}, scratch);
}

template <class Kernel>
__global__ void __launch_bounds__(Kernel::chip_team_size, Kernel::chip_teams)
    run_on_chip(const Kernel kernel) {
  extern __shared__ double2 chip_scratch[];
  run_chip_team(kernel, chip_scratch);
}

#endif

/// Runs kernel.run(team, scratch) by `teams` teams of Kernel::chip_team_size lanes with `bytes` of memory on the chip
/// each, Kernel::chip_teams of them on a multiprocessor. Where chip_memory is not 0.
template <class Space, class Kernel>
void launch_on_chip([[maybe_unused]] const Space& space, [[maybe_unused]] const std::string& label,
                    [[maybe_unused]] int teams, [[maybe_unused]] std::size_t bytes,
                    [[maybe_unused]] const Kernel& kernel) {
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (std::is_same_v<Space, Kokkos::Cuda>) {
    const auto check = [&](cudaError_t error) {
      if (error != cudaSuccess)
        throw Error(label + ": " + cudaGetErrorString(error));
    };
    std::uint64_t number = 0;
    Kokkos::Tools::beginParallelFor(label, Kokkos::Tools::Experimental::device_id(space), &number);
    check(cudaSetDevice(space.cuda_device()));
    check(cudaFuncSetAttribute(run_on_chip<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(bytes)));
    const std::size_t all = space.cuda_device_prop().sharedMemPerMultiprocessor;
    const std::size_t share = 100 * Kernel::chip_teams * (bytes + 1024) / all + 1; // 1 KB is the system's
    check(cudaFuncSetAttribute(run_on_chip<Kernel>, cudaFuncAttributePreferredSharedMemoryCarveout,
                               static_cast<int>(std::min<std::size_t>(share, 100))));
    run_on_chip<<<teams, Kernel::chip_team_size, bytes, space.cuda_stream()>>>(kernel);
    check(cudaGetLastError());
    Kokkos::Tools::endParallelFor(number);
  }
#endif
}

/// A kernel of launch_teams for a policy of Kokkos.
template <class Kernel>
struct RunByPolicy {
  Kernel kernel;
  std::size_t bytes;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& member) const {
    kernel.run(PolicyTeam<Member>{member}, member.team_scratch(0).get_shmem_aligned(bytes, 32));
  }
};

/// The same on any GPU, by a policy of Kokkos where there is no launch_on_chip. 64 of the bytes are for alignment.
template <class Space, class Kernel>
void launch_teams(const Space& space, const std::string& label, int teams, std::size_t bytes,
                  const Kernel& kernel) {
  if constexpr (has_chip_memory<Space>) {
    launch_on_chip(space, label, teams, bytes, kernel);
  } else {
    using Policy = Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<Kernel::chip_team_size, 1>>;
    launch_kernel(label,
                  Policy(space, teams, +Kernel::chip_team_size).set_scratch_size(0, Kokkos::PerTeam(bytes)),
                  RunByPolicy<Kernel>{kernel, bytes - 64});
  }
}

} // namespace Bracewell::Impl
