// One golden case of the gridding operators: sums over polar samples and parallel-beam projection, all
// strategies.
#pragma once

#include "../golden.hpp"

namespace Golden {

struct TomographyCase {
  const File& file;
  const Json& json;
  const Array& array(const std::string& key) const { return file[json.at(key).get<std::string>()]; }
};

/// Largest relative errors of a case, over all strategies.
struct TomographyErrors {
  double type1 = 0, type2 = 0, backprojection = 0, projection = 0;
};

/// Defined by one translation unit per precision.
template <class T>
TomographyErrors run_gridding(const TomographyCase& golden, double tolerance);

} // namespace Golden
