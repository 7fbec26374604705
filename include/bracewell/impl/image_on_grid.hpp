// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/row_loop.hpp>

#include <algorithm>
#include <array>

namespace Bracewell::Impl {

/// Sizes of a periodic grid; axis 0 is the one whose elements are neighbours in memory.
template <int Dim>
struct GridShape {
  int size[Dim];

  KOKKOS_FUNCTION std::int64_t elements() const { return product(size); }
  /// A cell that may lie less than the grid's size beyond its end.
  KOKKOS_FORCEINLINE_FUNCTION int wrapped(int cell, int axis) const {
    return cell < size[axis] ? cell : cell - size[axis];
  }
};

/// Memory of our own as an argument [slices, shape].
template <class MemorySpace, class Value, class Size, std::size_t Dim>
Array<Value, MemorySpace> slices_of(Value* data, std::int64_t slices, const std::array<Size, Dim>& shape) {
  Array<Value, MemorySpace> result;
  result.data = data;
  result.given = true;
  result.rank = Dim + 1;
  result.extents[0] = slices;
  std::copy(shape.begin(), shape.end(), result.extents + 1);
  return result;
}

/// Where the pixels of images [slices, (depth,) height, width] lie on the grids of FFTs: pixel X = index -
/// size / 2 at X modulo the grid size.
template <class T, int Dim>
struct ImageOnGrid {
  int image[Dim]; ///< fastest axis first
  GridShape<Dim> grid;
  const T* rolloff[Dim];

  template <class Plan>
  static ImageOnGrid make(const Plan& plan, const std::array<int, Dim>& shape) {
    ImageOnGrid result = make(shape, plan.grid_shape(), nullptr);
    for (int d = 0; d < Dim; ++d)
      result.rolloff[d] = plan.rolloff(Dim - 1 - d).data();
    return result;
  }

  /// The same without a roll-off: images of this shape on a grid.
  /// @param ones  as many as the longest axis has pixels
  static ImageOnGrid make(const std::array<int, Dim>& shape, const std::array<int, Dim>& grid,
                          const T* ones) {
    ImageOnGrid result;
    for (int d = 0; d < Dim; ++d) {
      result.image[d] = shape[std::size_t(Dim - 1 - d)];
      result.grid.size[d] = grid[std::size_t(Dim - 1 - d)];
      result.rolloff[d] = ones;
    }
    return result;
  }

  std::int64_t image_rows() const { return product(image, 1); }
  std::int64_t grid_rows() const { return grid.elements() / grid.size[0]; }

  KOKKOS_FUNCTION int to_grid(int index, int axis) const {
    const int x = index - image[axis] / 2;
    return x < 0 ? x + grid.size[axis] : x;
  }

  /// Negative outside the image.
  KOKKOS_FUNCTION int to_image(int index, int axis) const {
    const int half = image[axis] / 2;
    return index < image[axis] - half ? index + half : index - grid.size[axis] + half;
  }

  /// The grid's row of an image's row, and the roll-off of the slow axes.
  KOKKOS_FUNCTION std::int64_t row_to_grid(std::int64_t row, T& factor) const {
    std::int64_t result = 0, stride = 1;
    factor = 1;
    for (int d = 1; d < Dim; ++d) {
      const int index = static_cast<int>(row % image[d]);
      row /= image[d];
      factor *= rolloff[d][index];
      result += stride * to_grid(index, d);
      stride *= grid.size[d];
    }
    return result;
  }

  /// The image's row of a grid's row, or -1.
  KOKKOS_FUNCTION std::int64_t row_to_image(std::int64_t row, T& factor) const {
    std::int64_t result = 0, stride = 1;
    factor = 1;
    for (int d = 1; d < Dim; ++d) {
      const int index = to_image(static_cast<int>(row % grid.size[d]), d);
      row /= grid.size[d];
      if (index < 0)
        return -1;
      factor *= rolloff[d][index];
      result += stride * index;
      stride *= image[d];
    }
    return result;
  }
};

/// Images of the values of grids, complex ones or real.
template <class Value>
struct PlainImages {
  Value* data;

  KOKKOS_FUNCTION void set(std::int64_t slice, std::int64_t pixel, std::int64_t pixels,
                           const Value& value) const {
    data[slice * pixels + pixel] = value;
  }
  KOKKOS_FUNCTION Value get(std::int64_t slice, std::int64_t pixel, std::int64_t pixels) const {
    return data[slice * pixels + pixel];
  }
};

/// Real images, two to a complex slice: 2 z + i (2 z + 1). The last may be alone.
template <class T>
struct PairsOfImages {
  T* data;
  std::int64_t slices; ///< real ones

  template <class Value>
  KOKKOS_FUNCTION void set(std::int64_t pair, std::int64_t pixel, std::int64_t pixels,
                           const Value& value) const {
    data[2 * pair * pixels + pixel] = value.real();
    if (2 * pair + 1 < slices)
      data[(2 * pair + 1) * pixels + pixel] = value.imag();
  }
  KOKKOS_FUNCTION Kokkos::complex<std::remove_const_t<T>> get(std::int64_t pair, std::int64_t pixel,
                                                              std::int64_t pixels) const {
    return {data[2 * pair * pixels + pixel],
            2 * pair + 1 < slices ? data[(2 * pair + 1) * pixels + pixel] : 0};
  }
};

/// Grid to image, with the roll-off divided out.
template <class T, int Dim, class Value, class Images>
struct CropGrids {
  ImageOnGrid<T, Dim> layout;
  const Value* grids;
  Images images;
  std::int64_t rows, grid_rows; ///< of a slice

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t all_rows, const Member& member) const {
    const std::int64_t slice = all_rows / rows, row = all_rows % rows;
    T factor;
    const std::int64_t grid_row = layout.row_to_grid(row, factor);
    const auto* const source = grids + (slice * grid_rows + grid_row) * layout.grid.size[0];
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, layout.image[0]),
                         [&](int i) { set(slice, row, factor, source, i); });
  }

  /// The same of one pixel, in one dimension.
  KOKKOS_FUNCTION void operator()(std::int64_t pixel) const {
    const std::int64_t slice = pixel / layout.image[0];
    set(slice, 0, T(1), grids + slice * layout.grid.size[0], static_cast<int>(pixel % layout.image[0]));
  }

private:
  KOKKOS_FUNCTION void set(std::int64_t slice, std::int64_t row, T factor, const Value* source, int i) const {
    images.set(slice, row * layout.image[0] + i, rows * layout.image[0],
               factor * layout.rolloff[0][i] * source[layout.to_grid(i, 0)]);
  }
};

/// Image to grid, zero around it: the transpose.
template <class T, int Dim, class Value, class Images>
struct PadImages {
  ImageOnGrid<T, Dim> layout;
  Images images;
  Value* grids;
  std::int64_t rows, grid_rows;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t all_rows, const Member& member) const {
    const std::int64_t slice = all_rows / grid_rows;
    T factor = 0;
    const std::int64_t row = layout.row_to_image(all_rows % grid_rows, factor);
    auto* const target = grids + all_rows * layout.grid.size[0];
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, layout.grid.size[0]),
                         [&](int x) { target[x] = value(slice, row, factor, x); });
  }

  /// The same of one element, in one dimension.
  KOKKOS_FUNCTION void operator()(std::int64_t element) const {
    grids[element] =
        value(element / layout.grid.size[0], 0, T(1), static_cast<int>(element % layout.grid.size[0]));
  }

private:
  KOKKOS_FUNCTION Value value(std::int64_t slice, std::int64_t row, T factor, int x) const {
    const int i = layout.to_image(x, 0);
    if (row < 0 || i < 0)
      return 0;
    return factor * layout.rolloff[0][i] *
           images.get(slice, row * layout.image[0] + i, rows * layout.image[0]);
  }
};

/// Calls kernel(row, member) for the rows of all slices; in one dimension, where a row is a slice and as long as
/// all that there is, kernel(element) for their elements.
template <int Dim, class Space, class Kernel>
void for_each_row_of_slices(const Space& space, const char* label, std::int64_t rows, std::int64_t length,
                            const Kernel& kernel) {
  if constexpr (Dim == 1)
    launch_kernel(label, Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, rows * length),
                  kernel);
  else
    for_each_row(space, label, rows, kernel);
}

template <class Space, class T, int Dim, class Value, class Images>
void crop_grids(const Space& space, const char* label, const ImageOnGrid<T, Dim>& layout, const Value* grids,
                std::int64_t slices, const Images& images) {
  for_each_row_of_slices<Dim>(
      space, label, slices * layout.image_rows(), layout.image[0],
      CropGrids<T, Dim, Value, Images>{layout, grids, images, layout.image_rows(), layout.grid_rows()});
}

template <class Space, class T, int Dim, class Images, class Value>
void pad_images(const Space& space, const char* label, const ImageOnGrid<T, Dim>& layout,
                const Images& images, std::int64_t slices, Value* grids) {
  for_each_row_of_slices<Dim>(
      space, label, slices * layout.grid_rows(), layout.grid.size[0],
      PadImages<T, Dim, Value, Images>{layout, images, grids, layout.image_rows(), layout.grid_rows()});
}

} // namespace Bracewell::Impl
