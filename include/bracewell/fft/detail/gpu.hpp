// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/detail/problem.hpp>
#include <bracewell/fft/options.hpp>

#include <memory>
#include <mutex>
#include <string>

namespace Bracewell::Impl {

/// FFTs by a GPU library. cuFFT and hipFFT differ in names only, which Library holds.
template <class Library, class ExecutionSpace, int Dim, class Input, class Output>
class GPUBackend {
  using Problem = FFTProblem<Dim, Input, Output>;

public:
  GPUBackend(const ExecutionSpace& space, const Problem& problem, const FFTOptions& options)
      : forward_(problem.forward), bytes_(make(handle_, problem)) {
    if (!options.external_workspace)
      workspace_ = Workspace(
          Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::FFT::workspace"), bytes_);
  }

  std::size_t workspace_bytes() const { return bytes_; }

  static std::size_t workspace_needed(const ExecutionSpace&, const Problem& problem) {
    Handle handle;
    return make(handle, problem);
  }

  void execute(const ExecutionSpace& space, Input* in, Output* out, void* external) const {
    if (reinterpret_cast<std::uintptr_t>(in) % sizeof(Complex) != 0 ||
        reinterpret_cast<std::uintptr_t>(out) % sizeof(Complex) != 0)
      fail("FFT::execute", "input or output",
           "arrays that begin at a multiple of " + std::to_string(sizeof(Complex)) + " bytes",
           "one that does not");
    // Stream and workspace are state of the handle: one thread at a time sets them and launches.
    const std::lock_guard lock(mutex_);
    check(Library::set_stream(handle_.value, space), "set the stream");
    check(Library::set_workspace(handle_.value, external ? external : workspace_.data()),
          "set the workspace");
    check(Library::execute(handle_.value, in, out, forward_), "execute the transform");
  }

private:
  using Complex = Kokkos::complex<typename Problem::Real>;
  using Workspace = Kokkos::View<char*, typename ExecutionSpace::memory_space>;

  struct Handle {
    typename Library::Handle value = {};
    ~Handle() { Library::destroy(value); }
  };

  /// Makes the plan; the bytes of workspace that it needs.
  static std::size_t make(Handle& handle, const Problem& problem) {
    long long shape[Dim];
    for (int axis = 0; axis < Dim; ++axis)
      shape[axis] = problem.shape[axis];
    std::size_t bytes = 0;
    check(Library::create(&handle.value), "create a plan");
    check(Library::set_auto_allocation(handle.value, 0), "leave the workspace to the caller");
    check(Library::make_plan(handle.value, Dim, shape, Library::template type<Input, Output>(), problem.batch,
                             &bytes),
          "plan the transform");
    return bytes;
  }

  static void check(typename Library::Result result, const char* action) {
    if (result != Library::success)
      throw Error(std::string("Bracewell::FFT: ") + Library::name + " could not " + action + " (error " +
                  std::to_string(int(result)) + ")");
  }

  bool forward_;
  Handle handle_;
  std::size_t bytes_;
  Workspace workspace_;
  mutable std::mutex mutex_;
};

} // namespace Bracewell::Impl
