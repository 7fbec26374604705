// Sampling padded copies of reconstructions against sampling what is stored: all precisions, spectra that are not
// Hermitian on self-mated columns, poses of all kinds; and PreparedReference, which makes such copies.

#include "../deep_copy.hpp"

#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/backproject.hpp>
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
template <class DataType>
using ViewOf = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;

/// `count` values that make(i) gives, where kernels run.
template <class Value, class Make>
View<Value> filled(std::int64_t count, const Make& make) {
  const View<Value> values("values", count);
  const auto host = Kokkos::create_mirror_view(values);
  for (std::int64_t i = 0; i < count; ++i)
    host(i) = make(i);
  Test::deep_copy(values, host);
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

/// Padded copies of spectra, and their memory.
template <class Stored, int D, int width, Impl::Mates mates>
struct Copies {
  Impl::PaddedOrder<Stored, D, width> order;
  View<typename Impl::PaddedOrder<Stored, D, width>::Entry> entries;
  Impl::PaddedSpectra<Stored, D, width> spectra;

  Copies(const Space& space, const HalfSpectrumLayout<D>& layout, const Impl::StoredSpectra<Stored>& stored)
      : order(layout), entries("entries", order.size), spectra{entries.data(), order, true} {
    Impl::copy_to_padded<mates>(space, "copy", layout, stored, 1, spectra);
  }
};

/// Projections [poses, (n,) n + 1, n/2+1] of one reconstruction that batches share, of axes N, N + 1[, N +
/// 3], without copies and from them; the last poses reach beyond a period or are not finite. `hole`: two
/// elements of the reconstruction are NaN, and no pose puts samples on elements (where a weight of zero may
/// belong to it).
template <class Kernel, class Stored, int M, int D>
void compare(int N, int n, bool ewald, bool hole = false) {
  using T = typename Impl::RealOf<Stored>::type;
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
  Impl::launch_sampling(space, "direct", Impl::is_host<Space> ? Sampling::Rows : Sampling::Tiles, spectra,
                        Impl::Sampler<Kernel, T, M, D, Impl::Mates::Single, Stored>{
                            .amplitudes = {.samples = samples}, .values = direct.data()},
                        Impl::SamplesAlone());
  const Copies<Stored, D, Kernel::width, Impl::Mates::Single> copies(space, volume, spectra);
  Impl::SamplePadded<Kernel, T, M, D, Impl::Mates::Single, Stored>(samples, copies.spectra, copied.data())
      .launch(space, "copied");

  const auto a = Test::on_host(direct), b = Test::on_host(copied);
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

template <class Value>
double relative_difference(const View<Value>& found, const View<Value>& expected) {
  const auto a = Test::on_host(found), b = Test::on_host(expected);
  double difference = 0, sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double(Kokkos::abs(a(i) - b(i))), 2);
    sum += std::pow(double(Kokkos::abs(b(i))), 2);
  }
  CHECK(sum > 0);
  return std::sqrt(difference / sum);
}

/// All that gradients ask for, of an odd box, from what is stored and from copies.
template <class Kernel, class Stored, int D, Impl::Mates mates>
void compare_gradients(double tolerance) {
  using T = typename Impl::RealOf<Stored>::type;
  using Complex = Kokkos::complex<T>;
  CAPTURE(Kernel::name, D, sizeof(Stored), mates == Impl::Mates::Both);
  const std::int64_t poses = 5;
  const int n = 12;
  const HalfSpectrumLayout<D> volume = [] {
    if constexpr (D == 2)
      return HalfSpectrumLayout<2>{{14, 13}};
    else
      return HalfSpectrumLayout<3>{{14, 13, 15}};
  }();
  const std::int64_t elements = (n + 1) * (n / 2 + 1);
  std::mt19937 engine(2);
  std::uniform_real_distribution<T> random(-1, 1);
  const auto any = [&](std::int64_t) { return Complex(random(engine), random(engine)); };
  const auto real = [&](std::int64_t) { return random(engine); };
  const auto stored = filled<Stored>(volume.elements(), [&](std::int64_t i) { return Stored(any(i)); });
  const auto weight_volume = filled<T>(volume.elements(), real);
  const auto slopes = filled<Complex>(poses * elements, any);
  const auto weights = filled<T>(poses * elements, real), filters = filled<T>(poses * elements, real);
  const auto matrices = filled<T>(poses * D * D, [&](std::int64_t i) { // the last reaches beyond a period
    return T(i / (D * D) == poses - 1 ? 3 : 0.7) * random(engine);
  });
  const auto shifts = filled<T>(poses * 2, real);
  const auto volume_array = D == 3 ? array<const Stored>(stored.data(), {1, 15, 13, 8}, 14)
                                   : array<const Stored>(stored.data(), {1, 13, 8}, 14);
  const auto images = [&](auto* data) { return array(data, {1, poses, n + 1, n / 2 + 1}, n); };
  const Impl::ProjectionArguments arguments{{"test"}};
  ProjectionOptions options{.oversampling = 1.1, .radius = double(n)};
  if (D == 3)
    options.ewald_radius = 3. * n;
  const auto samples =
      arguments.samples<2, D>("input", volume_array, "slopes", images(slopes.data()),
                              Poses<T, Memory>{.matrices = array<const T>(matrices.data(), {1, poses, D, D}),
                                               .shifts = array<const T>(shifts.data(), {1, poses, 2}),
                                               .filters = images(static_cast<const T*>(filters.data()))},
                              options);
  constexpr bool both = mates == Impl::Mates::Both;
  const Impl::StoredSpectra<Stored> spectra{stored.data(), 0};
  const Space space;
  const Copies<Stored, D, Kernel::width, mates> copies(space, volume, spectra);
  Impl::Amplitudes<T, 2, D, mates> amplitudes{.samples = samples, .values = slopes.data()};
  if (both)
    amplitudes.weights = arguments.per_projection("weights", images(static_cast<const T*>(weights.data())),
                                                  images(slopes.data()));
  for (const bool sums : {true, false}) {
    CAPTURE(sums);
    struct {
      View<Complex> values;
      View<T> weights, matrices, shifts;
    } out[2];
    for (auto& one : out) {
      one = {View<Complex>("values", slopes.size()), View<T>("weights", weights.size()),
             View<T>("matrices", matrices.size()), View<T>("shifts", shifts.size())};
      const bool padded = &one == out;
      const auto sample = [&](const auto& from, Sampling way) {
        Impl::launch_sampling(space, "test", way, from,
                              Impl::Sampler<Kernel, T, 2, D, mates, Stored>{
                                  .amplitudes = amplitudes,
                                  .weight_volumes = {both ? weight_volume.data() : nullptr, 0},
                                  .values = one.values.data(),
                                  .weights = both && (sums || !padded) ? one.weights.data() : nullptr},
                              Impl::PoseGradients<T>{one.matrices.data(), one.shifts.data(), false});
      };
      const Sampling direct = Impl::is_host<Space> ? Sampling::Rows : Sampling::Tiles;
      if (padded)
        sample(copies.spectra, sums ? Sampling::PoseSums : Sampling::PaddedCopies);
      else
        sample(spectra, sums ? Sampling::PoseSums : direct);
    }
    CHECK(relative_difference(out[0].values, out[1].values) < tolerance);
    if (!sums)
      continue;
    CHECK(relative_difference(out[0].matrices, out[1].matrices) < tolerance);
    CHECK(relative_difference(out[0].shifts, out[1].shifts) < tolerance);
    if (both)
      CHECK(relative_difference(out[0].weights, out[1].weights) < tolerance);
  }
}

/// Every operator that takes a prepared reference, of batches of odd volumes, against itself with the View.
template <class Kernel, class Stored>
void check_prepared(double tolerance) {
  using T = Impl::real_of_stored<Stored>;
  using Complex = Kokkos::complex<T>;
  CAPTURE(Kernel::name, sizeof(Stored));
  const int n = 9, batches = 2, poses = 4;
  const Space space;
  std::mt19937 engine(3);
  std::uniform_real_distribution<T> random(-1, 1);
  const auto fill = [&](auto view, double scale = 1) {
    const View<T> flat(reinterpret_cast<T*>(view.data()), view.size() * sizeof(view.data()[0]) / sizeof(T));
    Test::deep_copy(
        flat, filled<T>(std::int64_t(flat.size()), [&](std::int64_t) { return T(scale) * random(engine); }));
    return view;
  };
  const auto flat = [](auto view) {
    return View<typename decltype(view)::value_type>(view.data(), view.size());
  };
  ViewOf<Complex****> volume("volume", batches, n, n, n / 2 + 1);
  fill(volume, 1e7); // beyond what half precision can hold
  const HalfSpectrum reconstruction{volume, n};
  const auto matrices = fill(ViewOf<T****>("matrices", batches, poses, 3, 3), 0.6);
  const auto shifts = fill(ViewOf<T***>("shifts", 1, poses, 2));
  const auto images = fill(ViewOf<Complex****>("images", batches, poses, n, n / 2 + 1));
  const auto weight = fill(ViewOf<T****>("weight", batches, n, n, n / 2 + 1));
  const auto weights = fill(ViewOf<T****>("weights", 1, poses, n, n / 2 + 1));
  const Poses<T, Memory> where{.matrices = matrices, .shifts = shifts};

  struct Out {
    ViewOf<Complex****> projections, values, gradient;
    ViewOf<T****> matrices, weights, back_matrices;
    ViewOf<T***> shifts;
  } out[2];
  for (auto& one : out)
    one = {ViewOf<Complex****>("projections", batches, poses, n, n / 2 + 1),
           ViewOf<Complex****>("values", batches, poses, n, n / 2 + 1),
           ViewOf<Complex****>("gradient", batches, poses, n, n / 2 + 1),
           ViewOf<T****>("matrices", batches, poses, 3, 3),
           ViewOf<T****>("weights", batches, poses, n, n / 2 + 1),
           ViewOf<T****>("matrices", batches, poses, 3, 3),
           ViewOf<T***>("shifts", 1, poses, 2)};
  const auto half = [&](auto view) { return HalfSpectrum{view, n}; };

  auto prepared = prepare<Kernel, Stored>(space, reconstruction);
  const auto cotangent = prepare<Kernel, Stored>(space, reconstruction, ReadBy::BackprojectGradients);
  CHECK(prepared.memory_bytes() >= std::int64_t(volume.size() * sizeof(Stored)));
  CHECK(prepared.memory_bytes() ==
        prepared.bytes_needed(space, prepared.layout(), std::int64_t(volume.extent(0))));
  project(space, prepared, where, half(out[0].projections));
  project<Kernel>(space, reconstruction, where, half(out[1].projections));
  project_gradients(
      space, prepared, where, half(images),
      {.projections = half(out[0].values), .matrices = out[0].matrices, .shifts = out[0].shifts});
  project_gradients<Kernel>(
      space, reconstruction, where, half(images),
      {.projections = half(out[1].values), .matrices = out[1].matrices, .shifts = out[1].shifts});
  const HalfSpectrum weight_cotangent{weight, n};
  backproject_gradients(space, half(images), where, cotangent,
                        {.weight = weight_cotangent,
                         .weights = half(weights),
                         .projections = half(out[0].gradient),
                         .projection_weights = half(out[0].weights)});
  backproject_gradients(space, half(images), where, cotangent, {.matrices = out[0].back_matrices});
  backproject_gradients<Kernel>(space, half(images), where,
                                {.data = reconstruction,
                                 .weight = weight_cotangent,
                                 .weights = half(weights),
                                 .projections = half(out[1].gradient),
                                 .projection_weights = half(out[1].weights)});
  backproject_gradients<Kernel>(space, half(images), where,
                                {.data = reconstruction, .matrices = out[1].back_matrices});
  CHECK(relative_difference(flat(out[0].projections), flat(out[1].projections)) < tolerance);
  CHECK(relative_difference(flat(out[0].values), flat(out[1].values)) < tolerance);
  CHECK(relative_difference(flat(out[0].matrices), flat(out[1].matrices)) < 10 * tolerance);
  CHECK(relative_difference(flat(out[0].shifts), flat(out[1].shifts)) < 10 * tolerance);
  CHECK(relative_difference(flat(out[0].gradient), flat(out[1].gradient)) < tolerance);
  CHECK(relative_difference(flat(out[0].weights), flat(out[1].weights)) < tolerance);
  CHECK(relative_difference(flat(out[0].back_matrices), flat(out[1].back_matrices)) < 10 * tolerance);

  // Filled anew, moved, with an oversampling of its own.
  fill(volume);
  prepared.update(space, reconstruction);
  prepared.set_oversampling(0.8);
  const auto moved = std::move(prepared);
  project(space, moved, where, half(out[0].projections));
  project<Kernel>(space, reconstruction, where, half(out[1].projections), {.oversampling = 0.8});
  CHECK(relative_difference(flat(out[0].projections), flat(out[1].projections)) < tolerance);
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

TEST_CASE("gradients from padded copies are those from what is stored") {
  compare_gradients<Linear, Kokkos::complex<double>, 3, Impl::Mates::Single>(1e-12);
  compare_gradients<Linear, Kokkos::complex<double>, 3, Impl::Mates::Both>(1e-12);
  compare_gradients<CatmullRom, Kokkos::complex<float>, 3, Impl::Mates::Both>(2e-4);
  compare_gradients<CatmullRom, HalfComplex, 3, Impl::Mates::Single>(2e-4);
  compare_gradients<CatmullRom, Kokkos::complex<double>, 2, Impl::Mates::Both>(1e-12);
}

TEST_CASE("a prepared reference stands for the View that it was made from") {
  check_prepared<CatmullRom, Kokkos::complex<float>>(2e-6);
  check_prepared<CatmullRom, HalfComplex>(4.9e-4);
  check_prepared<Linear, Kokkos::complex<double>>(1e-13);
}

TEST_CASE("a prepared reference refuses other shapes and other operators") {
  using Complex = Kokkos::complex<float>;
  const Space space;
  const ViewOf<Complex***> image("image", 1, 8, 5), small("small", 1, 3, 5);
  const ViewOf<Complex****> images("images", 1, 2, 8, 5);
  const ViewOf<float****> matrices("matrices", 1, 2, 2, 2);
  auto prepared = prepare(space, image);
  CHECK_THROWS_WITH(prepare(space, small),
                    "Bracewell::PreparedReference: reconstruction: expected axes of 4 to "
                    "32768 elements, found [1, 3, 5]");
  CHECK_THROWS_WITH(prepared.update(space, small), "Bracewell::PreparedReference::update: reconstruction: "
                                                   "expected [1, 8, 5] (width 8), found [1, 3, 5] (width 8)");
  CHECK_THROWS_WITH(
      backproject_gradients(space, images, {.matrices = matrices}, prepared, {.projections = images}),
      "Bracewell::backproject_gradients: data: expected one prepared for "
      "ReadBy::BackprojectGradients, found the other");
  CHECK_THROWS_WITH(
      project(space, prepare(space, image, ReadBy::BackprojectGradients), {.matrices = matrices}, images),
      "Bracewell::project: reconstruction: expected one prepared for ReadBy::Project, found the "
      "other");
}
