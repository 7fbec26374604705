// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-refine/pose_search.hpp"
#include "bracewell-refine/reference.hpp"
#include "cryoem/views.hpp"

#include <bracewell/geometry/quaternion.hpp>
#include <bracewell/project/score_poses.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// Poses from nothing: images are compared with projections at an even grid of rotations and a grid of shifts, at
/// frequencies so low that the poses between those of the grid are not missed.
class GlobalSearch {
public:
  /// Largest radius of the search, periods per box: a molecule has as many across, whatever the box.
  static constexpr double most_radius = 8;

  /// How finely a reference is searched.
  struct Grid {
    double radius;                          ///< largest frequency, periods per box
    std::int64_t whole;                     ///< rotations of the grid of all orientations
    std::vector<std::int64_t> orientations; ///< those of them that symmetry does not repeat
    std::int64_t rotations;                 ///< their number
    std::vector<Eigen::Vector2d> shifts;    ///< pixels (row, column)

    /// @param levers          of the Reference
    /// @param refined_radius  of the refinement that follows
    /// @param range           of shifts, pixels
    /// @param symmetry        of the reference
    Grid(int box, const Eigen::Vector3d& levers, double refined_radius, double range,
         const std::string& symmetry);
  };

  /// For up to `batch` images.
  GlobalSearch(const Space& space, const Reference& reference, const Grid& grid, std::size_t batch);

  /// Bytes that one takes.
  static double bytes_needed(const Space& space, const Grid& grid, int box, std::size_t batch);

  /// The best poses of each of `count` images, the best first, none a neighbour of a better one; at least one.
  /// @param modulated  CTF times image [1, batch, h, w/2+1]
  /// @param weights    CTF^2 [1, batch, h, w/2+1]; empty: 1
  /// @param contrast   -1: the images are taken as negatives
  std::vector<std::vector<PoseOfParticle>> find(std::size_t count, const Spectra& modulated,
                                                const Weights& weights, std::size_t most, float contrast = 1);

  /// Of the best poses of the first images that were found last, the mean correlation.
  double mean_score(std::size_t count) const;

private:
  static constexpr int ranked = 32; ///< poses of an image, most of them neighbours
  static PoseScoringSizes sizes(const Grid& grid, int box, std::size_t batch);

  Space space_;
  const Reference& reference_;
  Grid grid_;
  PoseScoring<Space> scoring_;
  DeviceView<float* [3][3]> matrices_;
  DeviceView<Kokkos::complex<float>***> images_;
  DeviceView<float***> weights_;
  DeviceView<float**> best_;
  DeviceView<int**> poses_, shifts_;
};

} // namespace Bracewell::Examples
