// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/atomic.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/interpolation/kernel.hpp>
#include <bracewell/project/choose.hpp>
#include <bracewell/project/detail/insertion/insert_patches.hpp>
#include <bracewell/project/detail/insertion/insertion_block.hpp>
#include <bracewell/project/detail/samples.hpp>
#include <bracewell/project/detail/stencil.hpp>
#include <bracewell/project/detail/tiles.hpp>
#include <bracewell/project/detail/window_block.hpp>
#include <bracewell/project/options.hpp>
#include <bracewell/project/pose_sums.hpp>
#include <bracewell/rfft/layout.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace Bracewell {

/// Samples a half spectrum at any position, in kernels of your own: F(q), the sum over taps t of w(q - t) F(t). Its transpose
/// is the Inserter of the same kernel and mates. Positions (x, y[, z]) are in elements. A position gives NaN if it is not
/// finite, or so far out that its fraction is lost (2^21 in float, 2^50 in double).
/// \code
/// const Sampler<CatmullRom, float, 3> sample{spectrum};
/// Kokkos::parallel_for(n, KOKKOS_LAMBDA(int i) {
///   const float q[3] = {x(i), y(i), z(i)};
///   values(i) = sample(q);
/// });
/// \endcode
template <class Kernel, class T, int D, Mates mates = Mates::Single>
struct Sampler {
  using Complex = Kokkos::complex<T>; ///< of values

  HalfSpectrum<const T, D> spectrum; ///< what is sampled

  /// @throws Error on axes of fewer than 4 elements or than the kernel has taps, and on a kernel that is none (on hosts; a
  /// device checks nothing)
  KOKKOS_FUNCTION explicit Sampler(const HalfSpectrum<const T, D>& spectrum_) : spectrum(spectrum_) {
    KOKKOS_IF_ON_HOST((Impl::check_blocks<Kernel, T>("Sampler", spectrum.layout);))
  }

  /// F(q).
  KOKKOS_INLINE_FUNCTION Complex operator()(const T (&q)[D]) const {
    T position[D];
    for (int d = 0; d < D; ++d)
      position[d] = q[d];
    Impl::Stencil<Kernel, D, mates, T> stencil;
    if (stencil.place(spectrum.layout, position, true))
      return stencil.gather(spectrum.data);
    constexpr T nan = Kokkos::Experimental::quiet_NaN_v<T>;
    return {nan, nan};
  }

  /// F(q) and its gradient dF/dq.
  KOKKOS_INLINE_FUNCTION Complex operator()(const T (&q)[D], Complex (&gradient)[D]) const {
    T position[D];
    for (int d = 0; d < D; ++d)
      position[d] = q[d];
    Impl::Stencil<Kernel, D, mates, T> stencil;
    if (stencil.place(spectrum.layout, position, true))
      return stencil.gather(spectrum.data, gradient);
    constexpr T nan = Kokkos::Experimental::quiet_NaN_v<T>;
    for (Complex& one : gradient)
      one = Complex(nan, nan);
    return {nan, nan};
  }

  /// F at N positions. Hosts take SampleBlock::size of them at once by vectors, which is about twice as fast.
  template <int N>
  KOKKOS_INLINE_FUNCTION void operator()(const T (&q)[D][N], Complex (&values)[N]) const {
#if !defined(__CUDA_ARCH__) && !defined(__HIP_DEVICE_COMPILE__)
    if constexpr (Impl::is_block<T, N>)
      return Impl::sample_block<Kernel, mates>(spectrum, q, values);
#endif
    for (int i = 0; i < N; ++i) {
      T one[D];
      for (int d = 0; d < D; ++d)
        one[d] = q[d][i];
      values[i] = (*this)(one);
    }
  }

private:
  static constexpr Impl::KernelFault fault = Impl::kernel_fault<Kernel, T>;
  BRACEWELL_EXPECTS_KERNEL(fault, "Sampler");
};

/// Adds values to a half spectrum around any position, in kernels of your own: F(t) += w(q - t) v for every tap t. It is the
/// transpose of the Sampler of the same kernel and mates. Positions without a place, for which a Sampler gives NaN, add
/// nothing, and are told by false.
///
/// Plain additions are for memory that one thread alone adds to: `of_copy` is an Inserter into another copy, for instance a
/// thread's own. Atomic ones are for memory that is shared.
template <class Kernel, class T, int D, Mates mates = Mates::Single>
struct Inserter {
  using Complex = Kokkos::complex<T>; ///< of values

  HalfSpectrum<T, D> spectrum; ///< what is added to
  T* weight = nullptr;         ///< of the same layout: what weights are added to; null: none
  KernelWeights kernel_weights = KernelWeights::Signed; ///< what carries the weights

  /// @throws Error as Sampler does
  KOKKOS_FUNCTION explicit Inserter(const HalfSpectrum<T, D>& spectrum_, T* weight_ = nullptr,
                                    KernelWeights kernel_weights_ = KernelWeights::Signed)
      : spectrum(spectrum_), weight(weight_), kernel_weights(kernel_weights_) {
    KOKKOS_IF_ON_HOST((Impl::check_blocks<Kernel, T>("Inserter", spectrum.layout);))
  }

  /// The Inserter into copy `index` of those that follow this one in memory.
  KOKKOS_FUNCTION Inserter of_copy(std::int64_t index) const {
    Inserter copy = *this;
    copy.spectrum = spectrum.batch(index);
    copy.weight = weight ? weight + index * spectrum.layout.elements() : nullptr;
    return copy;
  }

  /// By plain additions.
  KOKKOS_INLINE_FUNCTION bool add(const T (&q)[D], const Complex& value, T weight_of_value = 0) const {
    return add_by(q, value, weight_of_value, [](auto* address, const auto& values) {
      for (const auto& one : values)
        *address++ += one;
    });
  }
  /// By atomic additions.
  KOKKOS_INLINE_FUNCTION bool atomic_add(const T (&q)[D], const Complex& value, T weight_of_value = 0) const {
    return add_by(q, value, weight_of_value,
                  [](auto* address, const auto& values) { Impl::atomic_add_neighbours(address, values); });
  }
  /// By additions of your own: add(address, values) has an array of values for neighbours in memory, complex numbers of the
  /// spectrum or T of the weights.
  template <class Add>
  KOKKOS_INLINE_FUNCTION bool add_by(const T (&q)[D], const Complex& value, T weight_of_value,
                                     const Add& add) const {
    T position[D];
    for (int d = 0; d < D; ++d)
      position[d] = q[d];
    Impl::Stencil<Kernel, D, mates, T> stencil;
    if (!stencil.place(spectrum.layout, position, true))
      return false;
    stencil.scatter(spectrum.data, value, add);
    if (weight) {
      if (kernel_weights == KernelWeights::Absolute)
        stencil.make_absolute();
      stencil.scatter(weight, weight_of_value, add);
    }
    return true;
  }

  /// The first `count` of N values by plain additions, by vectors on hosts. Returns how many had a place.
  template <int N>
  KOKKOS_INLINE_FUNCTION int add(const T (&q)[D][N], const Complex (&values)[N], int count) const {
    const T weights[N] = {};
    return add(q, values, weights, count);
  }
  /// The same with weights.
  template <int N>
  KOKKOS_INLINE_FUNCTION int add(const T (&q)[D][N], const Complex (&values)[N], const T (&weights)[N],
                                 int count) const {
#if !defined(__CUDA_ARCH__) && !defined(__HIP_DEVICE_COMPILE__)
    if constexpr (Impl::is_block<T, N>)
      return Impl::insert_block<Kernel, mates>(spectrum, weight, kernel_weights == KernelWeights::Absolute, q,
                                               values, weights, count);
#endif
    int placed = 0;
    for (int i = 0; i < count; ++i) {
      T one[D];
      for (int d = 0; d < D; ++d)
        one[d] = q[d][i];
      placed += add(one, values[i], weights[i]);
    }
    return placed;
  }

private:
  static constexpr Impl::KernelFault fault = Impl::kernel_fault<Kernel, T>;
  BRACEWELL_EXPECTS_KERNEL(fault, "Inserter");
};

/// The factor exp(-2 pi i k.s/n) of a shift s in pixels of a box n, and its derivatives.
template <class T, int M>
struct ShiftPhase {
  T turns[M];        ///< -s/n (x, y[, z]), turns per unit of frequency
  T inverse_size[M]; ///< 1/n

  /// @param shift  in the order of the array's axes ((depth,) row, column), as in Poses; null: none
  KOKKOS_INLINE_FUNCTION ShiftPhase(const T* shift, const HalfSpectrumLayout<M>& box) {
    for (int c = 0; c < M; ++c) {
      inverse_size[c] = T(1) / static_cast<T>(box.size[c]);
      turns[c] = shift ? -inverse_size[c] * shift[M - 1 - c] : T(0);
    }
  }
  /// At frequency k.
  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> operator()(const int (&k)[M]) const {
    return Impl::phase_of(turns, k);
  }
  /// The same, and its derivatives with respect to the shift, in the order of the array's axes.
  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> operator()(const int (&k)[M],
                                                       Kokkos::complex<T> (&derivative)[M]) const {
    const Kokkos::complex<T> phase = (*this)(k);
    for (int c = 0; c < M; ++c) {
      const T slope = -2 * Kokkos::numbers::pi_v<T> * inverse_size[c] * T(k[c]);
      derivative[M - 1 - c] = Kokkos::complex<T>(-slope * phase.imag(), slope * phase.real());
    }
    return phase;
  }
};

/// Neighbouring samples of a row of a projection, k, k + (1, 0), ...: on hosts as many as vectors take, on GPUs one.
template <class Space, class T, int M>
struct SampleBlock {
  /// Room for samples.
  static constexpr int size = Impl::is_host<Space> ? 64 / sizeof(T) : 1;

  int k[M];             ///< frequency of the first
  int count;            ///< samples that are stored
  int inside;           ///< of them those with |k| <= radius, which come first
  std::int64_t element; ///< of the first within its projection

  /// Frequency of sample i; of those beyond the radius, of the last within it.
  KOKKOS_INLINE_FUNCTION void frequency(int i, int (&own)[M]) const {
    for (int c = 0; c < M; ++c)
      own[c] = k[c];
    own[0] += Kokkos::min(i, Kokkos::max(inside - 1, 0));
  }
};

/// One pose: maps frequencies of a projection to positions q = oversampling A k in the reconstruction, and gives the phases
/// of its shift. PoseSums has the derivatives.
template <class T, int M, int D>
struct Pose {
  T matrix[D][M];         ///< oversampling A
  ShiftPhase<T, M> shift; ///< its phases

  /// @param matrix_  A, [d, d] as in Poses
  /// @param shift_   [m] as in Poses; null: none
  /// @param box      full sizes of the projection
  KOKKOS_INLINE_FUNCTION Pose(const T* matrix_, const T* shift_, T oversampling,
                              const HalfSpectrumLayout<M>& box)
      : shift(shift_, box) {
    for (int d = 0; d < D; ++d)
      for (int c = 0; c < M; ++c)
        matrix[d][c] = oversampling * matrix_[d * D + c];
  }

  /// Position of frequency k.
  KOKKOS_INLINE_FUNCTION void position(const int (&k)[M], T (&q)[D]) const { Impl::multiply(matrix, k, q); }
  /// exp(-2 pi i k.s/n).
  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> phase(const int (&k)[M]) const { return shift(k); }

  /// Positions of a block.
  template <class Block>
  KOKKOS_INLINE_FUNCTION void position(const Block& block, T (&q)[D][Block::size]) const {
    for (int d = 0; d < D; ++d) {
      T start = 0;
      for (int c = 1; c < M; ++c)
        start += matrix[d][c] * static_cast<T>(block.k[c]);
      const int most = Kokkos::max(block.inside - 1, 0);
      for (int i = 0; i < Block::size; ++i)
        q[d][i] = start + matrix[d][0] * static_cast<T>(block.k[0] + Kokkos::min(i, most));
    }
  }
  /// Phases of a block.
  template <class Block>
  KOKKOS_INLINE_FUNCTION void phase(const Block& block, Kokkos::complex<T> (&phases)[Block::size]) const {
    T across = 0, parts[2][Block::size];
    for (int c = 1; c < M; ++c)
      across += static_cast<T>(block.k[c]) * shift.turns[c];
    for (int i = 0; i < Block::size; ++i) { // parts apart, which compilers vectorise
      const Kokkos::complex<T> one =
          Impl::unit_phase(static_cast<T>(block.k[0] + i) * shift.turns[0] + across);
      parts[0][i] = one.real();
      parts[1][i] = one.imag();
    }
    for (int i = 0; i < Block::size; ++i)
      phases[i] = Kokkos::complex<T>(parts[0][i], parts[1][i]);
  }
};

/// Some of the stored samples of one projection, which one thread takes (for_each_sample).
template <class Space, class T, int M>
class PoseSamples {
public:
  std::int64_t pose; ///< of the projection

  /// Calls visit(const SampleBlock<Space, T, M>&) for all of them.
  template <class Visit>
  KOKKOS_INLINE_FUNCTION void for_each(const Visit& visit) const {
    using Block = SampleBlock<Space, T, M>;
    const auto& layout = tiles_.layout;
    if constexpr (Impl::is_host<Space>) {
      const int columns = layout.columns();
      for (std::int64_t row = begin_; row < end_; ++row) {
        Block block;
        layout.frequency(row * columns, block.k);
        std::int64_t left = squared_radius_;
        for (int c = 1; c < M; ++c)
          left -= std::int64_t(block.k[c]) * block.k[c];
        const int end = left < 0 ? 0 : Kokkos::min(columns, 1 + static_cast<int>(Kokkos::sqrt(double(left))));
        for (int column = 0; column < columns; column += Block::size) {
          block.k[0] = column;
          block.count = Kokkos::min(int(Block::size), columns - column);
          block.inside = Kokkos::max(0, Kokkos::min(block.count, end - column));
          block.element = row * columns + column;
          visit(block);
        }
      }
    } else {
      tiles_.template for_each<Impl::tile_lanes<Space>>(static_cast<int>(begin_), static_cast<int>(end_),
                                                        [&](const int(&k)[M], auto element) {
                                                          Block block;
                                                          std::int64_t squared = 0;
                                                          for (int c = 0; c < M; ++c) {
                                                            block.k[c] = k[c];
                                                            squared += std::int64_t(k[c]) * k[c];
                                                          }
                                                          block.count = 1;
                                                          block.inside = squared <= squared_radius_;
                                                          block.element = static_cast<std::int64_t>(element);
                                                          visit(block);
                                                        });
    }
  }

  /// For for_each_sample.
  KOKKOS_FUNCTION PoseSamples(std::int64_t pose_, const Impl::Tiles<M>& tiles, int squared_radius,
                              std::int64_t begin, std::int64_t end)
      : pose(pose_), tiles_(tiles), squared_radius_(squared_radius), begin_(begin), end_(end) {}

private:
  Impl::Tiles<M> tiles_;
  int squared_radius_;
  std::int64_t begin_, end_; ///< on hosts rows, on GPUs a tile and a lane
};

/// Calls body(const PoseSamples<Space, T, M>&) until all stored samples of all projections have been visited, in the order
/// that suits the caches. Does not wait.
/// @param label   of the kernel
/// @param box     full sizes of a projection (x, y[, z])
/// @param radius  SampleBlock::inside counts samples with |k| <= radius; by default half the smallest side
/// @param body    KOKKOS_LAMBDA(const PoseSamples<Space, T, M>& samples)
template <class T, int M, class Space, class Body>
void for_each_sample(const Space& space, const char* label, const HalfSpectrumLayout<M>& box,
                     std::int64_t poses, const Body& body, std::optional<double> radius = std::nullopt);

/// Adds a value of every sample with |k| <= radius of all projections around its position, at the speed of backproject:
/// F(t) += w(q - t) v exp(2 pi i k.s/n) for every tap t, with q = oversampling A k. On GPUs neighbouring samples are summed
/// before they are added. On hosts every thread adds to a copy of its own. Does not wait. In float every addition to an element
/// rounds it: give some 10^4 poses at a time, and add their volumes in double. backproject does so by itself.
/// \code
/// insert_samples(space, "backproject", box, poses, matrices, shifts, 1.f, Inserter<CatmullRom, float, 3, Mates::Both>{volume},
///                KOKKOS_LAMBDA(std::int64_t pose, const int(&k)[2], std::int64_t element) {
///                  return 0.5f * box.multiplicity(k[0]) * images(pose, element);
///                });
/// \endcode
/// @param label     of the kernels
/// @param box       full sizes of a projection (x, y[, z])
/// @param matrices  [poses, d, d], A as in Poses
/// @param shifts    [poses, m], s as in Poses; null: none
/// @param target    into the volume on GPUs; on hosts into the first of space.concurrency() copies, which follow each other
///                  and the caller sums. Data and weights are added to what is there
/// @param values    values(pose, k, element) gives v, or a WeightedValue if the target has weights; element counts the
///                  stored samples of a projection. It may be called more than once for a sample
/// @param radius    by default half the smallest side
/// @throws Error    on sides beyond 1 ... 32768, a negative number of poses, a radius beyond 0 ... 1e9, weights without a
///                  place and a place without weights
template <class Kernel, Mates mates, class T, int M, int D, class Space, class Values>
void insert_samples(const Space& space, const char* label, const HalfSpectrumLayout<M>& box,
                    std::int64_t poses, const T* matrices, const T* shifts, T oversampling,
                    const Inserter<Kernel, T, D, mates>& target, const Values& values,
                    std::optional<double> radius = std::nullopt);

namespace Impl {

/// Checks what samples are visited; the largest |k|^2.
template <int M>
int squared_radius(const char* function, const HalfSpectrumLayout<M>& box, std::int64_t poses,
                   const std::optional<double>& radius) {
  const Arguments arguments{function};
  for (int c = 0; c < M; ++c)
    arguments.within("box", box.size[c], 1, 32768);
  arguments.at_least("poses", poses, std::int64_t(0));
  const double limit = radius.value_or(*std::min_element(box.size, box.size + M) / 2.0);
  arguments.within("radius", limit, 0.0, 1e9);
  return static_cast<int>(std::min(std::floor(limit * limit * (1 + 1e-12)), 1e9));
}

/// What insert_samples does on GPUs.
template <class Kernel, class Space, class Amplitudes, class T>
void insert_computed(const Space& space, const char* label, const Amplitudes& amplitudes,
                     const InsertionTarget<T>& target) {
  const auto& samples = amplitudes.samples;
  if constexpr (Amplitudes::projected_dimensions == 2)
    if (choose_insertion({.dimensions = Amplitudes::dimensions,
                          .projection_dimensions = 2,
                          .width = Kernel::width,
                          .batches = 1,
                          .poses = samples.poses,
                          .projection_elements = samples.projection.elements(),
                          .threads = space.concurrency()}) == Insertion::Patches) {
      InsertPatches<Space, Kernel, Amplitudes, Amplitudes::weighted>(space, amplitudes, target)
          .launch(space, {label, "::patches"});
      return;
    }
  InsertAtomic<Kernel, Amplitudes>{amplitudes, target}.launch(space, {label, "::atomic"});
}

/// The body of insert_samples on hosts.
template <class Space, class Kernel, class T, int M, int D, Mates mates, class Values>
struct InsertIntoCopies {
  using Block = SampleBlock<Space, T, M>;

  HalfSpectrumLayout<M> box;
  const T *matrices, *shifts;
  T oversampling;
  Inserter<Kernel, T, D, mates> first;
  Values values;
  Kokkos::Experimental::UniqueToken<Space> threads;

  void operator()(const PoseSamples<Space, T, M>& samples) const {
    const Bracewell::Pose<T, M, D> pose(matrices + samples.pose * D * D,
                                        shifts ? shifts + samples.pose * M : nullptr, oversampling, box);
    const int thread = threads.acquire();
    const auto own = first.of_copy(thread);
    samples.for_each([&](const Block& block) {
      if (block.inside == 0)
        return;
      T q[D][Block::size], weight[Block::size];
      Kokkos::complex<T> value[Block::size];
      pose.position(block, q);
      pose.phase(block, value);
      for (int i = 0; i < block.inside; ++i) {
        int k[M];
        block.frequency(i, k);
        const WeightedValue<T> given(values(samples.pose, k, block.element + i));
        value[i] = given.value * Kokkos::conj(value[i]);
        weight[i] = given.weight;
      }
      own.add(q, value, weight, block.inside);
    });
    threads.release(thread);
  }
};

/// The kernel of for_each_sample.
template <class Space, class T, int M, class Body>
struct SampleLoop {
  Body body;
  Tiles<M> tiles;
  int squared_radius, parts;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if constexpr (is_host<Space>) {
      const std::int64_t rows = tiles.layout.elements() / tiles.layout.columns(), part = i % parts;
      body(PoseSamples<Space, T, M>(i / parts, tiles, squared_radius, rows * part / parts,
                                    rows * (part + 1) / parts));
    } else {
      constexpr int lanes = tile_lanes<Space>;
      const std::int64_t item = i / lanes, pose = divide(item, tiles.per_pose);
      body(PoseSamples<Space, T, M>(pose, tiles, squared_radius, item - pose * tiles.per_pose, i % lanes));
    }
  }
};

} // namespace Impl

template <class T, int M, class Space, class Body>
void for_each_sample(const Space& space, const char* label, const HalfSpectrumLayout<M>& box,
                     std::int64_t poses, const Body& body, std::optional<double> radius) {
  const int squared_radius = Impl::squared_radius("for_each_sample", box, poses, radius);
  if (poses == 0)
    return;
  if constexpr (Impl::is_host<Space>) {
    const std::int64_t rows = box.elements() / box.columns();
    const int parts = static_cast<int>(std::clamp<std::int64_t>(8 * space.concurrency() / poses, 1, rows));
    using Policy =
        Kokkos::RangePolicy<Space, Kokkos::Schedule<Kokkos::Dynamic>, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for(label, Policy(space, 0, poses * parts).set_chunk_size(1),
                         Impl::SampleLoop<Space, T, M, Body>{body, {box, 1, 1, 1}, squared_radius, parts});
  } else {
    const auto tiles = Impl::Tiles<M>::make(space, box, poses);
    Kokkos::parallel_for(label,
                         Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                             space, 0, poses * tiles.per_pose * Impl::tile_lanes<Space>),
                         Impl::SampleLoop<Space, T, M, Body>{body, tiles, squared_radius, 1});
  }
}

template <class Kernel, Mates mates, class T, int M, int D, class Space, class Values>
void insert_samples(const Space& space, const char* label, const HalfSpectrumLayout<M>& box,
                    std::int64_t poses, const T* matrices, const T* shifts, T oversampling,
                    const Inserter<Kernel, T, D, mates>& target, const Values& values,
                    std::optional<double> radius) {
  using Amplitudes = Impl::ComputedAmplitudes<T, M, D, mates, Values>;
  const int squared_radius = Impl::squared_radius("insert_samples", box, poses, radius);
  if (Amplitudes::weighted != (target.weight != nullptr))
    Impl::fail("insert_samples", "target",
               Amplitudes::weighted ? "weights for the WeightedValue of each sample"
                                    : "no weights, since values gives none",
               Amplitudes::weighted ? "none" : "some");
  if (poses == 0)
    return;
  if constexpr (Impl::is_host<Space>) {
    for_each_sample<T>(space, label, box, poses,
                       Impl::InsertIntoCopies<Space, Kernel, T, M, D, mates, Values>{
                           box, matrices, shifts, oversampling, target, values,
                           Kokkos::Experimental::UniqueToken<Space>(space)},
                       radius);
  } else {
    Impl::Samples<T, M, D> samples{};
    samples.projection = box;
    samples.reconstruction = target.spectrum.layout;
    samples.batches = 1;
    samples.poses = poses;
    samples.matrices = {matrices, 0, D * D};
    samples.shifts = {shifts, 0, M};
    samples.oversampling = oversampling;
    samples.squared_radius = squared_radius;
    samples.radius = static_cast<T>(std::sqrt(static_cast<double>(squared_radius)));
    samples.reach = std::max(4, Kernel::width / 2);
    for (int c = 0; c < M; ++c)
      samples.inverse_size[c] = T(1) / static_cast<T>(box.size[c]);
    Impl::insert_computed<Kernel>(
        space, label, Amplitudes{samples, values},
        Impl::InsertionTarget<T>{.data = target.spectrum.data,
                                 .weight = target.weight,
                                 .absolute = target.kernel_weights == KernelWeights::Absolute});
  }
}

} // namespace Bracewell
