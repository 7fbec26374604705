// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/toeplitz/toeplitz_lines.hpp>
#include <bracewell/gridding/detail/toeplitz/toeplitz_plans.hpp>
#include <bracewell/gridding/nonuniform_fft.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/compiled.hpp>
#include <bracewell/impl/host_tasks.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <optional>

namespace Bracewell {

/// The normal operator of a NonuniformFFT with any real weights of the samples, `adjoint(w forward(image))`
/// without the samples:
///   result(X) = sum_X' response(X - X') image(X'),   response(d) = sum_j w_j exp(+2 pi i x_j . d)
/// (the exponent has the other sign where options.sign is -1), a Toeplitz matrix. One convolution of about
/// twice the image's size along every axis: two FFTs, however many samples there are. Wajer and Pruessmann,
/// Proc. ISMRM 9, 2001; Fessler et al., IEEE Trans. Signal Process. 53(9), 2005.
///
/// Value is Kokkos::complex of float or double. For real images it is float or double: the plan then computes the real
/// part of the result only, with transforms of half the size. The matrix is Hermitian (symmetric) to rounding. The
/// response has the relative error (L2) of options.tolerance. Results of images that the samples see have about the
/// same error. With positive weights, eigenvalues as small as this error may come out below zero.
///
/// In two dimensions on CUDA three kernels do the whole convolution of images of 257 to 4096 pixels along both axes, if a
/// multiprocessor has the memory. Other convolutions go through FFT plans.
///
/// Movable, not copyable; owns the grids and the FFTs' workspace, so calls that can overlap need a plan each.
template <class ExecutionSpace, int Dim, class Value>
class ToeplitzNormal {
  using T = typename Impl::RealOf<Value>::type;
  static_assert(Dim == 2 || Dim == 3,
                "Bracewell::ToeplitzNormal: Dim: expected 2 or 3, as images have, found another.");
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "Bracewell::ToeplitzNormal: Value: expected float, double or Kokkos::complex of them, found "
                "another type.");
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;
  using Shape = std::array<int, Dim>;
  static constexpr bool has_lines = Dim == 2 && Impl::has_chip_memory<ExecutionSpace>;
  using Lines = Impl::ToeplitzLines<ExecutionSpace, Value>;
  using Plans = Impl::ToeplitzPlans<ExecutionSpace, Dim, Value>;
  using Points = Impl::GriddingPoints<ExecutionSpace, Dim>;

public:
  /// Computes the response by a NonuniformFFT of images of 2 n - 1 pixels along every axis, and waits for it. The memory of
  /// this NonuniformFFT and a complex grid are free again afterwards.
  /// @param points   View [points, Dim] of double, or PolarPoints: see Gridding
  /// @param weights  View of float or double, as Value is, [points], of any sign; all 1 where it is {}
  /// @param shape    image size {(depth,) height, width}, at most 16,384
  /// @param options  tolerance, oversampling, strategy and sign of the NonuniformFFT; `slices` are
  ///                 those that a pass transforms at once; samples have no order here
  /// @throws Error as Gridding does, and on weights of another shape
  ToeplitzNormal(const ExecutionSpace& space, const Points& points,
                 const Array<const T, MemorySpace>& weights, const Shape& shape,
                 const GriddingOptions& options = {});

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const { return lines_ ? lines_->memory_bytes() : plans_->memory_bytes(); }

  /// What memory_bytes() of a plan of these arguments would be; points and weights do not matter.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace& space, const Shape& shape,
                                  const GriddingOptions& options = {});

  /// Whether plans of this shape work by lines on the chip of a GPU, in three kernels.
  static bool on_chip(const ExecutionSpace& space, const Shape& shape) {
    return bool(line_sizes(space, shape));
  }

  /// Size of the convolution, slowest axis first: at least 2 n - 1 along every axis.
  Shape grid_shape() const { return grid_; }

  /// @param images   View of Value [slices, (depth,) height, width], any number of slices
  /// @param results  View of the same shape, overwritten; it may be `images`
  /// @throws Error on shapes that do not fit and memory that both use in part
  void execute(const ExecutionSpace& space, const Array<const Value, MemorySpace>& images,
               const Array<Value, MemorySpace>& results) const;

private:
  static const Shape& checked(const Shape& shape, const GriddingOptions& options) {
    constexpr Impl::Arguments arguments{"ToeplitzNormal"};
    for (const int size : shape)
      arguments.within("shape", size, 1, 16384);
    arguments.at_least("options.slices", options.slices, std::int64_t(1));
    return shape;
  }

  static Impl::ToeplitzLineSizes line_sizes([[maybe_unused]] const ExecutionSpace& space,
                                            [[maybe_unused]] const Shape& shape) {
    if constexpr (has_lines)
      return Impl::choose_toeplitz_lines<T>(shape, Impl::chip_memory(space));
    return {};
  }

  static Shape grid_shape(const ExecutionSpace& space, const Shape& shape) {
    Shape grid;
    for (int d = 0; d < Dim; ++d)
      grid[std::size_t(d)] =
          static_cast<int>(gridding_size(2 * shape[std::size_t(d)] - 1, Impl::is_host<ExecutionSpace>));
    if (const auto sizes = line_sizes(space, shape))
      grid[0] = sizes.columns, grid[1] = sizes.rows;
    return grid;
  }

  /// Of the response at distances d, |d| < n along every axis, which lie at d modulo the grid: [grid].
  Kokkos::View<Complex*, ExecutionSpace> transform_of_response(const ExecutionSpace& space,
                                                               const Points& points,
                                                               const Array<const T, MemorySpace>& weights,
                                                               GriddingOptions options) const {
    constexpr Impl::Arguments arguments{"ToeplitzNormal"};
    using Adjoint = NonuniformFFT<ExecutionSpace, Dim, T>;
    options.slices = 1;
    options.order = SampleOrder::SlicesFirst;
    Shape wide = image_;
    for (int& size : wide)
      size = 2 * size - 1;
    const auto ones = Impl::device_vector<T>(space, "Bracewell::ToeplitzNormal::ones",
                                             *std::max_element(wide.begin(), wide.end()));
    Impl::fill(space, "Bracewell::ToeplitzNormal::ones", ones.data(), std::int64_t(ones.size()), T(1));
    const auto layout = Impl::ImageOnGrid<T, Dim>::make(wide, grid_, ones.data());
    const auto transform =
        Impl::device_vector<Complex>(space, "Bracewell::ToeplitzNormal::transform", layout.grid.elements());
    { // whose memory is free before the FFT takes its own
      const auto adjoint = Impl::NamedPlans::make<Adjoint>(arguments, space, points, wide, options);
      const std::int64_t count = adjoint.plan().points();
      if (weights)
        arguments.shape("weights", weights, {count});
      const auto samples = Impl::device_vector<Complex>(space, "Bracewell::ToeplitzNormal::samples", count);
      const auto response =
          Impl::device_vector<Complex>(space, "Bracewell::ToeplitzNormal::response", Impl::product(wide));
      Impl::launch_kernel(
          "Bracewell::ToeplitzNormal::weights",
          Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, count),
          Impl::WeightsAsSamples<T>{weights.data, samples.data()});
      adjoint.adjoint(space, Impl::slices_of<MemorySpace>(samples.data(), 1, std::array{count}),
                      Impl::slices_of<MemorySpace>(response.data(), 1, wide));
      Impl::pad_images(space, "Bracewell::ToeplitzNormal::place", layout,
                       Impl::PlainImages<const Complex>{response.data()}, 1, transform.data());
      space.fence("Bracewell::ToeplitzNormal: memory is no longer needed");
    }
    const FFT<ExecutionSpace, Dim, Complex, Complex> fft(space, grid_);
    const auto grid = Impl::slices_of<MemorySpace>(transform.data(), 1, grid_);
    fft.execute(space, grid, grid);
    space.fence("Bracewell::ToeplitzNormal: the FFT's memory is no longer needed");
    return transform;
  }

  Shape image_, grid_;
  std::int64_t slices_;
  std::optional<Lines> lines_; ///< one of both
  std::optional<Plans> plans_;
};

template <class ExecutionSpace, int Dim, class Value>
ToeplitzNormal<ExecutionSpace, Dim, Value>::ToeplitzNormal(const ExecutionSpace& space, const Points& points,
                                                           const Array<const T, MemorySpace>& weights,
                                                           const Shape& shape, const GriddingOptions& options)
    : image_(checked(shape, options)), grid_(grid_shape(space, shape)), slices_(options.slices) {
  const auto transform = transform_of_response(space, points, weights, options);
  if constexpr (has_lines)
    if (const auto sizes = line_sizes(space, shape))
      lines_.emplace(space, shape, sizes, slices_, transform.data());
  if (!lines_)
    plans_.emplace(space, shape, grid_, slices_, transform.data());
  space.fence("Bracewell::ToeplitzNormal: the plan is complete");
}

template <class ExecutionSpace, int Dim, class Value>
std::size_t ToeplitzNormal<ExecutionSpace, Dim, Value>::bytes_needed(const ExecutionSpace& space,
                                                                     const Shape& shape,
                                                                     const GriddingOptions& options) {
  const Shape grid = grid_shape(space, checked(shape, options));
  if constexpr (has_lines)
    if (const auto sizes = line_sizes(space, shape))
      return Lines::bytes_needed(shape, sizes, options.slices);
  return Plans::bytes_needed(space, shape, grid, options.slices);
}

template <class ExecutionSpace, int Dim, class Value>
void ToeplitzNormal<ExecutionSpace, Dim, Value>::execute(const ExecutionSpace& space,
                                                         const Array<const Value, MemorySpace>& images,
                                                         const Array<Value, MemorySpace>& results) const {
  constexpr Impl::Arguments arguments{"ToeplitzNormal::execute"};
  const std::int64_t slices = images && images.rank > 0 ? images.extents[0] : 0;
  Impl::check_slices(arguments, "images", images, slices, image_);
  Impl::check_slices(arguments, "results", results, slices, image_);
  if (images.data != results.data)
    arguments.disjoint({{"results", results}}, {{"images", images}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::ToeplitzNormal::execute");
  const std::int64_t pixels = Impl::product(image_);
  for (std::int64_t first = 0; first < slices; first += slices_) {
    const auto execute = [&](const auto& machine) {
      machine.execute(space, images.data + first * pixels, results.data + first * pixels,
                      std::min(slices_, slices - first));
    };
    if (plans_)
      execute(*plans_);
    else if constexpr (has_lines)
      execute(*lines_);
  }
}

#define BRACEWELL_INSTANCES_TOEPLITZ_NORMAL_2D(Extern, Space, Real)                                          \
  Extern template class ToeplitzNormal<Space, 2, Real>;                                                      \
  Extern template class ToeplitzNormal<Space, 2, Kokkos::complex<Real>>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_TOEPLITZ_NORMAL_2D)
#define BRACEWELL_INSTANCES_TOEPLITZ_NORMAL_3D(Extern, Space, Real)                                          \
  Extern template class ToeplitzNormal<Space, 3, Real>;                                                      \
  Extern template class ToeplitzNormal<Space, 3, Kokkos::complex<Real>>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_TOEPLITZ_NORMAL_3D)

} // namespace Bracewell
