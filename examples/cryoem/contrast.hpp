// SPDX-License-Identifier: MIT
#pragma once

#include "common/input_error.hpp"
#include "common/provenance.hpp"
#include "common/star.hpp"
#include "cryoem/aberrations.hpp"
#include "cryoem/pixel_sizes.hpp"
#include "cryoem/views.hpp"

#include <bracewell/array.hpp>
#include <bracewell/geometry/ctf.hpp>
#include <bracewell/rfft/layout.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// What is left of the amplitude at a squared frequency in 1/Angstrom^2 after an exposure in e/A^2 (Grant & Grigorieff, eLife 4
/// (2015) e06980, for 300 kV): exp(-exposure / (2 N)), N = 0.245 k^-1.665 + 2.81.
KOKKOS_INLINE_FUNCTION double exposure_weight(double exposure, double squared) {
  return Kokkos::exp(-0.5 * exposure / (0.245 * Kokkos::pow(squared, -0.8325) + 2.81));
}

/// Whether the file says how the images were modulated.
inline bool has_ctf(const Particles& particles) {
  return particles.defocus_u.present() && particles.voltage.present();
}

/// The contrast transfer functions of all particles. Throws InputError, with the row, where they cannot be
/// computed; adds warnings to `particles` for what is taken as zero.
inline std::vector<CTF> contrast_transfer(Particles& particles) {
  const auto& defocus_u = particles.require(particles.defocus_u);
  const auto& voltage = particles.require(particles.voltage);
  const auto& spherical_aberration = particles.require(particles.spherical_aberration);
  const auto& amplitude_contrast = particles.require(particles.amplitude_contrast);
  if (!particles.defocus_v.present())
    particles.warnings.push_back(particles.file.string() + ": has no rlnDefocusV: taken as rlnDefocusU");
  else if (!particles.defocus_angle.present())
    particles.warnings.push_back(particles.file.string() + ": has no rlnDefocusAngle: taken as 0");
  const auto value = [](const ParticleColumn<double>& column, std::size_t row, double otherwise) {
    return column.present() ? column[row] : otherwise;
  };
  std::vector<CTF> ctfs(particles.count);
  for (std::size_t row = 0; row < particles.count; ++row)
    try {
      ctfs[row] = CTF({.defocus_u = defocus_u[row],
                       .defocus_v = value(particles.defocus_v, row, defocus_u[row]),
                       .defocus_angle = value(particles.defocus_angle, row, 0),
                       .voltage = voltage[row],
                       .spherical_aberration = spherical_aberration[row],
                       .amplitude_contrast = amplitude_contrast[row],
                       .phase_shift = value(particles.phase_shift, row, 0),
                       .b_factor = value(particles.ctf_b_factor, row, 0),
                       .scale = value(particles.ctf_scale, row, 1)});
    } catch (const Error& error) {
      throw InputError(particles.file.string() + ": row " + std::to_string(row + 1) + ": " + error.what());
    }
  return ctfs;
}

/// The contrast of images on the device: CTF, what else a lens does to their spectra, and what the detector does. All
/// but the detector's response is a function of M k at frequency k of an image, where M is its magnification.
class Contrast {
public:
  /// None: spectra stay as they are.
  Contrast() = default;
  /// For batches of up to `batch` images. Throws InputError where the functions cannot be computed; adds
  /// warnings to `particles`.
  Contrast(const Space& space, Particles& particles, int box, std::size_t batch)
      : ctfs_(contrast_transfer(particles)), box_(box), on_device_("Bracewell::examples::contrast", batch),
        on_host_(Kokkos::create_mirror_view(on_device_)) {
    particles.require(particles.pixel_size);
    std::map<std::pair<Aberrations, double>, int> lenses; // and pixel sizes
    for (std::size_t row = 0; row < particles.count; ++row) {
      const Aberrations own = aberrations_of(particles, row);
      pixel_sizes_.push_back(particles.pixel_size[0] * relative_pixel_size(particles, row));
      magnifications_.push_back(own.magnification);
      const auto lens =
          own.trivial() ? -1
                        : lenses.emplace(std::pair(own, pixel_sizes_.back()), static_cast<int>(lenses.size()))
                              .first->second;
      lens_.push_back(lens);
      exposures_.push_back(particles.exposure.present() ? particles.exposure[row] : 0);
      premultiplied_.push_back(particles.premultiplied.present() && particles.premultiplied[row] != 0);
    }
    phases_ = allocate<DeviceView<double****>>("phases", lenses.size(), box, box / 2 + 1, 3);
    const auto mirror = Kokkos::create_mirror_view(phases_);
    for (const auto& [seen, lens] : lenses)
      for (int row = 0; row < box; ++row)
        for (int column = 0; column <= box / 2; ++column) {
          const auto& [aberrations, pixel_size] = seen;
          const double unit = box * pixel_size, x = column / unit,
                       y = HalfSpectrumLayout<2>::frequency(row, box) / unit;
          mirror(lens, row, column, 0) = odd_phase(aberrations, x, y);
          mirror(lens, row, column, 1) = even_phase(aberrations, x, y);
          mirror(lens, row, column, 2) =
              aberrations.detector >= 0
                  ? particles.detectors[static_cast<std::size_t>(aberrations.detector)].at(std::hypot(x, y))
                  : 1;
        }
    copy_values(space, phases_, mirror);
    space.fence("Bracewell::examples::contrast"); // the mirror goes
  }

  bool present() const { return !ctfs_.empty(); }

  /// Projections [1, rows, box, box/2+1] become images of `rows`. A fence has to stand between two calls.
  void modulate(const Space& space, std::span<const std::size_t> rows,
                const Array<Kokkos::complex<float>, Memory>& spectra) const {
    apply(space, rows, spectra, {}, true);
  }
  /// Images become what is summed over them for a projection, the adjoint, and `weights` the square of CTF times the
  /// detector's response.
  void demodulate(const Space& space, std::span<const std::size_t> rows,
                  const Array<Kokkos::complex<float>, Memory>& spectra,
                  const Array<float, Memory>& weights) const {
    apply(space, rows, spectra, weights, false);
  }

  /// The adjoint of images that a curved Ewald sphere made, of the two sidebands (DeRosier, Ultramicroscopy 81 (2000) 83):
  ///   image(k) = (e V(k, +z) - conj(e) V(k, -z)) / 2i,   e = exp(i phase of the CTF),   z = |k|^2 wavelength / 2.
  /// `spectra` become what is summed for +z and `others` for -z. `weights` are for both: a quarter where the two are far from each
  /// other, half of CTF^2 where they are one, between them by the correlation that a sphere of `diameter` Angstrom leaves.
  void split_sidebands(const Space& space, std::span<const std::size_t> rows, const Spectra& spectra,
                       const Spectra& others, const Weights& weights, double wavelength,
                       double diameter) const {
    upload(space, rows);
    const SplitSidebands functor{on_device_.data(), phases_.data(), {{box_, box_}}, spectra.data(),
                                 others.data(),     weights.data(), wavelength,     diameter};
    Kokkos::parallel_for("Bracewell::examples::split_sidebands",
                         Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                             space, 0, static_cast<std::int64_t>(rows.size()) * functor.layout.elements()),
                         functor);
  }
  /// Throws InputError where a curved Ewald sphere cannot be corrected: other wavelengths, CTF in the images already.
  /// Returns the wavelength in Angstrom.
  double require_sidebands(const Particles& particles) const {
    for (std::size_t row = 0; row < particles.count; ++row) {
      const std::string at = particles.file.string() + ": row " + std::to_string(row + 1) + ": ";
      if (particles.voltage[row] != particles.voltage[0])
        throw InputError(at + "expected " + shortest(particles.voltage[0]) +
                         " kV as in row 1, which --ewald needs, found " + shortest(particles.voltage[row]));
      if (premultiplied_[row])
        throw InputError(at + "expected an image without its CTF, which --ewald needs, found one that was "
                              "multiplied by it");
    }
    require_one_pixel_size(particles);
    return electron_wavelength(particles.voltage[0]);
  }

  struct Image {
    CTF ctf;
    int lens;           ///< of the phases; -1: none
    bool premultiplied; ///< the image has the CTF twice
    double pixel_size;  ///< Angstrom
    double exposure;    ///< e/A^2
    double magnification[4];

    /// Whether the CTF alone is not all of it.
    KOKKOS_FUNCTION bool has_more() const {
      return exposure > 0 || magnification[0] != 1 || magnification[1] != 0 || magnification[2] != 0 ||
             magnification[3] != 1;
    }
    /// CTF for a frequency of the image in 1/Angstrom, with a further phase in radians.
    KOKKOS_FUNCTION float contrast(double x, double y, double even_phase) const {
      CTF own = ctf;
      own.offset -= even_phase / Kokkos::numbers::pi;
      const double u = magnification[0] * x + magnification[1] * y,
                   v = magnification[2] * x + magnification[3] * y;
      const auto value = own.value<float>(u, v);
      return exposure > 0 ? value * static_cast<float>(exposure_weight(exposure, u * u + v * v)) : value;
    }
  };

  /// What kernels of others need of images, until the next call of any of these functions.
  struct OnDevice {
    const Image* images;
    const double* phases; ///< [lenses, h, w/2+1, odd and even, and the detector's response]
  };
  OnDevice on_device(const Space& space, std::span<const std::size_t> rows) const {
    upload(space, rows);
    return {on_device_.data(), phases_.data()};
  }
  /// Moves both defoci of one particle, by square Angstrom: times the wavelength.
  void change_defocus(std::size_t row, double change) {
    ctfs_[row].xx += change;
    ctfs_[row].yy += change;
  }
  /// Of one particle; its aberrations stay where they are.
  void set_magnification(std::size_t row, const std::array<double, 4>& magnification) {
    magnifications_[row] = magnification;
  }

  /// One team for some rows of an image.
  struct Apply {
    static constexpr int rows_per_team = 16;

    const Image* images;
    const double* phases;
    HalfSpectrumLayout<2> layout;
    Kokkos::complex<float>* spectra;
    float* weights; ///< null: not wanted
    bool forward;

    KOKKOS_FUNCTION int teams_per_image() const {
      return (layout.size[1] + rows_per_team - 1) / rows_per_team;
    }

    template <class Team>
    KOKKOS_FUNCTION void operator()(const Team& team) const {
      const std::int64_t index = team.league_rank() / teams_per_image();
      const int begin = team.league_rank() % teams_per_image() * rows_per_team;
      const int end = Kokkos::min(begin + rows_per_team, layout.size[1]), columns = layout.columns();
      const Image image = images[index];
      const Factor factor = factor_of(image);
      const double x_step = 1 / (layout.size[0] * image.pixel_size),
                   y_step = 1 / (layout.size[1] * image.pixel_size);
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, begin, end), [&](int row) {
        const double y = layout.frequency(row, layout.size[1]) * y_step;
        const std::int64_t in_image = layout.row_begin(row);
        Kokkos::complex<float>* const line = spectra + index * layout.elements() + in_image;
        float* const weight = weights ? weights + index * layout.elements() + in_image : nullptr;
        if (image.lens >= 0) {
          const double* const own = phases + 3 * (image.lens * layout.elements() + in_image);
          Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, columns), [&](int x) {
            const double phase = forward ? own[3 * x] : -own[3 * x];
            const auto value = image.contrast(x * x_step, y, own[3 * x + 1]);
            const auto response = static_cast<float>(own[3 * x + 2]);
            line[x] *= response * factor(value) *
                       Kokkos::complex<float>(static_cast<float>(Kokkos::cos(phase)),
                                              static_cast<float>(Kokkos::sin(phase)));
            if (weight)
              weight[x] = response * response * value * value;
          });
        } else if (image.has_more()) {
          Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, columns), [&](int x) {
            const auto value = image.contrast(x * x_step, y, 0);
            line[x] *= factor(value);
            if (weight)
              weight[x] = value * value;
          });
        } else {
          const auto apply_ctf = [&](const auto& use) {
            Impl::for_each_ctf_value<float>(team, image.ctf, x_step, y, columns, use);
          };
          if (weight)
            apply_ctf([=](int x, float value) {
              line[x] *= factor(value);
              weight[x] = value * value;
            });
          else
            apply_ctf([=](int x, float value) { line[x] *= factor(value); });
        }
      });
    }

    /// What an image is multiplied by. One that was premultiplied has the CTF twice, and no more of it when it is summed.
    /// Without branches, so that compilers make vectors of it.
    struct Factor {
      float constant, linear, square;

      KOKKOS_FUNCTION float operator()(float ctf) const { return constant + ctf * (linear + ctf * square); }
    };
    KOKKOS_FUNCTION Factor factor_of(const Image& image) const {
      return !image.premultiplied ? Factor{0, 1, 0} : forward ? Factor{0, 0, 1} : Factor{1, 0, 0};
    }
  };

  /// One element of a spectrum.
  struct SplitSidebands {
    const Image* images;
    const double* phases;
    HalfSpectrumLayout<2> layout;
    Kokkos::complex<float>*spectra, *others;
    float* weights;
    double wavelength, diameter; ///< Angstrom

    KOKKOS_FUNCTION void operator()(std::int64_t index) const {
      const Image& image = images[index / layout.elements()];
      const std::int64_t element = index % layout.elements();
      int k[2];
      layout.frequency(element, k);
      const double x = k[0] / (layout.size[0] * image.pixel_size),
                   y = k[1] / (layout.size[1] * image.pixel_size);
      Kokkos::complex<float> lens(1);
      float response = 1;
      double even = 0;
      if (image.lens >= 0) {
        const double* const own = phases + 3 * (image.lens * layout.elements() + element);
        lens = Kokkos::complex<float>(static_cast<float>(Kokkos::cos(own[0])),
                                      static_cast<float>(-Kokkos::sin(own[0])));
        even = own[1];
        response = static_cast<float>(own[2]);
      }
      const float sine = image.contrast(x, y, even),
                  cosine = image.contrast(x, y, even - Kokkos::numbers::pi / 2);
      const double distance = wavelength * (x * x + y * y), t = Kokkos::numbers::pi * distance * diameter;
      const auto shared = static_cast<float>(
          t < 1e-2 ? 1 - t * t / 10 : 3 * (Kokkos::sin(t) - t * Kokkos::cos(t)) / (t * t * t));
      const Kokkos::complex<float> value = 0.5f * response * lens * spectra[index];
      spectra[index] = value * Kokkos::complex<float>(sine, cosine);
      others[index] = value * Kokkos::complex<float>(sine, -cosine);
      weights[index] =
          0.25f * response * response * (sine * sine * (1 + shared) + cosine * cosine * (1 - shared));
    }
  };

private:
  void apply(const Space& space, std::span<const std::size_t> rows,
             const Array<Kokkos::complex<float>, Memory>& spectra, const Array<float, Memory>& weights,
             bool forward) const {
    upload(space, rows);
    const Apply functor{on_device_.data(), phases_.data(), {{box_, box_}},
                        spectra.data,      weights.data,   forward};
    const int teams = static_cast<int>(rows.size()) * functor.teams_per_image();
    const auto policy = kernels_run_on_host ? Kokkos::TeamPolicy<Space>(space, teams, 1)
                                            : Kokkos::TeamPolicy<Space>(space, teams, 8, 32);
    Kokkos::parallel_for("Bracewell::examples::contrast", policy, functor);
  }

  void upload(const Space& space, std::span<const std::size_t> rows) const {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto& m = magnifications_[rows[i]];
      on_host_(i) = {ctfs_[rows[i]],        lens_[rows[i]],      premultiplied_[rows[i]],
                     pixel_sizes_[rows[i]], exposures_[rows[i]], {m[0], m[1], m[2], m[3]}};
    }
    copy_values(space, on_device_, on_host_);
  }

  std::vector<CTF> ctfs_; ///< [particles]
  std::vector<int> lens_;
  std::vector<bool> premultiplied_;
  std::vector<double> pixel_sizes_; ///< Angstrom
  std::vector<double> exposures_;   ///< e/A^2
  std::vector<std::array<double, 4>> magnifications_;
  int box_ = 0;
  DeviceView<Image*> on_device_;
  DeviceView<Image*>::host_mirror_type on_host_;
  DeviceView<double****> phases_; ///< [lenses, box, box/2+1, odd and even, and the detector's response]
};

} // namespace Bracewell::Examples
