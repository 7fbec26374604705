// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/gridding/detail/toeplitz/toeplitz_blocks.hpp>
#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/line_fft.hpp>
#include <bracewell/impl/line_steps.hpp>
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

} // namespace Bracewell::Impl
