// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/detail/fftw_block.hpp>
#include <bracewell/fft/detail/fftw_columns.hpp>
#include <bracewell/fft/options.hpp>
#include <bracewell/impl/execution.hpp>

#include <algorithm>
#include <memory>
#include <vector>

namespace Bracewell::Impl {

/// FFTs on a host space. The last axes, as many as stay in a core's cache, are transformed as blocks spread
/// over the threads, the remaining slow axes column by column: threads work together on one large volume as
/// well as on a batch of images.
template <class ExecutionSpace, int Dim, class Input, class Output>
class FFTWBackend {
  using Problem = FFTProblem<Dim, Input, Output>;
  using Block = FFTWBlock<Dim, Input, Output>;
  using T = typename Problem::Real;

public:
  FFTWBackend(const ExecutionSpace& space, const Problem& problem, const FFTOptions& options)
      : problem_(problem), slow_axes_(count_slow_axes(problem, space.concurrency())) {
    const unsigned flags = options.measure ? FFTW_MEASURE : FFTW_ESTIMATE;
    block_ = std::make_unique<Block>(problem_, slow_axes_, flags);
    const std::uintptr_t aligned[2] = {64, 128}; // as allocations are, and different: not in place
    block_->prepare(aligned[0], aligned[1], blocks());
    for (int axis = 0; axis < slow_axes_; ++axis)
      columns_.emplace_back(std::make_unique<FFTWColumns<T>>(problem_.shape[axis], problem_.forward, flags));
  }

  std::size_t workspace_bytes() const { return 0; }
  static std::size_t workspace_needed(const ExecutionSpace&, const Problem&) { return 0; }

  void execute(const ExecutionSpace& space, Input* in, Output* out, void*) const {
    block_->prepare(reinterpret_cast<std::uintptr_t>(in), reinterpret_cast<std::uintptr_t>(out), blocks());
    if constexpr (Problem::to_real)
      transform_columns(space, in);
    using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>,
                                       Kokkos::IndexType<std::int64_t>>;
    constexpr std::int64_t worth_taking = std::int64_t(16)
                                          << 10; // bytes: small blocks are taken several at a time
    const std::int64_t bytes = block_->output_elements() * std::int64_t(sizeof(Output));
    Kokkos::parallel_for(
        "Bracewell::FFT::blocks",
        Policy(space, 0, blocks()).set_chunk_size(static_cast<int>(1 + worth_taking / bytes)),
        TransformBlock{block_.get(), in, out});
    if constexpr (!Problem::to_real)
      transform_columns(space, out);
  }

private:
  struct TransformBlock {
    const Block* block;
    Input* in;
    Output* out;
    void operator()(std::int64_t b) const {
      Input* const from = in + b * block->input_elements();
      Output* const to = out + b * block->output_elements();
      // Half the planes of a map padded to twice its edge hold nothing.
      if (std::all_of(from, from + block->input_elements(), [](const Input& x) { return x == Input(0); }))
        std::fill_n(to, block->output_elements(), Output(0));
      else
        block->execute(from, to);
    }
  };

  /// Blocks take up to half a megabyte (a share of the second-level cache), less where threads would idle.
  static int count_slow_axes(const Problem& problem, int threads) {
    constexpr std::int64_t most = std::int64_t(512) << 10, worth_sharing = std::int64_t(64) << 10;
    int slow = 0;
    std::int64_t blocks = problem.batch;
    for (; slow < Dim - 1; blocks *= problem.shape[slow++]) {
      const std::int64_t bytes = problem.elements(slow, false) * std::int64_t(sizeof(Kokkos::complex<T>));
      if (bytes <= worth_sharing || (bytes <= most && blocks >= threads))
        break;
    }
    return slow;
  }

  std::int64_t blocks() const {
    std::int64_t product = problem_.batch;
    for (int axis = 0; axis < slow_axes_; ++axis)
      product *= problem_.shape[axis];
    return product;
  }

  void transform_columns(const ExecutionSpace& space, Kokkos::complex<T>* values) const {
    std::int64_t outer = problem_.batch;
    for (int axis = 0; axis < slow_axes_; ++axis) {
      columns_[axis]->execute(space, values, outer, problem_.elements(axis + 1, false));
      outer *= problem_.shape[axis];
    }
  }

  Problem problem_;
  int slow_axes_;
  std::unique_ptr<Block> block_;
  std::vector<std::unique_ptr<FFTWColumns<T>>> columns_;
};

template <class ExecutionSpace, int Dim, class Input, class Output>
requires is_host<ExecutionSpace>
struct FFTBackend<ExecutionSpace, Dim, Input, Output> {
  using type = FFTWBackend<ExecutionSpace, Dim, Input, Output>;
};

} // namespace Bracewell::Impl
