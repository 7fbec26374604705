// SPDX-License-Identifier: MIT
#pragma once

namespace Bracewell {

/// How samples are accumulated into a volume.
enum class Strategy {
  Automatic, ///< chosen by the operator: choose_insertion (project/choose_insertion.hpp)
  Atomic, ///< atomic additions of sums over neighbouring samples, in projection on hosts of sums over bricks of
          ///< the volume; any space; last bits vary from run to run
  Owned,      ///< teams own bricks of the volume; any space; no atomics, bitwise reproducible
  Duplicated, ///< one copy per thread, summed in fixed order; hosts only; needs scratch memory
};

} // namespace Bracewell
