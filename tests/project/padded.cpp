// project from padded copies of reconstructions against project from what is stored: all precisions, spectra
// that are not Hermitian on self-mated columns, poses of all kinds.

#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/project.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

#include <random>

using namespace Bracewell;

namespace {

using Space = Kokkos::DefaultExecutionSpace;
using Memory = Space::memory_space;
template <class Value>
using View = Kokkos::View<Value*, Kokkos::LayoutRight, Space>;

/// `count` values that make(i) gives, where kernels run.
template <class Value, class Make>
View<Value> filled(std::int64_t count, const Make& make) {
  const View<Value> values("values", count);
  const auto host = Kokkos::create_mirror_view(values);
  for (std::int64_t i = 0; i < count; ++i)
    host(i) = make(i);
  Kokkos::deep_copy(values, host);
  return values;
}

template <class Value>
Array<Value, Memory> array(Value* data, std::initializer_list<std::int64_t> extents, std::int64_t width = 0) {
  Array<Value, Memory> result;
  result.data = data;
  result.given = true;
  result.rank = static_cast<int>(extents.size());
  std::copy(extents.begin(), extents.end(), result.extents);
  result.width = width;
  result.states_width = true;
  return result;
}

/// Projections [poses, (n,) n + 1, n/2+1] of one reconstruction that batches share, of axes N, N + 1[, N +
/// 3], without copies and from them; the last poses reach beyond a period or are not finite. `hole`: two
/// elements of the reconstruction are NaN, and no pose puts samples on elements (where a weight of zero may
/// belong to it).
template <class Kernel, class Stored, int M, int D>
void compare(int N, int n, bool ewald, bool hole = false) {
  using T = Impl::RealOf<Stored>::type;
  using Complex = Kokkos::complex<T>;
  CAPTURE(Kernel::name, M, D, N, n, ewald, hole, sizeof(Stored));
  const std::int64_t batches = 2, poses = 6;
  HalfSpectrumLayout<D> volume{{N, N + 1}};
  HalfSpectrumLayout<M> image{{n, n + 1}};
  if constexpr (D == 3)
    volume.size[2] = N + 3;
  if constexpr (M == 3)
    image.size[2] = n;
  std::mt19937 engine(1);
  std::uniform_real_distribution<T> random(-1, 1);
  const auto stored = filled<Stored>(volume.elements(), [&](std::int64_t i) {
    const T real = random(engine), imaginary = random(engine);
    return Stored(Impl::computed_with<Stored>(hole && i / 2 == 1 ? std::numeric_limits<T>::quiet_NaN() : real,
                                              imaginary));
  });
  const auto matrices = filled<T>(batches * poses * D * D, [&](std::int64_t i) {
    const std::int64_t pose = i / (D * D) % poses, element = i % (D * D);
    if (pose == 0 && !hole) // the identity: positions on elements, self-mated columns among them
      return T(element % (D + 1) == 0);
    if (pose == 1 && !hole) // half a turn: mirrored positions on elements
      return element % (D + 1) == 0 ? T(D == 3 && element == 4 ? 1 : -1) : T(0);
    const T scale = pose == 4 ? T(20) : T(0.9);
    return pose == 5 && element == 0 ? std::numeric_limits<T>::quiet_NaN() : scale * random(engine);
  });
  const auto shifts = filled<T>(poses * M, [&](std::int64_t) { return 3 * random(engine); });
  const auto filters = filled<T>(poses * image.elements(), [&](std::int64_t) { return random(engine); });
  const View<Complex> direct("direct", batches * poses * image.elements()),
      copied("copied", batches * poses * image.elements());

  const auto input = D == 3 ? array<const Stored>(stored.data(), {1, N + 3, N + 1, N / 2 + 1}, N)
                            : array<const Stored>(stored.data(), {1, N + 1, N / 2 + 1}, N);
  const auto output = [&](Complex* data) {
    return M == 3 ? array(data, {batches, poses, n, n + 1, n / 2 + 1}, n)
                  : array(data, {batches, poses, n + 1, n / 2 + 1}, n);
  };
  const auto of_pose = [&](const T* data) {
    return M == 3 ? array(data, {1, poses, n, n + 1, n / 2 + 1}, n)
                  : array(data, {1, poses, n + 1, n / 2 + 1}, n);
  };
  const Poses<T, Memory> where{.matrices = array<const T>(matrices.data(), {batches, poses, D, D}),
                               .shifts = array<const T>(shifts.data(), {1, poses, M}),
                               .filters = of_pose(filters.data())};
  ProjectionOptions options{.oversampling = 1, .radius = double(n)};
  if (ewald)
    options.ewald_radius = 2. * n;
  const auto samples = Impl::ProjectionArguments{{"test"}}.samples<M, D>(
      "input", input, "output", output(direct.data()), where, options);
  const Impl::StoredSpectra<Stored> spectra{stored.data(), 0};
  const Space space;
  Impl::launch_sampling(space, "direct", choose_sampling(Impl::sampling_work<Kernel, Space>(samples, 1)),
                        Impl::SampleTiles<Kernel, T, M, D, Impl::Mates::Single, Stored>{
                            .amplitudes = {.samples = samples}, .volumes = spectra, .values = direct.data()},
                        Impl::SamplesAlone());
  using Order = Impl::PaddedOrder<Stored, D, Kernel::width>;
  const View<typename Order::Entry> entries("entries", Order(volume).size);
  const auto copies =
      Impl::copy_to_padded<Kernel::width>(space, "copy", samples.reconstruction, spectra, 1, entries.data());
  Impl::SamplePadded<Kernel, T, M, D, Stored>(samples, copies, copied.data()).launch(space, "copied");

  const auto a = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), direct),
             b = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), copied);
  // Positions of the enlarged pose, up to 20 n, are rounded in three operations, in an order of each kernel's own;
  // values change by up to 2 along an element.
  const double rounding = 20. * n * 3 * std::numeric_limits<T>::epsilon() / 2 * 2;
  const double tolerance = std::max(sizeof(T) == 4 ? 2e-4 : 1e-12, rounding);
  double largest = 0, difference = 0;
  int undefined = 0;
  bool same_undefined = true;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool is_nan = std::isnan(a(i).real());
    undefined += is_nan;
    same_undefined = same_undefined && is_nan == std::isnan(b(i).real());
    if (is_nan)
      continue;
    largest = std::max<double>(largest, Kokkos::abs(a(i)));
    difference = std::max<double>(difference, Kokkos::abs(a(i) - b(i)));
  }
  CHECK(largest > 0.1);
  CHECK(undefined > 0);
  CHECK(same_undefined);
  CHECK(difference <= tolerance * largest);
}

} // namespace

TEMPLATE_TEST_CASE("padded copies are sampled like what they are copies of", "", HalfComplex,
                   Kokkos::complex<float>, Kokkos::complex<double>) {
  for (const int N : {4, 9, 30, 31}) {
    compare<Linear, TestType, 2, 2>(N, N, false);
    compare<CatmullRom, TestType, 2, 2>(N, N + 3, false);
    compare<Linear, TestType, 2, 3>(N, N, N == 30);
    compare<CatmullRom, TestType, 2, 3>(N, N, N == 31);
  }
  compare<Linear, TestType, 3, 3>(8, 9, false);
  compare<CubicBSpline, TestType, 3, 3>(9, 8, false);
}

TEMPLATE_TEST_CASE("an element that is not finite spoils the samples whose windows it is in", "", HalfComplex,
                   Kokkos::complex<float>, Kokkos::complex<double>) {
  compare<Linear, TestType, 2, 2>(30, 30, false, true);
  compare<CatmullRom, TestType, 2, 2>(30, 30, false, true);
  compare<Linear, TestType, 2, 3>(30, 30, false, true);
  compare<CatmullRom, TestType, 2, 3>(30, 30, false, true);
}

TEST_CASE("projections large enough for several tiles, and for rows of every sign") {
  compare<Linear, Kokkos::complex<float>, 2, 2>(150, 149, false);
  compare<CatmullRom, Kokkos::complex<float>, 2, 2>(150, 150, false);
}

TEST_CASE("project makes copies in the scratch memory that it asks for, and asks for enough") {
  const int n = 128, poses = 4 * 1024;
  using Complex = Kokkos::complex<float>;
  const Kokkos::View<Complex***, Kokkos::LayoutRight, Space> image("image", 1, 8, 5);
  const Space space;
  const std::int64_t size = scratch_size<CatmullRom>(space, image);
  using Order = Impl::PaddedOrder<Complex, 2, 4>;
  CHECK(size == (Impl::is_host<Space> ? 0 : 4 * Order(HalfSpectrumLayout<2>{{8, 8}}).size));
  if (size == 0)
    return;
  const Kokkos::View<Complex***, Kokkos::LayoutRight, Space> stored("stored", 1, n, n / 2 + 1);
  Kokkos::deep_copy(stored, Complex(1, 0));
  REQUIRE(choose_sampling({.dimensions = 2,
                           .projection_dimensions = 2,
                           .width = 4,
                           .value_bytes = 4,
                           .batches = 1,
                           .poses = poses,
                           .projection_elements = n * (n / 2 + 1),
                           .elements = n * (n / 2 + 1),
                           .scratch = true}) == Sampling::PaddedCopies);
  const std::int64_t needed = scratch_size<CatmullRom>(space, stored);
  const View<float> scratch("scratch", needed);
  const Kokkos::View<Complex****, Kokkos::LayoutRight, Space> with("with", 1, poses, n, n / 2 + 1);
  const auto matrices = filled<float>(4, [](std::int64_t i) { return i == 1 ? -1.f : i == 2 ? 1.f : 0.f; });
  const Poses<float, Memory> where{.matrices = array<const float>(matrices.data(), {1, 1, 2, 2})};
  project<CatmullRom>(space, stored, where, {.projections = with, .scratch = scratch});
  const auto values = Kokkos::create_mirror_view_and_copy(
      Kokkos::HostSpace(), Kokkos::subview(with, 0, poses - 1, Kokkos::ALL, Kokkos::ALL));
  CHECK(Kokkos::abs(values(0, n / 2 - 1) - Complex(1, 0)) < 1e-6);
  CHECK(Kokkos::abs(values(n / 2, n / 2)) == 0);
  const auto first = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), scratch);
  CHECK(first(0) == 1); // the copy was made
  const auto small = Kokkos::subview(scratch, std::pair<std::int64_t, std::int64_t>(0, needed - 1));
  CHECK_THROWS_WITH(project<CatmullRom>(space, stored, where, {.projections = with, .scratch = small}),
                    "Bracewell::project: scratch: expected " + std::to_string(needed) +
                        " aligned values (scratch_size<Kernel>), found " + std::to_string(needed - 1));
}
