// SPDX-License-Identifier: MIT
#include "kokkos_arrays.hpp"

#include <bracewell/geometry/ctf_gradients.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/filter_gradients.hpp>
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

std::vector<CTFParameters> parameters_of(const ContrastParameters& numbers) {
  std::vector<CTFParameters> parameters;
  for (std::size_t i = 0; i + 9 <= numbers.size(); i += 9)
    parameters.push_back({numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 3], numbers[i + 4],
                          numbers[i + 5], numbers[i + 6], numbers[i + 7], numbers[i + 8]});
  return parameters;
}

/// Waits, as the numbers come from the stack.
Kokkos::View<const CTF*, Space::memory_space> functions(const Space& space,
                                                        const std::vector<CTFParameters>& parameters) {
  return Impl::device_copy(space, "Bracewell::Python::ctfs",
                           std::vector<CTF>(parameters.begin(), parameters.end()));
}

} // namespace

template <>
void Contrast<backend, Real>::evaluate(Queue queue, const ContrastParameters& parameters, double pixel_size,
                                       const Tensor& values) {
  expect_rank("evaluate_ctf", "values", values, 3, "[P, h, w/2+1]");
  const Space space = space_of<backend>(queue);
  evaluate_ctf(space, functions(space, parameters_of(parameters)), pixel_size,
               spectrum_of<Real, 3, Space>(values));
}

template <>
ContrastParameters Contrast<backend, Real>::gradients(Queue queue, const ContrastParameters& numbers,
                                                      double pixel_size, const Tensor& value_gradients) {
  expect_rank("ctf_gradients", "value_gradients", value_gradients, 3, "[P, h, w/2+1]");
  const Space space = space_of<backend>(queue);
  const std::vector<CTFParameters> parameters = parameters_of(numbers);
  const Kokkos::View<CTF*, Space::memory_space> sums("Bracewell::Python::ctf_gradients", parameters.size());
  ctf_gradients(space, functions(space, parameters), pixel_size,
                spectrum_of<const Real, 3, Space>(value_gradients), sums);
  const auto on_host = Kokkos::create_mirror_view(sums);
  Kokkos::deep_copy(space, on_host, sums);
  space.fence("Bracewell::Python: gradients of CTFs are on the host");
  ContrastParameters result;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const CTFParameters g = ctf_parameter_gradients(parameters[p], on_host(p));
    result.insert(result.end(), {g.defocus_u, g.defocus_v, g.defocus_angle, g.voltage, g.spherical_aberration,
                                 g.amplitude_contrast, g.phase_shift, g.b_factor, g.scale});
  }
  return result;
}

template <>
void Contrast<backend, Real>::filter_gradients(Queue queue, const Tensor& projections,
                                               const Tensor& cotangent, const Tensor& gradients) {
  for (const Tensor* tensor : {&cotangent, &gradients})
    same_rank("filter_gradients", tensor == &cotangent ? "cotangent" : "gradients", *tensor, projections);
  const auto sum = [&]<int rank>() {
    Bracewell::filter_gradients(
        space_of<backend>(queue), spectrum_of<const Complex, rank, Space>(projections),
        spectrum_of<const Complex, rank, Space>(cotangent), spectrum_of<Real, rank, Space>(gradients));
  };
  if (projections.rank == 4)
    sum.template operator()<4>();
  else if (projections.rank == 5)
    sum.template operator()<5>();
  else
    Impl::fail("filter_gradients", "projections", "4 or 5 axes", std::to_string(projections.rank));
}

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
