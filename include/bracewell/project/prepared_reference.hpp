// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/compiled.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/detail/problem.hpp>
#include <bracewell/project/detail/sampling/padded_copy.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <cmath>

namespace Bracewell {

/// Which operator reads a PreparedReference.
enum class ReadBy {
  Project,             ///< project, project_gradients: it is a reconstruction
  BackprojectGradients ///< backproject_gradients: it is the cotangent of data
};

/// A reconstruction, or a batch of them, made ready for sampling by one kernel: `project`, `project_gradients` and
/// `backproject_gradients` take it in place of the View. It owns a copy, so the View is not needed any more. On GPUs the copy
/// goes a little beyond the stored half, in an order that suits the caches. It is made once and serves any number of calls.
/// Movable and copyable (a copy refers to the same memory); calls that read it may run on several instances once it has been
/// filled.
///
/// Memory, relative to the View, with 128 elements a side in float: on GPUs 1.1 (linear) or 1.2 for volumes, and 2.2 to
/// 2.4 for images; on hosts 1. Half precision takes half of it.
///
/// @tparam Stored  how elements are stored: Kokkos::complex of float or double, or HalfComplex. With HalfComplex all
/// arithmetic is in float. The spectra are scaled by a power of two so that none overflows. Every element has a relative
/// error of at most 2^-11 = 4.9e-4, or an absolute error of 2^-39 of the largest part of all. In L2 of spectra and
/// projections the error is about 2e-4.
template <class Kernel, class ExecutionSpace, int D, class Stored = Kokkos::complex<float>>
class PreparedReference {
  static constexpr Impl::KernelFault fault = Impl::kernel_fault<Kernel, Impl::real_of_stored<Stored>>;
  BRACEWELL_EXPECTS_KERNEL(fault, "PreparedReference");
  static_assert(D == 2 || D == 3,
                "Bracewell::PreparedReference: expected images (D = 2) or volumes (D = 3).");
  static constexpr bool host = Impl::is_host<ExecutionSpace>;
  static constexpr bool half = std::is_same_v<Stored, HalfComplex>;
  using Padded = Impl::PaddedSpectra<Stored, D, Kernel::width>;
  using Spectra = Impl::PreparedSpectra<Kernel, ExecutionSpace, D, Stored>;
  using Element = std::conditional_t<host, Stored, typename Padded::Order::Entry>;
  using Memory = typename ExecutionSpace::memory_space;
  template <class From>
  using Input = Array<const From, Memory>;

public:
  /// What samples are computed in.
  using Real = Impl::real_of_stored<Stored>;

  /// @param space           instance that the copy is made on; waits for it only where Stored is HalfComplex
  /// @param reconstruction  complex or HalfComplex [B, (D,) H, W/2+1] of the same precision, as project takes it
  /// @param reader          the operator that will read it
  /// @throws Error on shapes that no projection has, and on GPUs beyond 2^32 elements
  template <class Reconstruction>
  PreparedReference(const ExecutionSpace& space, const Reconstruction& reconstruction,
                    ReadBy reader = ReadBy::Project)
      : reader_(reader) {
    static_assert(int(Impl::view_of<Reconstruction>::rank()) == D + 1,
                  "Bracewell::PreparedReference: expected a reconstruction [B, H, W/2+1] of images or "
                  "[B, D, H, W/2+1] of volumes.");
    make(space, Input<Impl::spectrum_value_of<Reconstruction>>(reconstruction));
  }

  /// Bytes that the copy of `count` reconstructions of full sizes `layout` will take.
  static std::int64_t bytes_needed(const ExecutionSpace&, const HalfSpectrumLayout<D>& layout,
                                   std::int64_t count = 1);

  /// Fills it anew, from a reconstruction of the same shape. Calls that read it come before or after it on the
  /// same instance.
  /// @throws Error where the shape is another
  template <class Reconstruction>
  void update(const ExecutionSpace& space, const Reconstruction& reconstruction) {
    refill(space, Input<Impl::spectrum_value_of<Reconstruction>>(reconstruction));
  }

  /// What options.oversampling is where it is left out: padded over unpadded box.
  void set_oversampling(double oversampling) { oversampling_ = oversampling; }
  /// The same, absent until it is set.
  std::optional<double> oversampling() const { return oversampling_; }

  /// Full sizes (x, y[, z]).
  const HalfSpectrumLayout<D>& layout() const { return layout_; }
  /// Bytes of memory that the copy takes.
  std::int64_t memory_bytes() const { return std::int64_t(memory_.size() * sizeof(Element)); }

  /// For the operator `function`, which is named in the Error where it is not the one that reads.
  Impl::Reference<Stored, Spectra> reference(const char* function, const char* argument,
                                             ReadBy reader = ReadBy::Project) const;

private:
  using Order = typename Padded::Order;

  /// Stored for one reconstruction; not positive where they are too many.
  static std::int64_t elements(const HalfSpectrumLayout<D>& layout) {
    if constexpr (host)
      return layout.elements();
    else
      return Order(layout).usable_size();
  }

  template <class From>
  void refill(const ExecutionSpace& space, const Input<From>& input);

  template <class From>
  void make(const ExecutionSpace& space, const Input<From>& input);

  template <class From>
  void fill(const ExecutionSpace& space, const Input<From>& input) {
    static_assert(std::is_same_v<Impl::real_of_stored<From>, Real>,
                  "Bracewell::PreparedReference: expected one precision, found float beside double.");
    const Kokkos::Profiling::ScopedRegion region("Bracewell::PreparedReference");
    const std::int64_t count = input.extents[0], size = input.size();
    using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
    Impl::Gain<Stored> scale, gain;
    if constexpr (half && !std::is_same_v<From, HalfComplex>) {
      float largest = 0;
      Kokkos::parallel_reduce("Bracewell::PreparedReference::largest", Policy(space, 0, size),
                              Impl::LargestPart<From>{input.data}, Kokkos::Max<float>(largest));
      if (largest > 0) {
        const int exponent = 15 - std::ilogb(largest) - 1; // the largest is then below 2^15
        scale.gain = std::ldexp(1.f, std::clamp(exponent, -126, 126));
        gain.gain = 1 / scale.gain;
      }
    }
    if constexpr (host) {
      spectra_ = {memory_.data(), count > 1 ? layout_.elements() : 0, gain};
      Kokkos::parallel_for("Bracewell::PreparedReference::copy", Policy(space, 0, size),
                           Impl::CopyStored<From, Stored>{input.data, memory_.data(), scale});
    } else {
      spectra_ = {memory_.data(), Order(layout_), count <= 1, gain};
      const Impl::StoredSpectra<From> from{input.data, count > 1 ? layout_.elements() : 0};
      if (reader_ == ReadBy::Project)
        Impl::copy_to_padded<Impl::Mates::Single>(space, "Bracewell::PreparedReference::copy", layout_, from,
                                                  count, spectra_, scale);
      else
        Impl::copy_to_padded<Impl::Mates::Both>(space, "Bracewell::PreparedReference::copy", layout_, from,
                                                count, spectra_, scale);
    }
  }

  ReadBy reader_;
  HalfSpectrumLayout<D> layout_{};
  Impl::ArrayShape shape_;
  Kokkos::View<Element*, Memory> memory_;
  Spectra spectra_{};
  std::optional<double> oversampling_;
};

template <class Kernel, class ExecutionSpace, int D, class Stored>
std::int64_t PreparedReference<Kernel, ExecutionSpace, D, Stored>::bytes_needed(
    const ExecutionSpace&, const HalfSpectrumLayout<D>& layout, std::int64_t count) {
  return count * elements(layout) * std::int64_t(sizeof(Element));
}

template <class Kernel, class ExecutionSpace, int D, class Stored>
auto PreparedReference<Kernel, ExecutionSpace, D, Stored>::reference(const char* function,
                                                                     const char* argument,
                                                                     ReadBy reader) const
    -> Impl::Reference<Stored, Spectra> {
  Impl::Arguments{function}.require(reader == reader_, argument,
                                    reader == ReadBy::Project
                                        ? "one prepared for ReadBy::Project"
                                        : "one prepared for ReadBy::BackprojectGradients",
                                    "the other");
  return {shape_, {argument, nullptr, 0}, spectra_, oversampling_};
}

template <class Kernel, class ExecutionSpace, int D, class Stored>
template <class From>
void PreparedReference<Kernel, ExecutionSpace, D, Stored>::refill(const ExecutionSpace& space,
                                                                  const Input<From>& input) {
  Impl::Arguments{"PreparedReference::update"}.same_spectrum("reconstruction", input, shape_);
  fill(space, input);
}

template <class Kernel, class ExecutionSpace, int D, class Stored>
template <class From>
void PreparedReference<Kernel, ExecutionSpace, D, Stored>::make(const ExecutionSpace& space,
                                                                const Input<From>& input) {
  const Impl::ProjectionArguments arguments{{"PreparedReference"}};
  Impl::check_kernel<Kernel, Real>(arguments.function);
  arguments.reconstruction<D>("reconstruction", input, Kernel::width, layout_.size);
  shape_ = input;
  shape_.forget_view();
  const std::int64_t each = elements(layout_);
  arguments.require(each > 0, "reconstruction", "at most 2^32 elements with their margins",
                    [&] { return Impl::number(Order(layout_).size); });
  memory_ = Kokkos::View<Element*, Memory>(
      Kokkos::view_alloc("Bracewell::PreparedReference::copy", Kokkos::WithoutInitializing),
      static_cast<std::size_t>(input.extents[0] * each));
  fill(space, input);
}

namespace Impl {

template <class Type>
inline constexpr bool is_prepared = false;
template <class Kernel, class ExecutionSpace, int D, class Stored>
inline constexpr bool is_prepared<PreparedReference<Kernel, ExecutionSpace, D, Stored>> = true;

} // namespace Impl

/// Prepares a reconstruction in the precision of its View, or in another one:
/// `prepare<Linear, HalfComplex>(space, reconstruction)`.
template <class Kernel = CatmullRom, class Stored = void, class ExecutionSpace, class Reconstruction>
auto prepare(const ExecutionSpace& space, const Reconstruction& reconstruction,
             ReadBy reader = ReadBy::Project) {
  using Type = std::conditional_t<std::is_void_v<Stored>, Impl::spectrum_value_of<Reconstruction>, Stored>;
  return PreparedReference<Kernel, ExecutionSpace, int(Impl::view_of<Reconstruction>::rank()) - 1, Type>(
      space, reconstruction, reader);
}

#define BRACEWELL_PREPARED_REFERENCE_OF(Extern, Space, Real, Kernel, D, Stored)                              \
  Extern template class PreparedReference<Kernel, Space, D, Stored>;                                         \
  Extern template void PreparedReference<Kernel, Space, D, Stored>::make(                                    \
      const Space&, const Array<const Kokkos::complex<Real>, Space::memory_space>&);                         \
  Extern template void PreparedReference<Kernel, Space, D, Stored>::refill(                                  \
      const Space&, const Array<const Kokkos::complex<Real>, Space::memory_space>&);
#define BRACEWELL_PREPARED_REFERENCE(Extern, Space, Real, Kernel, Stored)                                    \
  BRACEWELL_PREPARED_REFERENCE_OF(Extern, Space, Real, Kernel, 2, Stored)                                    \
  BRACEWELL_PREPARED_REFERENCE_OF(Extern, Space, Real, Kernel, 3, Stored)
#define BRACEWELL_INSTANCES_PREPARED_REFERENCE(Extern, Space, Real, Kernel)                                  \
  BRACEWELL_PREPARED_REFERENCE(Extern, Space, Real, Kernel, Kokkos::complex<Real>)
BRACEWELL_DECLARE_KERNELS(BRACEWELL_DECLARE, BRACEWELL_INSTANCES_PREPARED_REFERENCE)
#define BRACEWELL_INSTANCES_PREPARED_REFERENCE_HALF(Extern, Space, Real, Kernel)                             \
  BRACEWELL_PREPARED_REFERENCE(Extern, Space, Real, Kernel, HalfComplex)
BRACEWELL_DECLARE_KERNELS(BRACEWELL_DECLARE_FLOAT, BRACEWELL_INSTANCES_PREPARED_REFERENCE_HALF)

} // namespace Bracewell
