// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/impl/image_on_grid.hpp>
#include <bracewell/impl/memory.hpp>

#include <algorithm>
#include <array>

namespace Bracewell::Impl {

/// Transfer function of a convolution whose response is the complex conjugate of itself mirrored, so that it
/// is real: of the response's transform, by rows. For real images, to which the response's real part applies,
/// the even part, in half spectra.
template <class T, int Dim>
struct TransferFunction {
  GridShape<Dim> grid, stored; ///< sizes of the transform and of the transfer function
  const Kokkos::complex<T>* transform;
  T* values;
  bool even;
  T factor;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    std::int64_t rest = row, here = 0, opposite = 0, stride = 1;
    for (int d = 1; d < Dim; ++d) {
      const std::int64_t k = rest % grid.size[d];
      rest /= grid.size[d];
      here += stride * k;
      opposite += stride * (k == 0 ? 0 : grid.size[d] - k);
      stride *= grid.size[d];
    }
    const Kokkos::complex<T>*const source = transform + here * grid.size[0], *const mirrored =
                                                                                 transform +
                                                                                 opposite * grid.size[0];
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, stored.size[0]), [&](int k) {
      T value = source[k].real();
      if (even)
        value = T(0.5) * (value + mirrored[k == 0 ? 0 : grid.size[0] - k].real());
      values[row * stored.size[0] + k] = factor * value;
    });
  }
};

/// Spectra of slices, times a transfer function.
template <class T>
struct MultiplySpectra {
  const T* transfer;
  Kokkos::complex<T>* spectra;
  int columns;
  std::int64_t rows; ///< of a spectrum

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const T* const factors = transfer + row % rows * columns;
    Kokkos::complex<T>* const values = spectra + row * columns;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, columns), [&](int k) { values[k] *= factors[k]; });
  }
};

/// Real weights as samples; 1 without weights.
template <class T>
struct WeightsAsSamples {
  const T* weights;
  Kokkos::complex<T>* samples;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { samples[i] = weights ? weights[i] : T(1); }
};

/// The machine of ToeplitzNormal over FFT plans: images are padded, transformed, multiplied, transformed back, cropped.
template <class Space, int Dim, class Value>
class ToeplitzPlans {
  using T = typename RealOf<Value>::type;
  using MemorySpace = typename Space::memory_space;
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
    const std::size_t cells = sizeof(Value) * static_cast<std::size_t>(product(grid));
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
                 MultiplySpectra<T>{transfer_.data(), spectra().data,
                                    static_cast<int>(frequencies(grid_) / rows), rows});
    backward_.execute(space, spectra(), grids(), workspace_);
    crop_grids(space, "Bracewell::ToeplitzNormal::crop", layout, grids_.data(), slices,
               PlainImages<Value>{results});
  }

private:
  /// Elements of a spectrum.
  static std::int64_t frequencies(const Shape& grid) {
    const int row = grid[Dim - 1];
    return product(grid) / row * (real ? row / 2 + 1 : row);
  }
  ImageOnGrid<T, Dim> layout() const { return ImageOnGrid<T, Dim>::make(image_, grid_, ones_.data()); }
  std::int64_t elements() const { return layout().grid.elements(); }

  auto grids() const { return slices_of<MemorySpace>(grids_.data(), slices_, grid_); }
  /// Complex values are transformed in place.
  auto spectra() const {
    if constexpr (!real) {
      return grids();
    } else {
      Shape half = grid_;
      half[Dim - 1] = half[Dim - 1] / 2 + 1;
      return slices_of<MemorySpace>(spectra_.data(), slices_, half);
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
