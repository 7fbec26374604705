// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/project/choose_sampling.hpp>
#include <bracewell/project/detail/label.hpp>
#include <bracewell/project/detail/pose_sums.hpp>
#include <bracewell/project/detail/sample_bricks.hpp>
#include <bracewell/project/detail/sample_padded.hpp>
#include <bracewell/project/detail/sample_rows.hpp>
#include <bracewell/project/detail/sample_tiles.hpp>

namespace Bracewell::Impl {

/// The work of sampling `reconstructions` spectra, for choose_sampling.
template <class Kernel, class ExecutionSpace, class T, int M, int D>
SamplingWork sampling_work(const Samples<T, M, D>& samples, std::int64_t reconstructions) {
  return {.dimensions = D,
          .projection_dimensions = M,
          .width = Kernel::width,
          .value_bytes = sizeof(T),
          .batches = samples.batches,
          .poses = samples.poses,
          .projection_elements = samples.projection.elements(),
          .elements = samples.reconstruction.elements(),
          .reconstructions = reconstructions,
          .host = is_host<ExecutionSpace>};
}

/// What an operator can ask for beside samples; a kernel for it is compiled only then.
struct SamplesAlone {};
template <class T>
struct PoseGradients {
  T *matrices, *shifts; ///< added to; null: not wanted
};
template <class T>
struct CopyMemory {
  T* data; ///< scratch_size values
  std::int64_t spectra;
};

/// Launches the kernel that choose_sampling has named.
template <class ExecutionSpace, class Kernel, class T, int M, int D, Mates mates, class Stored, class Beside>
void launch_sampling(const ExecutionSpace& space, const char* label, Sampling sampling,
                     const SampleTiles<Kernel, T, M, D, mates, Stored>& samples,
                     [[maybe_unused]] const Beside& beside) {
  constexpr bool host = is_host<ExecutionSpace>;
  switch (sampling) {
  case Sampling::Rows:
    if constexpr (host)
      SampleRows<Kernel, T, M, D, mates, Stored>{samples}.launch(space, label_of(label, "::rows"));
    break;
  case Sampling::Tiles:
    if constexpr (!host)
      samples.launch(space, label_of(label, "::tiles"));
    break;
  case Sampling::Bricks:
    if constexpr (!host && M == 2 && D == 3 && Kernel::width > 2 && sizeof(T) == 4) {
      if (!samples.weights)
        SampleBricks<ExecutionSpace, Kernel, T, M, D, mates, Stored, false>(samples).launch(space, label);
      else if constexpr (mates == Mates::Both)
        SampleBricks<ExecutionSpace, Kernel, T, M, D, mates, Stored, true>(samples).launch(space, label);
    }
    break;
  case Sampling::PaddedCopies:
    if constexpr (!host && std::is_same_v<Beside, CopyMemory<T>>) {
      const auto& own = samples.amplitudes.samples;
      SamplePadded<Kernel, T, M, D, Stored>(own,
                                            copy_to_padded<Kernel::width>(space, label_of(label, "::copy"),
                                                                          own.reconstruction, samples.volumes,
                                                                          beside.spectra, beside.data),
                                            samples.values)
          .launch(space, label_of(label, "::padded"));
    }
    break;
  case Sampling::PoseSums:
    if constexpr (std::is_same_v<Beside, PoseGradients<T>>)
      SamplePoseSums<Kernel, T, M, D, mates, Stored>(space, samples, beside.matrices, beside.shifts)
          .launch(space, label_of(label, "::poses"));
    break;
  }
}

} // namespace Bracewell::Impl
