// Kernels, labels and instances of the transforms, the geometry and the pieces of a reconstruction.

#include "checks.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/geometry/ctf_gradients.hpp>
#include <bracewell/geometry/pose_gradients.hpp>
#include <bracewell/geometry/symmetrise.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/filter_gradients.hpp>
#include <bracewell/reconstruct/fourier_shell_correlation.hpp>
#include <bracewell/reconstruct/mask.hpp>
#include <bracewell/reconstruct/normalise.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>
#include <bracewell/reconstruct/rolloff.hpp>
#include <bracewell/reconstruct/shells.hpp>
#include <bracewell/reconstruct/signal_and_noise.hpp>
#include <bracewell/reconstruct/spectrum_gradients.hpp>
#include <bracewell/reconstruct/weight_equaliser.hpp>

using namespace Bracewell;

namespace {

using Test::Function;
using Test::Space;
using Test::View;
using Complex = Kokkos::complex<float>;

struct Arguments {
  View<float****> centred{"centred", 1, 8, 8, 8}, padded{"padded", 1, 12, 12, 12};
  View<Complex****> spectrum{"spectrum", 1, 8, 8, 5}, other{"other", 1, 8, 8, 5},
      cotangent{"cotangent", 1, 8, 8, 5};
  View<float****> weight{"weight", 1, 8, 8, 5};
  View<float****> divisor{"divisor", 1, 8, 8, 5}, cube{"cube", 1, 8, 8, 8};
  View<double**> shells{"shells", 1, 5}, prior{"prior", 1, 5};
  View<double***> moments{"moments", 1, 5, half_set_moment_count};
  View<double*> error{"error", 2};
  VolumeSymmetry<Space> symmetry{Space(), symmetry_operators("D3")};
  WeightEqualiser<Space, float> equaliser{Space(), {8, 8, 8}, {4, 4, 4}};
  View<Complex***> images{"images", 3, 8, 5};
  View<float***> values{"values", 3, 8, 5};
  View<CTF*> ctfs{"ctfs", 3}, ctf_cotangents{"gradients", 3};
  View<float**> plane_angles{"angles", 1, 4}, plane_gradients{"gradients", 1, 4};
  View<float****> plane_matrices{"matrices", 1, 4, 2, 2};
  View<float***> angles{"angles", 1, 4, 3}, quaternions{"quaternions", 1, 4, 4},
      parameter_gradients{"gradients", 1, 4, 3}, quaternion_gradient{"gradients", 1, 4, 4};
  View<float****> matrices{"matrices", 1, 4, 3, 3}, rotated{"rotated", 1, 4, 3, 3};
};

std::vector<Function> functions(const Arguments& a) {
  return {
      {"pad_centre", [&](const Space& space) { pad_centre(space, a.centred, a.padded); }},
      {"crop_centre", [&](const Space& space) { crop_centre(space, a.padded, a.centred); }},
      {"apply_mask", [&](const Space& space) { apply_mask(space, a.centred, {.radius = 3, .edge = 1}); }},
      {"correct_rolloff",
       [&](const Space& space) {
         correct_rolloff<Linear>(space, a.centred, {12, 12, 12});
       }},
      {"correct_radial_rolloff",
       [&](const Space& space) {
         correct_radial_rolloff(space, a.centred, {12, 12, 12});
       }},
      {"normalise",
       [&](const Space& space) { normalise(space, a.spectrum, a.weight, a.other, a.shells, {.wiener = 1}); }},
      {"VolumeSymmetry::apply", [&](const Space& space) { a.symmetry.apply(space, a.spectrum, a.other); }},
      {"half_set_moments",
       [&](const Space& space) {
         half_set_moments(space, a.spectrum, a.weight, a.other, a.weight, a.moments, a.shells);
       }},
      {"WeightEqualiser::improve",
       [&](const Space& space) {
         a.equaliser.improve(space, a.weight, a.divisor, a.shells, a.spectrum, a.cube, a.error, a.prior,
                             {.first = true});
       },
       true},
      {"WeightEqualiser::keep_power",
       [&](const Space& space) { a.equaliser.keep_power(space, a.weight, a.divisor, a.spectrum, a.cube); },
       true},
      {"shell_averages", [&](const Space& space) { shell_averages(space, a.weight, a.shells); }},
      {"fourier_shell_correlation",
       [&](const Space& space) { fourier_shell_correlation(space, a.spectrum, a.other, a.shells); }},
      {"evaluate_ctf", [&](const Space& space) { evaluate_ctf(space, a.ctfs, 1.5, a.values); }},
      {"apply_ctf", [&](const Space& space) { apply_ctf(space, a.ctfs, 1.5, a.images, a.values); }},
      {"ctf_gradients",
       [&](const Space& space) { ctf_gradients(space, a.ctfs, 1.5, a.values, a.ctf_cotangents); }},
      {"apply_rolloff",
       [&](const Space& space) {
         apply_rolloff(space, a.centred, {12, 12, 12});
       }},
      {"multiply_by_multiplicity", [&](const Space& space) { multiply_by_multiplicity(space, a.spectrum); }},
      {"divide_by_multiplicity", [&](const Space& space) { divide_by_multiplicity(space, a.spectrum); }},
      {"squared_error",
       [&](const Space& space) {
         squared_error(space, a.spectrum, a.other, {.cotangent = a.cotangent}, a.weight);
       }},
      {"filter_gradients",
       [&](const Space& space) { filter_gradients(space, a.spectrum, a.other, a.weight); }},
      {"matrices_from_plane_angles",
       [&](const Space& space) { matrices_from_plane_angles(space, a.plane_angles, a.plane_matrices); }},
      {"plane_angle_gradients",
       [&](const Space& space) {
         plane_angle_gradients(space, a.plane_angles, a.plane_matrices, a.plane_gradients);
       }},
      {"matrices_from_angles",
       [&](const Space& space) { matrices_from_angles(space, a.angles, a.matrices); }},
      {"matrices_from_quaternions",
       [&](const Space& space) { matrices_from_quaternions(space, a.quaternions, a.matrices); }},
      {"matrices_from_rotation_vectors",
       [&](const Space& space) { matrices_from_rotation_vectors(space, a.angles, a.matrices, a.rotated); }},
      {"angle_gradients",
       [&](const Space& space) { angle_gradients(space, a.angles, a.matrices, a.parameter_gradients); }},
      {"quaternion_gradients",
       [&](const Space& space) {
         quaternion_gradients(space, a.quaternions, a.matrices, a.quaternion_gradient);
       }},
      {"rotation_vector_gradients",
       [&](const Space& space) {
         rotation_vector_gradients(space, a.matrices, a.rotated, a.parameter_gradients);
       }},
  };
}

} // namespace

TEST_CASE("labels of the pieces of a reconstruction; no fences, copies or allocations") {
  const Arguments arguments;
  for (const Function& function : functions(arguments))
    check_labels(function);
}

TEST_CASE("each piece of a reconstruction is a region with steps") {
  const Arguments arguments;
  for (const Function& function : functions(arguments)) {
    INFO(function.name);
    const Test::Report seen = Test::report([&] { function.call(Space()); });
    REQUIRE_FALSE(seen.regions.empty());
    CHECK(seen.regions[0] == "Bracewell::" + function.name);
    for (std::size_t i = 1; i < seen.regions.size(); ++i)
      CHECK((function.transforms && seen.regions[i] == "Bracewell::FFT::execute"));
    for (const auto& kernel : seen.kernels) {
      INFO(kernel.label);
      if (!function.transforms || !kernel.label.starts_with("Bracewell::FFT::"))
        CHECK(kernel.label.starts_with("Bracewell::" + function.name + "::"));
    }
  }
}

TEST_CASE("the pieces of a reconstruction run on the instance they are given") {
  const Arguments arguments;
  for (const Function& function : functions(arguments))
    check_instances(function);
}

TEST_CASE("a transform runs on the instance it is given, without fences, copies or allocations") {
  const Arguments a;
  const auto check = [&](const Space& space) {
    const FFT<Space, 3, float, Complex> forward(space, {8, 8, 8});
    const FFT<Space, 3, Complex, float> backward(space, {8, 8, 8});
    const Function transforms{"FFT", [&](const Space& instance) {
                                forward.execute(instance, a.centred, a.spectrum);
                                backward.execute(instance, a.spectrum, a.centred);
                              }};
    transforms.call(space);
    const Test::Report seen = Test::report([&] { transforms.call(space); });
    for (const auto& kernel : seen.kernels) {
      INFO(kernel.label);
      CHECK(kernel.label.starts_with("Bracewell::FFT::"));
      CHECK(kernel.instance == space.impl_instance_id());
    }
    CHECK(seen.allocations == std::vector<std::string>{});
    CHECK(seen.fences == std::vector<std::string>{});
    CHECK(seen.copies == std::vector<std::string>{});
  };
  check(Space());
  for (const Space& space : Kokkos::Experimental::partition_space(Space(), 1, 1))
    check(space);
}
