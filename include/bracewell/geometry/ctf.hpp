// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/row_loop.hpp>
#include <bracewell/rfft/layout.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <cmath>
#include <type_traits>

namespace Bracewell {

/// Microscope parameters of an image, in the units of RELION's STAR files.
struct CTFParameters {
  double defocus_u;                ///< Angstrom, positive for underfocus
  double defocus_v;                ///< Angstrom
  double defocus_angle = 0;        ///< degrees from the x axis to the direction of defocus_u
  double voltage = 300;            ///< kV
  double spherical_aberration = 0; ///< mm
  double amplitude_contrast = 0;   ///< fraction, at most 1 in magnitude
  double phase_shift = 0;          ///< degrees, of a phase plate
  double b_factor = 0;             ///< square Angstrom: envelope exp(-B k^2 / 4)
  double scale = 1;                ///< factor on the whole function
};

/// Relativistic wavelength of electrons in Angstrom; voltage in kV.
/// @throws Error on a voltage that is not positive
inline double electron_wavelength(double voltage) {
  Impl::Arguments{"electron_wavelength"}.positive("voltage", voltage);
  const double V = 1000 * voltage;
  return 12.2643247 / std::sqrt(V * (1 + 0.978466e-6 * V));
}

/// Contrast transfer function, positive at low frequency:
///   scale exp(-B k^2 / 4) sin(pi lambda dz k^2 - (pi/2) Cs lambda^3 k^4 + asin(Q0) + phase shift),
///   dz = (U + V)/2 + (U - V)/2 cos 2(angle(k) - defocus angle)
/// (RELION; Mindell & Grigorieff, J. Struct. Biol. 142 (2003) 334). The phase, hundreds of radians, is kept
/// in double, so values in float are good to float precision.
struct CTF {
  // The phase in half turns is xx x^2 + xy x y + yy y^2 + quartic k^4 + offset at frequency k = (x, y).
  double xx = 0;      ///< of the phase
  double xy = 0;      ///< of the phase
  double yy = 0;      ///< of the phase
  double quartic = 0; ///< of the phase
  double offset = 0;  ///< of the phase
  double decay = 0;   ///< exponent of the envelope, per k^2
  double scale = 0;   ///< factor on the whole function

  /// Zero everywhere.
  CTF() = default;

  /// @throws Error on parameters that are not finite, voltages outside 1 to 10000 kV and |amplitude contrast| > 1
  explicit CTF(const CTFParameters& p) {
    constexpr Impl::Arguments arguments{"CTF"};
    arguments.finite("defocus_u", p.defocus_u);
    arguments.finite("defocus_v", p.defocus_v);
    arguments.finite("defocus_angle", p.defocus_angle);
    arguments.within("voltage", p.voltage, 1.0, 10000.0, " kV");
    arguments.finite("spherical_aberration", p.spherical_aberration);
    arguments.within("amplitude_contrast", p.amplitude_contrast, -1.0, 1.0);
    arguments.finite("phase_shift", p.phase_shift);
    arguments.finite("b_factor", p.b_factor);
    arguments.finite("scale", p.scale);
    constexpr double pi = Kokkos::numbers::pi;
    const double lambda = electron_wavelength(p.voltage);
    const double mean = lambda * (p.defocus_u + p.defocus_v) / 2;
    const double half_difference = lambda * (p.defocus_u - p.defocus_v) / 2;
    const double twice_angle = p.defocus_angle * (pi / 90);
    // k^2 cos 2(angle(k) - a) = (x^2 - y^2) cos 2a + 2 x y sin 2a: no angle of k is needed.
    xx = mean + half_difference * std::cos(twice_angle);
    yy = mean - half_difference * std::cos(twice_angle);
    xy = 2 * half_difference * std::sin(twice_angle);
    quartic = -0.5 * (p.spherical_aberration * 1e7) * lambda * lambda * lambda;
    offset = std::asin(p.amplitude_contrast) / pi + p.phase_shift / 180;
    decay = p.b_factor / 4;
    scale = p.scale;
  }

  /// Value in precision T at frequency (x, y), in 1/Angstrom along columns and rows.
  template <class T>
  KOKKOS_FUNCTION T value(double x, double y) const {
    return envelope<T>(x * x + y * y) * oscillation<T>(x, y);
  }

  /// The same without the envelope.
  template <class T>
  KOKKOS_FUNCTION T oscillation(double x, double y) const {
    return T(scale) * sine_of_half_turns(half_turns<T>(x, y));
  }

  /// Derivatives of the value with respect to the members above, each in its own place.
  template <class T>
  KOKKOS_FUNCTION CTF derivatives(double x, double y) const {
    const double k2 = x * x + y * y;
    const T phase = Kokkos::numbers::pi_v<T> * half_turns<T>(x, y), height = envelope<T>(k2),
            sine = height * Kokkos::sin(phase);
    const double slope = Kokkos::numbers::pi * scale * double(height * Kokkos::cos(phase));
    CTF d;
    d.xx = slope * x * x;
    d.xy = slope * x * y;
    d.yy = slope * y * y;
    d.quartic = slope * k2 * k2;
    d.offset = slope;
    d.decay = -k2 * scale * double(sine);
    d.scale = double(sine);
    return d;
  }

private:
  /// The phase in half turns, in [-1, 1].
  template <class T>
  KOKKOS_FUNCTION T half_turns(double x, double y) const {
    const double k2 = x * x + y * y;
    const double phase = xx * x * x + xy * x * y + yy * y * y + quartic * k2 * k2 + offset;
    return T(phase - 2 * Kokkos::nearbyint(phase / 2)); // raises no flag: compilers vectorise it
  }

  template <class T>
  KOKKOS_FUNCTION T envelope(double k2) const {
    return decay == 0 ? T(1) : Kokkos::exp(T(-decay * k2));
  }

  /// sin(pi t) for t in [-1, 1]. In float by its series, to rounding: compilers make vectors of that.
  template <class T>
  KOKKOS_FUNCTION static T sine_of_half_turns(T t) {
    if constexpr (std::is_same_v<T, float>) {
      const float size = Kokkos::abs(t), rest = 1 - size; // sin(pi - x) = sin x
      const float r = Kokkos::copysign(rest < size ? rest : size, t), s = r * r;
      return r * (3.14159265f +
                  s * (-5.16771278f +
                       s * (2.55016404f +
                            s * (-0.599264529f +
                                 s * (0.0821458866f + s * (-0.00737043095f + s * 0.000466302806f))))));
    } else {
      return Kokkos::sin(Kokkos::numbers::pi_v<T> * t);
    }
  }
};

/// Fills half spectra with the CTF of each particle.
/// @param ctfs        CTF [P]
/// @param pixel_size  in Angstrom
/// @param values      real [P, h, w/2+1], or more leading axes whose product is P; overwritten
/// @throws Error on shapes that do not fit, shared memory and a pixel size that is not positive
template <class ExecutionSpace, class Values>
void evaluate_ctf(const ExecutionSpace& space,
                  const Kokkos::View<const CTF*, typename ExecutionSpace::memory_space>& ctfs,
                  double pixel_size, const Values& values);

/// Multiplies half spectra by the CTF of each particle, in place: images of a specimen, or what goes into
/// backproject, with weights CTF^2.
/// @param ctfs        CTF [P]
/// @param pixel_size  in Angstrom
/// @param spectra     complex [P, h, w/2+1], or more leading axes whose product is P
/// @param weights     real, like spectra; overwritten with CTF^2; may be left out
/// @throws Error on shapes that do not fit, shared memory and a pixel size that is not positive
template <class ExecutionSpace, class Spectra>
void apply_ctf(const ExecutionSpace& space,
               const Kokkos::View<const CTF*, typename ExecutionSpace::memory_space>& ctfs, double pixel_size,
               const Spectra& spectra,
               const Array<Impl::real_of<Spectra>, typename ExecutionSpace::memory_space>& weights = {});

namespace Impl {

/// use(column, value of the CTF there in precision T) for the columns of a row, by the lanes of a team's thread. Compilers
/// vectorise only loops without the envelope's exponential.
template <class T, class Member, class Use>
KOKKOS_INLINE_FUNCTION void for_each_ctf_value(const Member& member, const CTF& ctf, double step, double y,
                                               int columns, const Use& use) {
  const CTF own = ctf; // nothing that `use` writes is in it
  const auto range = Kokkos::ThreadVectorRange(member, columns);
  if (own.decay == 0)
    Kokkos::parallel_for(range, [&](int x) { use(x, own.template oscillation<T>(x * step, y)); });
  else
    Kokkos::parallel_for(range, [&](int x) { use(x, own.template value<T>(x * step, y)); });
}

/// A row of the frequencies of projections [..., h, w/2+1] and the CTF that belongs to it.
struct CTFRows {
  const CTF* ctfs;
  Box<2> box;
  double pixel_size;

  struct Row {
    CTF ctf;
    double step, y;

    template <class T, class Member, class Use>
    KOKKOS_INLINE_FUNCTION void for_each(const Member& member, int columns, const Use& use) const {
      for_each_ctf_value<T>(member, ctf, step, y, columns, use);
    }
  };

  KOKKOS_FUNCTION Row operator()(std::int64_t row) const {
    int index[2];
    const std::int64_t particle = box.locate(row, index);
    const int ky = HalfSpectrumLayout<2>::frequency(index[1], box.size[1]);
    return {ctfs[particle], 1 / (box.size[0] * pixel_size), ky / (box.size[1] * pixel_size)};
  }
};

template <class T>
struct EvaluateCTF {
  CTFRows rows;
  T* values;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t r, const Member& member) const {
    const CTFRows::Row row = rows(r);
    T* out = values + r * rows.box.columns;
    row.template for_each<T>(member, rows.box.columns, [=](int x, T value) { out[x] = value; });
  }
};

template <class T>
struct ApplyCTF {
  CTFRows rows;
  Kokkos::complex<T>* spectra;
  T* weights; ///< null when not wanted

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t r, const Member& member) const {
    const CTFRows::Row row = rows(r);
    const std::int64_t begin = r * rows.box.columns;
    Kokkos::complex<T>* const out = spectra + begin;
    if (weights) {
      T* const weight = weights + begin;
      row.template for_each<T>(member, rows.box.columns, [=](int x, T value) {
        out[x] *= value;
        weight[x] = value * value;
      });
    } else {
      row.template for_each<T>(member, rows.box.columns, [=](int x, T value) { out[x] *= value; });
    }
  }
};

template <class Value, class MemorySpace>
CTFRows ctf_rows(const Arguments& arguments, const char* argument,
                 const Kokkos::View<const CTF*, MemorySpace>& ctfs, const Array<Value, MemorySpace>& spectra,
                 double pixel_size) {
  const Box<2> box = spectrum_box<2>(arguments, argument, spectra);
  const auto count = static_cast<std::int64_t>(ctfs.extent(0));
  arguments.require(
      count == box.batches, "ctfs", [&] { return "[" + std::to_string(box.batches) + "]"; },
      [&] { return "[" + std::to_string(count) + "]"; });
  arguments.disjoint({{argument, spectra}}, {{"ctfs", ctfs.data(), ctfs.size() * sizeof(CTF)}});
  arguments.positive("pixel_size", pixel_size);
  return {ctfs.data(), box, pixel_size};
}

} // namespace Impl

template <class ExecutionSpace, class Values>
void evaluate_ctf(const ExecutionSpace& space,
                  const Kokkos::View<const CTF*, typename ExecutionSpace::memory_space>& ctfs,
                  double pixel_size, const Values& values) {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using T = Impl::real_of<Values>;
  const Array<T, MemorySpace> out(values);
  const auto rows = Impl::ctf_rows(Impl::Arguments{"evaluate_ctf"}, "values", ctfs, out, pixel_size);
  const Kokkos::Profiling::ScopedRegion region("Bracewell::evaluate_ctf");
  Impl::for_each_row(space, "Bracewell::evaluate_ctf::fill", rows.box.rows(),
                     Impl::EvaluateCTF<T>{rows, out.data});
}

template <class ExecutionSpace, class Spectra>
void apply_ctf(const ExecutionSpace& space,
               const Kokkos::View<const CTF*, typename ExecutionSpace::memory_space>& ctfs, double pixel_size,
               const Spectra& spectra,
               const Array<Impl::real_of<Spectra>, typename ExecutionSpace::memory_space>& weights) {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using T = Impl::real_of<Spectra>;
  const Array<Kokkos::complex<T>, MemorySpace> out(spectra);
  constexpr Impl::Arguments arguments{"apply_ctf"};
  const auto rows = Impl::ctf_rows(arguments, "spectra", ctfs, out, pixel_size);
  if (weights)
    arguments.same_spectrum("weights", weights, out);
  arguments.disjoint({{"weights", weights}},
                     {{"spectra", out}, {"ctfs", ctfs.data(), ctfs.size() * sizeof(CTF)}});
  const Kokkos::Profiling::ScopedRegion region("Bracewell::apply_ctf");
  Impl::for_each_row(space, "Bracewell::apply_ctf::multiply", rows.box.rows(),
                     Impl::ApplyCTF<T>{rows, out.data, weights.data});
}

} // namespace Bracewell
