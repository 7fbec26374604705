#include "experiments.hpp"
#include "ptychography.hpp"

template std::vector<Golden::Ptychography::Result> Golden::Ptychography::run<double>(const File&);
template std::vector<Golden::Ptychography::Result> Golden::Ptychography::run_experiments<double>(const File&);
