// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/reconstruct/shells.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <array>
#include <cmath>
#include <optional>

namespace Bracewell {

/// Options of WeightEqualiser::improve.
struct EqualiseOptions {
  /// Frequencies with |k| > radius are left out, in periods per box width: by default half the width.
  std::optional<double> radius = std::nullopt;
  bool first = false; ///< begin: with the averages over shells, whatever divisor holds
};

/// Corrects gridding by iterating on the weights (Pipe & Menon, Magn. Reson. Med. 41 (1999) 179; RELION's way). It looks
/// for a divisor Q of the data. The weights divided by Q are one on average around every frequency:
///   Q <- Q |blur(W / Q)|^1.5
/// The map is cropped from its padded box, so only averages over the neighbourhood that the crop mixes count. data / Q
/// takes neighbours by their weights; data / W would take all of them as equally good. The blur is the product with
/// exp(-(2.5 x/n)^2) about the map's centre. The first step has the power 1. The power 1.5 of the others saves a third of the
/// steps. The quotient of the error's two sums tells when to stop: at 0.0004 weights are within 2 % of one. A map takes data / Q
/// by normalise, with Q for its weight.
///
/// Movable. improve is const; calls that can overlap need scratch of their own (and, on GPUs, an equaliser each).
template <class ExecutionSpace, class T>
class WeightEqualiser {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;

public:
  /// @param padded  {D, H, W} of the real volumes
  /// @param box     {d, h, w} of the map that will be cropped from them
  /// @throws Error on boxes that are larger than the padded ones, and where FFT does
  WeightEqualiser(const ExecutionSpace& space, const std::array<int, 3>& padded,
                  const std::array<int, 3>& box);

  /// One step.
  /// @param weight    W, real [1, D, H, W/2+1], not negative; kept
  /// @param divisor   Q, like weight; improved. At least a millionth of itself is left in a step
  /// @param averages  double [1, S]: overwritten with the averages of weight over shells in the first step, read in others
  /// @param spectrum  complex, like weight; overwritten
  /// @param volume    real [1, D, H, W]; overwritten
  /// @param error     double [2]: overwritten with two sums from before the step, with the same weight for every shell: W / Q
  /// times (blur(W / Q) - 1)^2, and W / Q. The root of their quotient tells how far weights are from one
  /// @param prior     double [1, S], added to the weights of each shell; optional
  /// @throws Error on shapes that do not fit and shared memory
  template <class Weight, class Divisor, class Averages, class Spectrum, class Volume>
  void improve(const ExecutionSpace& space, const Weight& weight, const Divisor& divisor,
               const Averages& averages, const Spectrum& spectrum, const Volume& volume,
               const Array<double, MemorySpace>& error, const Array<const double, MemorySpace>& prior = {},
               const EqualiseOptions& options = {}) const;

  /// Changes the divisor Q of a half map so that each direction gets the power that the signal has in the whole map: Q becomes
  /// Q sqrt(h (1 + h) / 2). Here h = blur(W / Q) is the part of the signal that Q alone leaves of a direction. In directions that few
  /// views see, half maps with the new divisor then have noise. From their correlation c follows the correlation of the whole map with
  /// the truth, sqrt(2 c / (1 + c)), even if views are spread unevenly. Half maps with the old divisor hide such directions.
  /// @param weight    W, as improve had it; kept
  /// @param divisor   Q, as improve leaves it; overwritten. A thousandth is the least h
  /// @param spectrum, volume  as in improve; overwritten
  /// @param options   the same radius as in improve
  /// @throws Error on shapes that do not fit and shared memory
  template <class Weight, class Divisor, class Spectrum, class Volume>
  void keep_power(const ExecutionSpace& space, const Weight& weight, const Divisor& divisor,
                  const Spectrum& spectrum, const Volume& volume, const EqualiseOptions& options = {}) const;

private:
  Impl::Box<3> check(const Impl::Arguments& arguments, const Array<const T, MemorySpace>& weight,
                     const Array<T, MemorySpace>& divisor, const Array<Complex, MemorySpace>& spectrum,
                     const Array<T, MemorySpace>& volume) const {
    const auto box = Impl::spectrum_box<3>(arguments, "weight", weight);
    arguments.require(box.batches == 1 && box.size[0] == padded_[2] && box.size[1] == padded_[1] &&
                          box.size[2] == padded_[0],
                      "weight", "one half spectrum of the padded box", [&] { return weight.shape(); });
    arguments.same_spectrum("divisor", divisor, weight);
    arguments.same_spectrum("spectrum", spectrum, weight);
    arguments.shape("volume", volume, {1, padded_[0], padded_[1], padded_[2]});
    return box;
  }

  /// spectrum becomes blur(spectrum).
  void blur(const ExecutionSpace& space, const char* label, Impl::Box<3> box,
            const Array<Complex, MemorySpace>& spectrum, const Array<T, MemorySpace>& volume) const;

  std::array<int, 3> padded_;
  Kokkos::View<T*, MemorySpace> factors_; ///< of x, y and z
  FFT<ExecutionSpace, 3, Complex, T> backward_;
  FFT<ExecutionSpace, 3, T, Complex> forward_;
};

namespace Impl {

/// spectrum = (W + prior) / Q; the first time Q is the average of its shell.
template <class T>
struct DivideWeights {
  const T* weight;
  T* divisor;
  const double *averages, *prior;
  Kokkos::complex<T>* spectrum;
  Box<3> box;
  Shells<3> radii;
  int shells;
  double squared_radius;
  bool first;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    int index[3];
    box.locate(row, index);
    const double squared = radii.squared(index, box);
    const std::int64_t begin = row * box.columns;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, box.columns), [&](int x) {
      const int shell = first || prior ? Kokkos::min(radii.shell(x, squared), shells - 1) : 0;
      const T added = prior ? T(prior[shell]) : T(0);
      const T own = weight[begin + x] + added;
      if (first)
        divisor[begin + x] = T(averages[shell]) + added;
      const bool counts = squared + double(x) * x <= squared_radius && own > 0;
      spectrum[begin + x] = counts && divisor[begin + x] > 0 ? own / divisor[begin + x] : T(0);
    });
  }
};

template <class T>
struct KeepPower {
  T* divisor;
  const Kokkos::complex<T>* kept;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const T h = Kokkos::clamp(kept[i].real(), T(1e-3), T(1));
    divisor[i] *= Kokkos::sqrt(h * (1 + h) / 2);
  }
};

/// Multiplies by factors of x, y and z, which follow each other in a table.
template <class T>
struct BlurWeights {
  T* values;
  Box<3> box;
  const T* factors;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    int index[3];
    box.locate(row, index);
    const T of_row = factors[box.size[0] + index[1]] * factors[box.size[0] + box.size[1] + index[2]];
    T* const own = values + row * box.columns;
    const T* const along = factors;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, box.columns),
                         [&](int i) { own[i] *= of_row * along[i]; });
  }
};

/// Q times what is left of W / Q, and how far that is from one.
template <class ExecutionSpace, class T>
struct ImproveDivisor {
  static constexpr int rows_per_team = 16;
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  const T* weight;
  T* divisor;
  const double* prior;
  const Kokkos::complex<T>* blurred;
  Box<3> box;
  Shells<3> radii;
  int shells;
  double squared_radius;
  bool begins;

  KOKKOS_FUNCTION void operator()(const Member& member, Sums<2>& sum) const {
    const std::int64_t first = std::int64_t(member.league_rank()) * rows_per_team;
    const int count = static_cast<int>(Kokkos::min(std::int64_t(rows_per_team), box.rows() - first));
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, count), [&](int i) {
      const std::int64_t row = first + i;
      int index[3];
      box.locate(row, index);
      const double squared = radii.squared(index, box);
      Sums<2> of_row;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(member, box.columns),
          [&](int x, Sums<2>& partial) {
            improve(row * box.columns + x, x, squared + double(x) * x, partial);
          },
          of_row);
      Kokkos::single(Kokkos::PerThread(member), [&] { sum += of_row; });
    });
  }

  KOKKOS_INLINE_FUNCTION void improve(std::int64_t i, int x, double squared, Sums<2>& sum) const {
    const T own = prior ? weight[i] + T(prior[Kokkos::min(radii.shell(0, squared), shells - 1)]) : weight[i];
    const T from = divisor[i];
    if (!(squared <= squared_radius && own > 0 && from > 0))
      return;
    const T around = Kokkos::max(T(1e-6), Kokkos::abs(blurred[i].real()));
    const double part = (x == 0 || 2 * x == box.size[0] ? 1 : 2) * double(own / from) / (1 + squared);
    sum.values[0] += part * (double(around) - 1) * (double(around) - 1);
    sum.values[1] += part;
    divisor[i] = from * (begins ? around : around * Kokkos::sqrt(around));
  }
};

} // namespace Impl

template <class ExecutionSpace, class T>
WeightEqualiser<ExecutionSpace, T>::WeightEqualiser(const ExecutionSpace& space,
                                                    const std::array<int, 3>& padded,
                                                    const std::array<int, 3>& box)
    : padded_(padded), backward_(space, padded), forward_(space, padded) {
  constexpr Impl::Arguments arguments{"WeightEqualiser"};
  for (std::size_t d = 0; d < 3; ++d)
    arguments.within("box", box[d], 1, padded[d]);
  const auto count = std::size_t(padded[0]) + std::size_t(padded[1]) + std::size_t(padded[2]);
  factors_ = Kokkos::View<T*, MemorySpace>(
      Kokkos::view_alloc(space, std::string("Bracewell::WeightEqualiser::factors"),
                         Kokkos::WithoutInitializing),
      count);
  const auto host = Kokkos::create_mirror_view(Kokkos::WithoutInitializing, factors_);
  std::size_t at = 0;
  for (const std::size_t axis : {std::size_t(2), std::size_t(1), std::size_t(0)})
    for (int i = 0; i < padded[axis]; ++i) {
      const double x = 2.5 * HalfSpectrumLayout<3>::frequency(i, padded[axis]) / box[axis];
      host(at++) = T(std::exp(-x * x) / padded[axis]);
    }
  Kokkos::deep_copy(space, factors_, host);
  space.fence("Bracewell::WeightEqualiser"); // the host's copy goes
}

template <class ExecutionSpace, class T>
void WeightEqualiser<ExecutionSpace, T>::blur(const ExecutionSpace& space, const char* label,
                                              Impl::Box<3> box, const Array<Complex, MemorySpace>& spectrum,
                                              const Array<T, MemorySpace>& volume) const {
  backward_.execute(space, spectrum, volume);
  box.columns = box.size[0];
  Impl::for_each_row(space, label, box.rows(), Impl::BlurWeights<T>{volume.data, box, factors_.data()});
  forward_.execute(space, volume, spectrum);
}

template <class ExecutionSpace, class T>
template <class Weight, class Divisor, class Averages, class Spectrum, class Volume>
void WeightEqualiser<ExecutionSpace, T>::improve(const ExecutionSpace& space, const Weight& weight,
                                                 const Divisor& divisor, const Averages& averages,
                                                 const Spectrum& spectrum, const Volume& volume,
                                                 const Array<double, MemorySpace>& error,
                                                 const Array<const double, MemorySpace>& prior,
                                                 const EqualiseOptions& options) const {
  const Array<const T, MemorySpace> weights(weight);
  const Array<T, MemorySpace> divisors(divisor), real(volume);
  const Array<double, MemorySpace> means(averages);
  const Array<Complex, MemorySpace> complex(spectrum);
  constexpr Impl::Arguments arguments{"WeightEqualiser::improve"};
  const auto box = check(arguments, weights, divisors, complex, real);
  arguments.require(means.rank == 2 && means.extents[0] == 1 && means.extents[1] > 0, "averages",
                    "[1, at least one shell]", [&] { return means.shape(); });
  arguments.shape("error", error, {2});
  if (prior)
    arguments.same_shape("prior", prior, means);
  arguments.disjoint(
      {{"divisor", divisors}, {"averages", means}, {"spectrum", complex}, {"volume", real}, {"error", error}},
      {{"weight", weights}, {"prior", prior}});
  const double radius = options.radius.value_or(box.size[0] / 2.0);
  arguments.within("options.radius", radius, 0.0, 1e9);
  const Kokkos::Profiling::ScopedRegion region("Bracewell::WeightEqualiser::improve");
  if (options.first)
    Impl::reduce_shells<3>(space, arguments, "averages", "Bracewell::WeightEqualiser::improve::average", box,
                           means, Impl::MeanOfShell<T>{weights.data});
  const auto shells = static_cast<int>(means.extents[1]);
  const Impl::Shells<3> radii(box);
  const double squared_radius = radius * radius * (1 + 1e-12);
  Impl::for_each_row(space, "Bracewell::WeightEqualiser::improve::divide", box.rows(),
                     Impl::DivideWeights<T>{weights.data, divisors.data, means.data, prior.data, complex.data,
                                            box, radii, shells, squared_radius, options.first});
  blur(space, "Bracewell::WeightEqualiser::improve::blur", box, complex, real);
  using Improve = Impl::ImproveDivisor<ExecutionSpace, T>;
  using Result = Kokkos::View<Impl::Sums<2>, MemorySpace, Kokkos::MemoryUnmanaged>;
  const auto league = static_cast<int>((box.rows() + Improve::rows_per_team - 1) / Improve::rows_per_team);
  const int threads = Impl::is_host<ExecutionSpace> ? 1 : 8, lanes = Impl::is_host<ExecutionSpace> ? 1 : 32;
  Kokkos::parallel_reduce("Bracewell::WeightEqualiser::improve::multiply",
                          Kokkos::TeamPolicy<ExecutionSpace>(space, league, threads, lanes),
                          Improve{weights.data, divisors.data, prior.data, complex.data, box, radii, shells,
                                  squared_radius, options.first},
                          Result(reinterpret_cast<Impl::Sums<2>*>(error.data)));
}

template <class ExecutionSpace, class T>
template <class Weight, class Divisor, class Spectrum, class Volume>
void WeightEqualiser<ExecutionSpace, T>::keep_power(const ExecutionSpace& space, const Weight& weight,
                                                    const Divisor& divisor, const Spectrum& spectrum,
                                                    const Volume& volume,
                                                    const EqualiseOptions& options) const {
  const Array<const T, MemorySpace> weights(weight);
  const Array<T, MemorySpace> divisors(divisor), real(volume);
  const Array<Complex, MemorySpace> complex(spectrum);
  constexpr Impl::Arguments arguments{"WeightEqualiser::keep_power"};
  const auto box = check(arguments, weights, divisors, complex, real);
  arguments.disjoint({{"divisor", divisors}, {"spectrum", complex}, {"volume", real}}, {{"weight", weights}});
  const double radius = options.radius.value_or(box.size[0] / 2.0);
  arguments.within("options.radius", radius, 0.0, 1e9);
  const Kokkos::Profiling::ScopedRegion region("Bracewell::WeightEqualiser::keep_power");
  Impl::for_each_row(space, "Bracewell::WeightEqualiser::keep_power::divide", box.rows(),
                     Impl::DivideWeights<T>{weights.data, divisors.data, nullptr, nullptr, complex.data, box,
                                            Impl::Shells<3>(box), 0, radius * radius * (1 + 1e-12), false});
  blur(space, "Bracewell::WeightEqualiser::keep_power::blur", box, complex, real);
  Kokkos::parallel_for("Bracewell::WeightEqualiser::keep_power::multiply",
                       Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(
                           space, 0, box.rows() * box.columns),
                       Impl::KeepPower<T>{divisors.data, complex.data});
}

} // namespace Bracewell
