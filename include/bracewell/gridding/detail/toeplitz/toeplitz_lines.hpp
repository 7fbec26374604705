// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/line_fft.hpp>
#include <bracewell/impl/line_steps.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/impl/unroll.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace Bracewell::Impl {

/// Where numbers of the spectra of rows lie: in blocks of two rows and as many columns as a team has, so that teams of
/// columns read and write 64 bytes at a time, 32 of which a team of a row writes or reads.
struct ToeplitzBlocks {
  static constexpr int rows = 2;
  int row_length, columns; ///< of a block: a power of two

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t row(int y) const {
    return std::int64_t(y & -rows) * row_length + (y & (rows - 1)) * columns;
  }
  KOKKOS_FORCEINLINE_FUNCTION int column(int x) const { return (x & -columns) * rows + (x & (columns - 1)); }
  /// Numbers of an image.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t size(int height) const {
    return std::int64_t((height + rows - 1) & -rows) * row_length;
  }
};

/// Rows of images to their spectra, or back: a team has a row of two real images, which are the parts of one complex
/// image, or of a complex image.
template <class Value, class Steps, bool back>
struct ToeplitzRows {
  static constexpr bool real = std::is_floating_point_v<Value>;
  using T = typename RealOf<Value>::type;
  using Number = PlainComplex<T>;
  static constexpr int third = Steps::third;
  static constexpr int chip_team_size = Steps::team_size, chip_teams = Steps::template resident<T>();

  std::conditional_t<back, Value*, const Value*> images;    ///< [slices, height, width]
  std::conditional_t<back, const Number*, Number*> spectra; ///< [slices, or pairs of them, blocks]
  std::int64_t slices;
  int height, width; ///< at most n / 2
  ToeplitzBlocks blocks;
  const Number* table; ///< StepPasses' roots

  template <int lanes = chip_team_size, class Team>
  KOKKOS_FORCEINLINE_FUNCTION void run(const Team& team, void* scratch) const {
    Number* const values = static_cast<Number*>(scratch);
    const std::int64_t image = team.number() / height;
    const int y = static_cast<int>(team.number() % height);
    const auto spectrum = spectra + image * blocks.size(height) + blocks.row(y);
    const auto pixels = images + ((real ? 2 : 1) * image * height + y) * width;
    const auto partner = pixels + (real && 2 * image + 1 < slices ? std::int64_t(height) * width : 0);
    const LineFFT<T, Team, StepLines<>, LineExchange::InPlace, lanes> line{team, {}, values, values};
    const StepPasses<T, Steps> passes{table};
    if constexpr (back) {
      line.template first<true>(passes, [&](const LineButterfly& at, int apart, Number(&x)[third]) {
        const Number* const from = spectrum + blocks.column(at.j);
        BRACEWELL_UNROLL_FOR (int q = 0; q < third; ++q)
          x[q] = from[q * apart * blocks.rows];
      });
      line.template middle<true>(passes);
      line.template last<true, 2>(passes, [&](int, int x, const Number& value) {
        if (x < width)
          store(pixels, partner, x, value);
      });
    } else {
      line.template first<false, 2>(passes, [&](int, int x) {
        return x < width ? load(pixels, partner, x) : Number{0, 0};
      });
      line.template middle<false>(passes);
      line.template last<false>(passes, [&](const LineButterfly& at, int apart, const Number(&x)[third]) {
        Number* const to = spectrum + blocks.column(at.j);
        BRACEWELL_UNROLL_FOR (int q = 0; q < third; ++q)
          to[q * apart * blocks.rows] = x[q];
      });
    }
  }

private:
  /// Without a partner the image stands for it, too: what comes of that is not stored.
  KOKKOS_FORCEINLINE_FUNCTION static Number load(const Value* pixels, const Value* partner, int i) {
    if constexpr (real)
      return {pixels[i], partner[i]};
    else
      return {pixels[i].real(), pixels[i].imag()};
  }
  KOKKOS_FORCEINLINE_FUNCTION static void store(Value* pixels, Value* partner, int i, const Number& x) {
    if constexpr (real) {
      if (partner != pixels)
        partner[i] = x.im;
      pixels[i] = x.re;
    } else {
      pixels[i] = Value(x.re, x.im);
    }
  }
};

/// How a team has some neighbouring columns of `Steps::n` numbers on the chip.
template <class T, class Steps, int columns_>
struct ToeplitzColumnTeam {
  static constexpr int columns = columns_;
  /// Lanes that have neighbouring columns meet in no memory bank.
  static constexpr int line = Steps::place(Steps::n) + 128 / (columns * int(sizeof(PlainComplex<T>)));
  static constexpr std::size_t bytes = columns * line * sizeof(PlainComplex<T>),
                               chip = 232448; ///< of an H100

  /// Fewer lanes, so that registers are left for a second team where there is the memory for one.
  static constexpr int lanes() {
    constexpr int most = 65536 / Steps::template registers<T>, twice = 2 * (bytes + 1024) <= chip ? 2 : 1;
    int result = columns * Steps::team_size;
    while (twice * result > most)
      result /= 2;
    return result;
  }
  static constexpr int team_size = lanes();
  static constexpr int teams =
      std::clamp(int(chip / (bytes + 1024)), 1, Steps::template resident<T>(team_size));
};

/// As many columns as fill a sector of memory, 32 bytes, or fewer where a multiprocessor has no room for them: with two
/// columns of 4096 numbers the team takes less time, but rows more, whose teams write parts of sectors (NVIDIA H100,
/// 2026-11-24).
template <class T, class Steps>
constexpr int toeplitz_columns() {
  constexpr int most = 32 / sizeof(PlainComplex<T>);
  using Half = ToeplitzColumnTeam<T, Steps, most / 2>;
  return ToeplitzColumnTeam<T, Steps, most>::bytes <= Half::chip ? most : most / 2;
}

/// Columns of the spectra of rows, on to the spectra of images, times the transfer function, and back: a team has some
/// neighbouring ones.
template <class T, class Steps, int columns>
struct ToeplitzColumns {
  using ColumnTeam = ToeplitzColumnTeam<T, Steps, columns>;
  using Number = PlainComplex<T>;
  static constexpr int first = Steps::first, third = Steps::third, n = Steps::n;
  static constexpr int chip_team_size = ColumnTeam::team_size, chip_teams = ColumnTeam::teams;

  Number* spectra;  ///< [images, blocks]
  const T* factors; ///< [columns, n], in the order of the steps
  std::int64_t
      images; ///< neighbouring teams have the same columns of all of them, so that factors are read once
  int height; ///< at most n / 2
  ToeplitzBlocks blocks;
  const Number* table; ///< StepPasses' roots

  template <int lanes = chip_team_size, class Team>
  KOKKOS_FORCEINLINE_FUNCTION void run(const Team& team, void* scratch) const {
    Number* const values = static_cast<Number*>(scratch);
    const std::int64_t own = team.number() / images * columns;
    Number* const spectrum = spectra + team.number() % images * blocks.size(height) + own * blocks.rows;
    const T* const transfer = factors + own * n;
    const std::int64_t apart = std::int64_t(n / first) * blocks.row_length;
    const LineFFT<T, Team, StepLines<columns, ColumnTeam::line>, LineExchange::InPlace, lanes> line{
        team, {}, values, values};
    const StepPasses<T, Steps> passes{table};
    line.template first<false, 2>(passes, [&](const LineButterfly& at, int rows, Number(&x)[first]) {
      const Number* const from = spectrum + blocks.row(at.j) + at.line;
      BRACEWELL_UNROLL_FOR (int q = 0; q < first / 2; ++q)
        x[q] = at.j + q * rows < height ? from[q * apart] : Number{0, 0};
    });
    line.template middle<false>(passes);
    line.template use_transform<false>(passes, [&](const LineButterfly& at, int groups, Number(&x)[third]) {
      BRACEWELL_UNROLL_FOR (int q = 0; q < third; ++q) {
        const T factor = transfer[at.line * n + q * groups + at.j];
        x[q] = {x[q].re * factor, x[q].im * factor};
      }
    });
    line.template middle<true>(passes);
    line.template last<true>(passes, [&](const LineButterfly& at, int rows, const Number(&x)[first]) {
      Number* const to = spectrum + blocks.row(at.j) + at.line;
      BRACEWELL_UNROLL_FOR (int q = 0; q < first / 2; ++q)
        if (at.j + q * rows < height)
          to[q * apart] = x[q];
    });
  }
};

/// The frequencies of a line in the order in which StepPasses leaves them where lanes of a team have neighbouring groups.
struct LineOrder {
  int first, second, groups;

  template <class Steps>
  static constexpr LineOrder of(Steps) {
    return {Steps::first, Steps::second, Steps::groups};
  }
  KOKKOS_FUNCTION int frequency(int position) const {
    const int group = position % groups;
    return group / second + first * (group % second) + position / groups * groups;
  }
};

/// The transfer function as ToeplitzColumns takes it (TransferFunction), by columns.
template <class T>
struct OrderedTransferFunction {
  LineOrder rows, columns; ///< of a line along the rows, and along the columns
  int row_length, column_length;
  const Kokkos::complex<T>* transform; ///< [column_length, row_length] of the response
  T* values;
  bool even;
  T factor;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t column, const Member& member) const {
    const int x = rows.frequency(static_cast<int>(column)), opposite = x == 0 ? 0 : row_length - x;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, column_length), [&](int position) {
      const int y = columns.frequency(position);
      T value = transform[std::int64_t(y) * row_length + x].real();
      if (even)
        value =
            T(0.5) *
            (value + transform[std::int64_t(y == 0 ? 0 : column_length - y) * row_length + opposite].real());
      values[column * column_length + position] = factor * value;
    });
  }
};

/// Numbers of the longest lines that ToeplitzRows and ToeplitzColumns are compiled for.
inline constexpr int most_toeplitz_line = 8192;

/// Lines that they transform for images of a shape, and teams' columns; none: {}.
struct ToeplitzLineSizes {
  int rows = 0, columns = 0; ///< numbers of a row, and of a column
  int columns_of_team = 0;

  explicit operator bool() const { return rows > 0; }
};

/// @param shape  height and width
/// @param chip   bytes that a team may have: 0 on hosts
template <class T>
ToeplitzLineSizes choose_toeplitz_lines(const std::array<int, 2>& shape, std::size_t chip) {
  ToeplitzLineSizes result;
  const auto line = [&](int size, const auto& bytes) {
    int chosen = 0;
    // Smaller images would be padded too far.
    if (4 * size > line_sizes.front())
      for (const int n : line_sizes)
        if (chosen == 0 && n <= most_toeplitz_line && n >= 2 * size - 1)
          visit_line_steps(n, [&](auto steps) { chosen = bytes(steps) <= chip ? n : 0; });
    return chosen;
  };
  const int rows = line(shape[1], [](auto steps) { return decltype(steps)::template bytes<T>; }),
            columns = line(shape[0], [&](auto steps) {
              constexpr int of_team = toeplitz_columns<T, decltype(steps)>();
              result.columns_of_team = of_team;
              return ToeplitzColumnTeam<T, decltype(steps), of_team>::bytes;
            });
  if (rows == 0 || columns == 0)
    return {};
  result.rows = rows, result.columns = columns;
  return result;
}

/// The machine of ToeplitzNormal in two dimensions where teams have lines on the chip: three kernels, which read and write
/// nothing of what lies beyond the images.
template <class Space, class Value>
class ToeplitzLines {
  using T = typename RealOf<Value>::type;
  using Number = PlainComplex<T>;
  using Sizes = ToeplitzLineSizes;
  using Shape = std::array<int, 2>;
  static constexpr bool real = std::is_floating_point_v<Value>;

public:
  /// @param sizes      from choose_toeplitz_lines
  /// @param slices     that are worked on at once
  /// @param transform  [sizes.columns, sizes.rows] of the response
  ToeplitzLines(const Space& space, const Shape& shape, const Sizes& sizes, std::int64_t slices,
                const Kokkos::complex<T>* transform)
      : shape_(shape), sizes_(sizes), transfer_(device_vector<T>(space, "Bracewell::ToeplitzNormal::transfer",
                                                                 std::int64_t(sizes.rows) * sizes.columns)),
        spectra_(device_vector<Number>(space, "Bracewell::ToeplitzNormal::spectra",
                                       numbers(shape, sizes, slices))) {
    OrderedTransferFunction<T> order{{},         {},
                                     sizes.rows, sizes.columns,
                                     transform,  transfer_.data(),
                                     real,       T(1. / sizes.rows / sizes.columns)};
    const auto prepare = [&](int size, LineOrder& line, auto& roots) {
      visit_line_steps(size, [&](auto steps) {
        line = LineOrder::of(steps);
        roots = device_copy(space, "Bracewell::ToeplitzNormal::roots",
                            StepPasses<T, decltype(steps)>::write_roots());
      });
    };
    prepare(sizes.rows, order.rows, rows_);
    prepare(sizes.columns, order.columns, columns_);
    for_each_row(space, "Bracewell::ToeplitzNormal::transfer_function", sizes.rows, order);
  }

  std::size_t memory_bytes() const { return bytes_of(transfer_, spectra_, rows_, columns_); }
  static std::size_t bytes_needed(const Shape& shape, const Sizes& sizes, std::int64_t slices) {
    std::size_t roots = 0;
    for (const int size : {sizes.rows, sizes.columns})
      visit_line_steps(size, [&](auto steps) { roots += StepPasses<T, decltype(steps)>::roots; });
    return std::size_t(sizes.rows) * sizes.columns * sizeof(T) +
           (roots + std::size_t(numbers(shape, sizes, slices))) * sizeof(Number);
  }

  /// @param slices  at most as many as planned
  void execute(const Space& space, const Value* images, Value* results, std::int64_t slices) const {
    const std::int64_t count = real ? (slices + 1) / 2 : slices;
    const ToeplitzBlocks blocks = blocks_of(sizes_);
    const auto transform_rows = [&]<bool back>(const char* label, auto* of_images) {
      visit(sizes_.rows, [&](auto steps) {
        using Steps = decltype(steps);
        launch_on_chip(space, label, static_cast<int>(count * shape_[0]), Steps::template bytes<T>,
                       ToeplitzRows<Value, Steps, back>{of_images, spectra_.data(), slices, shape_[0],
                                                        shape_[1], blocks, rows_.data()});
      });
    };
    transform_rows.template operator()<false>("Bracewell::ToeplitzNormal::rows", images);
    visit(sizes_.columns, [&](auto steps) {
      using Steps = decltype(steps);
      constexpr int columns = toeplitz_columns<T, Steps>();
      launch_on_chip(space, "Bracewell::ToeplitzNormal::columns",
                     static_cast<int>(count * (sizes_.rows / columns)),
                     ToeplitzColumnTeam<T, Steps, columns>::bytes,
                     ToeplitzColumns<T, Steps, columns>{spectra_.data(), transfer_.data(), count, shape_[0],
                                                        blocks, columns_.data()});
    });
    transform_rows.template operator()<true>("Bracewell::ToeplitzNormal::rows_back", results);
  }

private:
  template <class Action>
  static void visit(int size, const Action& action) {
    if constexpr (has_chip_memory<Space>)
      visit_line_steps(size, [&](auto steps) {
        if constexpr (decltype(steps)::n <= most_toeplitz_line)
          action(steps);
      });
  }
  static ToeplitzBlocks blocks_of(const Sizes& sizes) { return {sizes.rows, sizes.columns_of_team}; }
  static std::int64_t numbers(const Shape& shape, const Sizes& sizes, std::int64_t slices) {
    return (real ? (slices + 1) / 2 : slices) * blocks_of(sizes).size(shape[0]);
  }

  Shape shape_;
  Sizes sizes_;
  Kokkos::View<T*, Space> transfer_;
  Kokkos::View<Number*, Space> spectra_, rows_,
      columns_; ///< spectra of rows; roots of lines along rows and columns
};

} // namespace Bracewell::Impl
