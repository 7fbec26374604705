// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/gridding/detail/toeplitz/toeplitz_blocks.hpp>
#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/line_dft.hpp>
#include <bracewell/impl/register_fft.hpp>
#include <bracewell/impl/unroll.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

namespace Bracewell::Impl {

/// Rows of images to their spectra, or back: a team has a row of two real images, which are the parts of one complex
/// image, or of a complex image.
template <class Value, class Steps, bool back>
struct ToeplitzRows {
  static constexpr bool real = std::is_floating_point_v<Value>;
  using T = typename RealOf<Value>::type;
  using Number = PlainComplex<T>;
  using DFT = LineDFT<T, Steps>;
  static constexpr int first = Steps::first, third = Steps::third, n = Steps::n, groups = Steps::groups;
  static constexpr int chip_team_size = Steps::team_size, chip_teams = Steps::template resident<T>();

  std::conditional_t<back, Value*, const Value*> images;    ///< [slices, height, width]
  std::conditional_t<back, const Number*, Number*> spectra; ///< [slices, or pairs of them, blocks]
  std::int64_t slices;
  int height, width; ///< at most n / 2
  ToeplitzBlocks blocks;
  const Number* table; ///< LineDFT's roots

  template <int lanes = chip_team_size, class Team>
  KOKKOS_FORCEINLINE_FUNCTION void run(const Team& team, void* scratch) const {
    Number* const line = static_cast<Number*>(scratch);
    const std::int64_t image = team.number() / height;
    const int y = static_cast<int>(team.number() % height);
    const auto spectrum = spectra + image * blocks.size(height) + blocks.row(y);
    const auto pixels = images + ((real ? 2 : 1) * image * height + y) * width;
    const auto partner = pixels + (real && 2 * image + 1 < slices ? std::int64_t(height) * width : 0);
    if constexpr (back)
      read_spectrum<lanes>(team.rank(), spectrum, line);
    else
      read_pixels<lanes>(team.rank(), pixels, partner, line);
    team.barrier();
    for (int b = team.rank(); b < n / Steps::second; b += lanes)
      DFT::template go_on<back>(b, line, table);
    team.barrier();
    if constexpr (back)
      write_pixels<lanes>(team.rank(), pixels, partner, line);
    else
      write_spectrum<lanes>(team.rank(), spectrum, line);
  }

private:
  template <int lanes>
  KOKKOS_FORCEINLINE_FUNCTION void read_pixels(int rank, const Value* pixels, const Value* partner,
                                               Number* line) const {
    for (int j = rank; j < n / first; j += lanes) {
      Number x[first];
      BRACEWELL_UNROLL
      for (int q = 0; q < first / 2; ++q) {
        const int i = j + q * (n / first);
        x[q] = i < width ? load(pixels, partner, i) : Number{0, 0};
      }
      DFT::template begin<first / 2>(x, j, line);
    }
  }
  template <int lanes>
  KOKKOS_FORCEINLINE_FUNCTION void write_spectrum(int rank, Number* spectrum, const Number* line) const {
    for (int group = rank; group < groups; group += lanes) {
      Number x[third];
      DFT::end(x, group, line, table);
      const int own = blocks.column(group), apart = groups * blocks.rows;
      BRACEWELL_UNROLL
      for (int q = 0; q < third; ++q)
        spectrum[own + q * apart] = x[q];
    }
  }

  template <int lanes>
  KOKKOS_FORCEINLINE_FUNCTION void read_spectrum(int rank, const Number* spectrum, Number* line) const {
    for (int group = rank; group < groups; group += lanes) {
      Number x[third];
      const int own = blocks.column(group), apart = groups * blocks.rows;
      BRACEWELL_UNROLL
      for (int q = 0; q < third; ++q)
        x[q] = spectrum[own + q * apart];
      DFT::begin_back(x, group, line);
    }
  }
  template <int lanes>
  KOKKOS_FORCEINLINE_FUNCTION void write_pixels(int rank, Value* pixels, Value* partner,
                                                const Number* line) const {
    for (int j = rank; j < n / first; j += lanes) {
      Number x[first];
      DFT::end_back(x, j, line, table);
      BRACEWELL_UNROLL
      for (int q = 0; q < first / 2; ++q) {
        const int i = j + q * (n / first);
        if (i < width)
          store(pixels, partner, i, x[q]);
      }
    }
  }

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

} // namespace Bracewell::Impl
