// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/geometry/symmetry.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/interpolation/kernel.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/rfft/layout.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace Bracewell {

/// Symmetry as one operation on what backproject gathered: replaces F(k), data or weight, by
///   sum over operators (R, t) of F(R k) exp(2 pi i (R k).t / N),
/// as if every particle had been inserted once per operator (weights without the phase). An operator that maps the
/// lattice onto itself is exact. The others are interpolated. The sum over the exact ones comes first. It is the same at the
/// frequencies that they map onto each other, so one operator in each coset is interpolated, at one of these frequencies. So
/// icosahedral symmetry I1 interpolates four times instead of 59, at one frequency of twelve.
/// \code
/// const VolumeSymmetry symmetry(space, symmetry_operators("I1"));
/// symmetry.apply<Linear>(space, data, weight, scratch, weight_scratch);
/// \endcode
template <class ExecutionSpace>
class VolumeSymmetry {
  using MemorySpace = typename ExecutionSpace::memory_space;

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

  /// Sums data and their weights over the operators, in place, in one pass.
  /// @param data     complex [B, N, N, N/2+1]
  /// @param weight   real, like data
  /// @param data_scratch, weight_scratch  like data and weight; overwritten
  /// @param curve    double [S]: what values at |k| = 0, 1, ... are on average, not zero. Both arrays are interpolated as
  ///                 quotients with it, linear between its values, the last one beyond it. Weights fall with |k| and follow
  ///                 the contrast transfer, so their neighbours differ. Optional
  /// @param radius   as above
  /// @throws Error on boxes that are not cubes, shapes that do not fit and shared memory
  template <class Kernel = Linear, class Data, class Weight>
  void apply(const ExecutionSpace& space, const Data& data, const Weight& weight, const Data& data_scratch,
             const Weight& weight_scratch, const Array<const double, MemorySpace>& curve = {},
             std::optional<double> radius = std::nullopt) const;

private:
  using Table = Kokkos::View<double* [12], Kokkos::LayoutRight, MemorySpace>;
  using Permutations = Kokkos::View<int* [9], Kokkos::LayoutRight, MemorySpace>;

  template <class Kernel, class Value, class T>
  void sum(const ExecutionSpace& space, const Impl::Arguments& arguments, const Impl::Box<3>& box,
           Value* data, T* weight, Value* data_scratch, T* weight_scratch,
           const Array<const double, MemorySpace>& curve, std::optional<double> radius) const;

  static std::vector<SymmetryOperator> with_shifts(const std::vector<Matrix3<double>>& operators) {
    std::vector<SymmetryOperator> result;
    for (const auto& rotation : operators)
      result.push_back({rotation, {0, 0, 0}});
    return result;
  }

  std::size_t order_, interpolated_ = 0;
  bool permutes_;      ///< all operators are exact
  Table cosets_;       ///< rows of matrices, then shifts
  Permutations exact_; ///< rows of matrices
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

/// Operators = exact ones x cosets. A sum over `cosets` of the sum over `exact` is the sum over all operators. The exact ones
/// map it onto itself.
struct SymmetryFactors {
  std::vector<SymmetryOperator> cosets, exact;

  explicit SymmetryFactors(std::vector<SymmetryOperator> operators) {
    for (auto& one : operators)
      one.rotation = clean(one.rotation);
    for (const auto& one : operators)
      if (maps_lattice(one))
        exact.push_back(one);
    std::vector<bool> taken(operators.size());
    const auto find = [&](const SymmetryOperator& product) {
      return static_cast<std::size_t>(
          std::ranges::find_if(operators, [&](const auto& one) { return same_motion(one, product); }) -
          operators.begin());
    };
    bool closed = exact.size() > 1;
    for (const auto& one : exact)
      for (const auto& other : exact)
        closed = closed && find(after(one, other)) < operators.size();
    for (std::size_t i = 0; i < operators.size() && closed; ++i) {
      if (taken[i])
        continue;
      cosets.push_back(operators[i]);
      for (const auto& inner : exact) {
        const std::size_t j = find(after(inner, operators[i]));
        closed = closed && j < operators.size() && !taken[j] &&
                 find(after(operators[i], inner)) < operators.size();
        if (closed)
          taken[j] = true;
      }
    }
    if (!closed) { // all go one by one
      cosets = operators;
      exact = {{Matrix3<double>::identity(), {0, 0, 0}}};
    }
  }
};

/// Data and, where there are any, weights between their elements.
template <class Kernel, class Value, class T>
struct InterpolatedSpectrum {
  const Value* data;
  const T* weight; ///< or null
  HalfSpectrumLayout<3> layout;

  /// At a position with |q| <= N/2.
  KOKKOS_INLINE_FUNCTION void operator()(const T (&position)[3], Value& value, T& own) const {
    const bool mirrored = position[0] < 0;
    int first[3];
    T weights[3][width];
    for (int d = 0; d < 3; ++d) {
      const T q = mirrored ? -position[d] : position[d], lower = Kokkos::floor(q);
      first[d] = static_cast<int>(lower) - (width / 2 - 1);
      Kernel::weights(q - lower, weights[d]);
    }
    const bool in_rows = first[0] >= 0 && 2 * (first[0] + width - 1) <= layout.size[0];
    const Value sum = in_rows ? sum_rows(first, weights, own) : sum_taps(first, weights, own);
    value = mirrored ? conjugate(sum) : sum;
  }

private:
  static constexpr int width = Kernel::width;

  /// Taps that are neighbours in memory.
  KOKKOS_INLINE_FUNCTION Value sum_rows(const int (&first)[3], const T (&weights)[3][width], T& own) const {
    Value sum(0);
    for (int z = 0; z < width; ++z)
      for (int y = 0; y < width; ++y) {
        const T along = weights[2][z] * weights[1][y];
        if (along == 0)
          continue;
        const int tap[3] = {0, first[1] + y, first[2] + z};
        const std::int64_t begin = layout.row(tap) + first[0];
        Value part(0);
        for (int x = 0; x < width; ++x)
          part += weights[0][x] * data[begin + x];
        sum += along * part;
        if (weight)
          for (int x = 0; x < width; ++x)
            own += along * weights[0][x] * weight[begin + x];
      }
    return sum;
  }

  KOKKOS_INLINE_FUNCTION Value sum_taps(const int (&first)[3], const T (&weights)[3][width], T& own) const {
    Value sum(0);
    for (int z = 0; z < width; ++z)
      for (int y = 0; y < width; ++y)
        for (int x = 0; x < width; ++x) {
          const T part = weights[2][z] * weights[1][y] * weights[0][x];
          if (part == 0)
            continue;
          const int tap[3] = {first[0] + x, first[1] + y, first[2] + z};
          const auto address = layout.resolve(tap);
          const Value found = data[address.index];
          sum += part * (address.conjugate ? conjugate(found) : found);
          if (weight)
            own += part * weight[address.index];
        }
    return sum;
  }
};

/// The elements that the exact operators and the symmetry of real maps map onto each other, of which one is the owner.
template <class Permutations>
struct Orbits {
  HalfSpectrumLayout<3> layout;
  Permutations operators;

  KOKKOS_INLINE_FUNCTION int component(const int (&k)[3], int i, int d) const {
    return operators(i, 3 * d) * k[0] + operators(i, 3 * d + 1) * k[1] + operators(i, 3 * d + 2) * k[2];
  }

  KOKKOS_INLINE_FUNCTION auto address(const int (&k)[3], int i) const {
    const int tap[3] = {component(k, i, 0), component(k, i, 1), component(k, i, 2)};
    return layout.resolve(tap);
  }

  /// Where the conjugate of an element is stored, too: in columns 0 and N/2.
  KOKKOS_INLINE_FUNCTION std::int64_t mate(const int (&k)[3], int i) const {
    const int opposite[3] = {-k[0], -k[1], -k[2]};
    return address(opposite, i).index;
  }

  /// Owners have the smallest column, then the smallest key: those are in all rows, so that threads have equal shares.
  KOKKOS_INLINE_FUNCTION bool owns(std::int64_t index, const int (&k)[3]) const {
    const std::uint64_t own = key(index);
    for (int i = 0; i < static_cast<int>(operators.extent(0)); ++i) {
      const int column = Kokkos::abs(component(k, i, 0));
      if (column < k[0])
        return false;
      if (column == k[0] &&
          (key(address(k, i).index) < own || (layout.self_mated(column) && key(mate(k, i)) < own)))
        return false;
    }
    return true;
  }

  /// Different for all elements: the product with an odd number.
  KOKKOS_INLINE_FUNCTION static std::uint64_t key(std::int64_t index) {
    return std::uint64_t(index) * std::uint64_t(0x9E3779B97F4A7C15u);
  }

  template <class Value>
  KOKKOS_INLINE_FUNCTION void write(Value* target, const int (&k)[3], const Value& value) const {
    for (int i = 0; i < static_cast<int>(operators.extent(0)); ++i) {
      const auto at = address(k, i);
      target[at.index] = at.conjugate ? conjugate(value) : value;
      if (layout.self_mated(at.column))
        target[mate(k, i)] = at.conjugate ? value : conjugate(value);
    }
  }
};

/// A curve of |k|, linear between its values.
template <class T>
KOKKOS_INLINE_FUNCTION T curve_at(const double* curve, int count, double squared) {
  const double radius = Kokkos::sqrt(squared);
  const int shell = Kokkos::min(static_cast<int>(radius), count - 1),
            next = Kokkos::min(shell + 1, count - 1);
  const double part = radius - static_cast<int>(radius);
  return T((1 - part) * curve[shell] + part * curve[next]);
}

/// target(k) = sum over operators of source(R k) and its phase. Owners compute it for their orbits. With `exact` the operators
/// are the exact ones, the sum is divided by the curve, and source may be target. Otherwise the operators are the cosets,
/// source is such a sum between its elements, and the sum is multiplied by the curve.
template <class Kernel, class Value, bool exact, class Table, class Permutations>
struct SumOverOperators {
  using T = typename RealOf<Value>::type;
  const Value* source;
  const T* source_weight; ///< or null
  Value* target;
  T* target_weight; ///< or null
  Box<3> box;
  Table operators;
  Permutations permutations;
  const double* curve; ///< or null
  int curve_size;
  double squared_radius;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const HalfSpectrumLayout<3> layout{box.size[0], box.size[1], box.size[2]};
    int index[3];
    const std::int64_t batch = box.locate(row, index), begin = batch * layout.elements(),
                       own = row * box.columns - begin;
    const int ky = layout.frequency(index[1], box.size[1]), kz = layout.frequency(index[2], box.size[2]);
    const double squared_row = double(ky) * ky + double(kz) * kz;
    const Orbits<Permutations> orbits{layout, permutations};
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, box.columns), [&](int x) {
      const int k[3] = {x, ky, kz};
      const double squared = squared_row + double(x) * x;
      if (squared > squared_radius) {
        if (!exact || source == target) {
          target[begin + own + x] = Value(0);
          if (target_weight)
            target_weight[begin + own + x] = T(0);
        }
        return;
      }
      if (!orbits.owns(own + x, k))
        return;
      Value sum(0);
      T weight(0);
      add(orbits, begin, k, sum, weight);
      if (curve) {
        const T scale = curve_at<T>(curve, curve_size, squared);
        sum = exact ? sum / scale : sum * scale;
        weight = exact ? weight / scale : weight * scale;
      }
      orbits.write(target + begin, k, sum);
      if (target_weight)
        orbits.write(target_weight + begin, k, weight);
    });
  }

  KOKKOS_INLINE_FUNCTION void add(const Orbits<Permutations>& orbits, std::int64_t begin, const int (&k)[3],
                                  Value& sum, T& weight) const {
    if constexpr (exact) {
      for (int i = 0; i < static_cast<int>(permutations.extent(0)); ++i) {
        const auto address = orbits.address(k, i);
        const Value value = source[begin + address.index];
        sum += address.conjugate ? conjugate(value) : value;
        if (source_weight)
          weight += source_weight[begin + address.index];
      }
    } else {
      const InterpolatedSpectrum<Kernel, Value, T> spectrum{
          source + begin, source_weight ? source_weight + begin : nullptr, orbits.layout};
      for (int i = 0; i < static_cast<int>(operators.extent(0)); ++i) {
        T q[3];
        for (int d = 0; d < 3; ++d)
          q[d] =
              T(operators(i, 3 * d) * k[0] + operators(i, 3 * d + 1) * k[1] + operators(i, 3 * d + 2) * k[2]);
        Value value(0);
        spectrum(q, value, weight);
        sum += turned(value, q, i);
      }
    }
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
  cosets_ = Table("Bracewell::VolumeSymmetry::cosets", factors.cosets.size());
  exact_ = Permutations("Bracewell::VolumeSymmetry::exact", factors.exact.size());
  const auto cosets = Kokkos::create_mirror_view(cosets_);
  const auto exact = Kokkos::create_mirror_view(exact_);
  for (int e = 0; e < 9; ++e) {
    for (std::size_t i = 0; i < factors.cosets.size(); ++i)
      cosets(i, e) = factors.cosets[i].rotation(e / 3, e % 3);
    for (std::size_t i = 0; i < factors.exact.size(); ++i)
      exact(i, e) = static_cast<int>(factors.exact[i].rotation(e / 3, e % 3));
  }
  for (std::size_t i = 0; i < factors.cosets.size(); ++i)
    for (std::size_t d = 0; d < 3; ++d)
      cosets(i, 9 + d) = factors.cosets[i].shift[d];
  Kokkos::deep_copy(space, cosets_, cosets);
  Kokkos::deep_copy(space, exact_, exact);
  space.fence("Bracewell::VolumeSymmetry"); // the host's copies go
  permutes_ = factors.exact.size() == order_ && Impl::same_motion(factors.cosets[0], factors.exact[0]);
  for (const auto& one : factors.cosets)
    interpolated_ += Impl::maps_lattice(one) ? 0 : 1;
}

template <class ExecutionSpace>
template <class Kernel, class Spectrum>
void VolumeSymmetry<ExecutionSpace>::apply(const ExecutionSpace& space, const Spectrum& spectrum,
                                           const Spectrum& scratch, std::optional<double> radius) const {
  using Value = typename Impl::view_of<Spectrum>::non_const_value_type;
  using T = Impl::real_of<Spectrum>;
  const Array<Value, MemorySpace> values(spectrum), other(scratch);
  constexpr Impl::Arguments arguments{"VolumeSymmetry::apply"};
  const auto box = Impl::spectrum_box<3>(arguments, "spectrum", values);
  arguments.same_spectrum("scratch", other, values);
  arguments.disjoint({{"scratch", other}}, {{"spectrum", values}});
  sum<Kernel, Value, T>(space, arguments, box, values.data, nullptr, other.data, nullptr, {}, radius);
}

template <class ExecutionSpace>
template <class Kernel, class Data, class Weight>
void VolumeSymmetry<ExecutionSpace>::apply(const ExecutionSpace& space, const Data& data,
                                           const Weight& weight, const Data& data_scratch,
                                           const Weight& weight_scratch,
                                           const Array<const double, MemorySpace>& curve,
                                           std::optional<double> radius) const {
  using T = Impl::real_of<Data>;
  using Value = Kokkos::complex<T>;
  const Array<Value, MemorySpace> values(data), other(data_scratch);
  const Array<T, MemorySpace> weights(weight), other_weights(weight_scratch);
  constexpr Impl::Arguments arguments{"VolumeSymmetry::apply"};
  const auto box = Impl::spectrum_box<3>(arguments, "data", values);
  arguments.same_spectrum("weight", weights, values);
  arguments.same_spectrum("data_scratch", other, values);
  arguments.same_spectrum("weight_scratch", other_weights, values);
  arguments.disjoint(
      {{"data", values}, {"weight", weights}, {"data_scratch", other}, {"weight_scratch", other_weights}},
      {{"curve", curve}});
  if (curve)
    arguments.require(curve.rank == 1 && curve.extents[0] > 0, "curve", "[at least one shell]",
                      [&] { return curve.shape(); });
  sum<Kernel, Value, T>(space, arguments, box, values.data, weights.data, other.data, other_weights.data,
                        curve, radius);
}

template <class ExecutionSpace>
template <class Kernel, class Value, class T>
void VolumeSymmetry<ExecutionSpace>::sum(const ExecutionSpace& space, const Impl::Arguments& arguments,
                                         const Impl::Box<3>& box, Value* data, T* weight, Value* data_scratch,
                                         T* weight_scratch, const Array<const double, MemorySpace>& curve,
                                         std::optional<double> radius) const {
  constexpr Impl::KernelFault fault = Impl::kernel_fault<Kernel, T>;
  BRACEWELL_EXPECTS_KERNEL(fault, "VolumeSymmetry::apply");
  Impl::check_kernel<Kernel, T>("VolumeSymmetry::apply");
  arguments.require(box.size[0] == box.size[1] && box.size[1] == box.size[2], "spectrum", "a cubic box", [&] {
    return std::to_string(box.size[2]) + " x " + std::to_string(box.size[1]) + " x " +
           std::to_string(box.size[0]);
  });
  const double most = box.size[0] / 2.0, within = radius.value_or((box.size[0] - 1) / 2.0);
  arguments.within("radius", within, 0.0, most);
  const Kokkos::Profiling::ScopedRegion region("Bracewell::VolumeSymmetry::apply");
  const double squared_radius = within * within * (1 + 1e-12);
  if (permutes_) {
    Impl::for_each_row(space, "Bracewell::VolumeSymmetry::apply::exact", box.rows(),
                       Impl::SumOverOperators<Kernel, Value, true, Table, Permutations>{
                           data, weight, data, weight, box, cosets_, exact_, nullptr, 0, squared_radius});
    return;
  }
  const int shells = curve ? static_cast<int>(curve.extents[0]) : 0;
  Impl::for_each_row(space, "Bracewell::VolumeSymmetry::apply::exact", box.rows(),
                     Impl::SumOverOperators<Kernel, Value, true, Table, Permutations>{
                         data, weight, data_scratch, weight_scratch, box, cosets_, exact_, curve.data, shells,
                         (within + Kernel::width) * (within + Kernel::width)});
  Impl::for_each_row(space, "Bracewell::VolumeSymmetry::apply::cosets", box.rows(),
                     Impl::SumOverOperators<Kernel, Value, false, Table, Permutations>{
                         data_scratch, weight_scratch, data, weight, box, cosets_, exact_, curve.data, shells,
                         squared_radius});
}

} // namespace Bracewell
