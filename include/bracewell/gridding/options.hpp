// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/interpolation/kernel.hpp>
#include <bracewell/version.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace Bracewell {

/// Points on rays through the origin. Sample j of ray p lies at frequency (j - samples / 2) step (cos, sin) (angle p) in
/// cycles per pixel, with samples / 2 rounded down. Axis 0 (x) is the last axis of images. Points are numbered [rays,
/// samples].
struct PolarPoints {
  std::vector<double> angles = {}; ///< radians: any number, order and span
  int samples = 0;                 ///< on each ray
  double step = 0;                 ///< cycles per pixel; 1 / samples where it is 0

  /// How many points there are.
  std::int64_t count() const { return static_cast<std::int64_t>(angles.size()) * samples; }
};

/// How samples are accumulated on the grid. All agree to rounding.
enum class GriddingStrategy {
  Automatic, ///< chosen by choose_gridding_strategy (gridding/cost.hpp)
  Atomic, ///< one thread per sample, atomic additions; any space; last bits vary from run to run. The published
          ///< baseline: on hosts never the fastest
  PrunedGather, ///< one thread per grid point visits the rays that pass it; polar points in 2D only; bitwise
                ///< reproducible. A published method to compare with: never the fastest
  Tiles, ///< GPUs, 2D and 3D: samples are listed once per tile of the grid that they reach and a team owns a tile;
         ///< bitwise reproducible
  Bins, ///< samples are sorted into bins of the grid; a team adds the samples of a bin, one slice at a time, and large
        ///< bins in parts; any space; bitwise reproducible
  OwnedBoxes, ///< GPUs, 3D: samples are sorted into bins, and teams own boxes of the grid and look for the samples that
              ///< reach theirs, of eight slices at a time; bitwise reproducible
  MatrixBoxes ///< the same for a slice at a time, by instructions that multiply matrices (NVIDIA)
};

/// Order of the axes of the samples.
enum class SampleOrder {
  SlicesFirst, ///< [slices, points]
  SlicesLast   ///< [points, slices]: what Tiles reads fastest
};

/// A kernel of your own for Gridding and NonuniformFFT: `OwnKernel::of<Kernel>()` of an InterpolationKernel. A plan
/// takes polynomials of degree width + 4 for its taps. The roll-off is the reciprocal transform of these polynomials, so that a
/// kernel needs no `transform` here.
class OwnKernel {
public:
  /// @throws Error on a kernel that is not even, not zero at its edge, or whose derivatives are not its slopes
  template <class Kernel>
  static OwnKernel of() {
    constexpr Impl::KernelFault fault = Impl::kernel_fault<Kernel, double>;
    BRACEWELL_EXPECTS_KERNEL(fault, "OwnKernel::of");
    OwnKernel kernel;
    if constexpr (fault == Impl::KernelFault::None) {
      Impl::check_kernel<Kernel, double>("OwnKernel::of");
      kernel.width_ = Kernel::width;
      kernel.weights_ = &weights_of<Kernel>;
    }
    return kernel;
  }

  int width() const { return width_; } ///< Taps on an axis.

  /// Weights of the taps floor(q) - width/2 + 1 ... floor(q) + width/2, for f = q - floor(q).
  std::vector<double> weights(double f) const {
    std::vector<double> result(std::size_t(width_), 0.);
    weights_(f, result.data());
    return result;
  }

private:
  OwnKernel() = default;

  template <class Kernel>
  static void weights_of(double f, double* result) {
    double taps[Kernel::width] = {};
    Kernel::weights(f, taps);
    for (int i = 0; i < Kernel::width; ++i)
      result[i] = taps[i];
  }

  int width_ = 0;
  void (*weights_)(double, double*) = nullptr;
};

/// Options of Gridding and NonuniformFFT.
struct GriddingOptions {
  std::int64_t slices = 1; ///< how many arrays a call transforms at most, all at the same points
  double tolerance = 1e-4; ///< relative error (L2) of sums over samples or pixels; 1e-2 to 1e-6 in float, to
                           ///< 1e-12 in double
  /// Grid over image size, 1.2 to 8: at least, for up to 2 are taken where no kernel of at most 16 grid points would meet
  /// the tolerance. By default 1.5 to 2, on hosts from 1.25 on, the fastest.
  std::optional<double> oversampling = std::nullopt;
  GriddingStrategy strategy = GriddingStrategy::Automatic; ///< of spreading
  SampleOrder order = SampleOrder::SlicesFirst;            ///< of the axes of samples
  int sign = 1; ///< of the exponent of NonuniformFFT::adjoint, 1 or -1; `forward` has the other
  /// Instead of the kernel that the plan chooses. The oversampling is 2 then if it is not asked for. The error is what the
  /// kernel's transform lets through from the periods of the grid. The tolerance is how well polynomials fit the kernel.
  std::optional<OwnKernel> kernel = std::nullopt;
};

} // namespace Bracewell
