// SPDX-License-Identifier: MIT
#pragma once

#include "common/command_line.hpp"
#include "common/input_error.hpp"
#include "common/star.hpp"
#include "cryoem/views.hpp"

#include <bracewell/geometry/symmetry.hpp>
#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/prepared_reference.hpp>
#include <bracewell/reconstruct/rolloff.hpp>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace Bracewell::Examples {

enum class KernelChoice { Linear, CatmullRom, CubicBSpline };
enum class Correction { Separable, Radial, None };

/// How the spectrum of a volume is interpolated: what the drivers have in common on their command lines.
struct Sampling {
  KernelChoice kernel = KernelChoice::CatmullRom;
  double oversampling = 2;
  Correction correction = Correction::Separable;

  /// The padded box: even, so that its centre is no matter of convention.
  int padded(int box) const { return 2 * static_cast<int>(std::lround(oversampling * box / 2)); }

  /// Throws InputError for choices that do not go together.
  void check() const {
    if (correction == Correction::Radial && kernel != KernelChoice::Linear)
      throw InputError("--correction radial is RELION's for --kernel linear; use separable");
  }
};

/// Adds --kernel, --oversampling and --correction, whose defaults are the values in `sampling`.
inline void add_sampling_options(CLI::App& app, Sampling& sampling, const std::string& why_oversampling) {
  add_choice<KernelChoice>(
      app, "--kernel", sampling.kernel,
      "interpolation in Fourier space: catmull_rom is the most accurate that needs no prefilter, "
      "linear is RELION's",
      {{Linear::name, KernelChoice::Linear},
       {CatmullRom::name, KernelChoice::CatmullRom},
       {CubicBSpline::name, KernelChoice::CubicBSpline}});
  app.add_option("--oversampling", sampling.oversampling, "padded box over original box; " + why_oversampling)
      ->check(CLI::Range(1.0, 4.0))
      ->type_name("FACTOR")
      ->capture_default_str();
  add_choice<Correction>(
      app, "--correction", sampling.correction,
      "undo the kernel's attenuation by its transform on every axis, or by RELION's sinc^2 of the radius "
      "(linear alone)",
      {{"separable", Correction::Separable}, {"radial", Correction::Radial}, {"none", Correction::None}});
}

/// Adds --symmetry, whose text ends with the groups that there are.
inline void add_symmetry(CLI::App& app, std::string& symmetry, const std::string& text) {
  static constexpr const char* groups = "C<n>, D<n>, T, O, I, I1, I2, I3 or I4";
  app.add_option("--symmetry", symmetry, text + groups + ", in RELION's orientations")
      ->check([](const std::string& given) {
        try {
          symmetry_operators(given);
          return std::string();
        } catch (const Error&) {
          return "expected " + std::string(groups) + ", found " + given;
        }
      })
      ->type_name("GROUP")
      ->capture_default_str();
}

/// Adds --helical-rise, which is returned, and --helical-twist: both or none.
inline CLI::Option* add_helix(CLI::App& app, std::optional<double>& rise, std::optional<double>& twist) {
  auto* const of_rise =
      app.add_option("--helical-rise", rise, "rise of a helix along z, from one subunit to the next")
          ->check(CLI::PositiveNumber)
          ->type_name("ANGSTROM");
  auto* const of_twist =
      app.add_option("--helical-twist", twist, "twist of the helix, positive if it is right-handed")
          ->check(CLI::Range(-360.0, 360.0))
          ->type_name("DEGREES");
  of_rise->needs(of_twist);
  of_twist->needs(of_rise);
  return of_rise;
}

/// For names of files to write: refuses the endings of formats that they will not have.
inline auto not_ending(std::vector<std::string> endings, std::string expected) {
  return [endings = std::move(endings), expected = std::move(expected)](const std::string& name) {
    for (const std::string& ending : endings)
      if (name.ends_with(ending))
        return "expected a name that ends with " + expected + ", found " + name;
    return std::string();
  };
}

/// Adds --b-factor-sign.
inline void add_b_factor_sign(CLI::App& app, BFactorSign& sign) {
  add_choice<BFactorSign>(
      app, "--b-factor-sign", sign,
      "sign of rlnCtfBfactor: RELION's envelope is exp(-B k^2 / 4), Warp and M write exp(B k^2 / 4). "
      "automatic takes Warp's sign, with a warning, if some values are below 0 and none is above",
      {{"automatic", BFactorSign::Automatic}, {"relion", BFactorSign::Relion}, {"warp", BFactorSign::Warp}});
}

/// Calls run.template operator()<Kernel>() with the kernel chosen.
template <class Run>
void with_kernel(KernelChoice kernel, const Run& run) {
  switch (kernel) {
  case KernelChoice::Linear:
    return run.template operator()<Linear>();
  case KernelChoice::CatmullRom:
    return run.template operator()<CatmullRom>();
  case KernelChoice::CubicBSpline:
    return run.template operator()<CubicBSpline>();
  }
}

/// A spectrum prepared for the kernel that was chosen.
using PreparedMap = std::variant<PreparedReference<Linear, Space, 3>, PreparedReference<CatmullRom, Space, 3>,
                                 PreparedReference<CubicBSpline, Space, 3>>;

/// Of a padded spectrum of a map of `box` voxels a side, which it does not need afterwards.
inline PreparedMap prepared(const Space& space, const MapSpectrum& spectrum, int box, KernelChoice kernel) {
  std::optional<PreparedMap> result;
  with_kernel(kernel, [&]<class Kernel>() {
    auto reference = prepare<Kernel>(space, spectrum);
    reference.set_oversampling(static_cast<double>(spectrum.extent(1)) / box);
    space.fence("Bracewell::examples::prepared"); // the spectrum goes
    result = std::move(reference);
  });
  return *std::move(result);
}

/// Divides a centred volume by what the interpolation in a padded box of size `padded` attenuates it.
inline void correct_attenuation(const Space& space, const Map& volume, const Sampling& sampling, int padded) {
  if (sampling.correction == Correction::Radial)
    correct_radial_rolloff(space, volume, {padded, padded, padded});
  else if (sampling.correction == Correction::Separable)
    with_kernel(sampling.kernel, [&]<class Kernel>() {
      correct_rolloff<Kernel>(space, volume, {padded, padded, padded});
    });
}

} // namespace Bracewell::Examples
