// SPDX-License-Identifier: MIT
#include "types.hpp"

#include <bracewell/gridding/nonuniform_fft.hpp>

#include <array>

namespace Bracewell::C {
namespace {

GriddingOptions options_of(const bracewell_nufft_options& options) {
  const GriddingOptions defaults;
  return {.slices = options.slices == 0 ? defaults.slices : options.slices,
          .tolerance = options.tolerance == 0 ? defaults.tolerance : options.tolerance,
          .oversampling = unless_zero(options.oversampling),
          .sign = options.sign == 0 ? defaults.sign : options.sign};
}

template <int D>
class NonuniformPlan : public bracewell_nufft {
  static constexpr const char* of_images = D == 1   ? "[slices, width]"
                                           : D == 2 ? "[slices, height, width]"
                                                    : "[slices, depth, height, width]";

public:
  NonuniformPlan(const Space& space, const Of<const double>& points, const int* shape,
                 const bracewell_nufft_options& options)
      : plan_(space, points.view<2>(), sizes_of<D>(shape), options_of(options)) {}

  void adjoint(const bracewell_queue& queue, const bracewell_array* samples,
               const bracewell_array* images) const override {
    const Space space = space_of<backend>(queue);
    expect("nufft_adjoint", samples, images);
    const Of<const Complex> in("nufft_adjoint", "samples", space, samples);
    const Of<Complex> out("nufft_adjoint", "images", space, images);
    plan_.adjoint(space, in.template view<2>(), out.template view<D + 1>());
    finish(in, out);
  }

  void forward(const bracewell_queue& queue, const bracewell_array* images,
               const bracewell_array* samples) const override {
    const Space space = space_of<backend>(queue);
    expect("nufft_forward", samples, images);
    const Of<const Complex> in("nufft_forward", "images", space, images);
    const Of<Complex> out("nufft_forward", "samples", space, samples);
    plan_.forward(space, in.template view<D + 1>(), out.template view<2>());
    finish(in, out);
  }

  void point_gradients(const bracewell_queue& queue, const bracewell_array* images,
                       const bracewell_array* samples, const bracewell_array* gradients) const override {
    constexpr const char* name = "nufft_point_gradients";
    const Space space = space_of<backend>(queue);
    expect(name, samples, images);
    expect_rank(name, "gradients", gradients, 2, "[points, dimensions]");
    const Of<const Complex> in(name, "images", space, images), values(name, "samples", space, samples);
    const Of<Real> out(name, "gradients", space, gradients);
    const Kokkos::View<Complex**, Kokkos::LayoutRight, typename Space::memory_space> scratch(
        Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::C::slopes"),
        static_cast<std::size_t>(samples->extents[0]), static_cast<std::size_t>(samples->extents[1]));
    plan_.point_gradients(space, in.template view<D + 1>(), values.template view<2>(), out.template view<2>(),
                          scratch);
    space.fence("Bracewell::C: scratch memory goes");
    finish(in, values, out);
  }

private:
  static void expect(const char* function, const bracewell_array* samples, const bracewell_array* images) {
    expect_rank(function, "samples", samples, 2, "[slices, points]");
    expect_rank(function, "images", images, D + 1, of_images);
  }

  NonuniformFFT<Space, D, Real> plan_;
};

} // namespace

template <>
bracewell_nufft* Nonuniform<backend, Real>::plan(const bracewell_queue& queue, const bracewell_array* points,
                                                 int dimensions, const int* shape,
                                                 const bracewell_nufft_options& options) {
  constexpr const char* name = "nufft_create";
  const Space space = space_of<backend>(queue);
  expect_rank(name, "points", points, 2, "[points, dimensions]");
  if (!shape)
    Impl::fail(name, "shape", "a size per axis", "NULL");
  if (dimensions < 1 || dimensions > 3)
    Impl::fail(name, "dimensions", "1, 2 or 3", std::to_string(dimensions));
  const Of<const double> where(name, "points", space, points);
  bracewell_nufft* plan = nullptr;
  if (dimensions == 1)
    plan = new NonuniformPlan<1>(space, where, shape, options);
  else if (dimensions == 2)
    plan = new NonuniformPlan<2>(space, where, shape, options);
  else
    plan = new NonuniformPlan<3>(space, where, shape, options);
  space.fence("Bracewell::C: points may go");
  return plan;
}

} // namespace Bracewell::C
