// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/version.hpp>

#include <cstdint>
#include <optional>
#include <utility>

namespace Bracewell {

/// How samples are accumulated into a volume.
enum class Strategy {
  Automatic, ///< chosen by the operator: choose_insertion (project/choose.hpp)
  Atomic, ///< atomic additions of sums over neighbouring samples, in projection on hosts of sums over bricks of
          ///< the volume; any space; last bits vary from run to run
  Owned,      ///< teams own bricks of the volume; any space; no atomics, bitwise reproducible
  Duplicated, ///< one copy per thread, summed in fixed order; hosts only; needs scratch memory
};

/// Kernel values that carry weights into the weight volume. Signed is the default: data and weight then see the same kernel,
/// and their quotient is unbiased. (A Catmull-Rom insertion with absolute weights has a gain of 0.63.) If sampling is sparse,
/// the quotient needs a floor, which `normalise` has. Absolute is the torch-projectors paper's rule.
enum class KernelWeights { Signed, Absolute };

/// Options of project, backproject and their gradients.
struct ProjectionOptions {
  /// Padded over unpadded box: projection frequency k samples the reconstruction at M (oversampling k). The
  /// default is 1 for boxes whose smallest sides are equal. Give it for other boxes (1 for projections that hold a part
  /// of the frequencies).
  std::optional<double> oversampling = std::nullopt;
  /// Samples with |k| <= radius (projection frequencies) are computed, others are zero. The default is the largest radius
  /// within both Nyquist limits, min(n) / 2 and min(N) / (2 oversampling).
  std::optional<double> radius = std::nullopt;
  /// 3D -> 2D: radius R of the Ewald sphere in projection frequencies (box size times pixel size over
  /// wavelength): frequency k is sampled at M (oversampling (kx, ky, |k|^2 / (2 R))). A negative R bends the
  /// other way; a flat plane by default.
  std::optional<double> ewald_radius = std::nullopt;
  KernelWeights kernel_weights = KernelWeights::Signed; ///< what carries weights into the weight volume
  /// How insertion accumulates. With Owned, project_gradients also sums the gradients of a pose's matrix and shift in a fixed
  /// order, which is slower for few poses. (Sums over poses that share a matrix or a shift keep no order.)
  Strategy strategy = Strategy::Automatic;
  /// project_gradients only: leave out the samples on column 0 whose Friedel mate is stored too
  /// (torch-projectors paper, section 2.3): right for a loss written on the full spectrum whose cotangent
  /// counts every frequency once.
  bool skip_redundant = false;
};

/// Values of the real type that `backproject` needs as scratch to accumulate with `strategy`. The gradient of the
/// reconstruction in `project_gradients` needs as many. The volumes have `elements` stored elements over all batches. Strategy::Duplicated needs a copy of data, and of weight if there is one, for each thread. Each copy has an even
/// number of values, which keeps complex numbers aligned. The other strategies need 0 values: Owned, and Atomic on GPUs, sum
/// in the scratch memory of their teams. Its size does not depend on the data. `backproject_gradients` needs none.
template <class ExecutionSpace>
std::int64_t scratch_size(const ExecutionSpace& space, Strategy strategy, std::int64_t elements,
                          bool weight) {
  const bool duplicated = strategy == Strategy::Duplicated; // which Automatic never means
  return duplicated ? space.concurrency() * (((weight ? 3 : 2) * elements + 1) / 2 * 2) : 0;
}

/// Poses of projections, and what else belongs to each of them. An axis of extent 1 is shared by all batches
/// or poses.
template <class T, class MemorySpace>
struct Poses {
  /// [B|1, P|1, d, d], d the dimension of the reconstruction: maps projection frequencies (x, y[, z]) to
  /// reconstruction frequencies. Any matrix: anisotropic magnification, for instance, is a factor of it. For
  /// RELION's angles it is the transpose of RELION's matrix (geometry/euler.hpp).
  Array<const T, MemorySpace> matrices;
  /// [B|1, P|1, m], m the dimension of the projections, in pixels of the projection, ordered like its array
  /// axes ((depth,) row, column): positive moves the image to higher index. Optional.
  Array<const T, MemorySpace> shifts = {};
  /// [B|1, P|1, (d,) h, w/2+1], real: multiplies every sample on its way out (project) and in (backproject),
  /// for instance a CTF. Optional.
  Array<const T, MemorySpace> filters = {};
};

/// The poses that fit spectra of a type (a View or a HalfSpectrum), for operators that run on ExecutionSpace.
template <class ExecutionSpace, class Spectra>
using PosesFor = Poses<Impl::real_of<Spectra>, typename ExecutionSpace::memory_space>;

/// An Array of half spectra of D dimensions behind `leading` axes, [B|1, (D,) H, W/2+1] or [B, P, (d,) h,
/// w/2+1]: by the rank of the View that it is made from a compiler tells images from volumes.
template <class Value, class MemorySpace, int D, int leading = 1>
struct SpectraArray : Array<Value, MemorySpace> {
  SpectraArray() = default;

  /// From a View, or a HalfSpectrum of one, of images (D = 2) or of any other number of axes (D = 3).
  template <class Spectra>
  // Not a copy, which has no such rank. NOLINTNEXTLINE(bugprone-forwarding-reference-overload)
  requires((Impl::view_of<Spectra>::rank() == leading + 2) == (D == 2)) SpectraArray(Spectra&& spectra)
      : Array<Value, MemorySpace>(std::forward<Spectra>(spectra)) {
    static_assert(
        Impl::view_of<Spectra>::rank() == D + leading,
        "Bracewell: expected data [B, H, W/2+1] of images or [B, D, H, W/2+1] of volumes, projections with "
        "one axis more.");
  }
};

} // namespace Bracewell
