// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/geometry/ctf.hpp>
#include <bracewell/impl/execution.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

/// Chain rule from the values of evaluate_ctf to the CTFs: each member of a gradient is dL/d that member, the sum
/// over stored elements of dL/dvalue times its derivative. ctf_parameter_gradients leads on to the microscope.
/// @param ctfs             CTF [P]
/// @param pixel_size       in Angstrom
/// @param value_gradients  dL/dvalue, real [P, h, w/2+1], or more leading axes whose product is P; of filters
/// from filter_gradients
/// @param gradients        CTF [P], overwritten
/// @throws Error on shapes that do not fit, shared memory and a pixel size that is not positive
template <class ExecutionSpace, class ValueGradients>
void ctf_gradients(const ExecutionSpace& space,
                   const Kokkos::View<const CTF*, typename ExecutionSpace::memory_space>& ctfs,
                   double pixel_size, const ValueGradients& value_gradients,
                   const Kokkos::View<CTF*, typename ExecutionSpace::memory_space>& gradients);

/// Chain rule from a CTF to the parameters that it was made from, on the host: each member of the result is
/// dL/d that parameter, per Angstrom, degree, kV, mm and so on.
/// @param parameters  where
/// @param gradient    dL/d the members of CTF(parameters), from ctf_gradients
/// @throws Error as CTF(parameters) does
inline CTFParameters ctf_parameter_gradients(const CTFParameters& parameters, const CTF& gradient);

namespace Impl {

/// One team per particle sums over its frequencies: no atomics, the same sum in every run.
template <class ExecutionSpace, class T>
struct SumCTFGradients {
  using Policy = Kokkos::TeamPolicy<ExecutionSpace>;

  CTFRows rows;
  const T* cotangents;
  CTF* gradients;

  KOKKOS_FUNCTION void operator()(const typename Policy::member_type& member) const {
    const int columns = rows.box.columns, elements = rows.box.size[1] * columns;
    const std::int64_t particle = member.league_rank();
    Sums<7> sums;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member, elements),
        [&](int i, Sums<7>& partial) {
          const CTFRows::Row row = rows(particle * rows.box.size[1] + i / columns);
          const CTF d = row.ctf.template derivatives<T>(i % columns * row.step, row.y);
          const double g = cotangents[particle * elements + i];
          const double terms[7] = {d.xx, d.xy, d.yy, d.quartic, d.offset, d.decay, d.scale};
          for (int term = 0; term < 7; ++term)
            partial.values[term] += g * terms[term];
        },
        sums);
    Kokkos::single(Kokkos::PerTeam(member), [&] {
      CTF& out = gradients[particle];
      out.xx = sums.values[0];
      out.xy = sums.values[1];
      out.yy = sums.values[2];
      out.quartic = sums.values[3];
      out.offset = sums.values[4];
      out.decay = sums.values[5];
      out.scale = sums.values[6];
    });
  }
};

} // namespace Impl

template <class ExecutionSpace, class ValueGradients>
void ctf_gradients(const ExecutionSpace& space,
                   const Kokkos::View<const CTF*, typename ExecutionSpace::memory_space>& ctfs,
                   double pixel_size, const ValueGradients& value_gradients,
                   const Kokkos::View<CTF*, typename ExecutionSpace::memory_space>& gradients) {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using T = Impl::real_of<ValueGradients>;
  const Array<const T, MemorySpace> in(value_gradients);
  constexpr Impl::Arguments arguments{"ctf_gradients"};
  const auto rows = Impl::ctf_rows(arguments, "value_gradients", ctfs, in, pixel_size);
  arguments.require(
      gradients.extent(0) == ctfs.extent(0), "gradients",
      [&] { return "[" + std::to_string(ctfs.extent(0)) + "]"; },
      [&] { return "[" + std::to_string(gradients.extent(0)) + "]"; });
  arguments.disjoint({{"gradients", gradients.data(), gradients.size() * sizeof(CTF)}},
                     {{"value_gradients", in}, {"ctfs", ctfs.data(), ctfs.size() * sizeof(CTF)}});
  if (rows.box.batches == 0)
    return;
  const Kokkos::Profiling::ScopedRegion region("Bracewell::ctf_gradients");
  using Functor = Impl::SumCTFGradients<ExecutionSpace, T>;
  const typename Functor::Policy policy(space, static_cast<int>(rows.box.batches),
                                        Impl::is_host<ExecutionSpace> ? 1 : 128);
  Kokkos::parallel_for("Bracewell::ctf_gradients::sum", policy, Functor{rows, in.data, gradients.data()});
}

inline CTFParameters ctf_parameter_gradients(const CTFParameters& parameters, const CTF& gradient) {
  constexpr double pi = Kokkos::numbers::pi;
  const CTFParameters& p = parameters;
  const CTF ctf(p), &g = gradient;
  const double lambda = electron_wavelength(p.voltage), V = 1000 * p.voltage;
  const double slope_of_lambda = -500 * lambda * (1 + 2 * 0.978466e-6 * V) / (V * (1 + 0.978466e-6 * V));
  const double half_difference = lambda * (p.defocus_u - p.defocus_v) / 2;
  const double c = std::cos(p.defocus_angle * (pi / 90)), s = std::sin(p.defocus_angle * (pi / 90));
  return {.defocus_u = lambda / 2 * (g.xx * (1 + c) + g.yy * (1 - c) + 2 * g.xy * s),
          .defocus_v = lambda / 2 * (g.xx * (1 - c) + g.yy * (1 + c) - 2 * g.xy * s),
          .defocus_angle = pi / 90 * half_difference * ((g.yy - g.xx) * s + 2 * g.xy * c),
          .voltage = slope_of_lambda / lambda *
                     (g.xx * ctf.xx + g.yy * ctf.yy + g.xy * ctf.xy + 3 * g.quartic * ctf.quartic),
          .spherical_aberration = -0.5e7 * lambda * lambda * lambda * g.quartic,
          .amplitude_contrast = g.offset / (pi * std::sqrt(1 - p.amplitude_contrast * p.amplitude_contrast)),
          .phase_shift = g.offset / 180,
          .b_factor = g.decay / 4,
          .scale = g.scale};
}

} // namespace Bracewell
