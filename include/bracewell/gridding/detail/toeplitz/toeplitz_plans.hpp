// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/gridding/detail/toeplitz/transfer_function.hpp>
#include <bracewell/impl/memory.hpp>

#include <algorithm>
#include <array>

namespace Bracewell::Impl {

/// Complex grids of any number of axes, one after the other.
template <class Space, int Dim, class Element>
auto toeplitz_grids(Element* data, std::int64_t slices, const std::array<int, Dim>& shape) {
  using DataType = std::conditional_t<Dim == 2, Element***, Element****>;
  using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  if constexpr (Dim == 2)
    return View(data, slices, shape[0], shape[1]);
  else
    return View(data, slices, shape[0], shape[1], shape[2]);
}

/// The machine of ToeplitzNormal over FFT plans: images are padded, transformed, multiplied, transformed back, cropped.
template <class Space, int Dim, class Value>
class ToeplitzPlans {
  using T = typename RealOf<Value>::type;
  using Complex = Kokkos::complex<T>;
  using Shape = std::array<int, Dim>;
  static constexpr bool real = std::is_same_v<Value, T>;
  using Forward = FFT<Space, Dim, Value, Complex>;
  using Backward = FFT<Space, Dim, Complex, Value>;

public:
  /// @param slices     that a pass transforms
  /// @param transform  [grid] of the response
  ToeplitzPlans(const Space& space, const Shape& image, const Shape& grid, std::int64_t slices,
                const Complex* transform)
      : image_(image), grid_(grid), slices_(slices),
        ones_(device_vector<T>(space, "Bracewell::ToeplitzNormal::ones",
                               *std::max_element(image.begin(), image.end()))),
        transfer_(device_vector<T>(space, "Bracewell::ToeplitzNormal::transfer", frequencies(grid))),
        // They never run at the same time.
        forward_(space, grid, slices, {.external_workspace = true}),
        backward_(space, grid, slices, {.direction = FFTDirection::Backward, .external_workspace = true}),
        grids_(device_vector<Value>(space, "Bracewell::ToeplitzNormal::grids", slices * elements())),
        spectra_(device_vector<Complex>(space, "Bracewell::ToeplitzNormal::spectra",
                                        real ? slices * frequencies(grid) : 0)),
        workspace_(device_vector<char>(
            space, "Bracewell::ToeplitzNormal::workspace",
            std::int64_t(std::max(forward_.workspace_bytes(), backward_.workspace_bytes())))) {
    fill(space, "Bracewell::ToeplitzNormal::ones", ones_.data(), std::int64_t(ones_.size()), T(1));
    const auto layout = this->layout();
    auto stored = layout.grid;
    stored.size[0] = static_cast<int>(frequencies(grid) / layout.grid_rows());
    for_each_row(space, "Bracewell::ToeplitzNormal::transfer_function", layout.grid_rows(),
                 TransferFunction<T, Dim>{layout.grid, stored, transform, transfer_.data(), real,
                                          static_cast<T>(1. / double(elements()))});
  }

  std::size_t memory_bytes() const { return bytes_of(ones_, transfer_, grids_, spectra_, workspace_); }
  static std::size_t bytes_needed(const Space& space, const Shape& image, const Shape& grid,
                                  std::int64_t slices) {
    std::size_t cells = sizeof(Value);
    for (const int size : grid)
      cells *= static_cast<std::size_t>(size);
    const auto many = static_cast<std::size_t>(slices),
               spectrum = static_cast<std::size_t>(frequencies(grid));
    const FFTOptions back{.direction = FFTDirection::Backward};
    return (static_cast<std::size_t>(*std::max_element(image.begin(), image.end())) + spectrum) * sizeof(T) +
           many * cells + (real ? many * spectrum * sizeof(Complex) : 0) +
           std::max(Forward::bytes_needed(space, grid, slices),
                    Backward::bytes_needed(space, grid, slices, back));
  }

  /// @param slices  at most as many as planned
  void execute(const Space& space, const Value* images, Value* results, std::int64_t slices) const {
    const auto layout = this->layout();
    pad_images(space, "Bracewell::ToeplitzNormal::pad", layout, PlainImages<const Value>{images}, slices,
               grids_.data());
    if (slices < slices_) // FFTs transform them all
      fill(space, "Bracewell::ToeplitzNormal::unused", grids_.data() + slices * elements(),
           (slices_ - slices) * elements());
    forward_.execute(space, grids(), spectra(), workspace_);
    const auto rows = layout.grid_rows();
    for_each_row(space, "Bracewell::ToeplitzNormal::multiply", slices * rows,
                 MultiplySpectra<T>{transfer_.data(), spectra().data(),
                                    static_cast<int>(frequencies(grid_) / rows), rows});
    backward_.execute(space, spectra(), grids(), workspace_);
    crop_grids(space, "Bracewell::ToeplitzNormal::crop", layout, grids_.data(), slices,
               PlainImages<Value>{results});
  }

private:
  /// Elements of a spectrum.
  static std::int64_t frequencies(const Shape& grid) {
    std::int64_t product = real ? grid[Dim - 1] / 2 + 1 : grid[Dim - 1];
    for (int d = 0; d < Dim - 1; ++d)
      product *= grid[std::size_t(d)];
    return product;
  }
  ImageOnGrid<T, Dim> layout() const { return ImageOnGrid<T, Dim>::make(image_, grid_, ones_.data()); }
  std::int64_t elements() const { return layout().grid.elements(); }

  auto grids() const { return toeplitz_grids<Space, Dim>(grids_.data(), slices_, grid_); }
  /// Complex values are transformed in place.
  auto spectra() const {
    if constexpr (!real) {
      return grids();
    } else {
      Shape half = grid_;
      half[Dim - 1] = half[Dim - 1] / 2 + 1;
      return toeplitz_grids<Space, Dim>(spectra_.data(), slices_, half);
    }
  }

  Shape image_, grid_;
  std::int64_t slices_;
  Kokkos::View<T*, Space> ones_, transfer_;
  Forward forward_;
  Backward backward_;
  Kokkos::View<Value*, Space> grids_;
  Kokkos::View<Complex*, Space> spectra_; ///< of real values
  Kokkos::View<char*, Space> workspace_;
};

} // namespace Bracewell::Impl
