// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/ptychography/detail/compare_lines.hpp>
#include <bracewell/ptychography/detail/exit_waves.hpp>
#include <bracewell/ptychography/detail/fused_transforms.hpp>

/// Kernels over lines (rows or columns) of n = lanes x per_lane numbers, a length that the compiler knows, on GPUs: see
/// KnownLinesPlan. Waves and shifted probes, [patterns, modes, n, n], lie in blocks of wave_block columns, one after the
/// other, and each of these row by row: teams over columns go through memory from end to end, and rows of a team lie side
/// by side.

namespace Bracewell::Impl {

inline constexpr int wave_block = 8;

/// Rows: the lanes of a row are neighbours, so that only lanes of a warp exchange numbers.
template <int lanes_, int per_lane_>
struct RowSizes : FusedSizes<lanes_, per_lane_, per_lane_> {
  using Sizes = FusedSizes<lanes_, per_lane_, per_lane_>;
  static constexpr int threads = PtychographyTuning::row_threads; ///< of a team
  static constexpr int lines = threads / lanes_, blocks = Sizes::n / lines;
  static constexpr int exchange = threads / Sizes::warp * Sizes::exchange;
  static_assert(Sizes::n % lines == 0);

  KOKKOS_FORCEINLINE_FUNCTION static int line(int rank) { return rank / lanes_; }
  KOKKOS_FORCEINLINE_FUNCTION static int lane(int rank) { return rank % lanes_; }
  KOKKOS_FORCEINLINE_FUNCTION static int place(int rank) { ///< of lane 0 in the exchange
    return rank / Sizes::warp * Sizes::exchange + rank % Sizes::warp - rank % lanes_;
  }
};

/// Columns: neighbouring threads have neighbouring columns, and a team exchanges numbers.
template <int lanes_, int per_lane_>
struct ColumnSizes : FusedSizes<lanes_, per_lane_, per_lane_> {
  using Sizes = FusedSizes<lanes_, per_lane_, per_lane_>;
  static constexpr int lines = wave_block, threads = lines * lanes_, blocks = Sizes::n / lines; ///< of a team
  static constexpr int stride = lines, pitch = lanes_ * lines + lines % 16; ///< even and odd k: other banks
  static constexpr int exchange = per_lane_ * pitch;
  static_assert(Sizes::n % lines == 0);

  KOKKOS_FORCEINLINE_FUNCTION static int line(int rank) { return rank % lines; }
  KOKKOS_FORCEINLINE_FUNCTION static int lane(int rank) { return rank / lines; }
  KOKKOS_FORCEINLINE_FUNCTION static int place(int rank) { return rank % lines; }
};

/// What a thread has of a line, and its part of the transforms: before one numbers lane + lanes j, x[j]; after it numbers
/// k + per_lane g with k = lane + lanes c, y[g] of outer sum c (FusedTransforms). A thread writes to the exchange where it
/// has read at the end of the transform before, if that went the other way: between the two nobody has to wait.
template <class T, class Sizes>
struct KnownLine : FusedTransforms<false, T, Sizes>::LaneGroup {
  using Transforms = FusedTransforms<false, T, Sizes>;
  using Number = PlainComplex<T>;
  static constexpr int lanes = Sizes::lanes, per_lane = Sizes::per_lane, outer_sums = Sizes::outer_sums;
  static_assert(per_lane % lanes == 0 && lanes % wave_block == 0);

  KOKKOS_FORCEINLINE_FUNCTION KnownLine(int rank, Number* scratch, const Number* factors) {
    this->exchange = scratch + Sizes::place(rank);
    this->table = factors;
    this->lane = Sizes::lane(rank);
    this->group = Sizes::line(rank);
    Transforms::load_factors(*this, factors);
  }

  /// Number of the line, from that of the lane on: outer sum c, g.
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int outer(int c, int g) { return lanes * c + per_lane * g; }

  KOKKOS_FORCEINLINE_FUNCTION void inner_forward(Number (&x)[per_lane]) const {
    Transforms::inner_forward(*this, this->lane, x);
  }
  KOKKOS_FORCEINLINE_FUNCTION void inner_adjoint(Number (&x)[per_lane]) const {
    Transforms::inner_adjoint(*this, this->lane, x);
  }
  /// The second half of a transform: use(c, y).
  template <class Use>
  KOKKOS_FORCEINLINE_FUNCTION void outer_forward(const Use& use) const {
    BRACEWELL_UNROLL
    for (int c = 0; c < outer_sums; ++c) {
      Number y[lanes];
      Transforms::outer_forward(*this, this->lane + lanes * c, y);
      use(c, y);
    }
  }
  /// The first half of an inverse transform.
  KOKKOS_FORCEINLINE_FUNCTION void outer_adjoint(Number (&y)[outer_sums][lanes]) const {
    BRACEWELL_UNROLL
    for (int c = 0; c < outer_sums; ++c)
      Transforms::outer_adjoint(*this, this->lane + lanes * c, y[c]);
  }

  /// Numbers of the line, the lane's of which is *from, before a transform and after it.
  template <int apart = 1>
  KOKKOS_FORCEINLINE_FUNCTION static void load_inner(const Kokkos::complex<T>* from, Number (&x)[per_lane]) {
    BRACEWELL_UNROLL
    for (int j = 0; j < per_lane; ++j)
      x[j] = plain(from[lanes * j * apart]);
  }
  template <int apart = 1>
  KOKKOS_FORCEINLINE_FUNCTION static void store_inner(Kokkos::complex<T>* to, const Number (&x)[per_lane]) {
    BRACEWELL_UNROLL
    for (int j = 0; j < per_lane; ++j)
      to[lanes * j * apart] = Kokkos::complex<T>(x[j].re, x[j].im);
  }
  template <int apart = 1>
  KOKKOS_FORCEINLINE_FUNCTION static void load_outer(const Kokkos::complex<T>* from,
                                                     Number (&y)[outer_sums][lanes]) {
    BRACEWELL_UNROLL
    for (int c = 0; c < outer_sums; ++c)
      BRACEWELL_UNROLL
    for (int g = 0; g < lanes; ++g)
      y[c][g] = plain(from[outer(c, g) * apart]);
  }
  template <int apart = 1>
  KOKKOS_FORCEINLINE_FUNCTION static void store_outer(Kokkos::complex<T>* to, int c,
                                                      const Number (&y)[lanes]) {
    BRACEWELL_UNROLL
    for (int g = 0; g < lanes; ++g)
      to[outer(c, g) * apart] = Kokkos::complex<T>(y[g].re, y[g].im);
  }
};

template <class Space, class T, class Sizes_>
struct KnownKernel {
  using Sizes = Sizes_;
  using Number = PlainComplex<T>;
  using Complex = Kokkos::complex<T>;
  using Line = KnownLine<T, Sizes>;
  using Member = typename Kokkos::TeamPolicy<Space>::member_type;
  using Scratch = Kokkos::View<Number*, typename Space::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static constexpr int n = Sizes::n, lanes = Sizes::lanes, per_lane = Sizes::per_lane,
                       outer_sums = Sizes::outer_sums;
  static constexpr int threads = Sizes::threads;
  /// What every further mode may have in scratch memory.
  static constexpr int of_mode = 0;

  QuickDivision modes;
  const Number* table; ///< FusedSizes

  /// Where the lane's number of a row begins in a wave; the others follow n numbers for each column.
  KOKKOS_FORCEINLINE_FUNCTION static int in_row(const Line& at, int row) {
    return at.lane / wave_block * (n * wave_block) + row * wave_block + at.lane % wave_block;
  }

  /// Team ((slice modes + mode) blocks + block). Slice s of S has patterns s, s + S, ...: teams that run at the same time
  /// are at patterns that follow each other, and kernels take them in turn from the first and from the last on, so that
  /// they find what the one before has written last in the cache.
  struct Part {
    int slice, mode, first; ///< line of the team

    KOKKOS_FORCEINLINE_FUNCTION Part(const QuickDivision& modes, int team)
        : slice(modes.quotient(team / Sizes::blocks)), mode(team / Sizes::blocks - slice * modes.by()),
          first(team % Sizes::blocks * Sizes::lines) {}
  };
};

/// Spectra of the probe [modes, n, n], shifted and transformed back along the rows: the columns of the shifted probes
/// are still spectra.
template <class Space, class T, class Sizes>
struct ShiftRows : KnownKernel<Space, T, Sizes> {
  using Base = KnownKernel<Space, T, Sizes>;
  using typename Base::Complex, typename Base::Number, typename Base::Line;
  static constexpr int n = Base::n, on_chip = PtychographyTuning::shift_threads, numbers = Sizes::exchange;

  const Complex *spectrum, *phases;
  Complex* probes;
  int patterns, slices;

  KOKKOS_FUNCTION void operator()(const typename Base::Member& member) const {
    const typename Base::Part part(this->modes, member.league_rank());
    const typename Base::Scratch memory(member.team_scratch(0), +numbers);
    const Line at(member.team_rank(), memory.data(), this->table);
    const int row = part.first + at.group;
    Number given[Line::outer_sums][Line::lanes];
    Line::load_outer(spectrum + ((std::int64_t(part.mode) * n + row) * n + at.lane), given);
    for (int i = part.slice; i < patterns; i += slices) {
      const Complex* const phase = phases + std::int64_t(2) * i * n;
      Number y[Line::outer_sums][Line::lanes];
      Line::load_outer(phase + (n + at.lane), y);
      const Number own = plain(phase[row] * (T(1) / T(n * n)));
      BRACEWELL_UNROLL
      for (int c = 0; c < Line::outer_sums; ++c)
        BRACEWELL_UNROLL
      for (int g = 0; g < Line::lanes; ++g)
        y[c][g] = turn<false>(given[c][g], turn<false>(own, y[c][g]));
      at.outer_adjoint(y);
      synchronise_lanes();
      Number x[Line::per_lane];
      at.inner_adjoint(x);
      Line::template store_inner<n>(
          probes + ((std::int64_t(i) * this->modes.by() + part.mode) * (n * n) + Base::in_row(at, row)), x);
      synchronise_lanes();
    }
  }
};

/// Blocks of columns of the waves of a mode: a team goes through a slice of the patterns.
template <class Space, class T, class Sizes, bool shifted>
struct KnownColumns : KnownKernel<Space, T, Sizes> {
  using Base = KnownKernel<Space, T, Sizes>;
  using typename Base::Complex, typename Base::Number, typename Base::Line;
  static constexpr int n = Base::n, per_lane = Base::per_lane;
  /// Exchanges: with two, what is written to the one need not wait until the other has been read.
  static constexpr int exchanges =
      (2 * Sizes::exchange + (shifted ? 0 : Base::threads * per_lane)) * sizeof(Number) <=
              PtychographyTuning::line_bytes
          ? 2
          : 1;
  static constexpr int numbers = exchanges * Sizes::exchange;

  Scan scan;
  Selection selection;
  const Complex* object;
  Complex* probes; ///< [modes, n, n]; if shifted, what ShiftRows has left
  Complex* waves;
  int slices;

  /// The t-th pattern in the order of the kernel: that of shifted probes begins with the last.
  KOKKOS_FORCEINLINE_FUNCTION int pattern_at(int t) const {
    return shifted ? static_cast<int>(selection.count) - 1 - t : t;
  }
  /// Pixel (lane, column) of wave i of the mode; other rows follow wave_block numbers for each.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t element(const Line& at, const typename Base::Part& part,
                                                   int i) const {
    return (std::int64_t(i) * this->modes.by() + part.mode) * (n * n) + part.first * n +
           at.lane * wave_block + at.group;
  }
  /// The same pixel in probes [.., modes, n, n] as they are given.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t given(const Line& at, const typename Base::Part& part,
                                                 int i) const {
    return (std::int64_t(i) * this->modes.by() + part.mode) * (n * n) + at.lane * n + part.first + at.group;
  }
  KOKKOS_FORCEINLINE_FUNCTION void load_object(const Line& at, const typename Base::Part& part, int i,
                                               Number (&o)[per_lane]) const {
    const int columns = static_cast<int>(scan.columns);
    const Complex* from = object + (scan.corner(selection(i)) + (at.lane * columns + part.first + at.group));
    BRACEWELL_UNROLL
    for (int j = 0; j < per_lane; ++j)
      o[j] = plain(from[Line::lanes * j * columns]);
  }
  /// Lets the team's columns of wave i of a mode set out.
  KOKKOS_FORCEINLINE_FUNCTION void prefetch_columns(const typename Base::Member& member, const Complex* of,
                                                    int i, int mode, int first) const {
    constexpr int apart = 128 / sizeof(Complex); // the line of a cache
    const Complex* const from = of + ((std::int64_t(i) * this->modes.by() + mode) * (n * n) + first * n);
    for (int k = member.team_rank() * apart; k < wave_block * n; k += Base::threads * apart)
      prefetch(from + k);
  }
};

/// Exit waves, transformed along their columns.
template <class Space, class T, class Sizes, bool shifted>
struct ExitWaveColumns : KnownColumns<Space, T, Sizes, shifted> {
  using Base = KnownColumns<Space, T, Sizes, shifted>;
  using typename Base::Number, typename Base::Line;
  static constexpr int n = Base::n, per_lane = Base::per_lane, on_chip = PtychographyTuning::exit_threads;

  double* energies; ///< [patterns, modes, blocks, 2]: energy of the exit wave, or null

  KOKKOS_FUNCTION void operator()(const typename Base::Member& member) const {
    const typename Base::Part part(this->modes, member.league_rank());
    const typename Base::Scratch memory(member.team_scratch(0), +Base::numbers);
    Line at(member.team_rank(), memory.data(), this->table);
    Number p[per_lane];
    if constexpr (!shifted)
      Line::template load_inner<n>(this->probes + this->given(at, part, 0), p);
    const int count = static_cast<int>(this->selection.count);
    Number o[per_lane], x[per_lane];
    this->load_object(at, part, this->pattern_at(part.slice), o);
    for (int t = part.slice, number = 0; t < count; t += this->slices, ++number) {
      const int i = this->pattern_at(t);
      at.exchange =
          memory.data() + (Sizes::place(member.team_rank()) + number % Base::exchanges * Sizes::exchange);
      if constexpr (shifted) {
        Number y[Line::outer_sums][Line::lanes];
        Line::template load_outer<wave_block>(this->probes + this->element(at, part, i), y);
        at.outer_adjoint(y);
        member.team_barrier();
        at.inner_adjoint(p);
      }
      BRACEWELL_UNROLL
      for (int j = 0; j < per_lane; ++j)
        x[j] = turn<false>(o[j], p[j]);
      if (energies) {
        T energy = 0;
        BRACEWELL_UNROLL
        for (int j = 0; j < per_lane; ++j)
          energy += x[j].re * x[j].re + x[j].im * x[j].im;
        write_team_sums<Space>(member, energy, 0,
                               energies +
                                   2 * ((std::int64_t(i) * this->modes.by() + part.mode) * Sizes::blocks +
                                        part.first / Sizes::lines));
      }
      at.inner_forward(x);
      if (t + this->slices < count)
        this->load_object(at, part, this->pattern_at(t + this->slices),
                          o); // on its way during the other half
      member.team_barrier();
      typename Base::Complex* const to = this->waves + this->element(at, part, i);
      at.outer_forward(
          [&](int c, const Number(&y)[Line::lanes]) { Line::template store_outer<wave_block>(to, c, y); });
      if constexpr (Base::exchanges == 1)
        member.team_barrier();
    }
  }
};

/// The other half of the transforms of conj(O) G, along the rows, with the shifts undone, summed over slices of the
/// patterns; and of each what ShiftGradient sums.
template <class Space, class T, class Sizes>
struct SumShiftedRows : KnownKernel<Space, T, Sizes> {
  using Base = KnownKernel<Space, T, Sizes>;
  using typename Base::Complex, typename Base::Number, typename Base::Line;
  static constexpr int n = Base::n, on_chip = PtychographyTuning::row_sum_threads, numbers = Sizes::exchange;

  const Complex *terms, *phases, *spectra; ///< the last of the probe
  Complex* sums;                           ///< [slices, modes, n, n]
  double* moments;                         ///< [patterns, modes, blocks, 2], or null
  int patterns, slices;

  KOKKOS_FUNCTION void operator()(const typename Base::Member& member) const {
    const typename Base::Part part(this->modes, member.league_rank());
    const typename Base::Scratch memory(member.team_scratch(0), +numbers);
    const Line at(member.team_rank(), memory.data(), this->table);
    const int row = part.first + at.group;
    const auto element = [&](int i) {
      return (std::int64_t(i) * this->modes.by() + part.mode) * (n * n) + Base::in_row(at, row);
    };
    const auto frequency = [](int k) { return T(2 * k < n ? k : k - n); };
    const Complex* const of_row = spectra + ((std::int64_t(part.mode) * n + row) * n + at.lane);
    Number sum[Line::outer_sums][Line::lanes] = {}, x[Line::per_lane];
    Line::template load_inner<n>(terms + element(part.slice), x);
    for (int i = part.slice; i < patterns; i += slices) {
      at.inner_forward(x);
      if (i + slices < patterns)
        Line::template load_inner<n>(terms + element(i + slices), x); // on its way during the other half
      synchronise_lanes();
      const Complex* const phase = phases + std::int64_t(2) * i * n;
      const Complex* const of_columns = phase + (n + at.lane);
      const Number own = plain(phase[row] * (T(1) / T(n * n)));
      T along_row = 0, across = 0; // of Im(conj(term) spectrum)
      at.outer_forward([&](int c, const Number(&y)[Line::lanes]) {
        BRACEWELL_UNROLL
        for (int g = 0; g < Line::lanes; ++g) {
          const int column = Line::outer(c, g);
          const Number term = turn<true>(y[g], turn<false>(own, plain(of_columns[column])));
          sum[c][g] = sum[c][g] + term;
          if (moments) {
            const T product = turn<true>(plain(of_row[column]), term).im;
            along_row += frequency(at.lane + column) * product;
            across += product;
          }
        }
      });
      synchronise_lanes();
      if (moments)
        write_team_sums<Space>(member, double(n * n) * frequency(row) * across, double(n * n) * along_row,
                               moments +
                                   2 * ((std::int64_t(i) * this->modes.by() + part.mode) * Sizes::blocks +
                                        part.first / Sizes::lines));
    }
    BRACEWELL_UNROLL
    for (int c = 0; c < Line::outer_sums; ++c)
      Line::store_outer(
          sums + (((std::int64_t(part.slice) * this->modes.by() + part.mode) * n + row) * n + at.lane), c,
          sum[c]);
  }
};

/// dL/dy from the moments of SumShiftedRows: gradient_ja = factor sum over blocks.
template <class T>
struct SumPositionBlocks {
  const double* moments; ///< [patterns, blocks, 2]
  int blocks;
  Selection selection;
  double factor;
  T* gradient; ///< [N, 2]

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t i = index / 2, axis = index % 2;
    double sum = 0;
    for (int block = 0; block < blocks; ++block)
      sum += moments[2 * (i * blocks + block) + axis];
    gradient[2 * selection(i) + axis] = static_cast<T>(factor * sum);
  }
};

/// The rows of patterns: the last transforms of the modes, the comparison of sum |Psi_l|^2 with the targets, and the
/// adjoints of the transforms, in place on waves. Each mode has an exchange of its own, where its numbers wait between the
/// inner and the outer sums until the comparison is known; modes for which there is no room share the last one and are
/// read again.
template <class Space, class T, class Storage, class Sizes, PatternLoss kind>
struct CompareRows : KnownKernel<Space, T, Sizes> {
  using Base = KnownKernel<Space, T, Sizes>;
  using typename Base::Complex, typename Base::Number, typename Base::Line;
  static constexpr int n = Base::n, lanes = Base::lanes, per_lane = Base::per_lane,
                       outer_sums = Base::outer_sums;
  static constexpr int on_chip = PtychographyTuning::compare_threads, numbers = Sizes::exchange,
                       of_mode = Sizes::exchange;

  int exchanges;
  Selection selection;
  Targets<T, Storage> targets;
  T background, norm;
  Complex* waves;
  const PatternSums<T>* patterns;
  double* sums; ///< [patterns, blocks, 2]
  CompareTask task;
  bool gradients; ///< with CompareTask::Compare
  bool backwards; ///< begins with the last pattern

  KOKKOS_FUNCTION void operator()(const typename Base::Member& member) const {
    const int team = backwards ? member.league_size() - 1 - member.league_rank() : member.league_rank();
    const int i = team / Sizes::blocks, count = this->modes.by();
    const std::int64_t j = selection(i);
    const typename Base::Scratch memory(member.team_scratch(0), numbers * exchanges);
    Line at(member.team_rank(), memory.data(), this->table);
    const int row = team % Sizes::blocks * Sizes::lines + at.group;
    const PatternSums<T> pattern = patterns[i];
    Complex* const wave =
        waves + (std::int64_t(i) * count * (n * n) + Base::in_row(at, row)); // of the first mode
    Number x[per_lane] = {}, y[outer_sums][lanes];
    if (!(targets.means[j] > 0 && (task == CompareTask::Mean || pattern.scale > 0))) { // the whole team
      for (int mode = 0; gradients && mode < count; ++mode)
        Line::template store_inner<n>(wave + mode * (n * n), x);
      if (member.team_rank() == 0)
        sums[2 * team] = sums[2 * team + 1] = 0;
      return;
    }
    Line::template load_inner<n>(wave, x);
    const std::int64_t pixel = (targets.row(i, j) * n + row) * n + at.lane;
    T t[outer_sums][lanes], intensity[outer_sums][lanes] = {};
    for_numbers([&](int c, int g) { t[c][g] = static_cast<T>(targets.values[pixel + Line::outer(c, g)]); });
    Number* const first_exchange = at.exchange;
    to_detector(at, first_exchange, wave, x, y, intensity);
    T first = 0, second = 0; // intensities become what the waves are multiplied by
    const auto compare = [&](CompareTask what) {
      const auto each = compare_pixel<kind>(what, targets, j, background, norm, pattern);
      for_numbers([&](int c, int g) {
        intensity[c][g] = each(intensity[c][g], intensity[c][g], t[c][g],
                               pixel_weight(targets, pixel + Line::outer(c, g), t[c][g]), first, second);
      });
    };
    if (task == CompareTask::Compare)
      compare(CompareTask::Compare);
    else
      compare(task);
    if (gradients)
      from_detector(at, first_exchange, wave, x, y, intensity);
    write_team_sums<Space>(member, first, second, sums + 2 * team);
  }

private:
  /// use(c, g) for the numbers that a thread has after a transform.
  template <class Use>
  KOKKOS_FORCEINLINE_FUNCTION static void for_numbers(const Use& use) {
    BRACEWELL_UNROLL
    for (int c = 0; c < outer_sums; ++c)
      BRACEWELL_UNROLL
    for (int g = 0; g < lanes; ++g)
      use(c, g);
  }

  KOKKOS_FORCEINLINE_FUNCTION void use_exchange(Line& at, Number* first_exchange, int mode) const {
    at.exchange = first_exchange + numbers * Kokkos::min(mode, exchanges - 1);
  }

  /// The modes at the detector, and their intensities. x: the numbers of the first; y: those of the last at the detector.
  KOKKOS_FORCEINLINE_FUNCTION void to_detector(Line& at, Number* first_exchange, const Complex* wave,
                                               Number (&x)[per_lane], Number (&y)[outer_sums][lanes],
                                               T (&intensity)[outer_sums][lanes]) const {
    const int count = this->modes.by();
    for (int mode = 0; mode < count; ++mode) {
      use_exchange(at, first_exchange, mode);
      at.inner_forward(x);
      if (mode + 1 < count)
        Line::template load_inner<n>(wave + (mode + 1) * (n * n), x); // on its way during the other half
      synchronise_lanes();
      at.outer_forward([&](int c, const Number(&value)[lanes]) {
        BRACEWELL_UNROLL
        for (int g = 0; g < lanes; ++g) {
          y[c][g] = value[g];
          intensity[c][g] += value[g].re * value[g].re + value[g].im * value[g].im;
        }
      });
      if (mode + 1 >= exchanges)
        synchronise_lanes(); // the next mode takes this exchange
    }
  }

  /// The modes back from the detector, multiplied by `factor` there, from the last on. y: as to_detector leaves it.
  KOKKOS_FORCEINLINE_FUNCTION void from_detector(Line& at, Number* first_exchange, Complex* wave,
                                                 Number (&x)[per_lane], Number (&y)[outer_sums][lanes],
                                                 const T (&factor)[outer_sums][lanes]) const {
    for (int mode = this->modes.by() - 1; mode >= 0; --mode) { // y: numbers of this mode
      for_numbers([&](int c, int g) { y[c][g] = {y[c][g].re * factor[c][g], y[c][g].im * factor[c][g]}; });
      at.outer_adjoint(y);
      synchronise_lanes();
      at.inner_adjoint(x);
      Line::template store_inner<n>(wave + mode * (n * n), x);
      if (mode == 0)
        break;
      use_exchange(at, first_exchange, mode - 1);
      if (mode >= exchanges) {
        Line::template load_inner<n>(wave + (mode - 1) * (n * n), x);
        at.inner_forward(x);
        synchronise_lanes();
      }
      at.outer_forward([&](int c, const Number(&value)[lanes]) {
        BRACEWELL_UNROLL
        for (int g = 0; g < lanes; ++g)
          y[c][g] = value[g];
      });
    }
  }
};

} // namespace Bracewell::Impl
