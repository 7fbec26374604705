// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/project/choose_sampling.hpp>
#include <bracewell/project/detail/pose_sums.hpp>
#include <bracewell/project/detail/problem.hpp>
#include <bracewell/project/detail/reference.hpp>
#include <bracewell/project/detail/sample_bricks.hpp>
#include <bracewell/project/detail/sample_padded.hpp>
#include <bracewell/project/detail/sample_rows.hpp>
#include <bracewell/project/detail/sample_tiles.hpp>

namespace Bracewell::Impl {

/// The work of sampling a reference, for choose_sampling.
/// @throws Error where a prepared one is to be sampled by more poses than its kernels count
template <class Kernel, class ExecutionSpace, class T, int M, int D, class Reference>
SamplingWork sampling_work(const ProjectionArguments& arguments, const Samples<T, M, D>& samples,
                           [[maybe_unused]] const Reference& reference) {
  if constexpr (Reference::prepared)
    arguments.require(samples.batches * samples.poses < std::int64_t(1) << 31, "poses", "fewer than 2^31",
                      [&] { return number(samples.batches * samples.poses); });
  return {.dimensions = D,
          .projection_dimensions = M,
          .width = Kernel::width,
          .value_bytes = sizeof(T),
          .batches = samples.batches,
          .poses = samples.poses,
          .projection_elements = samples.projection.elements(),
          .elements = samples.reconstruction.elements(),
          .host = is_host<ExecutionSpace>,
          .prepared = Reference::prepared};
}

/// What an operator can ask for beside samples: these, or PoseGradients. A kernel for them is compiled only then.
struct SamplesAlone {};

/// Launches the kernel that choose_sampling has named for stored spectra.
template <class ExecutionSpace, class Kernel, class T, int M, int D, Mates mates, class Stored, class Beside>
void launch_sampling(const ExecutionSpace& space, const char* label, Sampling sampling,
                     const StoredSpectra<Stored>& spectra,
                     SampleTiles<Kernel, T, M, D, mates, Stored> samples,
                     [[maybe_unused]] const Beside& beside) {
  constexpr bool host = is_host<ExecutionSpace>;
  samples.volumes = spectra;
  switch (sampling) {
  case Sampling::Rows:
    if constexpr (host)
      SampleRows<Kernel, T, M, D, mates, Stored>{samples}.launch(space, {label, "::rows"});
    break;
  case Sampling::Tiles:
    if constexpr (!host)
      samples.launch(space, {label, "::tiles"});
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
    break;
  case Sampling::PoseSums:
    if constexpr (std::is_same_v<Beside, PoseGradients<T>>)
      SamplePoseSums<Kernel, T, M, D, mates, Stored, StoredSpectra<Stored>>(space, samples, spectra, beside)
          .launch(space, {label, "::poses"});
    break;
  }
}

/// The same for padded copies; a weight volume has none.
template <class ExecutionSpace, class Kernel, class T, int M, int D, Mates mates, class Stored, class Beside>
void launch_sampling(const ExecutionSpace& space, const char* label, Sampling sampling,
                     const PaddedSpectra<Stored, D, Kernel::width>& spectra,
                     SampleTiles<Kernel, T, M, D, mates, Stored> samples,
                     [[maybe_unused]] const Beside& beside) {
  if constexpr (std::is_same_v<Beside, PoseGradients<T>>)
    if (sampling == Sampling::PoseSums) {
      SamplePoseSums<Kernel, T, M, D, mates, Stored, PaddedSpectra<Stored, D, Kernel::width>>(space, samples,
                                                                                              spectra, beside)
          .launch(space, {label, "::poses"});
      return;
    }
  if (samples.values)
    SamplePadded<Kernel, T, M, D, mates, Stored>(samples.amplitudes.samples, spectra, samples.values)
        .launch(space, {label, "::padded"});
  samples.values = nullptr;
  if constexpr (mates == Mates::Both)
    if (samples.weights)
      samples.launch(space, {label, "::tiles"});
}

} // namespace Bracewell::Impl
