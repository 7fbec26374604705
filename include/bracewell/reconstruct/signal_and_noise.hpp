// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/reconstruct/shells.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace Bracewell {

/// How many sums half_set_moments makes of a shell.
inline constexpr int half_set_moment_count = 7;

/// Computes sums over the shells of the full spectrum for signal_and_noise, which finds the powers of signal and noise from
/// them. With g = 1 / (W + prior), or 1 without a prior, the sums are
///   Re D1 conj D2 g1 g2,   W1 W2 g1 g2,   |D1 g1|^2 + |D2 g2|^2,   (W1 g1)^2 + (W2 g2)^2,   W1 g1^2 + W2 g2^2,
///   (W1 + W2) / 2,   1.
/// Nothing is divided by a weight that may be small, so directions that were hardly seen hardly count. Begin with the average
/// weights of the shells (shell_averages) for a prior, and take the sums again with what wiener_prior makes of them.
/// @param first_data, second_data      D1 and D2, complex [B, (D,) H, W/2+1], as backproject gathers them of half of the images
/// @param first_weight, second_weight  W1 and W2, real, like the data
/// @param moments  double [B, S, 7], overwritten; S at will
/// @param prior    double [B, S]; optional
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class Data, class Weight, class Moments>
void half_set_moments(const ExecutionSpace& space, const Data& first_data, const Weight& first_weight,
                      const Data& second_data, const Weight& second_weight, const Moments& moments,
                      const Array<const double, typename ExecutionSpace::memory_space>& prior = {});

/// Powers of signal and noise per shell.
struct SignalAndNoise {
  std::vector<double> signal; ///< |F|^2 of the volume; at least 0
  std::vector<double> noise;  ///< of a sample of weight 1; at least 0
  std::vector<double> weight; ///< average of a half set
};

/// Powers of signal and noise from the sums of one batch element. The half sets have the signal in common; the rest is noise.
/// Shells near by count, too, less with distance: up to a sixteenth of the frequency. For the signal they count up to a third
/// of the frequency if it does not exceed eight times its standard error before. A tenth of the signal's power is not taken for
/// noise. Noise that is then less than a thousandth of the signal is none, because samples of noise-free images that meet in
/// one element differ so much.
/// @param moments  [S, 7], as half_set_moments gives them (on the host)
/// @param energy   kernel_energy of the kernel that inserted
/// @param whole    how many shells have samples all around. Shells beyond, at the images' Nyquist limit, are not measured.
/// They take the values of the last of these shells. By default all
/// @throws Error on sums that are not of whole shells, an energy that is not positive and `whole` beyond the shells
inline SignalAndNoise signal_and_noise(std::span<const double> moments, double energy,
                                       std::optional<std::size_t> whole = {});

/// Mean over positions of the sum of a kernel's squared weights in three dimensions: the variance of inserted noise
/// is this mean times the weight.
template <class Kernel>
double kernel_energy() {
  constexpr int steps = 4096; // the midpoint rule; kernels are smooth but at integers
  double sum = 0;
  for (int i = 0; i < steps; ++i) {
    double weights[Kernel::width];
    Kernel::weights((i + 0.5) / steps, weights);
    for (const double weight : weights)
      sum += weight * weight / steps;
  }
  return sum * sum * sum;
}

/// Computes the prior that normalise adds to the weights of each shell: noise / (signal oversampling^3) times the part of the
/// box that has signal. The quotient is the reciprocal of the SSNR in units of the weight. A prior is at most fifty average
/// weights. With more, all directions would be weighed alike, and shells would vanish by chance.
/// @param oversampling  padded over original box: a sample of the original box has its cube of elements
/// @param part          of the box's volume, 0 to 1
/// @throws Error on an oversampling that is not positive and a part out of range
inline std::vector<double> wiener_prior(const SignalAndNoise& powers, double oversampling, double part) {
  constexpr Impl::Arguments arguments{"wiener_prior"};
  constexpr double most = 50;
  arguments.positive("oversampling", oversampling);
  arguments.within("part", part, 0.0, 1.0);
  std::vector<double> prior;
  for (std::size_t s = 0; s < powers.signal.size(); ++s) {
    const double limit = most * 2 * powers.weight[s],
                 denominator = powers.signal[s] * std::pow(oversampling, 3);
    const double asked = powers.noise[s] * part;
    prior.push_back(asked < limit * denominator ? asked / denominator : (asked > 0 ? limit : 0));
  }
  return prior;
}

namespace Impl {

template <class T>
struct HalfSetMoments {
  static constexpr int outputs = half_set_moment_count;
  using Sum = Sums<outputs>;
  const Kokkos::complex<T>*first, *second;
  const T *first_weight, *second_weight;
  const double* prior; ///< or null

  KOKKOS_FUNCTION void add(std::int64_t index, int multiplicity, std::int64_t shell, Sum& sum) const {
    const double w1 = first_weight[index], w2 = second_weight[index];
    const Kokkos::complex<double> d1(first[index]), d2(second[index]);
    double g1 = 1, g2 = 1;
    if (prior) {
      g1 = w1 + prior[shell] > 0 ? 1 / (w1 + prior[shell]) : 0;
      g2 = w2 + prior[shell] > 0 ? 1 / (w2 + prior[shell]) : 0;
    }
    const double m = multiplicity;
    sum.values[0] += m * (d1.real() * d2.real() + d1.imag() * d2.imag()) * g1 * g2;
    sum.values[1] += m * w1 * w2 * g1 * g2;
    sum.values[2] += m * ((d1.real() * d1.real() + d1.imag() * d1.imag()) * g1 * g1 +
                          (d2.real() * d2.real() + d2.imag() * d2.imag()) * g2 * g2);
    sum.values[3] += m * (w1 * w1 * g1 * g1 + w2 * w2 * g2 * g2);
    sum.values[4] += m * (w1 * g1 * g1 + w2 * g2 * g2);
    sum.values[5] += m * (w1 + w2) / 2;
    sum.values[6] += m;
  }
};

/// Moments of shells near one, with weights that fall with distance.
struct SumsNear {
  double value[half_set_moment_count] = {};
  double variance = 0; ///< of the first, as noise makes it

  double signal() const { return value[1] > 0 ? std::max(0.0, value[0] / value[1]) : 0; }
  double error() const { return std::sqrt(variance); }
};

inline SumsNear sums_near(std::span<const double> moments, std::size_t s, std::size_t reach,
                          std::size_t shells) {
  constexpr std::size_t count = half_set_moment_count;
  SumsNear sum;
  for (std::size_t near = s - std::min(s, reach); near < std::min(shells, s + reach + 1); ++near) {
    const double part = 1 - std::abs(double(near) - double(s)) / double(reach + 1);
    const double* const own = &moments[near * count];
    for (std::size_t i = 0; i < count; ++i)
      sum.value[i] += part * own[i];
    // Products of noise of the power |D g|^2 / 2 each; in a box of twice the size one of eight elements is independent.
    if (own[6] > 0)
      sum.variance += part * part * own[2] * own[2] / 4 * (8 / own[6]);
  }
  return sum;
}

} // namespace Impl

template <class ExecutionSpace, class Data, class Weight, class Moments>
void half_set_moments(const ExecutionSpace& space, const Data& first_data, const Weight& first_weight,
                      const Data& second_data, const Weight& second_weight, const Moments& moments,
                      const Array<const double, typename ExecutionSpace::memory_space>& prior) {
  constexpr int Dim = int(Impl::view_of<Data>::rank()) - 1;
  using T = Impl::real_of<Data>;
  using MemorySpace = typename ExecutionSpace::memory_space;
  const Array<const Kokkos::complex<T>, MemorySpace> first(first_data), second(second_data);
  const Array<const T, MemorySpace> weight(first_weight), other_weight(second_weight);
  const Array<double, MemorySpace> out(moments);
  constexpr Impl::Arguments arguments{"half_set_moments"};
  const auto box = Impl::spectrum_box<Dim>(arguments, "first_data", first);
  arguments.same_spectrum("first_weight", weight, first);
  arguments.same_spectrum("second_data", second, first);
  arguments.same_spectrum("second_weight", other_weight, first);
  arguments.disjoint({{"moments", out}}, {{"first_data", first},
                                          {"second_data", second},
                                          {"first_weight", weight},
                                          {"second_weight", other_weight},
                                          {"prior", prior}});
  if (prior)
    arguments.require(out.rank == 3 && prior.rank == 2 && prior.extents[0] == out.extents[0] &&
                          prior.extents[1] == out.extents[1],
                      "prior", "[B, shells] as the moments have", [&] { return prior.shape(); });
  const Kokkos::Profiling::ScopedRegion region("Bracewell::half_set_moments");
  Impl::reduce_shells<Dim>(
      space, arguments, "moments", "Bracewell::half_set_moments::sum", box, out,
      Impl::HalfSetMoments<T>{first.data, second.data, weight.data, other_weight.data, prior.data});
}

inline SignalAndNoise signal_and_noise(std::span<const double> moments, double energy,
                                       std::optional<std::size_t> whole) {
  constexpr Impl::Arguments arguments{"signal_and_noise"};
  constexpr std::size_t count = half_set_moment_count;
  constexpr double sure = 8, not_noise = 0.1, least_noise = 1e-3;
  arguments.require(moments.size() % count == 0, "moments", "seven sums of every shell",
                    [&] { return std::to_string(moments.size()); });
  arguments.positive("energy", energy);
  const std::size_t shells = moments.size() / count, measured = whole.value_or(shells);
  arguments.require(measured <= shells && (measured > 0 || shells == 0), "whole",
                    "1 to " + std::to_string(shells) + " shells", [&] { return std::to_string(measured); });
  SignalAndNoise result;
  double all_signal = 0, all_noise = 0;
  for (std::size_t s = 0; s < measured; ++s) {
    const std::size_t near = std::max<std::size_t>(1, s / 16);
    auto sums = Impl::sums_near(moments, s, near, measured);
    const double own_signal = sums.signal();
    const double rest = sums.value[2] - (1 + not_noise) * sums.value[3] * own_signal;
    result.noise.push_back(sums.value[4] > 0 ? std::max(0.0, rest) / (sums.value[4] * energy) : 0);
    for (std::size_t reach = near + 1; sums.value[0] <= sure * sums.error() && reach <= s / 3; ++reach)
      sums = Impl::sums_near(moments, s, reach, measured);
    result.signal.push_back(sums.signal());
    const double* own = &moments[s * count];
    result.weight.push_back(own[6] > 0 ? own[5] / own[6] : 0);
    all_signal += double(s) * result.signal.back(); // images have as many frequencies in their rings
    all_noise += double(s) * result.noise.back();
  }
  if (all_noise < least_noise * all_signal)
    std::ranges::fill(result.noise, 0.0);
  for (std::vector<double>* curve : {&result.signal, &result.noise, &result.weight})
    curve->resize(shells, curve->empty() ? 0 : curve->back());
  return result;
}

} // namespace Bracewell
