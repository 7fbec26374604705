#include "experiments.hpp"
#include "ptychography.hpp"

template std::vector<Golden::Ptychography::Result> Golden::Ptychography::run<float>(const File&);
template std::vector<Golden::Ptychography::Result> Golden::Ptychography::run_experiments<float>(const File&);
