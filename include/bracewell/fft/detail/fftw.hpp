// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/detail/fftw_block.hpp>
#include <bracewell/fft/options.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <memory>
#include <vector>

namespace Bracewell::Impl {

/// Bytes that FFTs on hosts work on at a time: from the sizes of caches, two cores of 2.6 GHz with AVX-512, 2026-11-21. The
/// hosts' rows of `bench/bench_projectors` and `bench_nonuniform_fft` show their effect; no program varies them.
struct FFTWTuning {
  static constexpr std::int64_t block_bytes =
      512 << 10; ///< of a block at most: a share of the second-level cache
  static constexpr std::int64_t shared_block_bytes =
      64 << 10; ///< larger blocks are divided where threads would idle
  static constexpr std::int64_t taken_bytes = 16 << 10; ///< smaller blocks are taken several at a time
  static constexpr std::size_t tile_bytes = 1 << 20;    ///< of a tile of columns at most
  static constexpr int tile_row_bytes = 128;            ///< of a row of a tile: two cache lines
};

/// Transforms along an axis that is not the last one, in place: tiles of neighbouring columns are copied to a
/// buffer where they lie close together, and back from a second one. On large arrays that is several times faster than
/// strided transforms, whose elements fall into few cache sets. What FFTW plans without measuring is up to four times as
/// slow in place as from one buffer to another (40 elements).
template <class T>
class FFTWColumns {
  using Library = FFTW<T>;
  using Complex = Kokkos::complex<T>;

public:
  FFTWColumns(int length, bool forward, unsigned flags) : length_(length) {
    while (lanes_ > 1 && tile_bytes() > FFTWTuning::tile_bytes)
      lanes_ /= 2;
    const std::lock_guard lock(fftw_planner());
    const auto memory = fftw_memory<T>(2 * tile_bytes());
    auto* const from = static_cast<typename Library::Complex*>(memory.get());
    plan_.reset(Library::plan_many(1, &length_, lanes_, from, nullptr, lanes_, 1, from + length_ * lanes_,
                                   nullptr, lanes_, 1, forward ? Library::forward : Library::backward,
                                   flags));
    if (!plan_)
      throw Error("Bracewell::FFT: FFTW could not plan the transform");
  }

  /// values [outer, length, inner]
  template <class ExecutionSpace>
  void execute(const ExecutionSpace& space, Complex* values, std::int64_t outer, std::int64_t inner) const {
    using Policy = Kokkos::TeamPolicy<ExecutionSpace>;
    const std::int64_t tiles = (inner + lanes_ - 1) / lanes_;
    launch_kernel("Bracewell::FFT::columns",
                  Policy(space, static_cast<int>(outer * tiles), 1)
                      .set_scratch_size(1, Kokkos::PerTeam(2 * tile_bytes() + 64)),
                  Tile<typename Policy::member_type>{values, plan_.get(), length_, lanes_, inner, tiles});
  }

private:
  template <class Member>
  struct Tile {
    Complex* values;
    typename Library::Plan plan;
    int length, lanes;
    std::int64_t inner, tiles;

    void operator()(const Member& member) const {
      const std::int64_t first = member.league_rank() % tiles * lanes;
      const std::int64_t count = std::min(std::int64_t(lanes), inner - first);
      Complex* column = values + member.league_rank() / tiles * length * inner + first;
      const std::int64_t size = std::int64_t(length) * lanes;
      auto* const buffer = static_cast<Complex*>(
          member.team_scratch(1).get_shmem_aligned(2 * std::size_t(size) * sizeof(Complex), 64));
      for (int i = 0; i < length; ++i) {
        std::copy_n(column + i * inner, count, buffer + std::int64_t(i) * lanes);
        std::fill_n(buffer + std::int64_t(i) * lanes + count, lanes - count, Complex(0));
      }
      auto* const from = reinterpret_cast<typename Library::Complex*>(buffer);
      Library::execute_c2c(plan, from, from + size);
      for (int i = 0; i < length; ++i)
        std::copy_n(buffer + size + std::int64_t(i) * lanes, count, column + i * inner);
    }
  };

  struct Destroy {
    using pointer = typename Library::Plan;
    void operator()(pointer p) const {
      const std::lock_guard lock(fftw_planner());
      Library::destroy(p);
    }
  };

  std::size_t tile_bytes() const { return std::size_t(length_) * std::size_t(lanes_) * sizeof(Complex); }

  int length_;
  int lanes_ = FFTWTuning::tile_row_bytes / int(sizeof(Complex));
  std::unique_ptr<void, Destroy> plan_;
};

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
    const unsigned flags = options.measure ? FFTW<T>::measure : FFTW<T>::estimate;
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
    const std::int64_t bytes = block_->output_elements() * std::int64_t(sizeof(Output));
    launch_kernel(
        "Bracewell::FFT::blocks",
        Policy(space, 0, blocks()).set_chunk_size(static_cast<int>(1 + FFTWTuning::taken_bytes / bytes)),
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

  /// Blocks are large, less so where threads would idle.
  static int count_slow_axes(const Problem& problem, int threads) {
    int slow = 0;
    std::int64_t blocks = problem.batch;
    for (; slow < Dim - 1; blocks *= problem.shape[slow++]) {
      const std::int64_t bytes = problem.elements(slow, false) * std::int64_t(sizeof(Kokkos::complex<T>));
      if (bytes <= FFTWTuning::shared_block_bytes || (bytes <= FFTWTuning::block_bytes && blocks >= threads))
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
      columns_[std::size_t(axis)]->execute(space, values, outer, problem_.elements(axis + 1, false));
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
