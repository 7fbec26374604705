// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/error.hpp>
#include <bracewell/geometry/rotation_vector.hpp>
#include <bracewell/impl/checks.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <vector>

namespace Bracewell {

/// Rotations of a point group, the identity first, in RELION's orientations. The frequencies of a symmetric
/// volume satisfy F(S k) = F(k): a particle with matrix M also counts as one with S M for every S returned.
///
/// C<n>  n-fold axis along z (n = 1 ... 999)
/// D<n>  the same, two-fold axis along x
/// T     three-fold axis along z, two-fold axis in the yz plane at (0, sqrt(2), 1)
/// O     four-fold axes along x, y and z
/// I     the same as I2
/// I1    two-fold axes along x, y, z, the five-fold axes next to z in the yz plane
/// I2    two-fold axes along x, y, z, the five-fold axes next to z in the xz plane
/// I3    five-fold axis along z, the two-fold axis next to it at negative x (xz plane)
/// I4    the same at positive x
///
/// @param name  upper or lower case
/// @throws Error on any other name
inline std::vector<Matrix3<double>> symmetry_operators(std::string name);

/// A motion that leaves a volume as it is: V(R x + t) = V(x).
struct SymmetryOperator {
  Matrix3<double> rotation;          ///< R
  Vector3<double> shift = {0, 0, 0}; ///< t, in pixels
};

/// Motions of a helix along z, the identity first: h times the rise and the twist for |h| <= count / 2, and each of these
/// after every operator of a point group about the axis.
/// @param rise   pixels from one subunit to the next; not negative
/// @param twist  degrees, positive for a right-handed helix
/// @param count  subunits, odd
/// @param group  C<n> or D<n>
/// @throws Error on a rise or twist that is not finite, a count that is not odd and positive, and other groups
inline std::vector<SymmetryOperator> helical_operators(double rise, double twist, int count,
                                                       const std::string& group = "C1");

namespace Impl {

/// The rotation by 360 / order degrees about an axis of any length.
inline Matrix3<double> rotation_about(const Vector3<double>& axis, int order) {
  const double scale = 2 * Kokkos::numbers::pi / order / std::hypot(axis[0], axis[1], axis[2]);
  return rotation_matrix(RotationVector<double>{axis[0] * scale, axis[1] * scale, axis[2] * scale});
}

inline bool same_rotation(const Matrix3<double>& a, const Matrix3<double>& b) {
  double distance = 0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      distance = std::max(distance, std::abs(a(i, j) - b(i, j)));
  return distance < 1e-6;
}

/// All products of the generators, the identity first.
inline std::vector<Matrix3<double>> close_group(const std::vector<Matrix3<double>>& generators) {
  std::vector<Matrix3<double>> group{Matrix3<double>::identity()};
  for (std::size_t i = 0; i < group.size(); ++i)
    for (const auto& generator : generators) {
      const Matrix3<double> product = generator * group[i];
      if (std::none_of(group.begin(), group.end(), [&](const auto& g) { return same_rotation(g, product); }))
        group.push_back(product);
    }
  return group;
}

/// n of "C<n>" and "D<n>", 0 when the name is not of that form.
inline int axial_order(const std::string& name) {
  const bool digits =
      name.size() >= 2 && name.size() <= 4 &&
      std::all_of(name.begin() + 1, name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return digits ? std::stoi(name.substr(1)) : 0;
}

} // namespace Impl

inline std::vector<Matrix3<double>> symmetry_operators(std::string name) {
  const std::string given = name;
  for (char& c : name)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const Vector3<double> z{0, 0, 1};
  const double golden = Kokkos::numbers::phi;
  const auto group = [](const Vector3<double>& first, int first_order, const Vector3<double>& second,
                        int second_order) {
    return Impl::close_group(
        {Impl::rotation_about(first, first_order), Impl::rotation_about(second, second_order)});
  };

  if (const int n = Impl::axial_order(name); n > 0 && (name[0] == 'C' || name[0] == 'D')) {
    std::vector<Matrix3<double>> operators;
    operators.reserve(2 * static_cast<std::size_t>(n));
    for (int k = 0; k < n; ++k)
      operators.push_back(
          rotation_matrix(RotationVector<double>{0, 0, 2 * Kokkos::numbers::pi * std::remainder(k, n) / n}));
    if (name[0] == 'D')
      for (int k = 0; k < n; ++k)
        operators.push_back(operators[std::size_t(k)] * Matrix3<double>{{{1, 0, 0}, {0, -1, 0}, {0, 0, -1}}});
    return operators;
  }
  if (name == "T")
    return group(z, 3, {0, Kokkos::numbers::sqrt2, 1}, 2);
  if (name == "O")
    return group(z, 4, {1, 1, 1}, 3);
  if (name == "I1")
    return group(z, 2, {0, 1, golden}, 5);
  if (name == "I" || name == "I2")
    return group(z, 2, {1, 0, golden}, 5);
  if (name == "I3")
    return group(z, 5, {-1, 0, golden}, 2);
  if (name == "I4")
    return group(z, 5, {1, 0, golden}, 2);
  Impl::fail("symmetry_operators", "name", "C<n>, D<n>, T, O, I, I1, I2, I3 or I4", "'" + given + "'");
}

inline std::vector<SymmetryOperator> helical_operators(double rise, double twist, int count,
                                                       const std::string& group) {
  constexpr Impl::Arguments arguments{"helical_operators"};
  arguments.not_negative("rise", rise);
  arguments.finite("twist", twist);
  arguments.require(count > 0 && count < 10000 && count % 2 == 1, "count", "an odd number from 1 to 9999",
                    [&] { return Impl::number(count); });
  const auto point_group = symmetry_operators(group);
  const char kind = static_cast<char>(std::toupper(static_cast<unsigned char>(group[0])));
  arguments.require(kind == 'C' || kind == 'D', "group", "C<n> or D<n>, about the axis of the helix",
                    [&] { return "'" + group + "'"; });
  std::vector<SymmetryOperator> operators;
  for (int i = 0; i < count; ++i) {
    const int h = i % 2 == 1 ? (i + 1) / 2 : -i / 2; // 0, 1, -1, 2 ...
    const double angle = Kokkos::numbers::pi / 180 * std::remainder(h * twist, 360.0);
    const Matrix3<double> turn = rotation_matrix(RotationVector<double>{0, 0, angle});
    for (const auto& rotation : point_group)
      operators.push_back({turn * rotation, {0, 0, h * rise}});
  }
  return operators;
}

} // namespace Bracewell
