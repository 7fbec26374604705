// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-ptychography/object_file.hpp"

namespace Bracewell::Examples {

/// OUT's name with its extension replaced: scan.h5 gives scan_phase.png.
std::filesystem::path beside(const std::filesystem::path& out, const std::string& ending);

/// OUT_phase.png (without its mean slope), OUT_amplitude.png: where there was light. OUT_probe.png: modes
/// side by side, brightness for modulus and hue for phase. OUT_loss.png.
void write_pictures(const std::filesystem::path& out, const Reconstruction& result);

} // namespace Bracewell::Examples
