// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace Bracewell::Examples {

/// The one table of what quantities can be: columns of STAR files ("rlnVoltage") and options of programs
/// ("bracewell-tomography --hardening"). Far beyond all that is measured, and far within what computing takes.
/// (Voltages, pixel sizes and magnifications have checks of their own, which know more.) Returns "expected -1e+07 to 1e+07
/// Angstrom"; empty where the value is within, and for names that the table does not have.
std::string beyond_range(std::string_view name, double value);

/// Throws InputError for an output that is no result: values that are not finite, beyond single precision's sensible
/// part, or the same everywhere.
/// @param finite  whether all of them are
/// @param likeliest  what is wrong most likely: "--hardening, or the scan's values"
void require_sensible(const std::filesystem::path& output, double least, double most, bool finite,
                      const std::string& likeliest);

} // namespace Bracewell::Examples
