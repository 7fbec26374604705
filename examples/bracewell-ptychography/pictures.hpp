// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-ptychography/object_file.hpp"

namespace Bracewell::Examples {

/// OUT_phase.png (without its mean slope), OUT_amplitude.png: where there was light. OUT_probe.png: modes
/// side by side, brightness for modulus and hue for phase. OUT_loss.png.
void write_pictures(const std::filesystem::path& out, const Reconstruction& result);

} // namespace Bracewell::Examples
