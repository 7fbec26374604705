#include "ptychography.hpp"

template std::vector<Golden::Ptychography::Result> Golden::Ptychography::run<double>(const File&);
