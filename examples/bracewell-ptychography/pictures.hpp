// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-ptychography/object_file.hpp"

#include <array>
#include <filesystem>
#include <string>

namespace Bracewell::Examples {

/// OUT_phase (without its mean slope), OUT_amplitude: where there was light. OUT_probe: modes side by side, brightness
/// for modulus and hue for phase. OUT_loss. In this order.
std::array<std::filesystem::path, 4> picture_paths(const std::filesystem::path& out,
                                                   const std::string& ending);
void write_pictures(const std::array<std::filesystem::path, 4>& paths, const Reconstruction& result);

} // namespace Bracewell::Examples
