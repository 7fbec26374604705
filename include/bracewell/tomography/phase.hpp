// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/fast_size.hpp>
#include <bracewell/fft/plan.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/tomography/detail/frame_margins.hpp>
#include <bracewell/tomography/detail/tuning.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <vector>

namespace Bracewell {

/// What PhaseRetrieval takes the object for. All three: of one material.
enum class PhaseMethod {
  /// Near field: 1 / (1 + a f^2), then minus the logarithm (Paganin, Mayo, Gureyev, Miller and Wilkins, J. Microsc.
  /// 206, 2002), with a = pi (delta / beta) wavelength distance / pixel^2 and f in cycles per pixel.
  Paganin,
  /// The same with (2 - cos(2 pi fx) - cos(2 pi fy)) / (2 pi^2) instead of f^2, the Laplacian of the pixels: it
  /// smooths fine details less (Paganin et al., J. Opt. 22, 2020).
  GeneralisedPaganin,
  /// Any distance, weak objects: d / (d^2 + regularisation) with d = cos(x) + (delta / beta) sin(x) and
  /// x = pi wavelength distance f^2 / pixel^2, of the contrast, without logarithm: the contrast transfer function
  /// (Turner et al., Opt. Express 12, 2004).
  WeakObject
};

/// Options of PhaseRetrieval. Lengths are in one unit, any.
struct PhaseOptions {
  PhaseMethod method = PhaseMethod::Paganin; ///< which filter
  double wavelength = 0;                     ///< of the beam
  double distance = 0;                       ///< from the object to the detector, of parallel beam
  double pixel_size = 0;                     ///< of the detector, at the object
  double delta_beta = 0;                     ///< of the refractive index 1 - delta + i beta
  double regularisation = 1e-2;              ///< of WeakObject
  /// Pixels beyond every edge at least, in which the edge's values go on; absent: phase_reach.
  std::optional<int> padding = {};
  bool attenuation = true; ///< what comes in is minus the logarithm of the transmission; false: transmission
};

/// The factor of a phase filter at a frequency in cycles per pixel; 1 at 0 (WeakObject: nearly).
/// @throws Error on options that are not finite and positive
inline double phase_multiplier(const PhaseOptions& options, double fy, double fx);

/// Pixels that a phase filter reaches, at most 16,384: eight times the length sqrt(a) / (2 pi) over which Paganin's decays to 1/e.
/// @throws Error on options that are not finite and positive
inline int phase_reach(const PhaseOptions& options);

/// Retrieves the attenuation from projections in which waves have spread between object and detector. This is phase
/// retrieval from one distance, by a filter of every frame.
///
/// A plan: the workspace (frames are filtered in blocks) and the FFT plans are made once. Movable; calls that can
/// overlap need a plan each.
template <class ExecutionSpace, class T>
class PhaseRetrieval {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;
  using Values = Impl::FrameValues;

public:
  /// @param angles  the most frames that are worked on at once
  /// @param rows    S, of a frame
  /// @param width   n, of a frame
  /// @throws Error on sizes below 1, on options that are not finite and positive, and without options.padding on filters that reach further
  PhaseRetrieval(const ExecutionSpace& space, std::int64_t angles, int rows, int width,
                 const PhaseOptions& options)
      : rows_(check({"PhaseRetrieval"}, angles, rows, width, options)), width_(width), options_(options),
        padded_rows_(padded_size(rows, options)), padded_width_(padded_size(width, options)),
        block_(block_frames(space, angles, padded_rows_, padded_width_)),
        forward_(space, {padded_rows_, padded_width_}, block_),
        backward_(space, {padded_rows_, padded_width_}, block_),
        padded_(Impl::device_vector<T>(space, "Bracewell::PhaseRetrieval::padded",
                                       block_ * padded_rows_ * padded_width_)),
        spectra_(Impl::device_vector<Complex>(space, "Bracewell::PhaseRetrieval::spectra",
                                              block_ * padded_rows_ * columns())),
        factors_(Impl::device_copy(space, "Bracewell::PhaseRetrieval::factors", make_factors())) {}

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const {
    return Impl::bytes_of(padded_, spectra_, factors_) + forward_.memory_bytes() + backward_.memory_bytes();
  }

  /// What memory_bytes() of a plan of these arguments would be.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace& space, std::int64_t angles, int rows, int width,
                                  const PhaseOptions& options) {
    check({"PhaseRetrieval::bytes_needed"}, angles, rows, width, options);
    const int height = padded_size(rows, options), length = padded_size(width, options);
    const int columns = length / 2 + 1;
    const std::int64_t block = block_frames(space, angles, height, length), all_rows = block * height;
    const std::size_t bytes = std::size_t(all_rows * length + std::int64_t(height) * columns) * sizeof(T) +
                              std::size_t(all_rows * columns) * sizeof(Complex);
    return bytes + FFT<ExecutionSpace, 2, T, Complex>::bytes_needed(space, {height, length}, block) +
           FFT<ExecutionSpace, 2, Complex, T>::bytes_needed(space, {height, length}, block);
  }

  /// @param sinograms    [S, P, n] attenuation, or transmission (options.attenuation); any number of angles
  /// @param attenuation  [S, P, n], overwritten; it may be `sinograms` itself. Where the filtered transmission is not
  ///                     positive it is minus the logarithm of the precision
  /// @throws Error on shapes that do not fit and memory shared in part
  template <class Input, class Output>
  void execute(const ExecutionSpace& space, const Input& sinograms, const Output& attenuation) const {
    const bool weak = options_.method == PhaseMethod::WeakObject;
    const Values contrast = options_.attenuation ? Values::AttenuationContrast : Values::Contrast,
                 transmission = options_.attenuation ? Values::Transmission : Values::Kept;
    apply(space, {"PhaseRetrieval::execute"}, "attenuation", sinograms, attenuation,
          weak ? contrast : transmission, weak ? Values::Minus : Values::MinusLog);
  }

  /// The filter alone, which is linear.
  /// @param sinograms  [S, P, n]
  /// @param filtered   [S, P, n], overwritten; it may be `sinograms` itself
  /// @throws Error as execute
  template <class Input, class Output>
  void filter(const ExecutionSpace& space, const Input& sinograms, const Output& filtered) const {
    apply(space, {"PhaseRetrieval::filter"}, "filtered", sinograms, filtered, Values::Kept, Values::Kept);
  }

  /// The transpose of `filter`.
  /// @throws Error as execute
  template <class Input, class Output>
  void filter_transpose(const ExecutionSpace& space, const Input& sinograms, const Output& filtered) const {
    apply(space, {"PhaseRetrieval::filter_transpose"}, "filtered", sinograms, filtered, Values::Zero,
          Values::Zero);
  }

private:
  static int check(const Impl::Arguments& arguments, std::int64_t angles, int rows, int width,
                   const PhaseOptions& options) {
    arguments.at_least("angles", angles, std::int64_t(1));
    arguments.within("rows", rows, 1, 1 << 20, " pixels");
    arguments.within("width", width, 1, 1 << 20, " pixels");
    Impl::check_phase(arguments, options);
    if (!options.padding && phase_reach(options) == 1 << 14)
      arguments.refuse(
          "options.padding",
          "a number, as the filter of these lengths (wavelength, distance, pixel_size, in one unit) "
          "reaches %d pixels or more, found none",
          1 << 14);
    return rows;
  }

  static int padded_size(int length, const PhaseOptions& options) {
    const int margin = options.padding.value_or(phase_reach(options));
    return int(next_fast_size(length + 2 * std::int64_t(margin), true));
  }

  /// Frames that are worked on at once.
  static std::int64_t block_frames(const ExecutionSpace& space, std::int64_t angles, int rows, int width) {
    const std::int64_t values =
        Impl::TomographyTuning<ExecutionSpace>::filter_bytes(space.concurrency()) / std::int64_t(sizeof(T));
    return std::min(angles, std::max<std::int64_t>(1, values / rows / width));
  }

  int columns() const { return padded_width_ / 2 + 1; }

  /// Of the frequencies of a padded frame, with the factor of both FFTs.
  std::vector<T> make_factors() const {
    std::vector<T> result;
    result.reserve(std::size_t(padded_rows_) * std::size_t(columns()));
    for (int y = 0; y < padded_rows_; ++y)
      for (int x = 0; x < columns(); ++x) {
        const double fy = double(2 * y > padded_rows_ ? y - padded_rows_ : y) / padded_rows_,
                     fx = double(x) / padded_width_;
        result.push_back(T(phase_multiplier(options_, fy, fx) / padded_rows_ / padded_width_));
      }
    return result;
  }

  template <class Input, class Output>
  void apply(const ExecutionSpace& space, const Impl::Arguments& arguments, const char* result,
             const Input& sinograms, const Output& filtered, Values before, Values after) const {
    const Array<const T, MemorySpace> in(sinograms);
    const Array<T, MemorySpace> out(filtered);
    if (in.rank != 3 || in.extents[0] != rows_ || in.extents[2] != width_ || in.extents[1] >= 1 << 30)
      arguments.refuse("sinograms", "[%d, angles, %d], found %s", rows_, width_, in.shape_text().characters);
    arguments.shape(result, out, {in.extents[0], in.extents[1], in.extents[2]});
    if (in.data != out.data)
      arguments.disjoint({{result, out}}, {{"sinograms", in}});
    Kokkos::Profiling::ScopedRegion region("Bracewell::PhaseRetrieval::execute");
    const auto angles = static_cast<int>(in.extents[1]);
    const auto padded = Impl::array_of<MemorySpace>(padded_.data(), block_, padded_rows_, padded_width_);
    const auto spectra = Impl::array_of<MemorySpace>(spectra_.data(), block_, padded_rows_, columns());
    for (std::int64_t first = 0; first < angles; first += block_) {
      const auto count = static_cast<int>(std::min<std::int64_t>(block_, angles - first));
      Impl::for_each_row(space, "Bracewell::PhaseRetrieval::pad", block_ * padded_rows_,
                         Impl::PadFrames<T>{in.data + first * width_, padded_.data(), count, angles, rows_,
                                            width_, padded_rows_, padded_width_, before});
      forward_.execute(space, padded, spectra);
      Impl::for_each_row(space, "Bracewell::PhaseRetrieval::multiply", block_ * padded_rows_,
                         Impl::MultiplyFrames<T>{spectra_.data(), factors_.data(), padded_rows_, columns()});
      backward_.execute(space, spectra, padded);
      T* const inner = out.data + first * width_;
      if (after == Values::Zero)
        Impl::for_each_row(space, "Bracewell::PhaseRetrieval::fold", std::int64_t(count) * rows_,
                           Impl::FoldFrames<T>{padded_.data(), inner, count, angles, rows_, width_,
                                               padded_rows_, padded_width_});
      else
        Impl::for_each_row(space, "Bracewell::PhaseRetrieval::crop", std::int64_t(count) * rows_,
                           Impl::CropFrames<T>{padded_.data(), inner, count, angles, rows_, width_,
                                               padded_rows_, padded_width_, after});
    }
  }

  int rows_, width_;
  PhaseOptions options_;
  int padded_rows_, padded_width_;
  std::int64_t block_;
  FFT<ExecutionSpace, 2, T, Complex> forward_;
  FFT<ExecutionSpace, 2, Complex, T> backward_;
  Kokkos::View<T*, ExecutionSpace> padded_;
  Kokkos::View<Complex*, ExecutionSpace> spectra_;
  Kokkos::View<T*, ExecutionSpace> factors_;
};

inline double phase_multiplier(const PhaseOptions& options, double fy, double fx) {
  Impl::check_phase({"phase_multiplier"}, options);
  constexpr double pi = std::numbers::pi;
  const double defocus = Impl::phase_defocus(options), square = fy * fy + fx * fx;
  switch (options.method) {
  case PhaseMethod::Paganin:
    return 1 / (1 + options.delta_beta * defocus * square);
  case PhaseMethod::GeneralisedPaganin:
    return 1 / (1 + options.delta_beta * defocus * (2 - std::cos(2 * pi * fx) - std::cos(2 * pi * fy)) /
                        (2 * pi * pi));
  case PhaseMethod::WeakObject: {
    const double d = std::cos(defocus * square) + options.delta_beta * std::sin(defocus * square);
    return d / (d * d + options.regularisation);
  }
  }
  Impl::fail("phase_multiplier", "options.method", "a method", Impl::number(int(options.method)));
}

inline int phase_reach(const PhaseOptions& options) {
  Impl::check_phase({"phase_reach"}, options);
  const double length = std::sqrt(options.delta_beta * Impl::phase_defocus(options)) / (2 * std::numbers::pi);
  return static_cast<int>(std::ceil(std::clamp(8 * length, 8., double(1 << 14))));
}

} // namespace Bracewell
