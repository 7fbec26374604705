// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

namespace Bracewell {

/// The sign of the exponent of a transform.
enum class FFTDirection {
  Forward, ///< exp(-2 pi i k x / n)
  Backward ///< exp(+2 pi i k x / n)
};

/// How an FFT plan is made.
struct FFTOptions {
  FFTDirection direction = FFTDirection::Forward; ///< of complex-to-complex plans; the others have one
  bool measure = false; ///< FFTW tries codes instead of guessing: slower to plan, up to twice as fast
  bool external_workspace = false; ///< execute is given workspace_bytes(); otherwise the plan owns them
};

} // namespace Bracewell
