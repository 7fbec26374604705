// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/optimize/detail/least_squares_methods.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace Bracewell {

/// Smooths images by their total variation, the sum of the lengths of their gradients, which keeps edges:
///   x = argmin 1/2 sum (x - z)^2 + weight TV(x),   TV(x) = sum sqrt((x right - x)^2 + (x below - x)^2)
/// with differences of 0 beyond the last row and column (Rudin, Osher and Fatemi, Physica D 60, 259 (1992)). This is the proximal map
/// of weight TV, by fast gradient projection on the dual fields (Beck and Teboulle, IEEE Trans. Image Process. 18(11), 2009), as
/// LeastSquaresMethod::TotalVariation takes it. The fields stay from call to call: of images that change little, few iterations do.
/// @code
/// TotalVariation<Space, float> variation(space, {slices, rows, columns});
/// variation.smooth(space, images, 0.01);
/// @endcode
template <class ExecutionSpace, class Real>
class TotalVariation {
  using Memory = typename ExecutionSpace::memory_space;
  template <class Value>
  using View = Kokkos::View<Value, Kokkos::LayoutRight, Memory>;

public:
  /// @param shape  images, rows, columns: images side by side are smoothed each by itself
  /// @throws Error on extents below 1
  TotalVariation(const ExecutionSpace& space, const std::array<std::int64_t, 3>& shape) : shape_(shape) {
    const Impl::Arguments check{"TotalVariation"};
    for (const std::int64_t extent : shape)
      check.within<std::int64_t>("shape", extent, 1, std::int64_t(1) << 30);
    for (auto& field : fields_)
      field = Impl::device_zeros<Real*>(space, "Bracewell::TotalVariation::field", size());
    state_ = Impl::device_zeros<Impl::ProblemState*>(space, "Bracewell::TotalVariation::state", 1);
    Kokkos::deep_copy(space, state_, Impl::ProblemState{0, 1, 0, 0, 0, 0});
  }

  /// Smooths images in place.
  /// @param images      View of Real [images, rows, columns], or of as many rows below each other
  /// @param weight      of the total variation; 0: images stay as they are
  /// @param iterations  of the dual fields
  /// @throws Error on images of another size, a weight that is negative or not finite, and fewer than one iteration
  void smooth(const ExecutionSpace& space, const Array<Real, Memory>& images, double weight,
              int iterations = 20) {
    const Impl::Arguments check{"TotalVariation::smooth"};
    check.given("images", images);
    check.require(
        images.size() == size() && images.extents[images.rank - 1] == shape_[2], "images",
        [&] {
          return "[" + Impl::number(shape_[0]) + ", " + Impl::number(shape_[1]) + ", " +
                 Impl::number(shape_[2]) + "]";
        },
        [&] { return images.shape(); });
    check.not_negative("weight", weight);
    check.at_least("iterations", iterations, 1);
    if (weight == 0)
      return;
    const Kokkos::Profiling::ScopedRegion region("Bracewell::TotalVariation::smooth");
    const auto &right = fields_[0], &down = fields_[1], &right_ahead = fields_[2], &down_ahead = fields_[3],
               &result = fields_[4];
    const Impl::DualFields<Real> dual{right.data(), down.data()},
        ahead{right_ahead.data(), down_ahead.data()};
    const Impl::ImageRows<Real> rows{
        state_.data(), {}, size(), static_cast<int>(shape_[1]), static_cast<int>(shape_[2])};
    const auto take = [&](const Impl::DualFields<Real>& fields) {
      Impl::for_each_row(space, "Bracewell::TotalVariation::smoothed", shape_[0] * shape_[1],
                         Impl::SmoothedImage<Real>{
                             rows, images.data, {fields.right, fields.down}, result.data(), weight, false});
    };
    Kokkos::deep_copy(space, right_ahead, right);
    Kokkos::deep_copy(space, down_ahead, down);
    Impl::Momentum momentum;
    for (int k = 0; k < iterations; ++k) {
      take(ahead);
      Impl::for_each_row(
          space, "Bracewell::TotalVariation::dual", shape_[0] * shape_[1],
          Impl::DualStep<Real>{rows, result.data(), dual, ahead, weight, Real(momentum.next())});
    }
    take(dual);
    Kokkos::deep_copy(space, View<Real*>(images.data, result.size()), result);
  }

  /// Fields of zero, as at first: the next call does not go on from those before it.
  void reset(const ExecutionSpace& space) {
    for (auto& field : fields_)
      Kokkos::deep_copy(space, field, Real(0));
  }

  /// Bytes of the fields.
  std::size_t memory_bytes() const { return bytes_needed(shape_); }

  /// What memory_bytes() of images of this shape would be.
  static std::size_t bytes_needed(const std::array<std::int64_t, 3>& shape) {
    return 5 * sizeof(Real) * static_cast<std::size_t>(shape[0] * shape[1] * shape[2]) +
           sizeof(Impl::ProblemState);
  }

private:
  std::int64_t size() const { return shape_[0] * shape_[1] * shape_[2]; }

  std::array<std::int64_t, 3> shape_;
  std::array<View<Real*>, 5> fields_; ///< dual fields, the same with momentum, and the smoothed images
  View<Impl::ProblemState*> state_;
};

} // namespace Bracewell
