// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/fast_size.hpp>
#include <bracewell/fft/plan.hpp>
#include <bracewell/tomography/geometry.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <vector>

namespace Bracewell {

struct LogPolarTomographyOptions {
  std::vector<double> angles = {}; ///< radians: P angles in steps of pi / P, from any first one
  int width = 0;                   ///< pixels of the detector, and of images along both axes
  std::int64_t slices = 1;         ///< the most that are worked on at once: less takes less memory
  std::optional<double> centre =
      std::nullopt;          ///< detector coordinate of the axis; floor(width / 2) by default
  int row_upsampling = 1;    ///< values per pixel of the rows, 1 to 8: 2 (see FilterOptions) leaves little of
                             ///< the interpolation's error at high frequencies
  double oversampling = 1.1; ///< of the log-polar grid, 1 to 4: more is more accurate
};

namespace Impl {

/// Half a turn in equal spans. Within a span (angles theta about its middle alpha, at most `half_span` away)
/// the disc of radius r, turned by -alpha, is shrunk by a and moved to (1 - a, 0): z = a x / r + (1 - a, 0).
/// A ray at s then is at e^rho' = a s / r + (1 - a) cos(theta), and with z = e^rho (cos phi, sin phi) it
/// passes where rho' = rho + ln cos(phi - theta): back-projection is a convolution. (Andersson, Carlsson and
/// Nikitin, SIAM J. Imaging Sci. 9(2), 2016.)
struct LogPolarGrid {
  static constexpr int spans = 6;
  static constexpr int margin = 3; ///< cells beyond the disc, for interpolation

  int width, angles, row_upsampling;
  double centre, first_angle, angle_step;
  double radius, shrink; ///< r in pixels, a
  int rows;              ///< angles of a span and as much again, in steps of angle_step, negative ones behind
  int refinement;        ///< rows of the result per row of the data
  int columns;           ///< steps of rho
  double rho_begin, rho_step;

  KOKKOS_FUNCTION int span_begin(int span) const {
    return static_cast<int>(std::int64_t(span) * angles / spans);
  }
  KOKKOS_FUNCTION int span_middle(int span) const { return (span_begin(span) + span_begin(span + 1)) / 2; }
  KOKKOS_FUNCTION double alpha(int span) const { return first_angle + span_middle(span) * angle_step; }
  int fine_rows() const { return rows * refinement; }

  static LogPolarGrid make(const LogPolarTomographyOptions& options) {
    constexpr const char* function = "LogPolarTomography";
    constexpr double pi = std::numbers::pi;
    const std::vector<double>& angles = options.angles;
    if (options.width < 4 || options.width > 32768)
      fail(function, "width", "from 4 to 32768 pixels", std::to_string(options.width));
    if (angles.size() < std::size_t(2 * spans) || angles.size() > (1u << 20))
      fail(function, "angles", "from " + std::to_string(2 * spans) + " to 2^20 angles",
           std::to_string(angles.size()));
    if (!(options.oversampling >= 1 && options.oversampling <= 4))
      fail(function, "oversampling", "from 1 to 4", std::to_string(options.oversampling));
    if (options.slices < 1)
      fail(function, "slices", "at least 1", std::to_string(options.slices));
    LogPolarGrid grid;
    grid.width = options.width;
    grid.angles = static_cast<int>(angles.size());
    grid.row_upsampling = options.row_upsampling;
    if (options.row_upsampling < 1 || options.row_upsampling > 8)
      fail(function, "row_upsampling", "from 1 to 8", std::to_string(options.row_upsampling));
    grid.centre = options.centre.value_or(options.width / 2);
    if (!(std::abs(grid.centre) <= 4.0 * options.width))
      fail(function, "centre", "a pixel within four widths of the detector", std::to_string(grid.centre));
    grid.first_angle = angles[0];
    grid.angle_step = pi / grid.angles;
    for (std::size_t p = 0; p < angles.size(); ++p)
      if (!(std::abs(angles[p] - angles[0] - double(p) * grid.angle_step) < 1e-2 * grid.angle_step))
        fail(function, "angles", "even steps of pi / " + std::to_string(angles.size()) + " over half a turn",
             std::to_string(angles[p]) + " at angle " + std::to_string(p));

    // Every angle of a span is at most so many steps from its middle.
    const int most = (grid.angles / spans + 2) / 2;
    const double half_span = most * grid.angle_step;
    grid.radius = options.width / 2.0;
    grid.shrink = std::sin(half_span) / (1 + std::sin(half_span));
    const double pixel = grid.shrink / grid.radius; // on the circle |z| = 1, where the disc is the farthest
    // Tangentially a span's result has frequencies up to sin(2 half_span) / 2 per pixel.
    const double fine_step = pixel / (std::sin(2 * half_span) * options.oversampling);
    grid.refinement = std::max(1, static_cast<int>(std::ceil(grid.angle_step / fine_step - 0.25)));
    grid.rows = static_cast<int>(next_fast_size(4 * most + 2 * margin, true));
    const double least = std::log((1 - grid.shrink) * std::cos(half_span) - grid.shrink);
    grid.columns = static_cast<int>(
        next_fast_size(static_cast<std::int64_t>(-least / pixel * options.oversampling) + 4 * margin, true));
    grid.rho_step = -least / (grid.columns - 4 * margin);
    grid.rho_begin = least - 2 * margin * grid.rho_step;
    return grid;
  }
};

/// Cubic B-spline weights of the four cells around a point at `t` of the way from the second to the third.
template <class T>
KOKKOS_INLINE_FUNCTION void bspline_weights(T t, T (&weights)[4]) {
  const T u = 1 - t;
  weights[0] = u * u * u / 6;
  weights[1] = (4 - 3 * t * t * (2 - t)) / 6;
  weights[2] = (4 - 3 * u * u * (2 - u)) / 6;
  weights[3] = t * t * t / 6;
}

/// Projections to log-polar samples of every span: a team takes a row, makes it B-spline coefficients in
/// scratch memory and evaluates these. Rows without an angle become zero.
template <class ExecutionSpace, class T>
struct LogPolarSample {
  static constexpr int reach = sizeof(T) == 4 ? 12 : 28; ///< where the prefilter's (2 - sqrt 3)^k is gone
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  LogPolarGrid grid;
  const T* projections; ///< [slices, angles, row_upsampling * width] of these slices
  T* samples;           ///< [slices, spans, rows, columns]
  int level;            ///< of the scratch memory

  static std::size_t scratch_bytes(int values) { return 2 * std::size_t(values + reach) * sizeof(T) + 64; }

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int n = grid.width * grid.row_upsampling, row = member.league_rank() % grid.rows;
    const int rest = member.league_rank() / grid.rows;
    const int span = rest % LogPolarGrid::spans, slice = rest / LogPolarGrid::spans;
    const int steps = row < grid.rows / 2 ? row : row - grid.rows, p = grid.span_middle(span) + steps;
    T* const out = samples + std::int64_t(member.league_rank()) * grid.columns;
    if (p < grid.span_begin(span) || p >= grid.span_begin(span + 1)) {
      Kokkos::parallel_for(Kokkos::TeamThreadRange(member, grid.columns), [&](int j) { out[j] = T(0); });
      return;
    }
    auto* const values =
        static_cast<T*>(member.team_scratch(level).get_shmem_aligned(2 * (n + reach) * sizeof(T), 16));
    T* const coefficients = values + n + 2 * reach;
    const T* const in = projections + (std::int64_t(slice) * grid.angles + p) * n;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, n + 2 * reach), [&](int i) {
      const int wrapped = (i - reach) % n; // rows go on periodically
      values[i] = in[wrapped < 0 ? wrapped + n : wrapped];
    });
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, n), [&](int i) {
      const T pole = T(-0.26794919243112270647), gain = T(1.7320508075688772935);
      const T* const here = values + i + reach;
      T sum = here[0], power = pole;
      for (int k = 1; k <= reach; ++k, power *= pole)
        sum += power * (here[-k] + here[k]);
      coefficients[i] = gain * sum;
    });
    member.team_barrier();
    const T scale = T(grid.radius / grid.shrink);
    const T origin = T((1 - grid.shrink) * Kokkos::cos(steps * grid.angle_step));
    const T begin = T(grid.rho_begin), step = T(grid.rho_step), limit = T(grid.radius + LogPolarGrid::margin);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, grid.columns), [&](int j) {
      const T s = (Kokkos::exp(begin + T(j) * step) - origin) * scale;
      T value = 0;
      if (Kokkos::abs(s) <= limit) {
        const T x = (s + T(grid.centre)) * T(grid.row_upsampling), cell = Kokkos::floor(x);
        T weights[4];
        bspline_weights(x - cell, weights);
        int i = (static_cast<int>(cell) - 1) % n;
        i = i < 0 ? i + n : i;
        for (int k = 0; k < 4; ++k) {
          value += weights[k] * coefficients[i];
          i = i + 1 < n ? i + 1 : 0;
        }
      }
      out[j] = value;
    });
  }
};

/// The kernel exp(2 pi i k ln(cos t) / period), angles t in the order of a transform, [k, t].
template <class T>
struct LogPolarKernel {
  Kokkos::complex<T>* kernel;
  int rows;
  double angle_step, period;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t k, const Member& member) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, rows), [&](int j) {
      const double t = (j <= rows / 2 ? j : j - rows) * angle_step;
      const double turns = double(k) * Kokkos::log(Kokkos::cos(t)) / period;
      const double phase = 2 * Kokkos::numbers::pi_v<double> * (turns - Kokkos::floor(turns));
      kernel[k * rows + j] = Kokkos::complex<T>(T(Kokkos::cos(phase)), T(Kokkos::sin(phase)));
    });
  }
};

/// Its transform, [l, k], with all factors: those of the sums and FFTs, and the prefilter of the B-splines
/// that will be evaluated.
template <class T>
struct LogPolarSymbol {
  const Kokkos::complex<T>* transformed; ///< [k, l]
  Kokkos::complex<T>* symbol;
  int rows, half_columns, columns;
  double scale;

  KOKKOS_FUNCTION static double prefilter(int index, int size) {
    return 6 / (4 + 2 * Kokkos::cos(2 * Kokkos::numbers::pi_v<double> * index / size));
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t l, const Member& member) const {
    const double factor = scale * prefilter(static_cast<int>(l), rows);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, half_columns), [&](int k) {
      // A real function has no shifted Nyquist frequency.
      const T weight = 2 * k == columns ? T(0) : T(factor * prefilter(k, columns));
      symbol[l * half_columns + k] = weight * transformed[std::int64_t(k) * rows + l];
    });
  }
};

/// Convolution in frequencies, on finer rows: the spectrum of the data repeats itself between them. All spans
/// of a slice at a time, for the symbol to be read once for them.
template <class T>
struct LogPolarConvolve {
  static constexpr int at_once = LogPolarGrid::spans;

  const Kokkos::complex<T>*data, *symbol; ///< [batch, rows, k], [fine rows, k]
  Kokkos::complex<T>* result;             ///< [batch, fine rows, k]
  int rows, refinement, half_columns;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t line, const Member& member) const {
    const std::int64_t fine_rows = std::int64_t(rows) * refinement, l = line % fine_rows, coarse = l % rows;
    const std::int64_t first = line / fine_rows * at_once;
    const Kokkos::complex<T>* const in = data + (first * rows + coarse) * half_columns;
    Kokkos::complex<T>* const out = result + (first * fine_rows + l) * half_columns;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, half_columns), [&](int k) {
      const Kokkos::complex<T> factor = symbol[l * half_columns + k];
      Kokkos::complex<T> values[at_once]; // all loads before the first store
      for (int b = 0; b < at_once; ++b)
        values[b] = in[b * std::int64_t(rows) * half_columns + k];
      for (int b = 0; b < at_once; ++b)
        out[b * fine_rows * half_columns + k] = factor * values[b];
    });
  }
};

/// Pixels of the disc: the sum over spans of what the convolutions have there. Zero outside the disc.
template <class ExecutionSpace, class T>
struct LogPolarEvaluate {
  static constexpr int slices_at_once = 4, columns = 8, rows = is_host<ExecutionSpace> ? 8 : 32;
  static constexpr int threads = is_host<ExecutionSpace> ? 1 : columns * rows;
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  LogPolarGrid grid;
  const T* coefficients; ///< [slices, spans, fine rows, columns]
  T* images;             ///< [slices, width, width]
  int slices, tiles_across, fine_rows;

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int groups = (slices + slices_at_once - 1) / slices_at_once;
    const int tile = member.league_rank() / groups, first = member.league_rank() % groups * slices_at_once;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, columns * rows), [&](int pixel) {
      const int x = tile % tiles_across * columns + pixel % columns,
                y = tile / tiles_across * rows + pixel / columns;
      if (x < grid.width && y < grid.width)
        evaluate(x, y, first, Kokkos::min(+slices_at_once, slices - first));
    });
  }

  KOKKOS_INLINE_FUNCTION void evaluate(int x, int y, int first, int count) const {
    const int n = grid.width;
    const T X = T(x - n / 2), Y = T(y - n / 2), radius = T(grid.radius), a = T(grid.shrink);
    T sums[slices_at_once] = {};
    const std::int64_t grid_size = std::int64_t(fine_rows) * grid.columns,
                       slice_size = LogPolarGrid::spans * grid_size;
    if (X * X + Y * Y <= radius * radius)
      for (int span = 0; span < LogPolarGrid::spans; ++span) {
        const T alpha = T(grid.alpha(span)), cosine = Kokkos::cos(alpha), sine = Kokkos::sin(alpha);
        const T z1 = (1 - a) + a / radius * (X * cosine + Y * sine),
                z2 = a / radius * (Y * cosine - X * sine);
        const T rho = T(0.5) * Kokkos::log(z1 * z1 + z2 * z2), phi = Kokkos::atan2(z2, z1);
        const T v = (rho - T(grid.rho_begin)) / T(grid.rho_step);
        const T u = phi / T(grid.angle_step) * T(grid.refinement);
        const T u_cell = Kokkos::floor(u), v_cell = Kokkos::floor(v);
        T u_weights[4], v_weights[4];
        bspline_weights(u - u_cell, u_weights);
        bspline_weights(v - v_cell, v_weights);
        int row = static_cast<int>(u_cell) - 1;
        row = row < 0 ? row + fine_rows : row;
        const T* const span_values =
            coefficients + first * slice_size + span * grid_size + static_cast<int>(v_cell) - 1;
        for (int i = 0; i < 4; ++i) {
          const T* const line = span_values + std::int64_t(row) * grid.columns;
          for (int z = 0; z < slices_at_once; ++z)
            if (z < count)
              for (int j = 0; j < 4; ++j)
                sums[z] += u_weights[i] * v_weights[j] * line[z * slice_size + j];
          row = row + 1 < fine_rows ? row + 1 : 0;
        }
      }
    for (int z = 0; z < count; ++z)
      images[(std::int64_t(first + z) * n + y) * n + x] = sums[z];
  }
};

} // namespace Impl

/// Back-projection by convolution in log-polar coordinates:
///   f(X, Y) = (pi / P) sum_p q_p(X cos theta_p + Y sin theta_p + centre)
/// in the disc of radius width / 2 about the centre floor(n / 2), zero outside. For even angles over half a
/// turn only; the angles themselves are sampled exactly, rows and results are interpolated by cubic
/// B-splines. The work is that of some FFTs of the size of the projections.
///
/// A movable plan with workspace; calls that can overlap need a plan each.
template <class ExecutionSpace, class T>
class LogPolarTomography {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;
  using Grid = Impl::LogPolarGrid;
  template <class Value>
  using Unmanaged =
      Kokkos::View<Value***, Kokkos::LayoutRight, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

public:
  /// @throws Error on options out of range, and on angles that are not even over half a turn
  LogPolarTomography(const ExecutionSpace& space, const LogPolarTomographyOptions& options)
      : grid_(Grid::make(options)), slices_(batch(options.slices, grid_)),
        forward_(space, {grid_.rows, grid_.columns}, slices_ * Grid::spans, {.external_workspace = true}),
        backward_(space, {grid_.fine_rows(), grid_.columns}, slices_ * Grid::spans,
                  {.external_workspace = true}),
        samples_(allocate(space, "Bracewell::LogPolarTomography::samples")),
        results_(allocate(space, "Bracewell::LogPolarTomography::results")),
        workspace_(Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                                      "Bracewell::LogPolarTomography::workspace"),
                   std::max(forward_.workspace_bytes(), backward_.workspace_bytes())),
        symbol_(make_symbol(space)) {}

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const {
    return (samples_.size() + results_.size() + symbol_.size()) * sizeof(Complex) + workspace_.size();
  }

  /// @param projections  [S, P, row_upsampling * n], any number of slices
  /// @param images       [S, n, n], overwritten
  /// @throws Error on shapes that do not fit and shared memory
  template <class Projections, class Images>
  void backproject(const ExecutionSpace& space, const Projections& projections, const Images& images) const {
    const Array<const T, MemorySpace> in(projections);
    const Array<T, MemorySpace> out(images);
    const int slices = Impl::check_parallel_beam("LogPolarTomography::backproject", grid_.angles, grid_.width,
                                                 in, out, grid_.row_upsampling);
    Kokkos::Profiling::ScopedRegion region("Bracewell::LogPolarTomography::backproject");
    const std::int64_t n = grid_.width;
    for (int first = 0; first < slices; first += slices_)
      backproject_some(space, in.data + first * grid_.angles * n * grid_.row_upsampling,
                       out.data + first * n * n, std::min(slices_, slices - first));
  }

private:
  using Values = Kokkos::View<Complex*, MemorySpace>;

  /// Slices at once: their grids take up to two gigabytes on a GPU, less on hosts.
  static int batch(std::int64_t slices, const Grid& grid) {
    const double bytes = 2.0 * Grid::spans * grid.fine_rows() * (grid.columns + 2.0) * sizeof(T);
    const double most = Impl::is_host<ExecutionSpace> ? 256e6 : 4e9;
    const std::int64_t fit = std::clamp<std::int64_t>(std::int64_t(most / bytes), 1, slices);
    const std::int64_t calls = (slices + fit - 1) / fit;
    return static_cast<int>((slices + calls - 1) / calls); // evenly
  }

  std::size_t half_columns() const { return std::size_t(grid_.columns / 2 + 1); }

  /// Room for the larger of the spectra; real arrays fit in, too.
  Values allocate(const ExecutionSpace& space, const char* label) const {
    return Values(Kokkos::view_alloc(space, Kokkos::WithoutInitializing, std::string(label)),
                  std::size_t(slices_) * Grid::spans * std::size_t(grid_.fine_rows()) * half_columns());
  }

  Values make_symbol(const ExecutionSpace& space) const {
    const int rows = grid_.fine_rows(), columns = static_cast<int>(half_columns());
    const double step = grid_.angle_step / grid_.refinement, period = grid_.columns * grid_.rho_step;
    const Values symbol(
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::LogPolarTomography::symbol"),
        std::size_t(rows) * half_columns());
    // The samples' memory is large enough for the kernel.
    const Unmanaged<Complex> kernel(samples_.data(), 1, half_columns(), std::size_t(rows));
    Impl::for_each_row(space, "Bracewell::LogPolarTomography::kernel", columns,
                       Impl::LogPolarKernel<T>{samples_.data(), rows, step, period});
    FFT<ExecutionSpace, 1, Complex, Complex>(space, {rows}, columns).execute(space, kernel, kernel);
    const double scale = grid_.angle_step / (double(rows) * grid_.columns);
    Impl::for_each_row(
        space, "Bracewell::LogPolarTomography::symbol", rows,
        Impl::LogPolarSymbol<T>{samples_.data(), symbol.data(), rows, columns, grid_.columns, scale});
    space.fence("Bracewell::LogPolarTomography::plan"); // the transform's plan ends here
    return symbol;
  }

  void backproject_some(const ExecutionSpace& space, const T* projections, T* images, int count) const {
    using Sample = Impl::LogPolarSample<ExecutionSpace, T>;
    using Evaluate = Impl::LogPolarEvaluate<ExecutionSpace, T>;
    using Policy = Kokkos::TeamPolicy<ExecutionSpace>;
    constexpr bool host = Impl::is_host<ExecutionSpace>;
    const std::size_t batch = std::size_t(slices_) * Grid::spans, rows = std::size_t(grid_.rows);
    const std::size_t fine = std::size_t(grid_.fine_rows()), columns = std::size_t(grid_.columns);
    T* const real_samples = reinterpret_cast<T*>(samples_.data());
    T* const coefficients = reinterpret_cast<T*>(results_.data());

    const std::size_t scratch = Sample::scratch_bytes(grid_.width * grid_.row_upsampling);
    const int level = scratch <= (host ? 30000 : 40000) ? 0 : 1;
    Kokkos::parallel_for("Bracewell::LogPolarTomography::sample",
                         Policy(space, count * Grid::spans * grid_.rows, host ? 1 : 256)
                             .set_scratch_size(level, Kokkos::PerTeam(scratch)),
                         Sample{grid_, projections, real_samples, level});
    forward_.execute(space, Unmanaged<T>(real_samples, batch, rows, columns),
                     Unmanaged<Complex>(results_.data(), batch, rows, half_columns()), workspace_);
    Impl::for_each_row(space, "Bracewell::LogPolarTomography::convolve",
                       std::int64_t(count) * grid_.fine_rows(),
                       Impl::LogPolarConvolve<T>{results_.data(), symbol_.data(), samples_.data(), grid_.rows,
                                                 grid_.refinement, int(half_columns())});
    backward_.execute(space, Unmanaged<Complex>(samples_.data(), batch, fine, half_columns()),
                      Unmanaged<T>(coefficients, batch, fine, columns), workspace_);
    const int across = (grid_.width + Evaluate::columns - 1) / Evaluate::columns;
    const int down = (grid_.width + Evaluate::rows - 1) / Evaluate::rows;
    const int groups = (count + Evaluate::slices_at_once - 1) / Evaluate::slices_at_once;
    Kokkos::parallel_for("Bracewell::LogPolarTomography::evaluate",
                         Policy(space, across * down * groups, Evaluate::threads),
                         Evaluate{grid_, coefficients, images, count, across, grid_.fine_rows()});
  }

  Grid grid_;
  int slices_;
  FFT<ExecutionSpace, 2, T, Complex> forward_;
  FFT<ExecutionSpace, 2, Complex, T> backward_;
  Values samples_, results_; ///< both are used in turn: samples, spectra, finer spectra, results
  Kokkos::View<char*, MemorySpace> workspace_;
  Values symbol_;
};

} // namespace Bracewell
