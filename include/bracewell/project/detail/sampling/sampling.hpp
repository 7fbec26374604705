// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/project/choose.hpp>
#include <bracewell/project/detail/problem.hpp>
#include <bracewell/project/detail/sampling/padded_copy.hpp>
#include <bracewell/project/detail/sampling/pose_sums.hpp>
#include <bracewell/project/detail/sampling/sample_padded.hpp>
#include <bracewell/project/detail/sampling/sample_rows.hpp>
#include <bracewell/project/detail/sampling/sampler.hpp>
#include <bracewell/project/detail/tiles.hpp>

namespace Bracewell::Impl {

/// The work of sampling a reference, for choose_sampling.
/// @throws Error where a prepared one is to be sampled by more poses than its kernels count
template <class ExecutionSpace, class T, int M, int D, class Reference>
SamplingWork sampling_work(const ProjectionArguments& arguments, const Samples<T, M, D>& samples,
                           [[maybe_unused]] const Reference& reference) {
  if constexpr (Reference::prepared)
    arguments.require(samples.batches * samples.poses < std::int64_t(1) << 31, "poses", "fewer than 2^31",
                      [&] { return number(samples.batches * samples.poses); });
  return {.host = is_host<ExecutionSpace>, .prepared = Reference::prepared};
}

/// Sampling on GPUs, one sample per lane, tile by tile of the projections.
template <class ExecutionSpace, class Kernel, class T, int M, int D, Mates mates, class Stored>
void sample_tiles(const ExecutionSpace& space, const Label& label,
                  const Sampler<Kernel, T, M, D, mates, Stored>& sampler) {
  constexpr bool light = sizeof(T) == 4 && (D == 2 || mates == Mates::Single);
  constexpr auto tuning = ProjectionTuning::tiles(D, Kernel::width, light);
  const auto& samples = sampler.amplitudes.samples;
  const std::int64_t poses = samples.batches * samples.poses;
  const auto tiles = Tiles<M, tuning.columns>::make(space, samples.projection, poses, tuning.most_rows);
  launch_tiles<tuning.threads, tuning.resident>(space, label, sampler, tiles, poses);
}

/// What an operator can ask for beside samples: these, or PoseGradients. A kernel for them is compiled only then.
struct SamplesAlone {};

/// Launches the kernel that choose_sampling has named for stored spectra.
template <class ExecutionSpace, class Sampler, class Beside>
void launch_sampling(const ExecutionSpace& space, const char* label, Sampling sampling,
                     const StoredSpectra<typename Sampler::Stored>& spectra, Sampler sampler,
                     [[maybe_unused]] const Beside& beside) {
  constexpr bool host = is_host<ExecutionSpace>;
  sampler.volumes = spectra;
  switch (sampling) {
  case Sampling::Rows:
    if constexpr (host)
      SampleRows<Sampler>{sampler}.launch(space, {label, "::rows"});
    break;
  case Sampling::Tiles:
    if constexpr (!host)
      sample_tiles(space, {label, "::tiles"}, sampler);
    break;
  case Sampling::PaddedCopies:
    break;
  case Sampling::PoseSums:
    if constexpr (!std::is_same_v<Beside, SamplesAlone>)
      SamplePoseSums<Sampler, StoredSpectra<typename Sampler::Stored>>(space, sampler, spectra, beside)
          .launch(space, {label, "::poses"});
    break;
  }
}

/// The same for padded copies; a weight volume has none.
template <class ExecutionSpace, class Sampler, class Beside>
void launch_sampling(
    const ExecutionSpace& space, const char* label, Sampling sampling,
    const PaddedSpectra<typename Sampler::Stored, Sampler::dimensions, Sampler::Kernel::width>& spectra,
    Sampler sampler, [[maybe_unused]] const Beside& beside) {
  if constexpr (!std::is_same_v<Beside, SamplesAlone>)
    if (sampling == Sampling::PoseSums) {
      SamplePoseSums<Sampler, std::remove_cvref_t<decltype(spectra)>>(space, sampler, spectra, beside)
          .launch(space, {label, "::poses"});
      return;
    }
  if (sampler.values)
    SamplePadded<typename Sampler::Kernel, typename Sampler::Real, Sampler::projected_dimensions,
                 Sampler::dimensions, Sampler::mates, typename Sampler::Stored>(sampler.amplitudes.samples,
                                                                                spectra, sampler.values)
        .launch(space, {label, "::padded"});
  sampler.values = nullptr;
  if constexpr (Sampler::mates == Mates::Both)
    if (sampler.weights)
      sample_tiles(space, {label, "::tiles"}, sampler);
}

} // namespace Bracewell::Impl
