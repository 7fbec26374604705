// SPDX-License-Identifier: MIT
// What the files of tune_ptychography share. Each type of numbers has a file, so that compilers work side by side.
#pragma once

#include "tuning.hpp"

#include <bracewell/ptychography/ptychography_loss.hpp>

namespace Tuning {

using namespace Bracewell;

/// With lines on hosts, too, where programs do without.
struct Detectors : Impl::EveryFusedDetector {
  template <class>
  static constexpr bool lines = true;
};

/// A raster scan of `side` x `side` positions that overlap; patterns are stored as Storage.
template <class Real = float, class Storage = Real>
struct Experiment {
  using Value = Kokkos::complex<Real>;
  Space space;
  int n, m, side, size, modes;
  View<Value**> object, object_gradient;
  View<Value***> probe, probe_gradient;
  View<double> loss{"loss"};

  Experiment(int n_, int m_, int side_, int modes_ = 1)
      : n(n_), m(m_), side(side_), size(m + side * std::max(1, m / 12)), modes(modes_),
        object("object", size, size), object_gradient("object gradient", size, size),
        probe("probe", modes, m, m), probe_gradient("probe gradient", modes, m, m) {
    fill(object);
    fill(probe);
  }

  template <class Image>
  static void fill(const Image& image) {
    const auto values = static_cast<std::int64_t>(image.size());
    Kokkos::deep_copy(View<Value*>(image.data(), image.size()), random_values<Value>("values", values));
  }

  int patterns() const { return side * side; }

  /// Seconds of a pattern.
  double time(const PtychographyOptions& options) const {
    Kokkos::View<int* [2], Kokkos::HostSpace> corners("positions", patterns());
    for (int j = 0; j < patterns(); ++j)
      for (int axis = 0; axis < 2; ++axis)
        corners(j, axis) = (axis == 0 ? j / side : j % side) * (size - m) / side;
    PtychographyLoss<Space, Real, Impl::CompiledWith<Storage, Detectors>> model(
        space, {.object = {size, size}, .probe = m, .detector = n, .modes = modes}, corners, options);
    const int group = std::min(patterns(), 64);
    const Kokkos::View<std::uint16_t***, Kokkos::LayoutRight, Kokkos::HostSpace> counts("counts", group, n,
                                                                                        n);
    for (std::size_t i = 0; i < counts.size(); ++i)
      counts.data()[i] = static_cast<std::uint16_t>(90 + i % 21);
    for (int first = 0; first < patterns(); first += group)
      model.set_patterns(space, first,
                         Kokkos::subview(counts, std::pair(0, std::min(group, patterns() - first)),
                                         Kokkos::ALL, Kokkos::ALL));
    const double seconds = median_seconds(space, [&] {
      model.evaluate(space, object, probe,
                     {.loss = loss, .object_gradient = object_gradient, .probe_gradient = probe_gradient});
    });
    return seconds / patterns();
  }
};

/// What a pattern takes where windows of the fused kernel lie in a workspace, by the type of numbers and by the number of
/// patterns: choose_pattern_path takes Fused for all of them.
template <class Real, class Storage>
void workspaces(const char* name) {
  for (const int n : {192, 256, 512})
    for (const int side : {3, 12, n > 256 ? 24 : 48}) {
      const Experiment<Real, Storage> experiment(n, n / 2, side);
      std::printf("%8s%6d%6d%10d", name, n, n / 2, side * side);
      for (const auto path : {PatternPath::Fused, PatternPath::Lines, PatternPath::General})
        std::printf("%12.3f", 1e6 * experiment.time({.counts = 100, .path = path}));
      std::printf("\n");
    }
}

extern template void workspaces<float, Half>(const char* name);
extern template void workspaces<double, double>(const char* name);

} // namespace Tuning
