#pragma once

#include "../../deep_copy.hpp"
#include "gridding.hpp"

#include <bracewell/gridding/nonuniform_fft.hpp>
#include <bracewell/tomography/fourier.hpp>

#include <algorithm>

namespace Golden {

template <class T>
TomographyErrors run_gridding(const TomographyCase& golden, double tolerance) {
  using namespace Bracewell;
  using Complex = Kokkos::complex<T>;
  const Space space;
  const int n = golden.json.at("n"), angles = golden.json.at("angles");
  const auto& theta = golden.array("theta").values;
  const std::vector<std::size_t> image_shape{1, std::size_t(n), std::size_t(n)},
      sinogram_shape{1, std::size_t(angles), std::size_t(n)}, points_shape{1, std::size_t(angles) * n};
  const auto samples = view<Complex**>(points_shape);
  Test::deep_copy(samples, Kokkos::View<const Complex**, Kokkos::LayoutRight, Space>(
                               load<Complex**>(golden.array("samples")).data(), 1, angles * n));
  const auto grid = load<Complex***>(golden.array("grid"));
  const auto sinogram = load<T***>(golden.array("sinogram"));
  const auto image = load<T***>(golden.array("image"));

  TomographyErrors errors;
  const auto check = [&](double& worst, const auto& result, const char* key) {
    space.fence();
    worst = std::max(worst, relative_error(result, golden.array(key)));
  };
  for (const auto strategy :
       {GriddingStrategy::Automatic, GriddingStrategy::Atomic, GriddingStrategy::PrunedGather,
        Impl::is_host<Space> ? GriddingStrategy::Bins : GriddingStrategy::Tiles}) {
    const Complex nan(Kokkos::Experimental::quiet_NaN_v<T>); // every element must be written
    const NonuniformFFT<Space, 2, T> transform(space, PolarPoints{.angles = theta, .samples = n}, {n, n},
                                               {.tolerance = tolerance, .strategy = strategy});
    const auto type1 = view<Complex***>(image_shape);
    Test::deep_copy(type1, nan);
    transform.adjoint(space, samples, type1);
    check(errors.type1, type1, "type1");
    const auto type2 = view<Complex**>(points_shape);
    Test::deep_copy(type2, nan);
    transform.forward(space, grid, type2);
    check(errors.type2, type2, "type2");

    const FourierTomography<Space, T> tomography(
        space, {.angles = theta, .width = n, .centre = golden.json.at("center").get<double>()},
        {.tolerance = tolerance, .strategy = strategy});
    const auto backprojection = view<T***>(image_shape);
    Test::deep_copy(backprojection, nan.real());
    tomography.backproject(space, sinogram, backprojection);
    check(errors.backprojection, backprojection, "backprojection");
    const auto projection = view<T***>(sinogram_shape);
    Test::deep_copy(projection, nan.real());
    tomography.project(space, image, projection);
    check(errors.projection, projection, "projection");
  }
  return errors;
}

} // namespace Golden
