// A golden case of the projection operators, and what runs it.
#pragma once

#include "../golden.hpp"

namespace Golden {

/// Largest relative errors of a case.
struct Errors {
  double values = 0; ///< projections, data, weight and their gradients
  double poses = 0;  ///< gradients with respect to matrices and shifts
};

struct Case {
  const File& file;
  const Json& json;
  std::string name(const char* group, const std::string& key) const { return json.at(group).at(key); }
  const Array& input(const std::string& key) const { return file[name("inputs", key)]; }
  const Array& output(const std::string& key) const { return file[name("outputs", key)]; }
};

/// Defined by one translation unit per kernel.
template <class Kernel>
Errors run_projectors(const Case& golden, bool single_precision);

} // namespace Golden
