// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

namespace Bracewell {

/// What a frame of a scan shows. The values are those of NXtomo's image_key; others are Other.
enum class FrameKind { Projection, Flat, Dark, Other };

/// What is known of a frame.
struct ScanFrame {
  std::int64_t place = 0;                 ///< in its file, from 0
  FrameKind kind = FrameKind::Projection; ///< projection, flat (no object) or dark (no beam)
  double angle = 0;                       ///< radians, of projections
  double time = 0;                        ///< when it was taken, in a unit that all frames share
  bool valid = true;                      ///< false: the frame is left out
};

/// Puts projections in the order of their angles. Angles that rise or fall stay as they are, over several turns too, if steps
/// are 5 degrees on average at most. All others are taken modulo a turn. The order begins behind the largest gap.
/// @returns whether projections have moved
inline bool sort_by_angle(std::vector<ScanFrame>& projections) {
  constexpr double turn = 2 * std::numbers::pi, small = turn / 72;
  if (projections.empty())
    return false;
  bool rising = true, falling = true;
  for (std::size_t p = 1; p < projections.size(); ++p) {
    rising = rising && projections[p].angle >= projections[p - 1].angle;
    falling = falling && projections[p].angle <= projections[p - 1].angle;
  }
  const double span = std::abs(projections.back().angle - projections.front().angle);
  if ((rising || falling) && (span <= 1.01 * turn || span < small * double(projections.size())))
    return false;
  const auto by_angle = [](const ScanFrame& a, const ScanFrame& b) { return a.angle < b.angle; };
  const double first = std::min_element(projections.begin(), projections.end(), by_angle)->angle;
  for (ScanFrame& frame : projections) {
    frame.angle -= turn * std::floor((frame.angle - first) / turn);
    if (frame.angle - first > turn - 1e-9)
      frame.angle = first;
  }
  std::stable_sort(projections.begin(), projections.end(), by_angle);
  std::size_t begin = 0;
  double largest = projections.front().angle + turn - projections.back().angle;
  for (std::size_t p = 1; p < projections.size(); ++p)
    if (const double gap = projections[p].angle - projections[p - 1].angle; gap > largest + 1e-9)
      largest = gap, begin = p;
  for (std::size_t p = 0; p < begin; ++p)
    projections[p].angle += turn;
  std::rotate(projections.begin(), projections.begin() + std::ptrdiff_t(begin), projections.end());
  return true;
}

/// A scan by parallel beam, frame by frame in the order of its file: what bracewell-tomography knows of a scan, without the
/// values. Steps along the angles (remove_outliers, StripeRemoval) take rows in the order of projections().
struct TomographyScan {
  std::vector<ScanFrame> frames = {}; ///< in the order of the file

  /// The frames of a file.
  /// @param angles  radians, of all frames or of the projections alone
  /// @param keys    of all frames, 0 to 3 (NXtomo's image_key); empty: all are projections
  /// @param times   of all frames; empty: their places
  /// @throws Error on numbers that do not fit each other, and angles of projections that are not finite
  static TomographyScan of(const std::vector<double>& angles, const std::vector<int>& keys = {},
                           const std::vector<double>& times = {}) {
    constexpr Impl::Arguments arguments{"TomographyScan::of"};
    TomographyScan scan;
    const std::size_t count = keys.empty() ? angles.size() : keys.size();
    const auto projections = keys.empty() ? count : std::size_t(std::count(keys.begin(), keys.end(), 0));
    if (angles.size() != count && angles.size() != projections)
      arguments.refuse("angles", "%zu of projections or %zu of frames, found %zu", projections, count,
                       angles.size());
    if (!times.empty() && times.size() != count)
      arguments.refuse("times", "%zu of frames, found %zu", count, times.size());
    std::size_t seen = 0;
    for (std::size_t i = 0; i < count; ++i) {
      ScanFrame frame{.place = std::int64_t(i), .time = times.empty() ? double(i) : times[i]};
      if (!keys.empty())
        frame.kind = keys[i] >= 0 && keys[i] < 3 ? FrameKind(keys[i]) : FrameKind::Other;
      if (frame.kind == FrameKind::Projection) {
        frame.angle = angles[angles.size() == count ? i : seen++];
        arguments.finite("angles", frame.angle);
      }
      scan.frames.push_back(frame);
    }
    return scan;
  }

  /// Valid projections in the order of their angles (sort_by_angle).
  std::vector<ScanFrame> projections() const {
    std::vector<ScanFrame> result = valid(FrameKind::Projection);
    sort_by_angle(result);
    return result;
  }

  /// Valid frames of a kind, by time.
  std::vector<ScanFrame> valid(FrameKind kind) const {
    std::vector<ScanFrame> result;
    for (const ScanFrame& frame : frames)
      if (frame.valid && frame.kind == kind)
        result.push_back(frame);
    std::stable_sort(result.begin(), result.end(),
                     [](const ScanFrame& a, const ScanFrame& b) { return a.time < b.time; });
    return result;
  }

  /// Valid flat frames, in groups without a projection between them.
  std::vector<std::vector<ScanFrame>> flats() const {
    std::vector<double> times; // of projections, valid or not
    for (const ScanFrame& frame : frames)
      if (frame.kind == FrameKind::Projection)
        times.push_back(frame.time);
    std::sort(times.begin(), times.end());
    std::vector<std::vector<ScanFrame>> sets;
    std::ptrdiff_t before = -1; // projections before the last flat frame
    for (const ScanFrame& frame : valid(FrameKind::Flat)) {
      const auto now = std::lower_bound(times.begin(), times.end(), frame.time) - times.begin();
      if (now != before)
        sets.emplace_back();
      sets.back().push_back(frame);
      before = now;
    }
    return sets;
  }

  /// The place of every projection among the times of flats(), as normalise_projections takes it: 0.25 is a quarter of the way
  /// from the first time to the second one. A time is the mean of its frames' times.
  /// @param projections  in any order
  /// @param nearest      whole places: the nearest time
  std::vector<double> flat_places(const std::vector<ScanFrame>& projections, bool nearest = false) const {
    std::vector<double> times, places;
    for (const auto& set : flats()) {
      double sum = 0;
      for (const ScanFrame& frame : set)
        sum += frame.time;
      times.push_back(sum / double(set.size()));
    }
    for (const ScanFrame& frame : projections) {
      const auto next = std::size_t(std::upper_bound(times.begin(), times.end(), frame.time) - times.begin());
      if (next == 0 || next == times.size()) {
        places.push_back(next == 0 ? 0 : double(next - 1));
        continue;
      }
      const double share = (frame.time - times[next - 1]) / (times[next] - times[next - 1]);
      places.push_back(double(next - 1) + (nearest ? std::round(share) : share));
    }
    return places;
  }
};

} // namespace Bracewell
