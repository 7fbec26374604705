// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/row_loop.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

/// Places a box whose centre is element floor(n/2) of every axis into a larger one whose origin is element 0
/// (the library's layout before a transform), zeros elsewhere. Sizes may be equal, even or odd.
/// @param centred  real or complex [B, (d,) h, w]
/// @param padded   [B, (D,) H, W] of the same values, every axis at least as long; overwritten
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class Centred, class Padded>
void pad_centre(const ExecutionSpace& space, const Centred& centred, const Padded& padded);

/// Takes the centred box out of a padded box: the reverse (and the transpose) of pad_centre.
/// @param padded   real or complex [B, (D,) H, W], origin at element 0
/// @param centred  [B, (d,) h, w] of the same values, no axis longer; overwritten
/// @param scale    factor on every value, for instance 1 / (D H W) after the unscaled inverse transform
/// @throws Error on shapes that do not fit, shared memory and a scale that is not finite
template <class ExecutionSpace, class Padded, class Centred>
void crop_centre(const ExecutionSpace& space, const Padded& padded, const Centred& centred, double scale = 1);

namespace Impl {

/// Fills padded rows: element o of a padded axis N holds element o + n/2 (mod N) of the centred axis n, else 0.
template <class Value, int Dim>
struct PadCentre {
  const Value* centred;
  Value* padded;
  Box<Dim> from, to;

  /// Index on the centred axis, -1 outside of it.
  KOKKOS_FUNCTION static int source(int o, int n, int N) {
    return o < n - n / 2 ? o + n / 2 : (o >= N - n / 2 ? o - N + n / 2 : -1);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    int index[Dim];
    std::int64_t source_row = to.locate(row, index);
    bool inside = true;
    for (int d = Dim - 1; d > 0; --d) {
      const int i = source(index[d], from.size[d], to.size[d]);
      inside = inside && i >= 0;
      source_row = source_row * from.size[d] + i;
    }
    Value* out = padded + row * to.columns;
    const Value* in = centred + source_row * from.columns;
    const int half = from.columns / 2, right = inside ? from.columns - half : 0;
    const int left = inside ? to.columns - half : to.columns;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, right), [&](int o) { out[o] = in[o + half]; });
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, right, left), [&](int o) { out[o] = Value(0); });
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, left, to.columns),
                         [&](int o) { out[o] = in[o - left]; });
  }
};

/// The reverse: reads the centred box from the padded one.
template <class Value, int Dim>
struct CropCentre {
  const Value* padded;
  Value* centred;
  Box<Dim> from, to;
  typename RealOf<Value>::type scale;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    int index[Dim];
    std::int64_t source_row = to.locate(row, index);
    for (int d = Dim - 1; d > 0; --d) {
      const int offset = index[d] - to.size[d] / 2;
      source_row = source_row * from.size[d] + (offset < 0 ? offset + from.size[d] : offset);
    }
    Value* out = centred + row * to.columns;
    const Value* in = padded + source_row * from.columns;
    const int half = to.columns / 2, shift = from.columns - half;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, half),
                         [&](int i) { out[i] = in[i + shift] * scale; });
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, half, to.columns),
                         [&](int i) { out[i] = in[i - half] * scale; });
  }
};

/// A centred box fits into a padded one, and `output` is not its own input.
template <int Dim>
void check_padding(const Arguments& arguments, const NamedMemory& output, const NamedMemory& input,
                   const Box<Dim>& centred, const Box<Dim>& padded) {
  const auto sizes = [](const Box<Dim>& box) {
    std::string text = std::to_string(box.batches);
    for (int d = Dim - 1; d >= 0; --d)
      text += " x " + std::to_string(box.size[d]);
    return text;
  };
  bool fits = centred.batches == padded.batches;
  for (int d = 0; d < Dim; ++d)
    fits = fits && centred.size[d] <= padded.size[d];
  arguments.require(fits, output.name,
                    "the batches of the other View and a padded box at least as large as the centred one",
                    [&] { return "centred " + sizes(centred) + ", padded " + sizes(padded); });
  arguments.disjoint({output}, {input});
}

} // namespace Impl

template <class ExecutionSpace, class Centred, class Padded>
void pad_centre(const ExecutionSpace& space, const Centred& centred, const Padded& padded) {
  constexpr int Dim = int(Centred::rank()) - 1;
  using Value = typename Padded::value_type;
  const Array<const Value, typename ExecutionSpace::memory_space> in(centred);
  const Array<Value, typename ExecutionSpace::memory_space> out(padded);
  constexpr Impl::Arguments arguments{"pad_centre"};
  const auto from = Impl::image_box<Dim>(arguments, "centred", in);
  const auto to = Impl::image_box<Dim>(arguments, "padded", out);
  Impl::check_padding(arguments, {"padded", out}, {"centred", in}, from, to);
  const Kokkos::Profiling::ScopedRegion region("Bracewell::pad_centre");
  Impl::for_each_row(space, "Bracewell::pad_centre::write", to.rows(),
                     Impl::PadCentre<Value, Dim>{in.data, out.data, from, to});
}

template <class ExecutionSpace, class Padded, class Centred>
void crop_centre(const ExecutionSpace& space, const Padded& padded, const Centred& centred, double scale) {
  constexpr int Dim = int(Padded::rank()) - 1;
  using Value = typename Centred::value_type;
  const Array<const Value, typename ExecutionSpace::memory_space> in(padded);
  const Array<Value, typename ExecutionSpace::memory_space> out(centred);
  constexpr Impl::Arguments arguments{"crop_centre"};
  const auto from = Impl::image_box<Dim>(arguments, "padded", in);
  const auto to = Impl::image_box<Dim>(arguments, "centred", out);
  Impl::check_padding(arguments, {"centred", out}, {"padded", in}, to, from);
  arguments.finite("scale", scale);
  const Kokkos::Profiling::ScopedRegion region("Bracewell::crop_centre");
  Impl::for_each_row(
      space, "Bracewell::crop_centre::read", to.rows(),
      Impl::CropCentre<Value, Dim>{in.data, out.data, from, to, Impl::real_of<Centred>(scale)});
}

} // namespace Bracewell
