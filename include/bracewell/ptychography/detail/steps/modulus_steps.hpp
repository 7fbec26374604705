// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/options.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Sums from which the lengths of least squares follow; a is the object's or the probe's direction, b the other.
struct LengthSums {
  double right = 0, own = 0, cross = 0; ///< Re <chi, a>, <a, a>, Re <a, b>

  KOKKOS_INLINE_FUNCTION LengthSums& operator+=(const LengthSums& other) {
    right += other.right, own += other.own, cross += other.cross;
    return *this;
  }
};

/// direction = -factor gradient / ((1 - alpha) S + alpha max S), in place of the gradient. Values beyond the weights'
/// share them with the first ones: modes of the probe. Zero where there are no weights.
template <class T>
struct PreconditionDirection {
  Kokkos::complex<T>* gradient;
  const Kokkos::complex<T>* weights; ///< S, its real part
  std::int64_t pixels;               ///< of the weights
  const double* greatest;            ///< max S
  T factor, alpha;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const T divisor = (1 - alpha) * weights[i % pixels].real() + alpha * static_cast<T>(*greatest);
    gradient[i] *= divisor > 0 ? -factor / divisor : T(0);
  }
};

/// Greatest real part.
template <class T>
struct GreatestWeight {
  const Kokkos::complex<T>* weights;

  KOKKOS_FUNCTION void operator()(std::int64_t i, double& greatest) const {
    greatest = Kokkos::max(greatest, double(weights[i].real()));
  }
};

/// Sums over the pixels of a direction d, whose value times its divisor is sum conj(other) chi. With `crossing`, sum_j
/// sum_l conj(p) dp at the pixels of the object, also Re conj(d) O of it.
template <class T>
struct SumLengths {
  const Kokkos::complex<T>*direction, *weights, *object, *crossing;
  std::int64_t pixels; ///< of the weights
  const double* greatest;
  T alpha;

  KOKKOS_FUNCTION void operator()(std::int64_t i, LengthSums& sums) const {
    const Kokkos::complex<T> d = direction[i];
    const double square = double(d.real()) * d.real() + double(d.imag()) * d.imag(),
                 weight = weights[i % pixels].real();
    sums.right += square * ((1 - double(alpha)) * weight + double(alpha) * *greatest);
    sums.own += square * weight;
    if (crossing) {
      const Kokkos::complex<T> other = object[i] * crossing[i];
      sums.cross += double(d.real()) * other.real() + double(d.imag()) * other.imag();
    }
  }
};

/// Solves the two normal equations; a direction that is not there, or zero, has length zero.
struct SolveLengths {
  const LengthSums* sums; ///< of object and probe
  double* lengths;        ///< of object and probe

  KOKKOS_FUNCTION void operator()(int) const {
    constexpr double ridge = 1 + 1e-9; // directions that are parallel on the detector share the way
    const double oo = ridge * sums[0].own, pp = ridge * sums[1].own, op = sums[0].cross;
    const double determinant = oo * pp - op * op;
    lengths[0] = lengths[1] = 0;
    if (determinant > 0) {
      lengths[0] = (pp * sums[0].right - op * sums[1].right) / determinant;
      lengths[1] = (oo * sums[1].right - op * sums[0].right) / determinant;
    } else if (oo > 0) {
      lengths[0] = sums[0].right / oo;
    } else if (pp > 0) {
      lengths[1] = sums[1].right / pp;
    }
  }
};

/// O += rate length direction for an object by amplitude and phase, which goes on where it is: no turn is lost.
template <class T>
struct MoveObject {
  const Kokkos::complex<T>* direction;
  T *amplitude, *phase;
  const double* length; ///< or null: 1
  double rate;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const T factor = static_cast<T>(length ? rate * *length : rate), cosine = Kokkos::cos(phase[i]),
            sine = Kokkos::sin(phase[i]), re = direction[i].real(), im = direction[i].imag();
    const T along = amplitude[i] + factor * (cosine * re + sine * im),
            across = factor * (cosine * im - sine * re);
    amplitude[i] = Kokkos::sqrt(along * along + across * across);
    phase[i] += Kokkos::atan2(across, along);
  }
};

/// p += rate length direction.
template <class T>
struct MoveProbe {
  const Kokkos::complex<T>* direction;
  Kokkos::complex<T>* probe;
  const double* length; ///< or null: 1
  double rate;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    probe[i] += static_cast<T>(length ? rate * *length : rate) * direction[i];
  }
};

/// Steps towards exit waves with the measured moduli (PtychographySteps::Projections and LeastSquares), from the gradients of
/// the amplitude loss. With psi' the exit wave whose modulus on the detector is the measured one, G_psi = -(psi' - psi) / factor.
template <class Space, class T>
class ModulusSteps {
  using Complex = Kokkos::complex<T>;
  using Memory = typename Space::memory_space;
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  template <class Value>
  using View = Kokkos::View<Value, Kokkos::LayoutRight, Memory>;

public:
  /// @param lengths  whether least squares give the lengths of steps
  ModulusSteps(const Space& space, const PtychographyShape& shape, double alpha, bool lengths)
      : alpha_(static_cast<T>(alpha)),
        illumination_(make<Complex**>(space, "illumination", shape.object[0], shape.object[1])),
        crossing_(make<Complex**>(space, "crossing", lengths ? shape.object[0] : 0, shape.object[1])),
        transmission_(make<Complex**>(space, "transmission", shape.probe, shape.probe)),
        greatest_(make<double*>(space, "greatest", 2)), lengths_(make<double*>(space, "lengths", 2)),
        sums_(make<LengthSums*>(space, "length_sums", 2)), least_squares_(lengths) {}

  /// Of the latest step: of object and probe.
  const View<double*>& lengths() const { return lengths_; }

  std::size_t memory_bytes() const {
    return bytes_of(illumination_, crossing_, transmission_, greatest_, lengths_, sums_);
  }
  static std::size_t bytes_needed(const PtychographyShape& shape, bool lengths) {
    const auto object = static_cast<std::size_t>(shape.object[0] * shape.object[1]),
               window = static_cast<std::size_t>(shape.probe) * static_cast<std::size_t>(shape.probe);
    return sizeof(Complex) * ((lengths ? 2 : 1) * object + window) + 4 * sizeof(double) +
           2 * sizeof(LengthSums);
  }

  /// Moves object and probe by rates times their directions, which take the place of the gradients; a rate of zero
  /// leaves them.
  /// @param overlap       overlap(a, b, sum): what PtychographyLoss::overlap gives
  /// @param transmission  the same of PtychographyLoss::transmission
  template <class Overlap, class Transmission>
  void move(const Space& space, double factor, const View<Complex**>& object,
            const View<Complex**>& object_gradient, const View<T**>& amplitude, const View<T**>& phase,
            double object_rate, const View<Complex***>& probe, const View<Complex***>& probe_gradient,
            double probe_rate, const Overlap& overlap, const Transmission& transmission) const {
    const bool both = object_rate > 0 && probe_rate > 0;
    if (least_squares_)
      fill(space, "Bracewell::PtychographySolver::no_lengths", sums_.data(), 2, LengthSums{});
    if (object_rate > 0) {
      overlap(probe, probe, illumination_);
      precondition(space, 0, factor, object_gradient, illumination_);
    }
    if (probe_rate > 0) {
      transmission(object, transmission_);
      precondition(space, 1, factor, probe_gradient, transmission_);
    }
    if (least_squares_ && both)
      overlap(probe, probe_gradient, crossing_);
    if (least_squares_ && object_rate > 0)
      sum(space, 0, object_gradient, illumination_, object.data(), both ? crossing_.data() : nullptr);
    if (least_squares_ && probe_rate > 0)
      sum(space, 1, probe_gradient, transmission_, nullptr, nullptr);
    if (least_squares_)
      launch_kernel("Bracewell::PtychographySolver::solve_lengths", Range(space, 0, 1),
                    SolveLengths{sums_.data(), lengths_.data()});
    const double* const length = least_squares_ ? lengths_.data() : nullptr;
    if (object_rate > 0)
      launch_kernel(
          "Bracewell::PtychographySolver::move_object", Range(space, 0, amplitude.size()),
          MoveObject<T>{object_gradient.data(), amplitude.data(), phase.data(), length, object_rate});
    if (probe_rate > 0)
      launch_kernel(
          "Bracewell::PtychographySolver::move_probe", Range(space, 0, probe.size()),
          MoveProbe<T>{probe_gradient.data(), probe.data(), length ? length + 1 : nullptr, probe_rate});
  }

private:
  template <class Value, class... Extents>
  static View<Value> make(const Space& space, const char* name, Extents... extents) {
    return device_zeros<Value>(space, {"Bracewell::PtychographySolver::", name}, extents...);
  }

  template <class Gradient>
  void precondition(const Space& space, int which, double factor, const Gradient& gradient,
                    const View<Complex**>& weights) const {
    const auto pixels = static_cast<std::int64_t>(weights.size());
    Kokkos::parallel_reduce("Bracewell::PtychographySolver::greatest_weight", Range(space, 0, pixels),
                            GreatestWeight<T>{weights.data()},
                            Kokkos::Max<double, Memory>(Kokkos::subview(greatest_, which)));
    launch_kernel("Bracewell::PtychographySolver::direction", Range(space, 0, gradient.size()),
                  PreconditionDirection<T>{gradient.data(), weights.data(), pixels, greatest_.data() + which,
                                           static_cast<T>(factor), alpha_});
  }

  template <class Direction>
  void sum(const Space& space, int which, const Direction& direction, const View<Complex**>& weights,
           const Complex* object, const Complex* crossing) const {
    Kokkos::parallel_reduce("Bracewell::PtychographySolver::sum_lengths", Range(space, 0, direction.size()),
                            SumLengths<T>{direction.data(), weights.data(), object, crossing,
                                          static_cast<std::int64_t>(weights.size()), greatest_.data() + which,
                                          alpha_},
                            Kokkos::subview(sums_, which));
  }

  T alpha_;
  View<Complex**> illumination_, crossing_, transmission_;
  View<double*> greatest_, lengths_;
  View<LengthSums*> sums_;
  bool least_squares_;
};

} // namespace Bracewell::Impl
