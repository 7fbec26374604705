// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/impl/memory.hpp>

#include <algorithm>
#include <array>
#include <vector>

namespace Bracewell::Impl {

/// DFTs of waves [patterns, modes, n, n] by the FFT library, in place, forward and backward. A plan of the library
/// transforms as many as it was made for; there are plans of `most` patterns, half of them, and so on, so that calls of few
/// transform hardly more.
template <class Space, class T>
class WaveTransforms {
  using Complex = Kokkos::complex<T>;
  using Memory = typename Space::memory_space;
  using Transform = FFT<Space, 2, Complex, Complex>;
  static constexpr FFTOptions forward{.external_workspace = true},
      backward{.direction = FFTDirection::Backward, .external_workspace = true};

public:
  WaveTransforms(const Space& space, int side, int modes, std::int64_t most) : n_(side), modes_(modes) {
    std::size_t bytes = 0;
    for (const std::int64_t patterns : sizes(most)) {
      const std::array<int, 2> shape{n_, n_};
      plans_.push_back({patterns, Transform(space, shape, patterns * modes_, forward),
                        Transform(space, shape, patterns * modes_, backward)});
      bytes = std::max(
          {bytes, plans_.back().forward.workspace_bytes(), plans_.back().backward.workspace_bytes()});
    }
    workspace_ = device_vector<char>(space, "Bracewell::FFT::workspace", static_cast<std::int64_t>(bytes));
  }

  std::size_t memory_bytes() const { return workspace_.size(); }

  static std::size_t bytes_needed(const Space& space, int side, int modes, std::int64_t most) {
    std::size_t bytes = 0;
    for (const std::int64_t patterns : sizes(most))
      for (const FFTDirection direction : {FFTDirection::Forward, FFTDirection::Backward})
        bytes = std::max(
            bytes, Transform::bytes_needed(space, {side, side}, patterns * modes, {.direction = direction}));
    return bytes;
  }

  /// Transforms the waves of `count` patterns.
  /// @param room  patterns up to the end of the waves, which are finite: some behind the last may be transformed, too
  void execute(const Space& space, FFTDirection direction, Complex* waves, std::int64_t count,
               std::int64_t room) const {
    while (count > 0) {
      const Plan& plan = *std::ranges::find_if(
          plans_, [&](const Plan& p) { return p.patterns <= std::min(count + count / 4, room); });
      const Kokkos::View<Complex***, Kokkos::LayoutRight, Memory, Kokkos::MemoryUnmanaged> some(
          waves, plan.patterns * modes_, n_, n_);
      (direction == FFTDirection::Forward ? plan.forward : plan.backward)
          .execute(space, some, some, workspace_);
      waves += some.size(), count -= plan.patterns, room -= plan.patterns;
    }
  }

private:
  struct Plan {
    std::int64_t patterns;
    Transform forward, backward;
  };

  /// Patterns of each plan, falling to 1.
  static std::vector<std::int64_t> sizes(std::int64_t most) {
    std::vector<std::int64_t> result{most};
    while (result.back() > 1)
      result.push_back((result.back() + 1) / 2);
    return result;
  }

  int n_, modes_;
  std::vector<Plan> plans_;
  Kokkos::View<char*, Memory> workspace_;
};

} // namespace Bracewell::Impl
