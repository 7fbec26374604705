// Every kernel of reconstruct/, geometry/, optimize/ and distributed/ and every kind of FFT plan, in float and double.

#include <bracewell/distributed/overlaps.hpp>
#include <bracewell/fft/plan.hpp>
#include <bracewell/geometry/ctf_gradients.hpp>
#include <bracewell/geometry/euler.hpp>
#include <bracewell/geometry/pose_gradients.hpp>
#include <bracewell/geometry/rotation_vector.hpp>
#include <bracewell/geometry/symmetrise.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/optimize/adam.hpp>
#include <bracewell/optimize/least_squares.hpp>
#include <bracewell/project/filter_gradients.hpp>
#include <bracewell/reconstruct/fourier_shell_correlation.hpp>
#include <bracewell/reconstruct/mask.hpp>
#include <bracewell/reconstruct/normalise.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>
#include <bracewell/reconstruct/rolloff.hpp>
#include <bracewell/reconstruct/signal_and_noise.hpp>
#include <bracewell/reconstruct/spectrum_gradients.hpp>
#include <bracewell/reconstruct/weight_equaliser.hpp>

namespace Reconstruction {
namespace {

using Space = Kokkos::DefaultExecutionSpace;

template <class Value>
using Volumes = Kokkos::View<Value****, Kokkos::LayoutRight, Space>;

template <class Value>
using Poses = Kokkos::View<Value***, Kokkos::LayoutRight, Space>;

/// The parametrisations of rotations on the device.
template <class T>
struct Rotate {
  Volumes<T> matrices;
  KOKKOS_FUNCTION void operator()(int p) const {
    using namespace Bracewell;
    const auto A = euler_matrix(EulerAngles<T>{T(p), T(2), T(3)});
    const auto v = rotation_vector(A);
    const auto angles = euler_angles(rotation_matrix(v) * rotation_matrix(quaternion(A)));
    const auto gradient = chain(A, projection_matrix_derivatives(angles));
    const auto tangent = chain(A, rotation_matrix_derivatives(v));
    matrices(0, p, 0, 0) = gradient[0] + tangent[0] + chain(A, rotation_matrix_derivatives(quaternion(A)))[0];
  }
};

} // namespace

template <class T>
void every_operator(const Space& space, const Volumes<T>& real, const Volumes<T>& padded,
                    const Volumes<Kokkos::complex<T>>& spectrum, const Volumes<T>& weight,
                    const Kokkos::View<double**, Kokkos::LayoutRight, Space>& curve,
                    const Kokkos::View<Bracewell::CTF*, Space>& ctfs) {
  using namespace Bracewell;
  using Complex = Kokkos::complex<T>;
  pad_centre(space, real, padded);
  const std::array<int, 3> shape{16, 16, 16};
  FFT<Space, 3, T, Complex>(space, shape).execute(space, padded, spectrum);
  FFT<Space, 3, Complex, Complex>(space, {16, 16, 9}).execute(space, spectrum, spectrum);
  FFT<Space, 3, Complex, T>(space, shape).execute(space, spectrum, padded);
  crop_centre(space, padded, real, 0.5);
  correct_rolloff<CatmullRom>(space, real, shape);
  apply_rolloff<CatmullRom>(space, real, shape);
  correct_radial_rolloff(space, real, shape);
  apply_mask(space, real, {.radius = 3, .edge = 2});
  evaluate_ctf(space, ctfs, 1.0, weight);
  apply_ctf(space, ctfs, 1.0, spectrum, weight);
  ctf_gradients(space, ctfs, 1.0, weight, ctfs);
  filter_gradients(space, spectrum, spectrum, weight);
  multiply_by_multiplicity(space, spectrum);
  divide_by_multiplicity(space, spectrum);
  squared_error(space, spectrum, spectrum, {.losses = curve, .cotangent = spectrum}, weight);
  shell_averages(space, weight, curve);
  fourier_shell_correlation(space, spectrum, spectrum, curve);
  normalise(space, spectrum, weight, spectrum, curve);
  normalise<Linear>(space, spectrum, weight, spectrum, curve, {}, curve);
  half_set_moments(space, spectrum, weight, spectrum, weight,
                   Kokkos::View<double***, Kokkos::LayoutRight, Space>(), curve);
  const WeightEqualiser<Space, T> equaliser(space, shape, shape);
  equaliser.improve(space, weight, weight, curve, spectrum, real, Kokkos::View<double*, Space>("error", 2),
                    curve);
  equaliser.keep_power(space, weight, weight, spectrum, real);
  const VolumeSymmetry<Space> symmetry(space, symmetry_operators("I1"));
  symmetry.apply<CatmullRom>(space, spectrum, spectrum);
  symmetry.apply<CatmullRom>(space, weight, weight);
  symmetry.apply<CatmullRom>(space, spectrum, weight, spectrum, weight);
  Kokkos::parallel_for("rotate", Kokkos::RangePolicy(space, 0, 3), Rotate<T>{real});
}

template <class T>
void every_pose_gradient(const Space& space, const Poses<T>& angles, const Poses<T>& quaternions,
                         const Poses<T>& gradients, const Volumes<T>& matrices) {
  using namespace Bracewell;
  matrices_from_angles(space, angles, matrices);
  matrices_from_quaternions(space, quaternions, matrices);
  matrices_from_rotation_vectors(space, angles, matrices, matrices);
  angle_gradients(space, angles, matrices, gradients);
  quaternion_gradients(space, quaternions, matrices, gradients);
  rotation_vector_gradients(space, matrices, matrices, gradients);
  rotation_vector_gradients(space, angles, matrices, matrices, gradients);
  matrices_from_plane_angles(space, Kokkos::View<T**, Kokkos::LayoutRight, Space>(), matrices);
  plane_angle_gradients(space, Kokkos::View<T**, Kokkos::LayoutRight, Space>(), matrices,
                        Kokkos::View<T**, Kokkos::LayoutRight, Space>());
  Adam<Space, T> adam(space, {angles.size()});
  adam.step(space, {{angles, gradients, 0.1}});
  adam.reset(space);
  const Bracewell::Communicator<Space> processes; // without MPI, one
  processes.sum(space, angles, gradients);
  processes.broadcast(space, angles);
  Bracewell::Overlaps<Space, Kokkos::complex<T>>(space, processes, {{}})
      .sum(space, Kokkos::View<Kokkos::complex<T>**, Kokkos::LayoutRight, Space>("none", 0, 0));
}

/// Work of the host beside the GPU's, as the Python module has both. Kokkos before 5.2 counts by std::size_t.
struct HostWork {
  KOKKOS_FUNCTION void operator()(int) const {}
};

template <class Host>
void launch_on_host(const Host& host) {
  Bracewell::Impl::launch_kernel(
      "work", Kokkos::RangePolicy<Host, Kokkos::IndexType<std::size_t>>(host, 0, 3), HostWork());
}
template void launch_on_host(const Kokkos::DefaultHostExecutionSpace&);

template void every_operator<float>(const Space&, const Volumes<float>&, const Volumes<float>&,
                                    const Volumes<Kokkos::complex<float>>&, const Volumes<float>&,
                                    const Kokkos::View<double**, Kokkos::LayoutRight, Space>&,
                                    const Kokkos::View<Bracewell::CTF*, Space>&);
template void every_operator<double>(const Space&, const Volumes<double>&, const Volumes<double>&,
                                     const Volumes<Kokkos::complex<double>>&, const Volumes<double>&,
                                     const Kokkos::View<double**, Kokkos::LayoutRight, Space>&,
                                     const Kokkos::View<Bracewell::CTF*, Space>&);

template void every_pose_gradient<float>(const Space&, const Poses<float>&, const Poses<float>&,
                                         const Poses<float>&, const Volumes<float>&);
template void every_pose_gradient<double>(const Space&, const Poses<double>&, const Poses<double>&,
                                          const Poses<double>&, const Volumes<double>&);

} // namespace Reconstruction
