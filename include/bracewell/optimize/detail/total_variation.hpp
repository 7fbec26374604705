// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/optimize/detail/least_squares_steps.hpp>

namespace Bracewell::Impl {

/// The dual fields of total variation: differences of a pixel to the next one right and the next one below.
template <class T>
struct DualFields {
  T *right, *down;
};

/// z = y - step gradient where the mask is, y elsewhere, in place of the gradient: what is then smoothed. (The gradient
/// here is that of the data's misfit with its sign turned: back-projected residuals.)
template <class T>
struct GradientStep {
  const ProblemState* states;
  const T* point;
  T* gradient;
  Factors<T> mask;
  std::int64_t size;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    gradient[i] = point[i] + T(states[i / size].step) * mask(i) * gradient[i];
  }
};

/// image = z - weight step (the transpose of differences of) the dual fields, not below zero where that is asked for.
template <class T>
struct SmoothedImage {
  const ProblemState* states;
  const T* z;
  DualFields<const T> dual;
  Factors<T> mask;
  T* image;
  std::int64_t size;
  int rows, columns; ///< of images
  double weight;
  bool nonnegative;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const int pixel = static_cast<int>(i % (std::int64_t(rows) * columns));
    const int x = pixel % columns, y = pixel / columns;
    T difference = 0;
    if (x + 1 < columns)
      difference -= dual.right[i];
    if (x > 0)
      difference += dual.right[i - 1];
    if (y + 1 < rows)
      difference -= dual.down[i];
    if (y > 0)
      difference += dual.down[i - columns];
    const bool fixed = !(mask(i) > T(0));
    const T value = fixed ? z[i] : z[i] - T(weight * states[i / size].step) * difference;
    image[i] = nonnegative && !fixed && value < T(0) ? T(0) : value;
  }
};

/// A step of the dual fields along the differences of the image, back into the unit discs, with momentum (fast gradient
/// projection: Beck and Teboulle, IEEE Trans. Image Process. 18(11), 2009, section 4).
template <class T>
struct DualStep {
  const ProblemState* states;
  const T* image;
  DualFields<T> fields, ahead; ///< ahead: with momentum, where the image was taken
  std::int64_t size;
  int rows, columns;
  double weight;
  T momentum;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const int pixel = static_cast<int>(i % (std::int64_t(rows) * columns));
    const double strength = 8 * weight * states[i / size].step;
    const T rate = strength > 0 ? T(1 / strength) : T(0);
    T right = ahead.right[i], down = ahead.down[i];
    if (pixel % columns + 1 < columns)
      right += rate * (image[i + 1] - image[i]);
    if (pixel / columns + 1 < rows)
      down += rate * (image[i + columns] - image[i]);
    const T length = Kokkos::sqrt(right * right + down * down);
    if (length > T(1)) {
      right /= length;
      down /= length;
    }
    ahead.right[i] = right + momentum * (right - fields.right[i]);
    ahead.down[i] = down + momentum * (down - fields.down[i]);
    fields.right[i] = right;
    fields.down[i] = down;
  }
};

/// The next point: beyond the new image, by momentum; the new image takes the place of the old one.
template <class T>
struct NextPoint {
  const ProblemState* states;
  T *image, *point;
  const T* next;
  std::int64_t size;
  T momentum;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (states[i / size].done)
      return;
    point[i] = next[i] + momentum * (next[i] - image[i]);
    image[i] = next[i];
  }
};

} // namespace Bracewell::Impl
