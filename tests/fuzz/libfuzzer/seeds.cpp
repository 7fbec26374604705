// SPDX-License-Identifier: MIT
// Writes the seeds into the folders <target> of its argument.
#include "../seeds.hpp"

int main(int argc, char** argv) {
  const std::filesystem::path folder = argc > 1 ? argv[1] : ".";
  const auto in = [&](const std::string& target) {
    std::filesystem::create_directories(folder / target);
    return folder / target;
  };
  Fuzz::write_mrc_seeds(in("mrc"));
  Fuzz::write_star_seeds(in("star"));
  Fuzz::write_tiff_seeds(in("tiff"));
  Fuzz::write_hdf5_seeds(in("hdf5"));
  Fuzz::write_cxi_seeds(in("cxi"));
  Fuzz::write_object_seeds(in("object"));
  Fuzz::write_scan_seeds(in("scan"));
  for (const char* program : {"project", "ptychography", "reconstruct", "refine", "tomography"})
    Fuzz::write_options_seeds(in(std::string("options_") + program), program);
}
