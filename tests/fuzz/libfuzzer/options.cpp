// SPDX-License-Identifier: MIT
// The command line of one of the programs, an argument per line: PROGRAM is its name. What it works on is never there,
// and what would make it is replaced.
#define main program_main
#include MAIN
#undef main

#include "../input.hpp"

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace Bracewell::Examples {

#if defined(FUZZ_RECONSTRUCT)
std::string reconstruct(const Space&, const RunOptions&, Provenance&, Timings&) { return {}; }
void simulate(const Space&, const Demo&, const std::filesystem::path&) {}
#elif defined(FUZZ_REFINE)
std::string refine(const Space&, const RunOptions&, Provenance&, Timings&) { return {}; }
#elif defined(FUZZ_PTYCHOGRAPHY)
std::string reconstruct(const Space&, const RunOptions&, Provenance&, Timings&) { return {}; }
void simulate(const Space&, const Demo&, const std::filesystem::path&) {}
#elif defined(FUZZ_TOMOGRAPHY)
RunResult reconstruct(const Space&, const RunOptions&, Provenance&, Timings&) { return {}; }
std::string try_values(const Space&, const RunOptions&, Provenance&) { return {}; }
void simulate_scan(const TomographyDemo&, const std::filesystem::path&) {}
std::vector<float> true_slices(const TomographyDemo&) { return {}; }
double error_of_slices(const TomographyDemo&, const std::vector<float>&, const std::vector<float>&) {
  return 0;
}
#endif

} // namespace Bracewell::Examples

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
  // Names of files are names here.
  std::string folder = std::filesystem::temp_directory_path() / "bracewell-fuzz-XXXXXX";
  Fuzz::require(::mkdtemp(folder.data()) != nullptr && ::chdir(folder.c_str()) == 0);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  for (char& letter : text)
    if (letter == '/' || letter == '\0') // no way out of the folder
      letter = '_';
  std::istringstream lines(text);
  std::vector<std::string> arguments{"program"};
  for (std::string line; std::getline(lines, line);)
    arguments.push_back(line);
  std::vector<char*> pointers;
  for (auto& argument : arguments)
    pointers.push_back(argument.data());
  pointers.push_back(nullptr);

  const std::ostringstream out, err;
  auto* const cout_buffer = std::cout.rdbuf(out.rdbuf());
  auto* const cerr_buffer = std::cerr.rdbuf(err.rdbuf());
  const int code = program_main(int(arguments.size()), pointers.data());
  std::cout.rdbuf(cout_buffer);
  std::cerr.rdbuf(cerr_buffer);
  Fuzz::require(code == 0 || (code == 2 && !err.str().empty()));
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(".")) // what --demo made
    std::filesystem::remove_all(entry.path(), ignored);
  return 0;
}
