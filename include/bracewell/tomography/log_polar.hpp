// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/impl/compiled.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/tomography/detail/beam.hpp>
#include <bracewell/tomography/detail/log_polar/convolution.hpp>
#include <bracewell/tomography/detail/log_polar/grid.hpp>
#include <bracewell/tomography/detail/log_polar/image.hpp>
#include <bracewell/tomography/detail/log_polar/rows.hpp>
#include <bracewell/tomography/options.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace Bracewell {

/// Back-projection and projection by convolution in log-polar coordinates:
///   backproject  f(X, Y) = (pi / P) sum_p q_p(X cos theta_p + Y sin theta_p + centre)
/// in the disc of radius width / 2 about the centre floor(n / 2), zero outside. `project` is its exact
/// transpose, by the same stages in reverse, or has the units of line integrals (ProjectionUnits). Angles have to be
/// even over half a turn. They are sampled exactly. Rows and results are interpolated by cubic B-splines. The work is
/// some FFTs of the size of the projections.
///
/// It is the published method (Andersson, Carlsson and Nikitin, 2016) and never the fastest: FourierTomography takes 2.0,
/// 8.7 and 33.5 ms where it takes 3.6, 13.7 and 63.6 ms (docs/performance.md, one NVIDIA H200).
///
/// Two real slices are transformed as one complex slice: FFTs along rho, and between them one kernel that
/// convolves over the angles. A movable plan with workspace; calls that can overlap need a plan each.
template <class ExecutionSpace, class T>
class LogPolarTomography {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;
  using Grid = Impl::LogPolarGrid;
  using Pack = Impl::LogPolarPack<ExecutionSpace, T>;

public:
  /// Plans the FFTs and the kernel of the convolution, and waits for them.
  /// @throws Error on options out of range, and on angles that are not even over half a turn
  LogPolarTomography(const ExecutionSpace& space, const ParallelBeamGeometry& geometry,
                     const LogPolarTomographyOptions& options = {});

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const {
    return Impl::bytes_of(samples_, results_, symbol_, roots_, directions_, origins_, workspace_);
  }

  /// What memory_bytes() of a plan of these arguments would be.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace& space, const ParallelBeamGeometry& geometry,
                                  const LogPolarTomographyOptions& options = {});

  /// @param projections  [S, P, row_upsampling * width], any number of slices
  /// @param images       [S, n, n], overwritten
  /// @throws Error on shapes that do not fit and shared memory
  void backproject(const ExecutionSpace& space, const Array<const T, MemorySpace>& projections,
                   const Array<T, MemorySpace>& images) const;

  /// The transpose of backproject, in the units of the options.
  /// @param images       [S, n, n], any number of slices; what lies outside of the disc counts for nothing
  /// @param projections  [S, P, row_upsampling * width], overwritten
  /// @throws Error on shapes that do not fit and shared memory
  void project(const ExecutionSpace& space, const Array<const T, MemorySpace>& images,
               const Array<T, MemorySpace>& projections) const;

private:
  template <class Value>
  using Vector = Kokkos::View<Value*, ExecutionSpace>;
  using Matrix = Kokkos::View<Complex**, Kokkos::LayoutRight, MemorySpace>;
  using RowFFT = FFT<ExecutionSpace, 1, Complex, Complex>;

  /// Sizes of a pass, of rows of cells.
  struct Sizes {
    int pairs; ///< of slices
    std::int64_t samples, results;
    std::int64_t sample_memory; ///< rows of samples, or packed images in their place

    Sizes(const Grid& grid, std::int64_t slices)
        : pairs(batch(slices, grid)), samples(std::int64_t(pairs) * grid.angles),
          results(std::int64_t(pairs) * grid.spans * grid.result_rows()) {
      const std::int64_t packed =
          Pack::groups(2 * pairs) * Pack::pairs_at_once * std::int64_t(grid.image) * grid.image;
      sample_memory = std::max(samples, (packed + grid.columns - 1) / grid.columns);
    }

    /// Pairs of slices at once, whose grids fit in a limit.
    static int batch(std::int64_t slices, const Grid& grid) {
      const double bytes =
          (double(grid.angles) + double(grid.spans) * grid.result_rows()) * grid.columns * sizeof(Complex);
      const double most = Impl::TomographyTuning<ExecutionSpace>::grid_bytes;
      const std::int64_t pairs = (slices + 1) / 2,
                         fit = std::clamp<std::int64_t>(std::int64_t(most / bytes), 1, pairs);
      const std::int64_t calls = (pairs + fit - 1) / fit;
      return static_cast<int>((pairs + calls - 1) / calls); // evenly
    }
  };

  template <class Body>
  void for_batches(int slices, const Body& body) const {
    for (int first = 0; first < slices; first += 2 * sizes_.pairs)
      body(first, std::min(2 * sizes_.pairs, slices - first));
  }

  std::int64_t sinogram() const { return std::int64_t(grid_.angles) * grid_.row_values(); }
  std::int64_t image() const { return std::int64_t(grid_.image) * grid_.image; }

  /// What of their memory is samples.
  Array<Complex, MemorySpace> samples() const {
    return Impl::array_of<MemorySpace>(samples_.data(), sizes_.samples, grid_.columns);
  }

  Matrix rows(const ExecutionSpace& space, const char* name, std::int64_t count) const {
    return Matrix(Kokkos::view_alloc(space, std::string("Bracewell::LogPolarTomography::") + name),
                  std::size_t(count), std::size_t(grid_.columns));
  }

  template <bool transposed>
  void convolve(const ExecutionSpace& space, const char* label, int slices) const {
    Impl::with_log_polar_period(grid_.period, [&]<int period>() {
      using Convolve = Impl::LogPolarConvolve<ExecutionSpace, T, period, transposed>;
      Convolve{grid_,
               samples_.data(),
               results_.data(),
               roots_.data(),
               reinterpret_cast<const Impl::PlainComplex<T>*>(symbol_.data()),
               (slices + 1) / 2 * grid_.spans}
          .launch(space, label);
    });
  }

  /// value(j), computed in double, for j < count.
  template <class Number, class Value>
  static Vector<Number> table(const ExecutionSpace& space, const char* name, int count, const Value& value) {
    std::vector<Number> values;
    values.reserve(static_cast<std::size_t>(count));
    for (int j = 0; j < count; ++j)
      values.push_back(Number(value(j)));
    return Impl::device_copy(space, std::string("Bracewell::LogPolarTomography::") + name, values);
  }

  Vector<Impl::PlainComplex<T>> make_roots(const ExecutionSpace& space) const {
    std::vector<Impl::PlainComplex<T>> roots;
    Impl::with_log_polar_period(grid_.period, [&]<int period>() {
      roots = Impl::StepPasses<T, Impl::ConvolutionSteps<period>>::write_roots();
    });
    return Impl::device_copy(space, "Bracewell::LogPolarTomography::roots", roots);
  }

  Vector<Complex> make_symbol(const ExecutionSpace& space) const {
    const int fine = grid_.period * grid_.refinement, columns = grid_.columns;
    const std::int64_t size = std::int64_t(columns) * fine;
    const auto symbol = Impl::device_vector<Complex>(space, "Bracewell::LogPolarTomography::symbol", size);
    const Matrix kernel(
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::LogPolarTomography::kernel"),
        std::size_t(columns), std::size_t(fine));
    Impl::for_each_row(
        space, "Bracewell::LogPolarTomography::kernel", columns,
        Impl::LogPolarKernel<T>{kernel.data(), fine, columns, grid_.result_step(), columns * grid_.rho_step});
    RowFFT(space, {fine}, columns).execute(space, kernel, kernel);
    const double scale = grid_.angle_step / (double(fine) * columns);
    Impl::with_log_polar_period(grid_.period, [&]<int period>() {
      Impl::for_each_row(
          space, "Bracewell::LogPolarTomography::symbol", std::int64_t(columns) * grid_.refinement,
          Impl::LogPolarSymbol<T, period>{kernel.data(), symbol.data(), grid_.refinement, columns, scale});
    });
    space.fence("Bracewell::LogPolarTomography::plan"); // the kernel and its transform's plan end here
    return symbol;
  }

  Grid grid_;
  Sizes sizes_;
  double scale_;                        ///< of projections
  Vector<Complex> symbol_;              ///< of the convolution
  Vector<Impl::PlainComplex<T>> roots_; ///< of its transforms
  Vector<Complex> directions_;          ///< of the middles of spans
  Vector<T> origins_;                   ///< of angles
  Matrix samples_, results_;            ///< [pairs, angles, columns], [pairs, spans, result rows, columns]
  RowFFT samples_forward_, samples_backward_, results_forward_, results_backward_;
  Vector<char> workspace_;
};

template <class ExecutionSpace, class T>
LogPolarTomography<ExecutionSpace, T>::LogPolarTomography(const ExecutionSpace& space,
                                                          const ParallelBeamGeometry& geometry,
                                                          const LogPolarTomographyOptions& options)
    : grid_(Grid::make(Impl::Arguments{"LogPolarTomography"}, geometry, options)),
      sizes_(grid_, options.slices),
      scale_(options.units == ProjectionUnits::LineIntegrals ? grid_.row_upsampling / grid_.angle_step : 1),
      symbol_(make_symbol(space)), roots_(make_roots(space)),
      directions_(table<Complex>(space, "directions", grid_.spans,
                                 [&](int span) { return Kokkos::polar(1.0, grid_.alpha(span)); })),
      origins_(table<T>(space, "origins", grid_.angles, [&](int p) { return grid_.origin(p); })),
      samples_(rows(space, "samples", sizes_.sample_memory)),
      results_(rows(space, "results", sizes_.results)),
      samples_forward_(space, {grid_.columns}, sizes_.samples, {.external_workspace = true}),
      samples_backward_(space, {grid_.columns}, sizes_.samples,
                        {.direction = FFTDirection::Backward, .external_workspace = true}),
      results_forward_(space, {grid_.columns}, sizes_.results, {.external_workspace = true}),
      results_backward_(space, {grid_.columns}, sizes_.results,
                        {.direction = FFTDirection::Backward, .external_workspace = true}),
      workspace_(Impl::device_vector<char>(
          space, "Bracewell::LogPolarTomography::workspace",
          std::int64_t(
              std::max({samples_forward_.workspace_bytes(), samples_backward_.workspace_bytes(),
                        results_forward_.workspace_bytes(), results_backward_.workspace_bytes()})))) {}

template <class ExecutionSpace, class T>
std::size_t LogPolarTomography<ExecutionSpace, T>::bytes_needed(const ExecutionSpace& space,
                                                                const ParallelBeamGeometry& geometry,
                                                                const LogPolarTomographyOptions& options) {
  const Grid grid = Grid::make(Impl::Arguments{"LogPolarTomography::bytes_needed"}, geometry, options);
  const Sizes sizes(grid, options.slices);
  std::size_t workspace = 0;
  for (const std::int64_t count : std::array{sizes.samples, sizes.results})
    for (const FFTDirection direction : {FFTDirection::Forward, FFTDirection::Backward})
      workspace =
          std::max(workspace, RowFFT::bytes_needed(space, {grid.columns}, count, {.direction = direction}));
  const std::int64_t cells =
      (sizes.sample_memory + sizes.results + std::int64_t(grid.period) * grid.refinement) * grid.columns;
  return std::size_t(cells + grid.period + grid.spans) * sizeof(Complex) +
         std::size_t(grid.angles) * sizeof(T) + workspace;
}

template <class ExecutionSpace, class T>
void LogPolarTomography<ExecutionSpace, T>::backproject(const ExecutionSpace& space,
                                                        const Array<const T, MemorySpace>& projections,
                                                        const Array<T, MemorySpace>& images) const {
  constexpr Impl::Arguments arguments{"LogPolarTomography::backproject"};
  const int slices = Impl::check_parallel_beam(arguments, grid_.angles, grid_.row_values(), grid_.image,
                                               projections, images);
  arguments.disjoint({{"images", images}}, {{"projections", projections}});
  if (slices == 0)
    return;
  Kokkos::Profiling::ScopedRegion region("Bracewell::LogPolarTomography::backproject");
  for_batches(slices, [&](std::int64_t first, int count) {
    using Sample = Impl::LogPolarSample<ExecutionSpace, T>;
    Sample::launch(
        space, "Bracewell::LogPolarTomography::sample",
        Sample(grid_, origins_.data(), projections.data + first * sinogram(), count, samples_.data()));
    samples_forward_.execute(space, samples(), samples(), workspace_);
    convolve<false>(space, "Bracewell::LogPolarTomography::convolve", count);
    results_backward_.execute(space, results_, results_, workspace_);
    Impl::LogPolarEvaluate<ExecutionSpace, T>(grid_, directions_.data(), results_.data(),
                                              images.data + first * image(), count)
        .launch(space, "Bracewell::LogPolarTomography::evaluate");
  });
}

template <class ExecutionSpace, class T>
void LogPolarTomography<ExecutionSpace, T>::project(const ExecutionSpace& space,
                                                    const Array<const T, MemorySpace>& images,
                                                    const Array<T, MemorySpace>& projections) const {
  constexpr Impl::Arguments arguments{"LogPolarTomography::project"};
  const int slices = Impl::check_parallel_beam(arguments, grid_.angles, grid_.row_values(), grid_.image,
                                               projections, images);
  arguments.disjoint({{"projections", projections}}, {{"images", images}});
  if (slices == 0)
    return;
  Kokkos::Profiling::ScopedRegion region("Bracewell::LogPolarTomography::project");
  for_batches(slices, [&](std::int64_t first, int count) {
    auto* const packed = reinterpret_cast<typename Pack::Pixel*>(samples_.data());
    Pack{images.data + first * image(), packed, count, image()}.launch(space,
                                                                       "Bracewell::LogPolarTomography::pack");
    Impl::LogPolarEvaluateTransposed<ExecutionSpace, T>{grid_, directions_.data(), packed, results_.data(),
                                                        count}
        .launch(space, "Bracewell::LogPolarTomography::gather");
    results_forward_.execute(space, results_, results_, workspace_);
    convolve<true>(space, "Bracewell::LogPolarTomography::correlate", count);
    samples_backward_.execute(space, samples(), samples(), workspace_);
    using Sample = Impl::LogPolarSampleTransposed<ExecutionSpace, T>;
    Sample::launch(space, "Bracewell::LogPolarTomography::rows",
                   Sample(grid_, origins_.data(), samples_.data(), projections.data + first * sinogram(),
                          count, T(scale_)));
  });
}

#define BRACEWELL_INSTANCES_LOG_POLAR_TOMOGRAPHY(Extern, Space, Real)                                        \
  Extern template class LogPolarTomography<Space, Real>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_LOG_POLAR_TOMOGRAPHY)

} // namespace Bracewell
