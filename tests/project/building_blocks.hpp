// What docs/building-blocks.md shows: what stands between "// [name" and "// name]" is there, word for word. The tests and the
// benchmark run it.
#pragma once

#include <bracewell/project/building_blocks.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

using namespace Bracewell;

struct Page {
  // [lanczos
  /// Lanczos' windowed sinc of 6 taps, sinc(x) sinc(x/3) for |x| < 3.
  struct Lanczos {
    static constexpr int width = 6;

    template <class T>
    KOKKOS_INLINE_FUNCTION static void weights(T f, T (&w)[width]) {
      for (int i = 0; i < width; ++i) {
        const T x = f + 2 - T(i);
        w[i] = Kokkos::abs(x) < 3 ? sinc(x) * sinc(x / 3) : T(0);
      }
    }
    template <class T>
    KOKKOS_INLINE_FUNCTION static void derivatives(T f, T (&d)[width]) {
      for (int i = 0; i < width; ++i) {
        const T x = f + 2 - T(i);
        d[i] = Kokkos::abs(x) < 3 ? slope(x) * sinc(x / 3) + sinc(x) * slope(x / 3) / 3 : T(0);
      }
    }
    template <class T>
    KOKKOS_INLINE_FUNCTION static T transform(T v) { // of the kernel, by the trapezium rule
      T sum = T(0.5);
      for (int i = 1; i < 96; ++i)
        sum += sinc(T(i) / 32) * sinc(T(i) / 96) * Kokkos::cos(Kokkos::numbers::pi_v<T> * v * T(i) / 16);
      return sum / 16;
    }

    template <class T>
    KOKKOS_INLINE_FUNCTION static T sinc(T x) {
      const T y = Kokkos::numbers::pi_v<T> * x;
      return x == 0 ? T(1) : Kokkos::sin(y) / y;
    }
    template <class T>
    KOKKOS_INLINE_FUNCTION static T slope(T x) { // of sinc, near 0 by its series
      const T y = Kokkos::numbers::pi_v<T> * x;
      if (Kokkos::abs(x) < T(0.01))
        return -Kokkos::numbers::pi_v<T> * y / 3 * (1 - y * y / 10 * (1 - y * y / 28));
      return (Kokkos::cos(y) - sinc(x)) / x;
    }
  };
  // lanczos]

  template <class Value, class Space>
  using View = Kokkos::View<Value, Kokkos::LayoutRight, Space>;

  // [project
  template <class Kernel, class Space, class T>
  static void project(const Space& space, const HalfSpectrum<const T, 3>& volume, T oversampling,
                      const View<const T***, Space>& matrices, const View<const T**, Space>& shifts,
                      const HalfSpectrumLayout<2>& box, const View<Kokkos::complex<T>**, Space>& images) {
    using Block = SampleBlock<Space, T, 2>;
    const Sampler<Kernel, T, 3> sample(volume);
    for_each_sample<T>(
        space, "project", box, std::int64_t(images.extent(0)),
        KOKKOS_LAMBDA(const PoseSamples<Space, T, 2>& samples) {
          const Pose<T, 2, 3> pose(&matrices(samples.pose, 0, 0), &shifts(samples.pose, 0), oversampling,
                                   box);
          samples.for_each([&](const Block& block) {
            T q[3][Block::size];
            Kokkos::complex<T> value[Block::size], phase[Block::size];
            pose.position(block, q);
            pose.phase(block, phase);
            if (block.inside > 0)
              sample(q, value);
            for (int i = 0; i < block.count; ++i)
              images(samples.pose, block.element + i) =
                  i < block.inside ? value[i] * phase[i] : Kokkos::complex<T>(0);
          });
        });
  }
  // project]

  // [backproject
  /// Adds to `copies` of a volume that follow each other: one per thread on hosts, one on GPUs.
  template <class Kernel, class Space, class T>
  static void backproject(const Space& space, const View<const Kokkos::complex<T>**, Space>& images,
                          const HalfSpectrumLayout<2>& box, const View<const T***, Space>& matrices,
                          const View<const T**, Space>& shifts, T oversampling,
                          const HalfSpectrum<T, 3>& copies) {
    const Inserter<Kernel, T, 3, Mates::Both> insert(copies);
    insert_samples(
        space, "backproject", box, std::int64_t(images.extent(0)), matrices.data(), shifts.data(),
        oversampling, insert, KOKKOS_LAMBDA(std::int64_t pose, const int(&k)[2], std::int64_t element) {
          return T(0.5) * T(box.multiplicity(k[0])) * images(pose, element);
        });
  }
  // backproject]

  template <class Kernel, class Space, class T>
  static void pose_gradients(const Space& space, const HalfSpectrum<const T, 3>& volume, T oversampling,
                             const View<const T***, Space>& matrices, const View<const T**, Space>& shifts,
                             const HalfSpectrumLayout<2>& box,
                             const View<const Kokkos::complex<T>**, Space>& cotangent,
                             const View<T***, Space>& of_matrices, const View<T**, Space>& of_shifts) {
    const Sampler<Kernel, T, 3> sample(volume);
    for_each_sample<T>(
        space, "gradients", box, std::int64_t(cotangent.extent(0)),
        KOKKOS_LAMBDA(const PoseSamples<Space, T, 2>& samples) {
          const auto p = samples.pose;
          const Pose<T, 2, 3> pose(&matrices(p, 0, 0), &shifts(p, 0), oversampling, box);
          PoseSums<T, 2, 3> sums;
          samples.for_each([&](const SampleBlock<Space, T, 2>& block) {
            for (int i = 0; i < block.inside; ++i) {
              int k[2];
              T q[3];
              Kokkos::complex<T> slope[3];
              block.frequency(i, k);
              pose.position(k, q);
              const auto value = sample(q, slope);
              sums.add(k, cotangent(p, block.element + i) * Kokkos::conj(pose.phase(k)), value, slope);
            }
          });
          sums.atomic_add_to(&of_matrices(p, 0, 0), &of_shifts(p, 0), oversampling, box);
        });
  }
};
