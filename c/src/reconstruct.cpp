// SPDX-License-Identifier: MIT
#include "types.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/geometry/ctf.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/reconstruct/normalise.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>
#include <bracewell/reconstruct/rolloff.hpp>

#include <algorithm>
#include <array>
#include <vector>

namespace Bracewell::C {
namespace {

/// action.operator()<D>() for arrays [B, (D,) H, W].
template <class Action>
void with_dimensions(const char* function, const char* argument, const bracewell_array* array,
                     const Action& action) {
  const int rank = rank_of(function, argument, array);
  if (rank == 3)
    action.template operator()<2>();
  else if (rank == 4)
    action.template operator()<3>();
  else
    Impl::fail(function, argument, "[B, H, W] or [B, D, H, W]", std::to_string(rank) + " axes");
}

/// Waits.
Kokkos::View<const CTF*, Memory> functions(const char* function, const Space& space,
                                           const bracewell_ctf* given, std::int64_t count) {
  if (count < 0 || (count > 0 && !given))
    Impl::fail(function, "ctfs", "one per image", given ? std::to_string(count) : "NULL");
  std::vector<CTF> all;
  for (const bracewell_ctf* one = given; one < given + count; ++one)
    all.emplace_back(CTFParameters{one->defocus_u, one->defocus_v, one->defocus_angle, one->voltage,
                                   one->spherical_aberration, one->amplitude_contrast, one->phase_shift,
                                   one->b_factor, one->scale});
  return Impl::device_copy(space, "Bracewell::C::ctfs", all);
}

template <int D>
class Transform : public bracewell_fft {
public:
  Transform(const Space& space, const int* shape, std::int64_t batch)
      : forward_(space, sizes_of<D>(shape), batch), backward_(space, sizes_of<D>(shape), batch) {}

  void forward(const bracewell_queue& queue, const bracewell_array* images,
               const bracewell_array* spectra) const override {
    const Space space = space_of<backend>(queue);
    const Of<const Real> in("fft_forward", "images", space, images);
    const Of<Complex> out("fft_forward", "spectra", space, spectra);
    with_rank("fft_forward", images, spectra, [&]<int rank>() {
      forward_.execute(space, in.template view<rank>(), out.template view<rank>());
    });
    finish(in, out);
  }
  void backward(const bracewell_queue& queue, const bracewell_array* spectra,
                const bracewell_array* images) const override {
    const Space space = space_of<backend>(queue);
    const Of<Complex> in("fft_backward", "spectra", space, spectra, Access::Update);
    const Of<Real> out("fft_backward", "images", space, images);
    with_rank("fft_backward", images, spectra, [&]<int rank>() {
      backward_.execute(space, in.template view<rank>(), out.template view<rank>());
    });
    finish(in, out);
  }

private:
  template <class Action>
  static void with_rank(const char* function, const bracewell_array* images, const bracewell_array* spectra,
                        const Action& action) {
    const int rank = rank_of(function, "images", images);
    rank_of(function, "spectra", spectra);
    same_rank(function, "spectra", spectra, images);
    if (rank == D)
      action.template operator()<D>();
    else if (rank == D + 1)
      action.template operator()<D + 1>();
    else if (rank == D + 2)
      action.template operator()<D + 2>();
    else
      Impl::fail(function, "images", "from " + std::to_string(D) + " to " + std::to_string(D + 2) + " axes",
                 std::to_string(rank));
  }

  FFT<Space, D, Real, Complex> forward_;
  FFT<Space, D, Complex, Real> backward_;
};

} // namespace

template <>
bracewell_fft* Reconstruct<backend, Real>::fft(const bracewell_queue& queue, int dimensions, const int* shape,
                                               std::int64_t batch) {
  const Space space = space_of<backend>(queue);
  if (!shape)
    Impl::fail("fft_create", "shape", "a size per axis", "NULL");
  if (dimensions == 2)
    return new Transform<2>(space, shape, batch);
  if (dimensions == 3)
    return new Transform<3>(space, shape, batch);
  Impl::fail("fft_create", "dimensions", "2 or 3", std::to_string(dimensions));
}

template <>
void Reconstruct<backend, Real>::evaluate_ctf(const bracewell_queue& queue, const bracewell_ctf* ctfs,
                                              std::int64_t count, double pixel_size,
                                              const bracewell_array* values) {
  constexpr const char* name = "evaluate_ctf";
  const Space space = space_of<backend>(queue);
  expect_rank(name, "values", values, 3, "[P, h, w/2+1]");
  const Of<Real> out(name, "values", space, values);
  Bracewell::evaluate_ctf(space, functions(name, space, ctfs, count), pixel_size, out.spectrum<3>());
  space.fence("Bracewell::C: the parameters of CTFs go");
  finish(out);
}

template <>
void Reconstruct<backend, Real>::apply_ctf(const bracewell_queue& queue, const bracewell_ctf* ctfs,
                                           std::int64_t count, double pixel_size,
                                           const bracewell_array* spectra, const bracewell_array* weights) {
  constexpr const char* name = "apply_ctf";
  const Space space = space_of<backend>(queue);
  expect_rank(name, "spectra", spectra, 3, "[P, h, w/2+1]");
  const Of<Complex> images(name, "spectra", space, spectra, Access::Update);
  const Of<Real> squares(name, "weights", space, weights);
  Bracewell::apply_ctf(space, functions(name, space, ctfs, count), pixel_size, images.spectrum<3>(),
                       squares.array());
  space.fence("Bracewell::C: the parameters of CTFs go");
  finish(images, squares);
}

template <>
void Reconstruct<backend, Real>::normalise(const bracewell_queue& queue, const bracewell_array* data,
                                           const bracewell_array* weight, const bracewell_array* volume,
                                           const bracewell_normalise_options& options) {
  constexpr const char* name = "normalise";
  with_dimensions(name, "data", data, [&]<int D>() {
    const Space space = space_of<backend>(queue);
    same_rank(name, "weight", weight, data);
    same_rank(name, "volume", volume, data);
    const Of<const Complex> sums(name, "data", space, data);
    const Of<const Real> weights(name, "weight", space, weight);
    const Of<Complex> quotient(name, "volume", space, volume);
    const NormaliseOptions defaults;
    const Kokkos::View<double**, Kokkos::LayoutRight, Memory> averages(
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::C::averages"),
        static_cast<std::size_t>(data->extents[0]), static_cast<std::size_t>(data->extents[D]));
    Bracewell::normalise(space, sums.template spectrum<D + 1>(), weights.template spectrum<D + 1>(),
                         quotient.template spectrum<D + 1>(), averages,
                         {.wiener = options.wiener,
                          .floor = options.floor == 0  ? defaults.floor
                                   : options.floor < 0 ? 0
                                                       : options.floor,
                          .radius = unless_zero(options.radius)});
    space.fence("Bracewell::C: the averages go");
    finish(sums, weights, quotient);
  });
}

template <>
void Reconstruct<backend, Real>::pad_centre(const bracewell_queue& queue, const bracewell_array* centred,
                                            const bracewell_array* padded) {
  with_dimensions("pad_centre", "centred", centred, [&]<int D>() {
    const Space space = space_of<backend>(queue);
    same_rank("pad_centre", "padded", padded, centred);
    const Of<const Real> from("pad_centre", "centred", space, centred);
    const Of<Real> to("pad_centre", "padded", space, padded);
    Bracewell::pad_centre(space, from.template view<D + 1>(), to.template view<D + 1>());
    finish(from, to);
  });
}

template <>
void Reconstruct<backend, Real>::crop_centre(const bracewell_queue& queue, const bracewell_array* padded,
                                             const bracewell_array* centred, double scale) {
  with_dimensions("crop_centre", "padded", padded, [&]<int D>() {
    const Space space = space_of<backend>(queue);
    same_rank("crop_centre", "centred", centred, padded);
    const Of<const Real> from("crop_centre", "padded", space, padded);
    const Of<Real> to("crop_centre", "centred", space, centred);
    Bracewell::crop_centre(space, from.template view<D + 1>(), to.template view<D + 1>(), scale);
    finish(from, to);
  });
}

template <>
void Reconstruct<backend, Real>::correct_rolloff(const bracewell_queue& queue, const bracewell_array* volume,
                                                 const int* padded, bracewell_kernel kernel) {
  constexpr const char* name = "correct_rolloff";
  if (!padded)
    Impl::fail(name, "padded", "a size per axis", "NULL");
  with_dimensions(name, "volume", volume, [&]<int D>() {
    const Space space = space_of<backend>(queue);
    const Of<Real> box(name, "volume", space, volume, Access::Update);
    const auto view = box.template view<D + 1>();
    const auto sizes = sizes_of<D>(padded);
    switch (kernel) {
    case BRACEWELL_CATMULL_ROM:
      Bracewell::correct_rolloff<CatmullRom>(space, view, sizes);
      break;
    case BRACEWELL_LINEAR:
      Bracewell::correct_rolloff<Linear>(space, view, sizes);
      break;
    case BRACEWELL_CUBIC_BSPLINE:
      Bracewell::correct_rolloff<CubicBSpline>(space, view, sizes);
      break;
    default:
      Impl::fail(name, "kernel", "a bracewell_kernel", std::to_string(kernel));
    }
    finish(box);
  });
}

} // namespace Bracewell::C
