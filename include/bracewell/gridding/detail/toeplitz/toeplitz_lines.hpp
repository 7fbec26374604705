// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/gridding/detail/toeplitz/toeplitz_blocks.hpp>
#include <bracewell/gridding/detail/toeplitz/toeplitz_columns.hpp>
#include <bracewell/gridding/detail/toeplitz/toeplitz_rows.hpp>
#include <bracewell/gridding/detail/toeplitz/transfer_function.hpp>
#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/line_steps.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/row_loop.hpp>

#include <Kokkos_Core.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace Bracewell::Impl {

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
    visit_line_steps(sizes.rows, [&](auto steps) {
      order.rows = LineOrder::of(steps);
      rows_ = device_copy(space, "Bracewell::ToeplitzNormal::roots",
                          StepPasses<T, decltype(steps)>::write_roots());
    });
    visit_line_steps(sizes.columns, [&](auto steps) {
      order.columns = LineOrder::of(steps);
      columns_ = device_copy(space, "Bracewell::ToeplitzNormal::roots",
                             StepPasses<T, decltype(steps)>::write_roots());
    });
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
    visit(sizes_.rows, [&](auto steps) {
      using Steps = decltype(steps);
      launch_on_chip(space, "Bracewell::ToeplitzNormal::rows", static_cast<int>(count * shape_[0]),
                     Steps::template bytes<T>,
                     ToeplitzRows<Value, Steps, false>{images, spectra_.data(), slices, shape_[0], shape_[1],
                                                       blocks, rows_.data()});
    });
    visit(sizes_.columns, [&](auto steps) {
      using Steps = decltype(steps);
      constexpr int columns = toeplitz_columns<T, Steps>();
      launch_on_chip(space, "Bracewell::ToeplitzNormal::columns",
                     static_cast<int>(count * (sizes_.rows / columns)),
                     ToeplitzColumnTeam<T, Steps, columns>::bytes,
                     ToeplitzColumns<T, Steps, columns>{spectra_.data(), transfer_.data(), count, shape_[0],
                                                        blocks, columns_.data()});
    });
    visit(sizes_.rows, [&](auto steps) {
      using Steps = decltype(steps);
      launch_on_chip(space, "Bracewell::ToeplitzNormal::rows_back", static_cast<int>(count * shape_[0]),
                     Steps::template bytes<T>,
                     ToeplitzRows<Value, Steps, true>{results, spectra_.data(), slices, shape_[0], shape_[1],
                                                      blocks, rows_.data()});
    });
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
