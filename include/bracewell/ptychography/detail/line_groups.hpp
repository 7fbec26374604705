// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>
#include <bracewell/ptychography/options.hpp>

#include <algorithm>

namespace Bracewell::Impl {

/// Bytes of a group where options.workspace_bytes does not say.
template <class Space>
std::size_t line_group_bytes(const Space& space) {
  using Tuning = PtychographyTuning;
  return std::max(Tuning::group_bytes, device_bytes(space) / Tuning::line_group_part);
}

/// Patterns of a group in kernels over lines, of `count` that take so many bytes each.
template <class Space>
std::int64_t line_group(const Space& space, const PtychographyOptions& options, std::int64_t count,
                        std::int64_t bytes_of_pattern) {
  const auto allowed = static_cast<std::int64_t>(options.workspace_bytes.value_or(line_group_bytes(space)));
  return std::clamp<std::int64_t>(allowed / bytes_of_pattern, 1, std::max<std::int64_t>(count, 1));
}

} // namespace Bracewell::Impl
