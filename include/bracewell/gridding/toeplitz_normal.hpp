// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/transfer_function.hpp>
#include <bracewell/gridding/nonuniform_fft.hpp>

#include <algorithm>
#include <string>

namespace Bracewell {

/// The normal operator of a NonuniformFFT with any real weights of the samples, `adjoint(w forward(image))`
/// without the samples:
///   result(X) = sum_X' response(X - X') image(X'),   response(d) = sum_j w_j exp(+2 pi i x_j . d)
/// (the exponent has the other sign where options.sign is -1), a Toeplitz matrix. One convolution of about
/// twice the image's size along every axis: two FFTs, however many samples there are. Wajer and Pruessmann,
/// Proc. ISMRM 9, 2001; Fessler et al., IEEE Trans. Signal Process. 53(9), 2005.
///
/// Value is Kokkos::complex of float or double, or float or double for real images, of whose result the real
/// part is taken: transforms of half the size. The matrix is Hermitian (symmetric) to rounding. The response
/// has the relative error (L2) of options.tolerance, and so, about, have results of images that the samples
/// see; where weights are positive, eigenvalues as small as that may come out below zero.
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
  static constexpr bool real = std::is_same_v<Value, T>;
  template <class DataType>
  using Unmanaged =
      Kokkos::View<DataType, Kokkos::LayoutRight, ExecutionSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  template <class Element>
  using GridView = Unmanaged<std::conditional_t<Dim == 2, Element***, Element****>>;
  using Forward = FFT<ExecutionSpace, Dim, Value, Complex>;
  using Backward = FFT<ExecutionSpace, Dim, Complex, Value>;

public:
  /// Computes the response by a NonuniformFFT of images of 2 n - 1 pixels along every axis and waits for it;
  /// that plan's memory and a complex grid are free again afterwards.
  /// @param points   View [points, Dim] of double, or PolarPoints: see Gridding
  /// @param weights  View of float or double, as Value is, [points], of any sign; all 1 where it is {}
  /// @param shape    image size {(depth,) height, width}, at most 16,384
  /// @param options  tolerance, kernel, oversampling, strategy and sign of the NonuniformFFT; `slices` are
  ///                 those that a pass transforms at once; samples have no order here
  /// @throws Error as Gridding does, and on weights of another shape
  template <class Points>
  ToeplitzNormal(const ExecutionSpace& space, const Points& points,
                 const Array<const T, MemorySpace>& weights, const Shape& shape,
                 const GriddingOptions& options = {})
      : image_(checked(shape, options)), grid_(grid_shape(shape)), slices_(options.slices),
        ones_(Impl::device_vector<T>(space, "Bracewell::ToeplitzNormal::ones", longest(shape))),
        transfer_(transfer_function(space, points, weights, options)),
        // They never run at the same time.
        forward_(space, grid_, slices_, {.external_workspace = true}),
        backward_(space, grid_, slices_, {.direction = FFTDirection::Backward, .external_workspace = true}),
        grids_(Impl::device_vector<Value>(space, "Bracewell::ToeplitzNormal::grids", slices_ * elements())),
        spectra_(Impl::device_vector<Complex>(space, "Bracewell::ToeplitzNormal::spectra",
                                              real ? slices_ * frequencies(grid_) : 0)),
        workspace_(Impl::device_vector<char>(
            space, "Bracewell::ToeplitzNormal::workspace",
            std::int64_t(std::max(forward_.workspace_bytes(), backward_.workspace_bytes())))) {}

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const { return Impl::bytes_of(ones_, transfer_, grids_, spectra_, workspace_); }

  /// What memory_bytes() of a plan of these arguments would be; points and weights do not matter.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace& space, const Shape& shape,
                                  const GriddingOptions& options = {}) {
    const Shape grid = grid_shape(checked(shape, options));
    std::size_t cells = sizeof(Value);
    for (const int size : grid)
      cells *= static_cast<std::size_t>(size);
    const auto slices = static_cast<std::size_t>(options.slices),
               spectrum = static_cast<std::size_t>(frequencies(grid));
    const FFTOptions back{.direction = FFTDirection::Backward};
    return (static_cast<std::size_t>(longest(shape)) + spectrum) * sizeof(T) + slices * cells +
           (real ? slices * spectrum * sizeof(Complex) : 0) +
           std::max(Forward::bytes_needed(space, grid, options.slices),
                    Backward::bytes_needed(space, grid, options.slices, back));
  }

  /// Size of the convolution, slowest axis first: at least 2 n - 1 along every axis.
  Shape grid_shape() const { return grid_; }

  /// @param images   View of Value [slices, (depth,) height, width], any number of slices
  /// @param results  View of the same shape, overwritten; it may be `images`
  /// @throws Error on shapes that do not fit and memory that both use in part
  template <class Images, class Results>
  void execute(const ExecutionSpace& space, const Images& images, const Results& results) const {
    const Array<const Value, MemorySpace> in(images);
    const Array<Value, MemorySpace> out(results);
    constexpr Impl::Arguments arguments{"ToeplitzNormal::execute"};
    const std::int64_t slices = in && in.rank > 0 ? in.extents[0] : 0;
    Impl::check_slices(arguments, "images", in, slices, image_);
    Impl::check_slices(arguments, "results", out, slices, image_);
    if (in.data != out.data)
      arguments.disjoint({{"results", out}}, {{"images", in}});
    Kokkos::Profiling::ScopedRegion region("Bracewell::ToeplitzNormal::execute");
    const auto layout = Impl::ImageOnGrid<T, Dim>::make(image_, grid_, ones_.data());
    const std::int64_t pixels = layout.image_rows() * layout.image[0];
    for (std::int64_t first = 0; first < slices; first += slices_) {
      const std::int64_t pass = std::min(slices_, slices - first);
      Impl::pad_images(space, "Bracewell::ToeplitzNormal::pad", layout,
                       Impl::PlainImages<const Value>{in.data + first * pixels}, pass, grids_.data());
      if (pass < slices_) // FFTs transform them all
        Impl::fill(space, "Bracewell::ToeplitzNormal::unused", grids_.data() + pass * elements(),
                   (slices_ - pass) * elements());
      forward_.execute(space, grids(), spectra(), workspace_);
      const auto rows = layout.grid_rows();
      Impl::for_each_row(space, "Bracewell::ToeplitzNormal::multiply", pass * rows,
                         Impl::MultiplySpectra<T>{transfer_.data(), spectra().data(),
                                                  static_cast<int>(frequencies(grid_) / rows), rows});
      backward_.execute(space, spectra(), grids(), workspace_);
      Impl::crop_grids(space, "Bracewell::ToeplitzNormal::crop", layout, grids_.data(), pass,
                       Impl::PlainImages<Value>{out.data + first * pixels});
    }
  }

private:
  static const Shape& checked(const Shape& shape, const GriddingOptions& options) {
    constexpr Impl::Arguments arguments{"ToeplitzNormal"};
    for (const int size : shape)
      arguments.within("shape", size, 1, 16384);
    arguments.at_least("options.slices", options.slices, std::int64_t(1));
    return shape;
  }

  static Shape grid_shape(const Shape& shape) {
    Shape grid;
    for (int d = 0; d < Dim; ++d)
      grid[d] = static_cast<int>(gridding_size(2 * shape[d] - 1, Impl::is_host<ExecutionSpace>));
    return grid;
  }
  /// Pixels of the response along its longest axis.
  static std::int64_t longest(const Shape& shape) {
    return 2 * *std::max_element(shape.begin(), shape.end()) - 1;
  }
  /// Elements of a spectrum.
  static std::int64_t frequencies(const Shape& grid) {
    std::int64_t product = real ? grid[Dim - 1] / 2 + 1 : grid[Dim - 1];
    for (int d = 0; d < Dim - 1; ++d)
      product *= grid[d];
    return product;
  }
  std::int64_t elements() const {
    return Impl::ImageOnGrid<T, Dim>::make(image_, grid_, nullptr).grid.elements();
  }

  template <class Element>
  static GridView<Element> view(Element* data, std::int64_t slices, const Shape& shape) {
    if constexpr (Dim == 2)
      return GridView<Element>(data, slices, shape[0], shape[1]);
    else
      return GridView<Element>(data, slices, shape[0], shape[1], shape[2]);
  }
  GridView<Value> grids() const { return view(grids_.data(), slices_, grid_); }
  /// Complex values are transformed in place.
  GridView<Complex> spectra() const {
    if constexpr (!real) {
      return grids();
    } else {
      Shape half = grid_;
      half[Dim - 1] = half[Dim - 1] / 2 + 1;
      return view(spectra_.data(), slices_, half);
    }
  }

  /// The response's transform over the number of elements, by which two FFTs multiply.
  template <class Points>
  Kokkos::View<T*, ExecutionSpace> transfer_function(const ExecutionSpace& space, const Points& points,
                                                     const Array<const T, MemorySpace>& weights,
                                                     GriddingOptions options) const {
    options.slices = 1;
    options.order = SampleOrder::SlicesFirst;
    Shape wide = image_;
    for (int& size : wide)
      size = 2 * size - 1;
    Impl::fill(space, "Bracewell::ToeplitzNormal::ones", ones_.data(), longest(image_), T(1));
    const auto layout = Impl::ImageOnGrid<T, Dim>::make(wide, grid_, ones_.data());
    const auto transform =
        Impl::device_vector<Complex>(space, "Bracewell::ToeplitzNormal::transform", elements());
    respond(space, points, weights, wide, options, layout, transform.data());
    const FFT<ExecutionSpace, Dim, Complex, Complex> fft(space, grid_);
    fft.execute(space, view(transform.data(), 1, grid_), view(transform.data(), 1, grid_));
    const auto result =
        Impl::device_vector<T>(space, "Bracewell::ToeplitzNormal::transfer", frequencies(grid_));
    auto stored = layout.grid;
    stored.size[0] = static_cast<int>(frequencies(grid_) / layout.grid_rows());
    Impl::for_each_row(space, "Bracewell::ToeplitzNormal::transfer_function", layout.grid_rows(),
                       Impl::TransferFunction<T, Dim>{layout.grid, stored, transform.data(), result.data(),
                                                      real, static_cast<T>(1. / double(elements()))});
    space.fence("Bracewell::ToeplitzNormal: the plan is complete");
    return result;
  }

  /// The response at distances d, |d| < n along every axis, at d modulo the grid.
  template <class Points>
  static void respond(const ExecutionSpace& space, const Points& points,
                      const Array<const T, MemorySpace>& weights, const Shape& wide,
                      const GriddingOptions& options, const Impl::ImageOnGrid<T, Dim>& layout,
                      Complex* transform) {
    constexpr Impl::Arguments arguments{"ToeplitzNormal"};
    const NonuniformFFT<ExecutionSpace, Dim, T> adjoint(space, points, wide, options, arguments);
    const std::int64_t count = adjoint.plan().points();
    if (weights)
      arguments.shape("weights", weights, {count});
    const auto samples = Impl::device_vector<Complex>(space, "Bracewell::ToeplitzNormal::samples", count);
    const auto response = Impl::device_vector<Complex>(space, "Bracewell::ToeplitzNormal::response",
                                                       layout.image_rows() * layout.image[0]);
    Kokkos::parallel_for(
        "Bracewell::ToeplitzNormal::weights",
        Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, count),
        Impl::WeightsAsSamples<T>{weights.data, samples.data()});
    adjoint.adjoint(space, Unmanaged<Complex**>(samples.data(), 1, count), view(response.data(), 1, wide));
    Impl::pad_images(space, "Bracewell::ToeplitzNormal::place", layout,
                     Impl::PlainImages<const Complex>{response.data()}, 1, transform);
    space.fence("Bracewell::ToeplitzNormal: memory is no longer needed");
  }

  Shape image_, grid_;
  std::int64_t slices_;
  Kokkos::View<T*, ExecutionSpace> ones_, transfer_;
  Forward forward_;
  Backward backward_;
  Kokkos::View<Value*, ExecutionSpace> grids_;
  Kokkos::View<Complex*, ExecutionSpace> spectra_; ///< of real values
  Kokkos::View<char*, ExecutionSpace> workspace_;
};

} // namespace Bracewell
