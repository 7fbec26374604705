// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/geometry/symmetry.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/interpolation/kernel.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/rfft/layout.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <optional>
#include <vector>

namespace Bracewell {

/// Symmetry as one operation on what backproject gathered: replaces F(k), data or weight, by
///   sum over operators (R, t) of F(R k) exp(2 pi i (R k).t / N),
/// as if every particle had been inserted once per operator (weights without the phase). An operator that maps the
/// lattice onto itself is exact. The others are interpolated. Of a group, only one operator in each coset of the exact
/// operators is interpolated. So icosahedral symmetry I1 interpolates four times instead of 59.
/// \code
/// const VolumeSymmetry symmetry(space, symmetry_operators("I1"));
/// symmetry.apply<Linear>(space, data, scratch);
/// symmetry.apply<Linear>(space, weight, weight_scratch);
/// \endcode
template <class ExecutionSpace>
class VolumeSymmetry {
public:
  /// @param operators  a group, as symmetry_operators returns it
  VolumeSymmetry(const ExecutionSpace& space, const std::vector<Matrix3<double>>& operators)
      : VolumeSymmetry(space, with_shifts(operators)) {}

  /// @param operators  motions V(R x + t) = V(x), the identity first, for instance helical_operators
  /// @throws Error on no operators, elements that are not finite, and matrices that change lengths
  VolumeSymmetry(const ExecutionSpace& space, const std::vector<SymmetryOperator>& operators);

  /// Operators that one application sums.
  std::size_t order() const { return order_; }
  /// Operators that interpolate; the others permute elements.
  std::size_t interpolated() const { return interpolated_; }

  /// Sums over the operators, in place.
  /// @tparam Kernel    interpolates; take the kernel of the insertion
  /// @param spectrum   real or complex [B, N, N, N/2+1]; a real one is taken as a weight, which has no phase
  /// @param scratch    like spectrum; overwritten
  /// @param radius     frequencies |k| > radius become zero, in periods per box width: by default (N-1)/2, because
  ///                   frequency N/2 is its own opposite and cannot be interpolated; at most N/2
  /// @throws Error on boxes that are not cubes, shapes that do not fit and shared memory
  template <class Kernel = Linear, class Spectrum>
  void apply(const ExecutionSpace& space, const Spectrum& spectrum, const Spectrum& scratch,
             std::optional<double> radius = std::nullopt) const;

private:
  using Table = Kokkos::View<double* [12], Kokkos::LayoutRight, typename ExecutionSpace::memory_space>;

  static std::vector<SymmetryOperator> with_shifts(const std::vector<Matrix3<double>>& operators) {
    std::vector<SymmetryOperator> result;
    for (const auto& rotation : operators)
      result.push_back({rotation, {0, 0, 0}});
    return result;
  }

  std::size_t order_, interpolated_ = 0;
  Table cosets_, exact_; ///< rows of matrices, then shifts
};

namespace Impl {

/// Elements that rounding has moved off 0, 1 and -1 are put back there.
inline Matrix3<double> clean(Matrix3<double> m) {
  for (auto& row : m.elements)
    for (double& element : row)
      if (std::abs(element - std::round(element)) < 1e-9)
        element = std::round(element);
  return m;
}

/// The motion `first`, then `second`.
inline SymmetryOperator after(const SymmetryOperator& second, const SymmetryOperator& first) {
  SymmetryOperator result{second.rotation * first.rotation, second.rotation * first.shift};
  for (std::size_t d = 0; d < 3; ++d)
    result.shift[d] += second.shift[d];
  return result;
}

inline bool same_motion(const SymmetryOperator& a, const SymmetryOperator& b) {
  for (std::size_t d = 0; d < 3; ++d)
    if (std::abs(a.shift[d] - b.shift[d]) > 1e-6)
      return false;
  return same_rotation(a.rotation, b.rotation);
}

/// A signed permutation of the axes, without a shift.
inline bool maps_lattice(const SymmetryOperator& motion) {
  for (int i = 0; i < 3; ++i) {
    if (motion.shift[static_cast<std::size_t>(i)] != 0)
      return false;
    for (int j = 0; j < 3; ++j)
      if (motion.rotation(i, j) != std::round(motion.rotation(i, j)))
        return false;
  }
  return true;
}

/// Whether the columns of a matrix are orthonormal, as far as files in float tell: other matrices lead out of the box.
inline bool keeps_lengths(const Matrix3<double>& matrix) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      double product = i == j ? -1 : 0;
      for (int k = 0; k < 3; ++k)
        product += matrix(k, i) * matrix(k, j);
      if (!(std::abs(product) < 1e-3))
        return false;
    }
  return true;
}

/// Operators = cosets x exact ones: a sum over `exact` of a sum over `cosets` is that over all.
struct SymmetryFactors {
  std::vector<SymmetryOperator> cosets, exact;

  explicit SymmetryFactors(std::vector<SymmetryOperator> operators) {
    for (auto& one : operators)
      one.rotation = clean(one.rotation);
    for (const auto& one : operators)
      if (maps_lattice(one))
        exact.push_back(one);
    std::vector<bool> taken(operators.size());
    for (std::size_t i = 0; i < operators.size(); ++i) {
      if (taken[i])
        continue;
      cosets.push_back(operators[i]);
      for (const auto& inner : exact) {
        const SymmetryOperator product = after(operators[i], inner);
        std::size_t j = 0;
        while (j < operators.size() && (taken[j] || !same_motion(operators[j], product)))
          ++j;
        if (j == operators.size()) { // no group: all go one by one
          cosets = operators;
          exact = {{Matrix3<double>::identity(), {0, 0, 0}}};
          return;
        }
        taken[j] = true;
      }
    }
  }
};

template <class T>
KOKKOS_INLINE_FUNCTION T conjugate_of(T value) {
  return value;
}
template <class T>
KOKKOS_INLINE_FUNCTION Kokkos::complex<T> conjugate_of(const Kokkos::complex<T>& value) {
  return {value.real(), -value.imag()};
}

/// A spectrum between its elements.
template <class Kernel, class Value, class T>
struct InterpolatedSpectrum {
  const Value* values;
  HalfSpectrumLayout<3> layout;

  /// At a position with |q| <= N/2.
  KOKKOS_INLINE_FUNCTION Value operator()(const T (&position)[3]) const {
    constexpr int width = Kernel::width;
    const bool mirrored = position[0] < 0;
    int first[3];
    T weights[3][width];
    for (int d = 0; d < 3; ++d) {
      const T q = mirrored ? -position[d] : position[d], lower = Kokkos::floor(q);
      first[d] = static_cast<int>(lower) - (width / 2 - 1);
      Kernel::weights(q - lower, weights[d]);
    }
    Value sum(0);
    if (first[0] >= 0 && 2 * (first[0] + width - 1) <= layout.size[0]) {
      for (int z = 0; z < width; ++z)
        for (int y = 0; y < width; ++y) {
          const T along = weights[2][z] * weights[1][y];
          if (along == 0)
            continue;
          const int tap[3] = {0, first[1] + y, first[2] + z};
          const Value* const row = values + layout.row(tap) + first[0];
          Value part(0);
          for (int x = 0; x < width; ++x)
            part += weights[0][x] * row[x];
          sum += along * part;
        }
    } else {
      for (int z = 0; z < width; ++z)
        for (int y = 0; y < width; ++y)
          for (int x = 0; x < width; ++x) {
            const T weight = weights[2][z] * weights[1][y] * weights[0][x];
            if (weight == 0)
              continue;
            const int tap[3] = {first[0] + x, first[1] + y, first[2] + z};
            const auto address = layout.resolve(tap);
            const Value value = values[address.index];
            sum += weight * (address.conjugate ? conjugate_of(value) : value);
          }
    }
    return mirrored ? conjugate_of(sum) : sum;
  }
};

/// target(k) = sum over operators of source(R k) and its phase; exact: R k is on the lattice.
template <class Kernel, class Value, bool exact, class Table>
struct SumOverOperators {
  using T = typename RealOf<Value>::type;
  const Value* source;
  Value* target;
  Box<3> box;
  Table operators;
  double squared_radius;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const HalfSpectrumLayout<3> layout{box.size[0], box.size[1], box.size[2]};
    int index[3];
    const std::int64_t batch = box.locate(row, index);
    const int ky = layout.frequency(index[1], box.size[1]), kz = layout.frequency(index[2], box.size[2]);
    const double squared = double(ky) * ky + double(kz) * kz;
    const InterpolatedSpectrum<Kernel, Value, T> spectrum{source + batch * layout.elements(), layout};
    const auto count = static_cast<int>(operators.extent(0));
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, box.columns), [&](int x) {
      Value sum(0);
      if (squared + double(x) * x <= squared_radius)
        for (int i = 0; i < count; ++i) {
          if constexpr (exact) {
            int tap[3];
            for (int d = 0; d < 3; ++d)
              tap[d] = static_cast<int>(operators(i, 3 * d)) * x +
                       static_cast<int>(operators(i, 3 * d + 1)) * ky +
                       static_cast<int>(operators(i, 3 * d + 2)) * kz;
            const auto address = layout.resolve(tap);
            const Value value = spectrum.values[address.index];
            sum += address.conjugate ? conjugate_of(value) : value;
          } else {
            T q[3];
            for (int d = 0; d < 3; ++d)
              q[d] = T(operators(i, 3 * d) * x + operators(i, 3 * d + 1) * ky + operators(i, 3 * d + 2) * kz);
            sum += turned(spectrum(q), q, i);
          }
        }
      target[row * box.columns + x] = sum;
    });
  }

  KOKKOS_INLINE_FUNCTION Value turned(const Value& value, const T (&q)[3], int i) const {
    if constexpr (std::is_same_v<Value, T>)
      return value;
    else {
      const double turns =
          (operators(i, 9) * q[0] + operators(i, 10) * q[1] + operators(i, 11) * q[2]) / box.size[0];
      if (turns == 0)
        return value;
      const double angle = 2 * Kokkos::numbers::pi * (turns - Kokkos::round(turns));
      return value * Value(T(Kokkos::cos(angle)), T(Kokkos::sin(angle)));
    }
  }
};

} // namespace Impl

template <class ExecutionSpace>
VolumeSymmetry<ExecutionSpace>::VolumeSymmetry(const ExecutionSpace& space,
                                               const std::vector<SymmetryOperator>& operators)
    : order_(operators.size()) {
  constexpr Impl::Arguments arguments{"VolumeSymmetry"};
  arguments.require(!operators.empty(), "operators", "at least one", "none");
  for (const auto& one : operators) {
    for (const auto& row : one.rotation.elements)
      for (const double element : row)
        arguments.finite("operators", element);
    for (std::size_t d = 0; d < 3; ++d)
      arguments.finite("operators", one.shift[d]);
    arguments.require(Impl::keeps_lengths(one.rotation), "operators", "rotations", "a matrix that is none");
  }
  const Impl::SymmetryFactors factors(operators);
  const auto table = [&](const char* label, const std::vector<SymmetryOperator>& of) {
    const Table result(Kokkos::view_alloc(space, std::string(label), Kokkos::WithoutInitializing), of.size());
    const auto host = Kokkos::create_mirror_view(Kokkos::WithoutInitializing, result);
    for (std::size_t i = 0; i < of.size(); ++i)
      for (int d = 0; d < 3; ++d) {
        for (int e = 0; e < 3; ++e)
          host(i, 3 * d + e) = of[i].rotation(d, e);
        host(i, 9 + d) = of[i].shift[static_cast<std::size_t>(d)];
      }
    Kokkos::deep_copy(space, result, host);
    space.fence("Bracewell::VolumeSymmetry"); // the host's copy goes
    return result;
  };
  cosets_ = table("Bracewell::VolumeSymmetry::cosets", factors.cosets);
  exact_ = table("Bracewell::VolumeSymmetry::exact", factors.exact);
  for (const auto& one : factors.cosets)
    interpolated_ += Impl::maps_lattice(one) ? 0 : 1;
}

template <class ExecutionSpace>
template <class Kernel, class Spectrum>
void VolumeSymmetry<ExecutionSpace>::apply(const ExecutionSpace& space, const Spectrum& spectrum,
                                           const Spectrum& scratch, std::optional<double> radius) const {
  constexpr Impl::KernelFault fault = Impl::kernel_fault<Kernel, Impl::real_of<Spectrum>>;
  BRACEWELL_EXPECTS_KERNEL(fault, "VolumeSymmetry::apply");
  Impl::check_kernel<Kernel, Impl::real_of<Spectrum>>("VolumeSymmetry::apply");
  using Value = typename Impl::view_of<Spectrum>::non_const_value_type;
  const Array<Value, typename ExecutionSpace::memory_space> values(spectrum), other(scratch);
  constexpr Impl::Arguments arguments{"VolumeSymmetry::apply"};
  const auto box = Impl::spectrum_box<3>(arguments, "spectrum", values);
  arguments.require(box.size[0] == box.size[1] && box.size[1] == box.size[2], "spectrum", "a cubic box",
                    [&] { return values.shape(); });
  arguments.same_spectrum("scratch", other, values);
  arguments.disjoint({{"scratch", other}}, {{"spectrum", values}});
  const double most = box.size[0] / 2.0, within = radius.value_or((box.size[0] - 1) / 2.0);
  arguments.within("radius", within, 0.0, most);
  const Kokkos::Profiling::ScopedRegion region("Bracewell::VolumeSymmetry::apply");
  const double squared_radius = within * within * (1 + 1e-12);
  Impl::for_each_row(space, "Bracewell::VolumeSymmetry::apply::cosets", box.rows(),
                     Impl::SumOverOperators<Kernel, Value, false, Table>{values.data, other.data, box,
                                                                         cosets_, squared_radius});
  Impl::for_each_row(space, "Bracewell::VolumeSymmetry::apply::exact", box.rows(),
                     Impl::SumOverOperators<Kernel, Value, true, Table>{other.data, values.data, box, exact_,
                                                                        squared_radius});
}

} // namespace Bracewell
