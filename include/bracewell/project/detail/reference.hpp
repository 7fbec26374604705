// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/project/detail/padded_copy.hpp>

#include <optional>

namespace Bracewell::Impl {

/// What sampling operators read: `Spectra` are stored ones, or padded copies.
template <class Stored_, class Spectra>
struct Reference {
  using Stored = Stored_;
  static constexpr bool prepared = !std::is_same_v<Spectra, StoredSpectra<Stored>>;

  ArrayShape shape;
  NamedMemory memory; ///< of the caller
  Spectra spectra;
  std::optional<double> oversampling = std::nullopt; ///< where options leave it out
};

/// Of an array [B|1, (D,) H, W/2+1]; spectra that all batches share have stride 0.
template <class Stored, class MemorySpace>
Reference<Stored, StoredSpectra<Stored>> reference_to(const char* argument,
                                                      const Array<const Stored, MemorySpace>& array) {
  const std::int64_t count = array.rank > 0 ? array.extents[0] : 0;
  return {array, {argument, array}, {array.data, count > 1 ? array.size() / count : 0}};
}

} // namespace Bracewell::Impl
