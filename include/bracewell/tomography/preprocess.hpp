// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/tomography/detail/preprocess_impl.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <vector>

namespace Bracewell {

/// How raw frames become attenuation.
struct ProjectionNormalisation {
  /// Minus the logarithm of the transmission; without it values are attenuation already.
  bool logarithm = true;
  /// Columns [begin, end) see air: each row is divided by its mean there, or without logarithm less that mean;
  /// none if empty.
  int air_begin = 0;
  int air_end = 0; ///< behind the last of these columns
};

/// Makes sinograms of raw frames: minus the logarithm (Beer-Lambert) of the transmission (raw - dark) / (flat - dark). If columns of
/// air are given, the transmission is first divided by its mean there; without the logarithm this mean is subtracted. Values are
/// not valid if they are not finite, have no light in the flat field, or are not positive before a logarithm. A straight line
/// between the next valid neighbours in the row replaces them.
/// @param raw        [P, S, n] frames by angle
/// @param dark       [S, n] mean frame without beam, or a View that is not allocated
/// @param flat       [S, n] mean frame without object, or a View that is not allocated: raw is transmission
/// @param sinograms  [S, P, n], overwritten
/// @param valid      [S, P, n], overwritten: 1 where the frames say something, 0 where a value comes from its neighbours; or
///                   none. StripeRemoval takes it, and LeastSquaresSolver as weights
/// @throws Error on shapes that do not fit, air columns outside the row, shared memory, dark without flat
template <class ExecutionSpace, class Raw, class Dark, class Flat, class Sinograms>
void normalise_projections(
    const ExecutionSpace& space, const Raw& raw, const Dark& dark, const Flat& flat,
    const Sinograms& sinograms, const ProjectionNormalisation& options = {},
    const Array<typename Sinograms::value_type, typename ExecutionSpace::memory_space>& valid = {}) {
  using T = typename Sinograms::value_type;
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Input = Array<const T, MemorySpace>;
  Impl::normalise(space, Input(raw), Input(dark), Input(flat), Input(), Array<T, MemorySpace>(sinograms),
                  options, valid);
}

/// The same where the beam drifts: the flat field changes from projection to projection.
/// @param flats   [F, S, n] mean frames without object, of F times
/// @param places  [P] for every projection its place among them: 0.25 is a quarter of the way from the first to the
///                second one, whole numbers take one as it is; places beyond the ends take the first or last
/// @throws Error as above
template <class ExecutionSpace, class Raw, class Dark, class Flats, class Places, class Sinograms>
requires(Kokkos::is_view_v<Sinograms>) void normalise_projections(
    const ExecutionSpace& space, const Raw& raw, const Dark& dark, const Flats& flats, const Places& places,
    const Sinograms& sinograms, const ProjectionNormalisation& options = {},
    const Array<typename Sinograms::value_type, typename ExecutionSpace::memory_space>& valid = {}) {
  using T = typename Sinograms::value_type;
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Input = Array<const T, MemorySpace>;
  const Input of_projections(places);
  constexpr Impl::Arguments arguments{"normalise_projections"};
  arguments.given("places", of_projections);
  Impl::normalise(space, Input(raw), Input(dark), Input(flats), of_projections,
                  Array<T, MemorySpace>(sinograms), options, valid);
}

/// Converts the attenuation a of a beam of many energies to the attenuation of one energy, by a polynomial:
/// c0 a + c1 a^2 + c2 a^3 ... (Herman, Phys. Med. Biol. 24, 1979). Much material leaves only the harder part of the beam.
/// @param sinograms     [S, P, n] attenuation, changed in place
/// @param coefficients  c0, c1 ...: 1 to 8 of them
/// @throws Error on another rank or number, and coefficients that are not finite
template <class ExecutionSpace, class Sinograms>
void correct_beam_hardening(const ExecutionSpace& space, const Sinograms& sinograms,
                            const std::vector<double>& coefficients) {
  using T = typename Sinograms::value_type;
  using Harden = Impl::HardenRow<T>;
  constexpr Impl::Arguments arguments{"correct_beam_hardening"};
  const Array<T, typename ExecutionSpace::memory_space> array(sinograms);
  if (!array || array.rank != 3 || array.extents[2] >= 1 << 30)
    arguments.refuse("sinograms", "[slices, angles, width], found %s", array.shape_text().characters);
  arguments.within("coefficients", coefficients.size(), std::size_t(1), std::size_t(Harden::most),
                   " of them");
  Harden harden{array.data, {}, int(coefficients.size()), int(array.extents[2])};
  for (std::size_t k = 0; k < coefficients.size(); ++k) {
    arguments.finite("coefficients", coefficients[k]);
    harden.coefficients[k] = T(coefficients[k]);
  }
  Kokkos::Profiling::ScopedRegion region("Bracewell::correct_beam_hardening");
  Impl::for_each_row(space, "Bracewell::correct_beam_hardening::polynomial",
                     array.extents[0] * array.extents[1], harden);
}

} // namespace Bracewell
