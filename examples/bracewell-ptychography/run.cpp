// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/run.hpp"

#include "bracewell-ptychography/job.hpp"
#include "bracewell-ptychography/pictures.hpp"
#include "common/output_family.hpp"
#include "common/processes.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace Bracewell::Examples {

std::string reconstruct(const Space& space, const RunOptions& options, Provenance& provenance,
                        Timings& timings) {
  std::vector<std::filesystem::path> paths{options.out};
  std::ranges::copy(picture_paths(options.out, options.picture_ending), std::back_inserter(paths));
  OutputFamily outputs(paths, Checkpoint::path_of(options.out));
  const Job job(space, options, provenance);
  Checkpoint checkpoint(options.out, options.checkpoint);
  const std::string summary = options.storage == StorageType::Half
                                  ? run_with<Half>(space, job, checkpoint, timings)
                                  : run_with<float>(space, job, checkpoint, timings);
  if (is_first_process()) {
    outputs.commit();
    checkpoint.remove();
  }
  return summary;
}

} // namespace Bracewell::Examples
