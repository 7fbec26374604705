// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/detail/gpu.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/compiled.hpp>
// Programs that transform on GPUs alone do without.
#if defined(BRACEWELL_HOST_FFT_POCKETFFT) || __has_include(<fftw3.h>)
#include <bracewell/fft/detail/fftw.hpp>
#endif

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <array>
#include <limits>
#include <memory>

namespace Bracewell {

/// Plan of a batch of discrete Fourier transforms of Dim = 1, 2 or 3 dimensions, any sizes:
///   F(k) = sum_x f(x) exp(-+ 2 pi i sum_d k_d x_d / n_d),
/// never scaled: backward after forward multiplies by the number of pixels. The types say which transform it
/// is, with C = Kokkos::complex<T>:
///
/// | type                  | from          | to            | direction           | input                 |
/// |-----------------------|---------------|---------------|---------------------|-----------------------|
/// | FFT<Space, Dim, T, C> | real          | half spectrum | forward             | kept                  |
/// | FFT<Space, Dim, C, T> | half spectrum | real          | backward            | overwritten           |
/// | FFT<Space, Dim, C, C> | complex       | complex       | forward or backward | kept, unless in place |
///
/// The library is FFTW, or what BRACEWELL_HOST_FFT names in its place, on host spaces (spread over the threads
/// of the space), cuFFT on Kokkos::Cuda, hipFFT on Kokkos::HIP.
///
/// Movable, not copyable. execute is const and may be called by several threads at once; on GPUs, calls that
/// can overlap (on different instances) need a workspace each. It works on the instance that it is given and
/// does not wait. A batch of 0 is no work.
template <class ExecutionSpace, int Dim, class Input, class Output>
class FFT {
  static_assert(Dim >= 1 && Dim <= 3, "Bracewell::FFT: Dim: expected 1, 2 or 3, found another.");
  using Problem = Impl::FFTProblem<Dim, Input, Output>;
  using Real = typename Problem::Real;
  using MemorySpace = typename ExecutionSpace::memory_space;
  static_assert(
      std::is_same_v<Real, float> || std::is_same_v<Real, double>,
      "Bracewell::FFT: Input: expected float, double or Kokkos::complex of them, found another type.");
  static_assert(std::is_same_v<Real, typename Impl::RealOf<Output>::type>,
                "Bracewell::FFT: Output: expected the precision of Input, found another.");
  static_assert(!(std::is_same_v<Input, Real> && std::is_same_v<Output, Real>),
                "Bracewell::FFT: expected complex input or output, found both real.");
  using Backend = typename Impl::FFTBackend<ExecutionSpace, Dim, Input, Output>::type;
  using ConstUnlessDestroyed = std::conditional_t<Problem::to_real, Input, const Input>;

public:
  /// @param shape  {(d, (h,)) w}: sizes in the order of the axes, of the real array where there is one
  /// @param batch  how many arrays one execute transforms
  /// @throws Error on sizes below 1 or beyond 2^29, a negative batch, and when the library cannot make the plan
  FFT(const ExecutionSpace& space, const std::array<int, Dim>& shape, std::int64_t batch = 1,
      const FFTOptions& options = {});

  FFT(FFT&&) noexcept = default;            ///< The other can only be destroyed or assigned to.
  FFT& operator=(FFT&&) noexcept = default; ///< The same.

  /// Bytes of workspace that execute needs (0 for FFTW).
  std::size_t workspace_bytes() const;

  /// Bytes of memory that the plan holds: the workspace, unless it is external. (The libraries' own tables
  /// are not counted.)
  std::size_t memory_bytes() const { return external_ ? 0 : workspace_bytes(); }

  /// What memory_bytes() of a plan of these arguments would be. cuFFT and hipFFT are asked, which takes as
  /// long as a plan.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace& space, const std::array<int, Dim>& shape,
                                  std::int64_t batch = 1, const FFTOptions& options = {});

  /// Transforms `batch` arrays with the plan's own workspace.
  /// @param input   View [..., (d, (h,)) w], leading axes whose product is the batch; w/2+1 columns for half
  ///                spectra. Kept, but for half spectra to real values, where it is overwritten
  /// @param output  likewise; overwritten; the same View as input for a transform in place (complex to
  ///                complex only)
  /// @throws Error on shapes that do not fit, memory shared in part, and a missing workspace
  void execute(const ExecutionSpace& space, const Array<ConstUnlessDestroyed, MemorySpace>& input,
               const Array<Output, MemorySpace>& output) const;

  /// The same with a workspace of at least workspace_bytes(), which the transform uses until it ends.
  /// @param workspace  bytes in the memory of the execution space, aligned to 256 bytes as allocations are
  void execute(const ExecutionSpace& space, const Array<ConstUnlessDestroyed, MemorySpace>& input,
               const Array<Output, MemorySpace>& output,
               const Kokkos::View<char*, MemorySpace>& workspace) const;

private:
  static Problem check(const std::array<int, Dim>& shape, std::int64_t batch, const FFTOptions& options) {
    constexpr Impl::Arguments checks{"FFT"};
    Problem problem;
    for (std::size_t axis = 0; axis < Dim; ++axis) {
      if (shape[axis] < 1 || shape[axis] > std::numeric_limits<int>::max() / 4)
        checks.refuse("shape", "sizes from 1 to 2^29, found %d", shape[axis]);
      problem.shape[axis] = shape[axis];
    }
    checks.at_least("batch", batch, std::int64_t(0));
    problem.batch = batch;
    problem.forward = Problem::from_real || (!Problem::to_real && options.direction == FFTDirection::Forward);
    return problem;
  }

  void check(const char* argument, const Impl::ArrayShape& array, bool real) const {
    bool fits = array && array.rank >= Dim && array.size() == problem_.batch * problem_.elements(0, real);
    Impl::ArrayShape expected;
    expected.extents[expected.rank++] = problem_.batch;
    for (int axis = 0; axis < Dim; ++axis) {
      const std::int64_t stored = expected.extents[expected.rank++] = problem_.stored(axis, real);
      fits = fits && array.extents[array.rank - Dim + axis] == stored;
    }
    if (!fits)
      arguments.refuse(argument, "[batches of %s, found %s", expected.shape_text().characters + 1,
                       array.shape_text().characters);
  }

  void transform(const ExecutionSpace& space, const Array<ConstUnlessDestroyed, MemorySpace>& input,
                 const Array<Output, MemorySpace>& output, const Impl::NamedMemory& workspace) const {
    check("input", input, Problem::from_real);
    check("output", output, Problem::to_real);
    const Impl::NamedMemory in_memory("input", input), out_memory("output", output);
    const bool in_place = Problem::complex_to_complex && in_memory.begin == out_memory.begin;
    arguments.require(in_place || !out_memory.overlaps(in_memory), "output",
                      Problem::complex_to_complex ? "memory of its own or the input itself"
                                                  : "memory of its own",
                      "memory shared with input");
    arguments.disjoint({workspace}, {in_memory, out_memory});
    if (!backend_)
      return;
    Kokkos::Profiling::ScopedRegion region("Bracewell::FFT::execute");
    backend_->execute(space, const_cast<Input*>(input.data), output.data, const_cast<char*>(workspace.begin));
  }

  static constexpr Impl::Arguments arguments{"FFT::execute"};

  Problem problem_;
  bool external_;
  std::shared_ptr<const Backend> backend_; // not shared: callers need not know how it ends
};

template <class ExecutionSpace, int Dim, class Input, class Output>
FFT<ExecutionSpace, Dim, Input, Output>::FFT(const ExecutionSpace& space, const std::array<int, Dim>& shape,
                                             std::int64_t batch, const FFTOptions& options)
    : problem_(check(shape, batch, options)), external_(options.external_workspace),
      backend_(batch > 0 ? std::make_shared<const Backend>(space, problem_, options) : nullptr) {}

template <class ExecutionSpace, int Dim, class Input, class Output>
std::size_t FFT<ExecutionSpace, Dim, Input, Output>::workspace_bytes() const {
  return backend_ ? backend_->workspace_bytes() : 0;
}

template <class ExecutionSpace, int Dim, class Input, class Output>
std::size_t FFT<ExecutionSpace, Dim, Input, Output>::bytes_needed(const ExecutionSpace& space,
                                                                  const std::array<int, Dim>& shape,
                                                                  std::int64_t batch,
                                                                  const FFTOptions& options) {
  const Problem problem = check(shape, batch, options);
  return batch > 0 && !options.external_workspace ? Backend::workspace_needed(space, problem) : 0;
}

template <class ExecutionSpace, int Dim, class Input, class Output>
void FFT<ExecutionSpace, Dim, Input, Output>::execute(const ExecutionSpace& space,
                                                      const Array<ConstUnlessDestroyed, MemorySpace>& input,
                                                      const Array<Output, MemorySpace>& output) const {
  arguments.require(!external_ || workspace_bytes() == 0, "workspace",
                    "a View, as the plan was made with external_workspace", "none");
  transform(space, input, output, Impl::NamedMemory("workspace", nullptr, 0));
}

template <class ExecutionSpace, int Dim, class Input, class Output>
void FFT<ExecutionSpace, Dim, Input, Output>::execute(
    const ExecutionSpace& space, const Array<ConstUnlessDestroyed, MemorySpace>& input,
    const Array<Output, MemorySpace>& output, const Kokkos::View<char*, MemorySpace>& workspace) const {
  if (workspace.size() < workspace_bytes())
    arguments.refuse("workspace", "%zu bytes, found %zu", workspace_bytes(), workspace.size());
  transform(space, input, output, Impl::NamedMemory("workspace", workspace.data(), workspace.size()));
}

#define BRACEWELL_INSTANCES_FFT(Extern, Space, Real, Dim)                                                    \
  Extern template class FFT<Space, Dim, Real, Kokkos::complex<Real>>;                                        \
  Extern template class FFT<Space, Dim, Kokkos::complex<Real>, Real>;                                        \
  Extern template class FFT<Space, Dim, Kokkos::complex<Real>, Kokkos::complex<Real>>;
BRACEWELL_DECLARE_DIMENSIONS(BRACEWELL_INSTANCES_FFT)

} // namespace Bracewell
