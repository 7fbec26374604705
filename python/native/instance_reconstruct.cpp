// SPDX-License-Identifier: MIT
#include "kokkos_arrays.hpp"

#include <bracewell/geometry/ctf_gradients.hpp>
#include <bracewell/geometry/symmetrise.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/filter_gradients.hpp>
#include <bracewell/reconstruct/fourier_shell_correlation.hpp>
#include <bracewell/reconstruct/normalise.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>
#include <bracewell/reconstruct/rolloff.hpp>
#include <bracewell/reconstruct/signal_and_noise.hpp>
#include <bracewell/reconstruct/weight_equaliser.hpp>

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

/// action.operator()<Kernel>() for the name of a kernel.
template <class Action>
void with_kernel(const char* function, const std::string& interpolation, const Action& action) {
  if (interpolation == "linear")
    action.template operator()<Linear>();
  else if (interpolation == "catmull_rom")
    action.template operator()<CatmullRom>();
  else if (interpolation == "cubic_bspline")
    action.template operator()<CubicBSpline>();
  else
    Impl::fail(function, "interpolation", "linear, catmull_rom or cubic_bspline", interpolation);
}

std::vector<double> numbers_of(const std::vector<SymmetryOperator>& operators) {
  std::vector<double> numbers;
  for (const SymmetryOperator& one : operators) {
    for (int i = 0; i < 9; ++i)
      numbers.push_back(one.rotation(i / 3, i % 3));
    for (int i = 0; i < 3; ++i)
      numbers.push_back(one.shift[static_cast<std::size_t>(i)]);
  }
  return numbers;
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
    with_kernel("correct_rolloff", interpolation,
                [&]<class Kernel>() { Bracewell::correct_rolloff<Kernel>(space, view, sizes); });
  });
}

template <>
void Reconstruct<backend, Real>::normalise(Queue queue, const Tensor& data, const Tensor& weight,
                                           const Tensor& volume, const Tensor& averages, const Tensor& prior,
                                           const NormaliseSettings& settings) {
  same_rank("normalise", "weight", weight, data);
  with_kernel("normalise", settings.interpolation, [&]<class Kernel>() {
    with_dimensions("normalise", "data", data, [&]<int D>() {
      Bracewell::normalise<Kernel>(space_of<backend>(queue), spectrum_of<const Complex, D + 1, Space>(data),
                                   spectrum_of<const Real, D + 1, Space>(weight),
                                   spectrum_of<Complex, D + 1, Space>(volume),
                                   view_of<double, 2, Space>(averages),
                                   {.wiener = settings.wiener,
                                    .floor = settings.floor,
                                    .radius = settings.radius,
                                    .edge = settings.edge},
                                   array_of<const double, Space>(prior));
    });
  });
}

template <>
void Reconstruct<backend, Real>::symmetrise(Queue queue, const Tensor& spectrum, const Tensor& scratch,
                                            bool complex, const std::vector<double>& operators,
                                            const std::string& interpolation, std::optional<double> radius) {
  expect_rank("symmetrise", "spectrum", spectrum, 4, "[B, N, N, N/2+1]");
  same_rank("symmetrise", "scratch", scratch, spectrum);
  std::vector<SymmetryOperator> motions(operators.size() / 12);
  for (std::size_t i = 0; i < operators.size(); ++i) {
    SymmetryOperator& one = motions[i / 12];
    const int element = static_cast<int>(i % 12);
    if (element < 9)
      one.rotation(element / 3, element % 3) = operators[i];
    else
      one.shift[static_cast<std::size_t>(element - 9)] = operators[i];
  }
  const Space space = space_of<backend>(queue);
  const VolumeSymmetry<Space> symmetry(space, motions);
  with_kernel("symmetrise", interpolation, [&]<class Kernel>() {
    if (complex)
      symmetry.template apply<Kernel>(space, spectrum_of<Complex, 4, Space>(spectrum),
                                      spectrum_of<Complex, 4, Space>(scratch), radius);
    else
      symmetry.template apply<Kernel>(space, spectrum_of<Real, 4, Space>(spectrum),
                                      spectrum_of<Real, 4, Space>(scratch), radius);
  });
  space.fence("Bracewell::Python: the operators are used");
}

template <>
void Reconstruct<backend, Real>::half_set_moments(Queue queue, const Tensor& first_data,
                                                  const Tensor& first_weight, const Tensor& second_data,
                                                  const Tensor& second_weight, const Tensor& moments,
                                                  const Tensor& prior) {
  same_rank("half_set_moments", "first_weight", first_weight, first_data);
  same_rank("half_set_moments", "second_data", second_data, first_data);
  same_rank("half_set_moments", "second_weight", second_weight, first_data);
  with_dimensions("half_set_moments", "first_data", first_data, [&]<int D>() {
    Bracewell::half_set_moments(space_of<backend>(queue),
                                spectrum_of<const Complex, D + 1, Space>(first_data),
                                spectrum_of<const Real, D + 1, Space>(first_weight),
                                spectrum_of<const Complex, D + 1, Space>(second_data),
                                spectrum_of<const Real, D + 1, Space>(second_weight),
                                view_of<double, 3, Space>(moments), array_of<const double, Space>(prior));
  });
}

template <>
double Reconstruct<backend, Real>::equalise(Queue queue, const Tensor& weight, const Tensor& divisor,
                                            const Tensor& averages, const Tensor& spectrum,
                                            const Tensor& volume, const Tensor& error, const Tensor& prior,
                                            const EqualiseSettings& settings) {
  expect_rank("equalise", "weight", weight, 4, "[1, D, H, W/2+1]");
  if (settings.box.size() != 3)
    Impl::fail("equalise", "box", "three sizes (d, h, w)", std::to_string(settings.box.size()));
  const Space space = space_of<backend>(queue);
  const WeightEqualiser<Space, Real> equaliser(space,
                                               {static_cast<int>(volume.extents[1]),
                                                static_cast<int>(volume.extents[2]),
                                                static_cast<int>(volume.extents[3])},
                                               {settings.box[0], settings.box[1], settings.box[2]});
  const auto weights = spectrum_of<const Real, 4, Space>(weight);
  const auto divisors = spectrum_of<Real, 4, Space>(divisor);
  const auto spectra = spectrum_of<Complex, 4, Space>(spectrum);
  const auto volumes = view_of<Real, 4, Space>(volume);
  const auto sums = view_of<double, 1, Space>(error);
  double off = 0;
  for (int step = 0; step < settings.steps; ++step) {
    equaliser.improve(space, weights, divisors, view_of<double, 2, Space>(averages), spectra, volumes, sums,
                      array_of<const double, Space>(prior), {.radius = settings.radius, .first = step == 0});
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), sums);
    off = host(1) > 0 ? std::sqrt(host(0) / host(1)) : 0;
    if (off <= settings.even)
      break;
  }
  if (settings.keep_power)
    equaliser.keep_power(space, weights, divisors, spectra, volumes, {.radius = settings.radius});
  space.fence("Bracewell::Python: the equaliser goes");
  return off;
}

template <>
std::vector<std::vector<double>> Reconstruct<backend, Real>::signal_and_noise(
    const std::vector<double>& moments, const std::string& interpolation, std::optional<std::size_t> whole) {
  double energy = 1;
  with_kernel("signal_and_noise", interpolation, [&]<class Kernel>() { energy = kernel_energy<Kernel>(); });
  const SignalAndNoise powers = Bracewell::signal_and_noise(moments, energy, whole);
  return {powers.signal, powers.noise, powers.weight};
}

template <>
std::vector<double> Reconstruct<backend, Real>::wiener_prior(const std::vector<std::vector<double>>& powers,
                                                             double oversampling, double part) {
  return Bracewell::wiener_prior({powers[0], powers[1], powers[2]}, oversampling, part);
}

template <>
std::vector<double> Reconstruct<backend, Real>::symmetry_operators(const std::string& name) {
  std::vector<SymmetryOperator> operators;
  for (const auto& rotation : Bracewell::symmetry_operators(name))
    operators.push_back({rotation});
  return numbers_of(operators);
}

template <>
std::vector<double> Reconstruct<backend, Real>::helical_operators(double rise, double twist, int count,
                                                                  const std::string& group) {
  return numbers_of(Bracewell::helical_operators(rise, twist, count, group));
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
