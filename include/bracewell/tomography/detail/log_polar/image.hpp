// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/tomography/detail/log_polar/rows.hpp>

namespace Bracewell::Impl {

/// Pixels of the disc: the sum over spans of what the convolutions have there. Zero outside the disc. A team
/// has a tile of pixels. In a span rho grows along alpha, within half_span: lanes side by side take pixels
/// along x for some spans, along y for others, whichever is closer to the rows of cells, which meet in fewer
/// memory banks than cells above each other.
template <class ExecutionSpace, class T>
struct LogPolarEvaluate {
  using Complex = Kokkos::complex<T>;
  using Tuning = TomographyTuning<ExecutionSpace>;
  static constexpr bool host = is_host<ExecutionSpace>;
  static constexpr int pairs_at_once = Tuning::image_pairs, columns = Tuning::image_columns,
                       rows = Tuning::image_rows, level = host ? 1 : 0;
  static constexpr int team_size = host ? 1 : columns * rows;
  static constexpr unsigned teams = resident_teams<ExecutionSpace>(Tuning::image_teams(sizeof(T)));
  using Policy = Kokkos::TeamPolicy<ExecutionSpace, Kokkos::LaunchBounds<256, teams>>;
  using Member = typename Policy::member_type;
  struct Sums {
    Complex pairs[pairs_at_once];
  };

  LogPolarGrid grid;
  const Complex* directions;   ///< of the middles of spans
  const Complex* coefficients; ///< [pairs, spans, result rows, columns]
  T* images;                   ///< [slices, image, image]
  int slices, tiles_across, groups;

  LogPolarEvaluate(const LogPolarGrid& grid_, const Complex* directions_, const Complex* coefficients_,
                   T* images_, int slices_)
      : grid(grid_), directions(directions_), coefficients(coefficients_), images(images_), slices(slices_),
        tiles_across((grid.image + columns - 1) / columns),
        groups(((slices + 1) / 2 + pairs_at_once - 1) / pairs_at_once) {}

  KOKKOS_FUNCTION static constexpr std::size_t scratch_bytes() { return columns * rows * sizeof(Sums); }

  void launch(const ExecutionSpace& space, const char* label) const {
    const int tiles_down = (grid.image + rows - 1) / rows;
    launch_kernel(label,
                  Policy(space, tiles_across * tiles_down * groups, +team_size)
                      .set_scratch_size(level, Kokkos::PerTeam(scratch_bytes() + 16)),
                  *this);
  }

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int tile = member.league_rank() / groups, first = member.league_rank() % groups * pairs_at_once;
    const int x0 = tile % tiles_across * columns, y0 = tile / tiles_across * rows;
    auto* const along_y =
        static_cast<Sums*>(member.team_scratch(+level).get_shmem_aligned(scratch_bytes(), 16));
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, columns * rows), [&](int pixel) {
      const int x = pixel / 8 % columns, y = pixel % 8 + pixel / (8 * columns) * 8;
      along_y[y * columns + x] = evaluate(x0 + x, y0 + y, first, false);
    });
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, columns * rows), [&](int pixel) {
      const int n = grid.image, x = x0 + pixel % columns, y = y0 + pixel / columns;
      if (x >= n || y >= n)
        return;
      const Sums sums = evaluate(x, y, first, true);
      for (int z = 0; z < Kokkos::min(+pairs_at_once, (slices + 1) / 2 - first); ++z) {
        const Complex value = sums.pairs[z] + along_y[pixel].pairs[z];
        T* const out = images + (std::int64_t(2 * (first + z)) * n + y) * n + x;
        out[0] = value.real();
        if (2 * (first + z) + 1 < slices)
          out[std::int64_t(n) * n] = value.imag();
      }
    });
  }

private:
  /// Over the spans whose rows of cells are closer to x, or to y.
  KOKKOS_INLINE_FUNCTION Sums evaluate(int x, int y, int first, bool along_x) const {
    const int n = grid.image, count = Kokkos::min(+pairs_at_once, (slices + 1) / 2 - first);
    const T X = T(x - n / 2), Y = T(y - n / 2), radius = T(grid.radius), a = T(grid.shrink);
    const T scale = a / radius, per_rho = 1 / T(grid.rho_step), per_phi = 1 / T(grid.result_step());
    Sums sums = {};
    if (X * X + Y * Y > radius * radius)
      return sums;
    const std::int64_t span_size = std::int64_t(grid.result_rows()) * grid.columns,
                       pair_size = grid.spans * span_size;
    for (int span = 0; span < grid.spans; ++span) {
      const T cosine = directions[span].real(), sine = directions[span].imag();
      if ((Kokkos::abs(cosine) > Kokkos::abs(sine)) != along_x)
        continue;
      const T z1 = (1 - a) + scale * (X * cosine + Y * sine), z2 = scale * (Y * cosine - X * sine);
      const T rho = T(0.5) * Kokkos::log(z1 * z1 + z2 * z2), phi = Kokkos::atan2(z2, z1);
      const T v = (rho - T(grid.rho_begin)) * per_rho, u = phi * per_phi;
      const T u_cell = Kokkos::floor(u), v_cell = Kokkos::floor(v);
      T u_weights[4], v_weights[4];
      CubicBSpline::weights(u - u_cell, u_weights);
      CubicBSpline::weights(v - v_cell, v_weights);
      const int row = static_cast<int>(u_cell) - 1 + grid.result_steps() * grid.refinement;
      const Complex* values = coefficients + first * pair_size + span * span_size +
                              std::int64_t(row) * grid.columns + static_cast<int>(v_cell) - 1;
      for (int i = 0; i < 4; ++i, values += grid.columns)
        for (int z = 0; z < pairs_at_once; ++z)
          if (z < count)
            for (int j = 0; j < 4; ++j)
              sums.pairs[z] += u_weights[i] * v_weights[j] * values[z * pair_size + j];
    }
    return sums;
  }
};

/// Images of a few slices at a time side by side, zero where there are no more slices: what the transpose
/// reads.
template <class ExecutionSpace, class T>
struct LogPolarPack {
  static constexpr int pairs_at_once = TomographyTuning<ExecutionSpace>::packed_pairs;
  struct alignas(pairs_at_once == 1 ? alignof(Kokkos::complex<T>) : 16) Pixel {
    Kokkos::complex<T> pairs[pairs_at_once];
  };

  const T* images; ///< [slices, pixels]
  Pixel* packed;   ///< [groups, pixels]
  int slices;
  std::int64_t pixels;

  static std::int64_t groups(int slices) { return ((slices + 1) / 2 + pairs_at_once - 1) / pairs_at_once; }

  void launch(const ExecutionSpace& space, const char* label) const {
    launch_kernel(label,
                  Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(
                      space, 0, groups(slices) * pixels),
                  *this);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t first = i / pixels * (2 * pairs_at_once);
    const T* const in = images + first * pixels + i % pixels;
    Pixel pixel;
    for (int z = 0; z < pairs_at_once; ++z)
      pixel.pairs[z] = Kokkos::complex<T>(first + 2 * z < slices ? in[2 * z * pixels] : T(0),
                                          first + 2 * z + 1 < slices ? in[(2 * z + 1) * pixels] : T(0));
    packed[i] = pixel;
  }
};

/// The transpose: every cell gathers from the pixels of the disc whose interpolation has a part of it, with
/// the same weights. These lie in a ring's sector around the cell.
template <class ExecutionSpace, class T>
struct LogPolarEvaluateTransposed {
  using Complex = Kokkos::complex<T>;
  using Pack = LogPolarPack<ExecutionSpace, T>;
  using Pixel = typename Pack::Pixel;
  static constexpr int pairs_at_once = Pack::pairs_at_once;

  LogPolarGrid grid;
  const Complex* directions; ///< of the middles of spans
  const Pixel* packed;
  Complex* cells; ///< as the coefficients
  int slices;

  void launch(const ExecutionSpace& space, const char* label) const {
    launch_kernel(label,
                  Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(
                      space, 0, Pack::groups(slices) * grid.spans * grid.result_rows() * grid.columns),
                  *this);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const int column = static_cast<int>(index % grid.columns);
    const std::int64_t row_of_all = index / grid.columns, rows = grid.result_rows();
    const int row = static_cast<int>(row_of_all % rows),
              span = static_cast<int>(row_of_all / rows % grid.spans);
    const int first = static_cast<int>(row_of_all / rows / grid.spans) * pairs_at_once;
    const int count = Kokkos::min(+pairs_at_once, (slices + 1) / 2 - first);
    Complex sums[pairs_at_once] = {};
    gather(column, row - grid.result_steps() * grid.refinement, span,
           packed + first / pairs_at_once * std::int64_t(grid.image) * grid.image, sums);
    for (int z = 0; z < count; ++z)
      cells[(std::int64_t(first + z) * grid.spans + span) * rows * grid.columns +
            row * std::int64_t(grid.columns) + column] = sums[z];
  }

private:
  KOKKOS_INLINE_FUNCTION void gather(int column, int row, int span, const Pixel* image,
                                     Complex (&sums)[pairs_at_once]) const {
    const int n = grid.image;
    const T scale = T(grid.radius / grid.shrink), step = T(grid.rho_step), fine = T(grid.result_step());
    const T disc = T(grid.radius);
    const Complex direction = directions[span];
    // The origin of log-polar coordinates, and the cell as it is seen from there, in pixels.
    const T away = (1 - T(grid.shrink)) * scale;
    const T origin_x = -away * direction.real(), origin_y = -away * direction.imag();
    const T distance = scale * Kokkos::exp(T(grid.rho_begin) + T(column) * step);
    const T phi = T(row) * fine;
    const Complex seen = direction * Complex(Kokkos::cos(phi), Kokkos::sin(phi));
    const T cosine = seen.real(), sine = seen.imag();
    const T x0 = origin_x + distance * cosine, y0 = origin_y + distance * sine;
    // Two cells outwards, inwards and to the sides.
    const T growth = Kokkos::exp(2 * step), slack = T(1e-3);
    const T radial = distance * Kokkos::max(growth - 1, 1 - Kokkos::cos(2 * fine) / growth) + slack;
    const T tangential = distance * growth * Kokkos::sin(2 * fine) + slack;
    const T reach = disc + radial + tangential;
    if (x0 * x0 + y0 * y0 > reach * reach)
      return;
    const T per_distance = 1 / distance, per_rho = 1 / step, per_phi = 1 / fine;
    const T per_cosine = reciprocal(cosine), per_sine = reciprocal(sine);
    const T c = Kokkos::abs(cosine), s = Kokkos::abs(sine);
    const T down = radial * s + tangential * c, across = radial * c + tangential * s;
    const T bottom = Kokkos::max(-disc, y0 - down), top = Kokkos::min(disc, y0 + down);
    for (int Y = static_cast<int>(Kokkos::ceil(bottom)); T(Y) <= top; ++Y) {
      const T dy = T(Y) - y0;
      T left = -across, right = across;
      narrow(-dy * sine, per_cosine, radial, left, right);    // |dx cos + dy sin| <= radial
      narrow(dy * cosine, per_sine, tangential, left, right); // |-dx sin + dy cos| <= tangential
      for (int X = static_cast<int>(Kokkos::ceil(x0 + left)); T(X) <= x0 + right; ++X) {
        const int x = X + n / 2, y = Y + n / 2;
        if (T(X) * T(X) + T(Y) * T(Y) > disc * disc || x < 0 || x >= n || y < 0 || y >= n)
          continue;
        const T dx = T(X) - origin_x, dY = T(Y) - origin_y;
        const T along = (dx * cosine + dY * sine) * per_distance,
                aside = (dY * cosine - dx * sine) * per_distance;
        const T weight = CubicBSpline::value(T(0.5) * Kokkos::log(along * along + aside * aside) * per_rho) *
                         CubicBSpline::value(Kokkos::atan2(aside, along) * per_phi);
        const Pixel pixel = image[std::int64_t(y) * n + x];
        for (int z = 0; z < pairs_at_once; ++z)
          sums[z] += weight * pixel.pairs[z];
      }
    }
  }

  /// 0 where it would be large.
  KOKKOS_INLINE_FUNCTION static T reciprocal(T x) { return Kokkos::abs(x) < T(1e-3) ? T(0) : 1 / x; }

  /// left <= dx <= right where |dx / per_factor - middle| <= most, too, unless per_factor is 0.
  KOKKOS_INLINE_FUNCTION static void narrow(T middle, T per_factor, T most, T& left, T& right) {
    if (per_factor == 0)
      return;
    const T centre = middle * per_factor, half = most * Kokkos::abs(per_factor);
    left = Kokkos::max(left, centre - half);
    right = Kokkos::min(right, centre + half);
  }
};

} // namespace Bracewell::Impl
