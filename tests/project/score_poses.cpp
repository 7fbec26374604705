// PoseScoring against sums in double over what `project` yields: scores of all kinds, best poses, empty problems,
// wrong arguments. The kernel of GPUs runs on hosts, too.

#include "../deep_copy.hpp"
#include "problems.hpp"

#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/project.hpp>
#include <bracewell/project/score_poses.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cmath>
#include <random>

using namespace Bracewell;

namespace {

using Space = Kokkos::DefaultExecutionSpace;
using Memory = Space::memory_space;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;

template <class DataType, class Make>
void fill_with(const View<DataType>& view, const Make& make) {
  const auto host = Kokkos::create_mirror_view(view);
  for (std::size_t i = 0; i < host.size(); ++i)
    host.data()[i] = make(i);
  Test::deep_copy(view, host);
}
template <class DataType>
auto on_host(const View<DataType>& view) {
  return Test::on_host(view);
}

/// What a case is made of: sizes, and how much of it is shared between images.
struct Case {
  const char* name;
  std::size_t images, poses, shifts;
  int height, width;
  std::size_t filters, weights; ///< 0: none, 1: shared, or as many as images
  std::optional<double> radius = std::nullopt, ewald_radius = std::nullopt;
  double scale = 1; ///< of the matrices
};

/// A problem at random, its scores by definition and by PoseScoring.
template <class T, int D, class Kernel>
struct Problem {
  using Complex = Kokkos::complex<T>;
  using Spectrum = std::conditional_t<D == 2, Complex***, Complex****>;

  Case sizes;
  Space space;
  View<Spectrum> reconstruction;
  View<Complex***> images;
  View<T***> filters, weights;
  View<T***> matrices;
  View<T**> shifts;
  int N;
  ProjectionOptions options;

  explicit Problem(const Case& asked) : sizes(asked), N(std::min(asked.height, asked.width) + 3) {
    const auto h = std::size_t(sizes.height), columns = std::size_t(sizes.width / 2 + 1), n = std::size_t(N);
    if constexpr (D == 2)
      reconstruction = View<Spectrum>("reconstruction", 1, n, n / 2 + 1);
    else
      reconstruction = View<Spectrum>("reconstruction", 1, n, n + 1, n / 2 + 1);
    images = View<Complex***>("images", sizes.images, h, columns);
    filters = View<T***>("filters", sizes.filters, h, columns);
    weights = View<T***>("weights", sizes.weights, h, columns);
    matrices = View<T***>("matrices", sizes.poses, D, D);
    shifts = View<T**>("shifts", sizes.shifts, 2);
    std::mt19937 engine(5);
    std::uniform_real_distribution<T> random(-1, 1);
    const auto complex = [&](std::size_t) {
      const T real = random(engine);
      return Complex(real, random(engine));
    };
    fill_with(reconstruction, complex);
    fill_with(images, complex);
    fill_with(filters, [&](std::size_t) { return random(engine); });
    fill_with(weights, [&](std::size_t) { return 1 + random(engine); });
    fill_with(matrices, [&](std::size_t) { return T(sizes.scale) * random(engine); });
    fill_with(shifts, [&](std::size_t) { return 3 * random(engine); });
    options = {.oversampling = 1.1, .radius = sizes.radius, .ewald_radius = sizes.ewald_radius};
  }

  PreparedReference<Kernel, Space, D, Complex> reference() const {
    return prepare<Kernel>(space, HalfSpectrum{reconstruction, N});
  }

  template <class DataType>
  Array<const T, Memory> optional(const View<DataType>& view) const {
    return view.extent(0) > 0 ? Array<const T, Memory>(HalfSpectrum{view, sizes.width})
                              : Array<const T, Memory>();
  }

  PoseScoring<Space, T> scoring(PoseScore score, int best) const {
    PoseScoring<Space, T> result(space,
                                 {.images = std::int64_t(sizes.images) + 1,
                                  .shifts = int(sizes.shifts) + 2,
                                  .height = sizes.height,
                                  .width = sizes.width,
                                  .best = best},
                                 options, score);
    result.set_images(space, {.spectra = HalfSpectrum{images, sizes.width},
                              .filters = optional(filters),
                              .weights = optional(weights)});
    result.set_shifts(space, shifts);
    return result;
  }

  /// The definition; an image's power, too.
  std::vector<double> defined(PoseScore score, std::vector<double>& powers) const {
    const HalfSpectrumLayout<2> layout{{sizes.width, sizes.height}};
    const auto h = std::size_t(sizes.height), columns = std::size_t(layout.columns());
    const View<Complex****> projections("projections", 1, sizes.poses * sizes.shifts, h, columns);
    const View<T****> repeated("matrices", 1, sizes.poses * sizes.shifts, D, D);
    const View<T***> all_shifts("shifts", 1, sizes.poses * sizes.shifts, 2);
    const auto m = on_host(matrices);
    const auto s = on_host(shifts);
    fill_with(repeated,
              [&](std::size_t i) { return m.data()[i / (D * D) / sizes.shifts * D * D + i % (D * D)]; });
    fill_with(all_shifts, [&](std::size_t i) { return s.data()[i / 2 % sizes.shifts * 2 + i % 2]; });
    auto projected = options;
    projected.radius = options.radius.value_or(std::min(sizes.height, sizes.width) / 2.);
    project<Kernel>(space, HalfSpectrum{reconstruction, N}, {.matrices = repeated, .shifts = all_shifts},
                    HalfSpectrum{projections, sizes.width}, projected);
    const auto p = on_host(projections);
    const auto x = on_host(images);
    const auto c = on_host(filters), w = on_host(weights);
    std::vector<double> scores;
    powers.clear();
    for (std::size_t image = 0; image < sizes.images; ++image) {
      double power = 0;
      for (std::size_t i = 0; i < sizes.poses * sizes.shifts; ++i) {
        double difference = 0, overlap = 0, projection_power = 0;
        power = 0;
        for (std::size_t e = 0; e < h * columns; ++e) {
          int k[2];
          layout.frequency(std::int64_t(e), k);
          if (k[0] * k[0] + k[1] * k[1] > *projected.radius * *projected.radius)
            continue;
          const auto at = [&](const auto& view, std::size_t count) {
            return count == 0 ? 1. : double(view.data()[(count > 1 ? image : 0) * h * columns + e]);
          };
          const double factor = layout.multiplicity(k[0]) * at(w, sizes.weights),
                       filter = at(c, sizes.filters);
          const Kokkos::complex<double> own(x.data()[image * h * columns + e]),
              other(filter * Kokkos::complex<double>(p.data()[i * h * columns + e]));
          const auto square = [](const Kokkos::complex<double>& v) {
            return v.real() * v.real() + v.imag() * v.imag();
          };
          difference += factor * square(own - other);
          overlap += factor * (own.real() * other.real() + own.imag() * other.imag());
          projection_power += factor * square(other);
          power += factor * square(own);
        }
        const double norm = std::sqrt(power * projection_power);
        scores.push_back(score == PoseScore::SquaredDifference ? difference : norm == 0 ? 0 : overlap / norm);
      }
      powers.push_back(power);
    }
    return scores;
  }
};

/// Scores found against those defined, relative to the power of the image and of the projections.
template <class T>
void compare(const Case& sizes, PoseScore score, const std::vector<double>& defined,
             const std::vector<double>& powers, const T* found) {
  double worst = 0;
  for (std::size_t i = 0; i < defined.size(); ++i) {
    const double unit = score == PoseScore::Correlation
                            ? 1
                            : std::max(powers[i / (sizes.poses * sizes.shifts)], std::abs(defined[i]));
    // Not by a maximum, which would pass over what is not a number.
    if (!(std::abs(double(found[i]) - defined[i]) / unit <= worst))
      worst = std::abs(double(found[i]) - defined[i]) / unit;
  }
  CHECK(worst < (sizeof(T) == 4 ? 1e-5 : 1e-12));
}

/// Best poses against those of the sorted scores, bit by bit.
template <class T, class All, class Best, class Indices>
void compare_best(const Case& sizes, PoseScore score, const All& all, const Best& best, const Indices& poses,
                  const Indices& shifts) {
  const std::size_t ranks = best.extent(1);
  const bool low = score == PoseScore::SquaredDifference;
  for (std::size_t image = 0; image < sizes.images; ++image) {
    struct One {
      T score;
      int pose, shift;
    };
    std::vector<One> expected;
    for (std::size_t pose = 0; pose < sizes.poses && sizes.shifts > 0; ++pose) {
      One one{all(image, pose, 0), int(pose), 0};
      for (std::size_t shift = 1; shift < sizes.shifts; ++shift)
        if (const T other = all(image, pose, shift);
            (low ? other < one.score : other > one.score) || std::isnan(one.score))
          one = {other, int(pose), int(shift)};
      if (!std::isnan(one.score))
        expected.push_back(one);
    }
    std::stable_sort(expected.begin(), expected.end(),
                     [&](const One& a, const One& b) { return low ? a.score < b.score : a.score > b.score; });
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      CAPTURE(image, rank);
      if (rank < expected.size()) {
        CHECK(best(image, rank) == expected[rank].score);
        CHECK(poses(image, rank) == expected[rank].pose);
        CHECK(shifts(image, rank) == expected[rank].shift);
      } else {
        CHECK(std::isnan(best(image, rank)));
        CHECK(poses(image, rank) == -1);
        CHECK(shifts(image, rank) == -1);
      }
    }
  }
}

/// `score(all, best, poses, shifts)` against the definition.
template <class T, int D, class Kernel, class Score>
void check_scores(const Problem<T, D, Kernel>& problem, PoseScore score, int ranks, const Score& run) {
  const Case& sizes = problem.sizes;
  CAPTURE(sizes.name, D, Kernel::name, int(score), sizeof(T));
  const View<T***> all("all", sizes.images, sizes.poses, sizes.shifts);
  const View<T**> best("best", sizes.images, ranks);
  const View<int**> poses("poses", sizes.images, ranks), shifts("shifts", sizes.images, ranks);
  run(all, best, poses, shifts);
  problem.space.fence();
  std::vector<double> powers;
  const auto defined = problem.defined(score, powers);
  const auto found = on_host(all);
  compare(sizes, score, defined, powers, found.data());
  compare_best<T>(sizes, score, found, on_host(best), on_host(poses), on_host(shifts));
}

template <class T, int D, class Kernel>
void check_case(const Case& sizes, PoseScore score, int ranks = 3) {
  const Problem<T, D, Kernel> problem(sizes);
  check_scores(problem, score, ranks,
               [&](const auto& all, const auto& best, const auto& poses, const auto& shifts) {
                 const auto scoring = problem.scoring(score, ranks);
                 scoring.score(problem.space, problem.reference(), problem.matrices,
                               {.all = all, .best = best, .poses = poses, .shifts = shifts});
               });
}

/// The kernel of GPUs, wherever.
template <class T, int D, class Kernel>
void check_tiles(const Case& sizes, PoseScore score, int ranks = 3) {
  const Problem<T, D, Kernel> problem(sizes);
  const Space& space = problem.space;
  check_scores(
      problem, score, ranks, [&](const auto& all, const auto& best, const auto& poses, const auto& shifts) {
        using Complex = Kokkos::complex<T>;
        HalfSpectrumLayout<D> layout{{problem.N, D == 2 ? problem.N : problem.N + 1}};
        if constexpr (D == 3)
          layout.size[2] = problem.N;
        const Impl::PaddedOrder<Complex, D, Kernel::width> order(layout);
        const Kokkos::View<typename Impl::PaddedOrder<Complex, D, Kernel::width>::Entry*, Space> entries(
            "entries", order.size);
        const Impl::PaddedSpectra<Complex, D, Kernel::width> spectra{entries.data(), order, true};
        Impl::copy_to_padded<Impl::Mates::Single>(
            space, "copy", layout, Impl::StoredSpectra<Complex>{problem.reconstruction.data(), 0}, 1,
            spectra);
        Impl::ScoringPlan<Space, T, true> plan(
            space, {{sizes.width, sizes.height}}, {score == PoseScore::Correlation},
            std::int64_t(sizes.images), int(sizes.shifts), ranks,
            sizes.radius.value_or(std::min(sizes.height, sizes.width) / 2.));
        const auto stride = [&](std::size_t count) { return count > 1 ? plan.layout.elements() : 0; };
        plan.set_images(space, std::int64_t(sizes.images),
                        {.layout = plan.layout,
                         .images = problem.images.data(),
                         .filters = sizes.filters ? problem.filters.data() : nullptr,
                         .weights = sizes.weights ? problem.weights.data() : nullptr,
                         .filter_stride = stride(sizes.filters),
                         .weight_stride = stride(sizes.weights)});
        plan.set_shifts(space, int(sizes.shifts), problem.shifts.data());
        auto options = problem.options;
        options.radius = sizes.radius.value_or(std::min(sizes.height, sizes.width) / 2.);
        Array<const Complex, Memory> volume(HalfSpectrum{problem.reconstruction, problem.N});
        const View<Complex****> images("images", 1, sizes.poses, sizes.height, sizes.width / 2 + 1);
        Array<const T, Memory> matrices(problem.matrices);
        matrices.rank = 4;
        std::copy_n(std::array<std::int64_t, 4>{1, std::int64_t(sizes.poses), D, D}.begin(), 4,
                    matrices.extents);
        const auto samples = Impl::ProjectionArguments{{"test"}}.samples<2, D>(
            "volume", volume, "images", Array<Complex, Memory>(HalfSpectrum{images, sizes.width}),
            Poses<T, Memory>{.matrices = matrices}, options);
        plan.template score<Kernel, D, Complex>(space, samples, spectra,
                                                {all.data(), best.data(), poses.data(), shifts.data()});
      });
}

const Case odd{"odd, a filter for each image", 5, 70, 3, 9, 11, 5, 0},
    even{"even, all shared", 3, 7, 5, 12, 10, 1, 1}, plain{"no filters, no weights", 2, 50, 1, 8, 8, 0, 0},
    weighted{"weights for each image, a shared filter", 4, 13, 6, 10, 9, 1, 4, 3.3},
    bent{"Ewald sphere, all corners", 2, 9, 4, 9, 8, 2, 1, 20., 7.},
    far{"positions many periods out", 2, 9, 4, 9, 8, 2, 2, {}, {}, 5},
    many_shifts{"more shifts than a tile has rows", 2, 3, 600, 4, 5, 2, 0},
    many_poses{"more poses than a pass has", 2, 20000, 2, 3, 2, 0, 0, 1.};

constexpr float untouched = 7;

/// Arguments that fit.
struct Arguments {
  using Complex = Kokkos::complex<float>;
  Space space;
  View<Complex****> reconstruction{"reconstruction", 1, 6, 6, 4};
  View<Complex***> images{"images", 2, 6, 4};
  View<float***> filters{"filters", 2, 6, 4}, matrices{"matrices", 5, 3, 3};
  View<float**> shifts{"shifts", 3, 2};
  View<float***> all{"all", 2, 5, 3};
  View<float**> best{"best", 2, 2};
  View<int**> poses{"poses", 2, 2}, best_shifts{"shifts", 2, 2};
  PreparedReference<Linear, Space, 3> reference = prepare<Linear>(space, reconstruction);

  PoseScoring<Space> plan(int ranks = 2) const {
    return {space, {.images = 2, .shifts = 3, .height = 6, .width = 6, .best = ranks}};
  }
  PoseScoring<Space> filled(int ranks = 2) const {
    auto result = plan(ranks);
    result.set_images(space, {.spectra = images});
    result.set_shifts(space, shifts);
    return result;
  }
  PoseScores<float, Memory> outputs() const {
    return {.all = all, .best = best, .poses = poses, .shifts = best_shifts};
  }
};

template <class Call>
void fails(const char* message, const Call& call) {
  CHECK_THROWS_WITH(call(), std::string("Bracewell::PoseScoring") + message);
}

} // namespace

TEMPLATE_TEST_CASE("scores are those of the definition", "", float, double) {
  using enum PoseScore;
  check_case<TestType, 3, Linear>(odd, SquaredDifference);
  check_case<TestType, 3, Linear>(even, Correlation);
  check_case<TestType, 3, Linear>(plain, SquaredDifference);
  check_case<TestType, 3, Linear>(weighted, Correlation);
  check_case<TestType, 3, Linear>(bent, SquaredDifference);
  check_case<TestType, 3, Linear>(far, SquaredDifference);
  check_case<TestType, 3, Linear>(many_shifts, SquaredDifference);
  if constexpr (sizeof(TestType) == 8) {
    check_case<double, 3, CatmullRom>(odd, Correlation);
    check_case<double, 3, CatmullRom>(far, SquaredDifference);
    check_case<double, 2, Linear>(even, SquaredDifference);
  }
}

TEMPLATE_TEST_CASE("scores by tiles are those of the definition", "", float, double) {
  using enum PoseScore;
  check_tiles<TestType, 3, Linear>(odd, SquaredDifference);
  check_tiles<TestType, 3, Linear>(weighted, Correlation);
  check_tiles<TestType, 3, Linear>(bent, SquaredDifference);
  check_tiles<TestType, 3, Linear>(far, SquaredDifference);
  check_tiles<TestType, 3, Linear>(many_shifts, SquaredDifference);
  if constexpr (sizeof(TestType) == 8)
    check_tiles<double, 3, CatmullRom>(odd, Correlation);
}

TEST_CASE("passes of poses are ranked as one") {
  check_case<float, 3, Linear>(many_poses, PoseScore::SquaredDifference, 40);
  check_tiles<float, 3, Linear>(many_poses, PoseScore::SquaredDifference, 40);
}

TEST_CASE("of equal scores the first is best") {
  const Arguments a;
  Test::deep_copy(a.reconstruction, Kokkos::complex<float>(1));
  Test::deep_copy(a.images, Kokkos::complex<float>(1));
  const auto scoring = a.filled();
  scoring.score(a.space, a.reference, a.matrices, a.outputs());
  const auto best = on_host(a.best);
  const auto poses = on_host(a.poses), shifts = on_host(a.best_shifts);
  for (int image = 0; image < 2; ++image)
    for (int rank = 0; rank < 2; ++rank) {
      CHECK(best(image, rank) == best(0, 0));
      CHECK(poses(image, rank) == rank);
      CHECK(shifts(image, rank) == 0);
    }
}

TEST_CASE("poses that are not finite are never best") {
  const Arguments a;
  Test::deep_copy(a.images, Kokkos::complex<float>(1));
  fill_with(a.matrices, [](std::size_t i) { return i < 36 ? std::numeric_limits<float>::quiet_NaN() : 0; });
  a.filled().score(a.space, a.reference, a.matrices, a.outputs());
  const auto all = on_host(a.all);
  const auto best = on_host(a.best);
  const auto poses = on_host(a.poses);
  CHECK(std::isnan(all(0, 3, 2)));
  CHECK(std::isfinite(all(0, 4, 2)));
  CHECK(poses(1, 0) == 4);
  CHECK(poses(1, 1) == -1);
  CHECK(std::isnan(best(1, 1)));
}

TEST_CASE("no images, poses or shifts are no work") {
  const Arguments a;
  auto scoring = a.filled();
  Test::deep_copy(a.best, untouched);
  const View<float***> no_matrices("matrices", 0, 3, 3);
  scoring.score(
      a.space, a.reference, no_matrices,
      {.all = View<float***>("all", 2, 0, 3), .best = a.best, .poses = a.poses, .shifts = a.best_shifts});
  CHECK(std::isnan(on_host(a.best)(1, 1)));
  CHECK(on_host(a.poses)(1, 1) == -1);

  scoring.set_shifts(a.space, View<float**>("shifts", 0, 2));
  Test::deep_copy(a.poses, 7);
  scoring.score(
      a.space, a.reference, a.matrices,
      {.all = View<float***>("all", 2, 5, 0), .best = a.best, .poses = a.poses, .shifts = a.best_shifts});
  CHECK(on_host(a.poses)(0, 0) == -1);

  scoring.set_images(a.space, {.spectra = View<Kokkos::complex<float>***>("images", 0, 6, 4)});
  scoring.score(a.space, a.reference, a.matrices, {.all = View<float***>("all", 0, 5, 0)});
  PoseScoring<Space>(a.space, {.images = 0, .shifts = 0, .height = 6, .width = 6});
}

TEST_CASE("the memory that scoring needs is known before") {
  for (const int best : {0, 5}) {
    const PoseScoringSizes sizes{.images = 20, .shifts = 30, .height = 40, .width = 31, .best = best};
    const auto plan = PoseScoring<Space>(Space(), sizes, {.radius = 12});
    const double needed = double(PoseScoring<Space>::bytes_needed(Space(), sizes, {.radius = 12}));
    CHECK(double(plan.memory_bytes()) >= needed);
    CHECK(double(plan.memory_bytes()) < 1.01 * needed + 20000);
  }
}

TEST_CASE("wrong arguments of scoring") {
  const Arguments a;
  Test::deep_copy(a.all, untouched);
  const auto sized = [&](PoseScoringSizes sizes, ProjectionOptions options = {}) {
    PoseScoring<Space>(a.space, sizes, options);
  };
  fails(": sizes.images: expected from 0 to 1073741824, found -1",
        [&] { sized({.images = -1, .shifts = 1, .height = 6, .width = 6}); });
  fails(": sizes.width: expected from 1 to 32768, found 0",
        [&] { sized({.images = 1, .shifts = 1, .height = 6, .width = 0}); });
  fails(": options.radius: expected from 0 to 1e+09, found -2",
        [&] { sized({.images = 1, .shifts = 1, .height = 6, .width = 6}, {.radius = -2}); });

  auto scoring = a.plan();
  fails("::score: images: expected set_images before, found none",
        [&] { scoring.score(a.space, a.reference, a.matrices, a.outputs()); });
  fails("::set_images: images.spectra: expected [2, 6, 4] (width 6), found [2, 5, 4] (width 6)", [&] {
    scoring.set_images(a.space, {.spectra = View<Kokkos::complex<float>***>("images", 2, 5, 4)});
  });
  fails("::set_images: images.spectra: expected [2, 6, 4] (width 6), found [2, 6, 4] (width 7)", [&] {
    scoring.set_images(a.space, {.spectra = HalfSpectrum{a.images, 7}});
  });
  fails("::set_images: images.spectra: expected at most 2 images, found [3, 6, 4]", [&] {
    scoring.set_images(a.space, {.spectra = View<Kokkos::complex<float>***>("images", 3, 6, 4)});
  });
  fails("::set_images: images.weights: expected [2, 6, 4] (width 6), found [3, 6, 4] (width 6)", [&] {
    scoring.set_images(a.space, {.spectra = a.images, .weights = View<float***>("weights", 3, 6, 4)});
  });
  scoring.set_images(a.space, {.spectra = a.images, .filters = a.filters});
  fails("::score: shifts: expected set_shifts before, found none",
        [&] { scoring.score(a.space, a.reference, a.matrices, a.outputs()); });
  fails("::set_shifts: shifts: expected [3, 2], found [3, 3]",
        [&] { scoring.set_shifts(a.space, View<float**>("shifts", 3, 3)); });
  fails("::set_shifts: shifts: expected at most 3 shifts, found [4, 2]",
        [&] { scoring.set_shifts(a.space, View<float**>("shifts", 4, 2)); });
  scoring.set_shifts(a.space, a.shifts);

  fails("::score: matrices: expected [5, 3, 3], found [5, 2, 2]",
        [&] { scoring.score(a.space, a.reference, View<float***>("matrices", 5, 2, 2), a.outputs()); });
  fails("::score: scores: expected all or best, found neither",
        [&] { scoring.score(a.space, a.reference, a.matrices, {}); });
  fails("::score: scores.all: expected [2, 5, 3], found [2, 5, 4]",
        [&] { scoring.score(a.space, a.reference, a.matrices, {.all = View<float***>("all", 2, 5, 4)}); });
  fails("::score: scores.poses: expected [2, 2], found []",
        [&] { scoring.score(a.space, a.reference, a.matrices, {.best = a.best}); });
  fails("::score: scores.all: expected memory of its own, found memory shared with matrices", [&] {
    const View<float***> own("own", 2, 5, 9);
    const View<float***> matrices(own.data(), 5, 3, 3), all(own.data() + 20, 2, 5, 3);
    scoring.score(a.space, a.reference, matrices, {.all = all});
  });
  fails("::score: reference: expected one reconstruction, found [2, 6, 6, 4]", [&] {
    const View<Kokkos::complex<float>****> two("two", 2, 6, 6, 4);
    scoring.score(a.space, prepare<Linear>(a.space, two), a.matrices, a.outputs());
  });
  fails("::score: options.oversampling: expected a value where boxes differ, for instance 1.33333 for boxes "
        "padded "
        "from 6 to 8, found none",
        [&] {
          const View<Kokkos::complex<float>****> padded("padded", 1, 8, 8, 5);
          scoring.score(a.space, prepare<Linear>(a.space, padded), a.matrices, a.outputs());
        });
  fails("::score: scores.best: expected sizes.best > 0, found 0",
        [&] { a.filled(0).score(a.space, a.reference, a.matrices, a.outputs()); });
  const auto all = on_host(a.all);
  for (std::size_t i = 0; i < all.size(); ++i)
    CHECK(all.data()[i] == untouched);
}
