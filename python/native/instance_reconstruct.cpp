// SPDX-License-Identifier: MIT
#include "kokkos_arrays.hpp"

#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/reconstruct/fourier_shell_correlation.hpp>
#include <bracewell/reconstruct/normalise.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>
#include <bracewell/reconstruct/rolloff.hpp>

namespace Bracewell::Python {
namespace {

using Real = BRACEWELL_PYTHON_REAL;
constexpr Backend backend = Backend::BRACEWELL_PYTHON_BACKEND;
using Space = SpaceOf<backend>;
using Complex = Kokkos::complex<Real>;

/// action.operator()<D>() for arrays [B, (D,) H, W].
template <class Action>
void with_dimensions(const char* function, const char* argument, const Tensor& tensor, const Action& action) {
  if (tensor.rank == 3)
    action.template operator()<2>();
  else if (tensor.rank == 4)
    action.template operator()<3>();
  else
    Impl::fail(function, argument, "[B, H, W] or [B, D, H, W]", std::to_string(tensor.rank) + " axes");
}

void same_rank(const char* function, const char* argument, const Tensor& tensor, const Tensor& other) {
  if (tensor.rank != other.rank)
    Impl::fail(function, argument, std::to_string(other.rank) + " axes", std::to_string(tensor.rank));
}

} // namespace

template <>
void Reconstruct<backend, Real>::pad_centre(Queue queue, const Tensor& centred, const Tensor& padded) {
  same_rank("pad_centre", "padded", padded, centred);
  with_dimensions("pad_centre", "centred", centred, [&]<int D>() {
    Bracewell::pad_centre(space_of<backend>(queue), view_of<const Real, D + 1, Space>(centred),
                          view_of<Real, D + 1, Space>(padded));
  });
}

template <>
void Reconstruct<backend, Real>::crop_centre(Queue queue, const Tensor& padded, const Tensor& centred,
                                             double scale) {
  same_rank("crop_centre", "centred", centred, padded);
  with_dimensions("crop_centre", "padded", padded, [&]<int D>() {
    Bracewell::crop_centre(space_of<backend>(queue), view_of<const Real, D + 1, Space>(padded),
                           view_of<Real, D + 1, Space>(centred), scale);
  });
}

template <>
void Reconstruct<backend, Real>::correct_rolloff(Queue queue, const Tensor& volume,
                                                 const std::vector<int>& padded,
                                                 const std::string& interpolation) {
  if (int(padded.size()) != volume.rank - 1)
    Impl::fail("correct_rolloff", "padded", std::to_string(volume.rank - 1) + " sizes",
               std::to_string(padded.size()));
  with_dimensions("correct_rolloff", "volume", volume, [&]<int D>() {
    std::array<int, D> sizes;
    std::copy(padded.begin(), padded.end(), sizes.begin());
    const auto view = view_of<Real, D + 1, Space>(volume);
    const auto space = space_of<backend>(queue);
    if (interpolation == "linear")
      Bracewell::correct_rolloff<Linear>(space, view, sizes);
    else if (interpolation == "catmull_rom")
      Bracewell::correct_rolloff<CatmullRom>(space, view, sizes);
    else if (interpolation == "cubic_bspline")
      Bracewell::correct_rolloff<CubicBSpline>(space, view, sizes);
    else
      Impl::fail("correct_rolloff", "interpolation", "linear, catmull_rom or cubic_bspline", interpolation);
  });
}

template <>
void Reconstruct<backend, Real>::normalise(Queue queue, const Tensor& data, const Tensor& weight,
                                           const Tensor& volume, const Tensor& averages, double wiener,
                                           double floor, std::optional<double> radius) {
  same_rank("normalise", "weight", weight, data);
  with_dimensions("normalise", "data", data, [&]<int D>() {
    Bracewell::normalise(space_of<backend>(queue), spectrum_of<const Complex, D + 1, Space>(data),
                         spectrum_of<const Real, D + 1, Space>(weight),
                         spectrum_of<Complex, D + 1, Space>(volume), view_of<double, 2, Space>(averages),
                         {.wiener = wiener, .floor = floor, .radius = radius});
  });
}

template <>
void Reconstruct<backend, Real>::fourier_shell_correlation(Queue queue, const Tensor& first,
                                                           const Tensor& second, const Tensor& correlation) {
  same_rank("fourier_shell_correlation", "second", second, first);
  with_dimensions("fourier_shell_correlation", "first", first, [&]<int D>() {
    Bracewell::fourier_shell_correlation(
        space_of<backend>(queue), spectrum_of<const Complex, D + 1, Space>(first),
        spectrum_of<const Complex, D + 1, Space>(second), view_of<double, 2, Space>(correlation));
  });
}

} // namespace Bracewell::Python
