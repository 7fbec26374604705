// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-ptychography/object_file.hpp"

#include <array>
#include <filesystem>
#include <string>

namespace Bracewell::Examples {

/// OUT_phase (without its mean slope), OUT_amplitude: where there was light, of all slices together. OUT_probe: modes side by side, brightness
/// for modulus and hue for phase. OUT_loss. OUT_patterns: measured
/// and modelled ones, which are somebody else's. In this order.
std::array<std::filesystem::path, 5> picture_paths(const std::filesystem::path& out,
                                                   const std::string& ending);
void write_pictures(const std::array<std::filesystem::path, 5>& paths, const Reconstruction& result);

} // namespace Bracewell::Examples
