// Volumes beyond 2^33 elements: their memory is only reserved, and the few pages that samples touch are all
// that is used.

#include "reference.hpp"

#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/project.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <sys/mman.h>

#include <limits>
#include <set>

using namespace Bracewell;

namespace {

using Space = Kokkos::DefaultExecutionSpace;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;
using Complex = Kokkos::complex<double>;

/// Zeros that take no memory until they are written.
template <class Value>
struct Reserved {
  std::size_t bytes;
  Value* data;
  explicit Reserved(std::size_t elements) : bytes(elements * sizeof(Value)) {
    void* const address =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data = address == MAP_FAILED ? nullptr : static_cast<Value*>(address);
    if (data)
      madvise(address, bytes, MADV_NOHUGEPAGE); // a touched page stays small
  }
  Reserved(const Reserved&) = delete;
  ~Reserved() {
    if (data)
      munmap(data, bytes);
  }
};

const Test::Sizes volume{3000, 3001, 3002}, image{7, 12};
constexpr std::size_t batches = 2, pose_count = 1;
const Test::Reference reference{"linear", volume, image, 1, 2.5};

struct Problem {
  View<double****> matrices{"matrices", batches, pose_count, 3, 3};
  View<double***> shifts{"shifts", batches, pose_count, 2};
  View<Complex****> projections{"projections", batches, pose_count, 7, 7};
  View<double****> weights{"weights", batches, pose_count, 7, 7};
  std::size_t volume_elements = reference.elements(volume), image_elements = reference.elements(image);

  Problem() {
    Test::Random random(31);
    for (std::size_t i = 0; i < matrices.size(); ++i)
      matrices.data()[i] = 600 * random(); // positions on all of the volume, and beyond its Nyquist limits
    for (std::size_t i = 0; i < shifts.size(); ++i)
      shifts.data()[i] = random();
    for (std::size_t i = 0; i < projections.size(); ++i) {
      projections.data()[i] = Complex(random(), 2);
      weights.data()[i] = random();
    }
  }
  std::size_t batch(std::size_t pose) const { return pose / pose_count; }

  /// Elements, over all batches, that the samples touch.
  std::set<std::size_t> touched() const {
    std::set<std::size_t> result;
    for (std::size_t pose = 0; pose < batches * pose_count; ++pose)
      for (std::size_t element = 0; element < image_elements; ++element)
        for (const double sign : {1., -1.}) {
          auto q = reference.position(reference.frequency_of(element), matrices.data() + 9 * pose);
          Test::for_each_tap("linear", q, [&](auto tap, double) {
            for (auto& component : tap)
              component *= static_cast<long long>(sign);
            result.insert(batch(pose) * volume_elements + Test::stored(tap, volume).index);
          });
        }
    return result;
  }
};

} // namespace

TEST_CASE("projection from volumes beyond 2^33 elements") {
  if constexpr (Impl::is_host<Space>) {
    const Problem problem;
    const Reserved<Complex> memory(batches * problem.volume_elements);
    if (!memory.data)
      SKIP("this system does not reserve memory beyond what it has");
    const auto touched = problem.touched();
    REQUIRE(*touched.rbegin() > (std::size_t(1) << 34));
    Test::Random random(32);
    for (const std::size_t i : touched)
      memory.data[i] = Complex(random(), random());

    const View<Complex****> volumes(memory.data, batches, volume[0], volume[1], volume[2] / 2 + 1);
    const View<Complex****> projections("projections", batches, pose_count, 7, 7);
    project<Linear>(Space(), volumes, {.matrices = problem.matrices, .shifts = problem.shifts}, projections,
                    {.oversampling = 1, .radius = reference.radius});
    Kokkos::fence();
    std::vector<Complex> expected(problem.image_elements);
    for (std::size_t pose = 0; pose < batches * pose_count; ++pose) {
      reference.project(memory.data + problem.batch(pose) * problem.volume_elements,
                        problem.matrices.data() + 9 * pose, problem.shifts.data() + 2 * pose,
                        expected.data());
      for (std::size_t i = 0; i < expected.size(); ++i)
        CHECK(Kokkos::abs(projections.data()[pose * expected.size() + i] - expected[i]) < 1e-9);
    }
  }
}

TEST_CASE("back-projection into volumes beyond 2^33 elements") {
  if constexpr (Impl::is_host<Space>) {
    const auto strategy = GENERATE(Strategy::Atomic, Strategy::Owned);
    CAPTURE(int(strategy));
    const Problem problem;
    const Reserved<Complex> data(batches * problem.volume_elements),
        expected(batches * problem.volume_elements);
    const Reserved<double> weight(batches * problem.volume_elements),
        expected_weight(batches * problem.volume_elements);
    if (!data.data || !expected.data || !weight.data || !expected_weight.data)
      SKIP("this system does not reserve memory beyond what it has");

    const View<Complex****> volumes(data.data, batches, volume[0], volume[1], volume[2] / 2 + 1);
    const View<double****> weights(weight.data, batches, volume[0], volume[1], volume[2] / 2 + 1);
    backproject<Linear>(Space(), problem.projections,
                        {.matrices = problem.matrices, .shifts = problem.shifts},
                        {.data = volumes, .weight = weights, .weights = problem.weights},
                        {.oversampling = 1, .radius = reference.radius, .strategy = strategy});
    Kokkos::fence();
    for (std::size_t pose = 0; pose < batches * pose_count; ++pose) {
      const std::size_t begin = problem.batch(pose) * problem.volume_elements,
                        images = pose * problem.image_elements;
      reference.backproject(problem.projections.data() + images, problem.weights.data() + images,
                            problem.matrices.data() + 9 * pose, problem.shifts.data() + 2 * pose, false,
                            expected.data + begin, expected_weight.data + begin);
    }
    double power = 0, error = 0, weight_error = 0;
    for (const std::size_t i : problem.touched()) {
      power += std::pow(Kokkos::abs(expected.data[i]), 2);
      error += std::pow(Kokkos::abs(data.data[i] - expected.data[i]), 2);
      weight_error += std::pow(weight.data[i] - expected_weight.data[i], 2);
    }
    CHECK(power > 1);
    CHECK(std::sqrt(error / power) < 1e-10);
    CHECK(std::sqrt(weight_error / power) < 1e-10);
  }
}

namespace {

/// Counts the visits of elements from `first` on, `count` of them; others are wrong, or passed over where `alone`.
template <int M>
struct CountVisits {
  HalfSpectrumLayout<M> layout;
  std::int64_t first, count;
  bool alone;
  int *visits, *wrong;

  KOKKOS_FUNCTION void operator()(const int (&k)[M], std::int64_t element) const {
    const std::int64_t at = element - first;
    if (at < 0 || at >= count) {
      *wrong += !alone;
      return;
    }
    int expected[M];
    layout.frequency(element, expected);
    ++visits[at];
    for (int c = 0; c < M; ++c)
      *wrong += k[c] != expected[c];
  }
};

} // namespace

TEST_CASE("tiles cover every stored element of a projection once") {
  const Space space;
  const auto check = [&]<int M, int lanes>(const HalfSpectrumLayout<M>& layout, std::int64_t poses) {
    const auto tiles = Impl::Tiles<M>::make(space, layout, poses);
    std::vector<int> visits(layout.elements());
    int wrong = 0;
    for (int tile = 0; tile < tiles.per_pose; ++tile)
      for (int lane = 0; lane < lanes; ++lane)
        tiles.template for_each<lanes>(
            tile, lane, CountVisits<M>{layout, 0, layout.elements(), false, visits.data(), &wrong});
    CHECK(wrong == 0);
    CHECK(std::count(visits.begin(), visits.end(), 1) == layout.elements());
  };
  const auto check_all = [&]<int M>(const HalfSpectrumLayout<M>& layout, std::int64_t poses) {
    check.template operator()<M, 1>(layout, poses);
    check.template operator()<M, 32>(layout, poses);
  };
  for (const std::int64_t poses : {1, 1000000}) {
    for (const int width : {1, 2, 14, 15, 16, 17})
      for (const int height : {1, 31, 32, 33, 600})
        check_all(HalfSpectrumLayout<2>{width, height}, poses);
    check_all(HalfSpectrumLayout<3>{9, 7, 12}, poses);
    check_all(HalfSpectrumLayout<3>{16, 33, 1}, poses);
  }
}

TEST_CASE("tiles of projections beyond 2^33 elements") {
  const auto check = []<int M>(const HalfSpectrumLayout<M>& layout) {
    REQUIRE(layout.elements() > (std::int64_t(1) << 33));
    const auto tiles = Impl::Tiles<M>::make(Space(), layout, 1);
    // The tile and place of an element, from its column and row.
    for (const std::int64_t element :
         {std::int64_t(0), (std::int64_t(1) << 31) + 5, (std::int64_t(1) << 32) - 1,
          (std::int64_t(1) << 33) + 7, layout.elements() - 1}) {
      const std::int64_t column = element % layout.columns(), row = element / layout.columns();
      const std::int64_t tile = row / tiles.rows * tiles.across + column / tiles.columns;
      REQUIRE(tile < tiles.per_pose);
      int visits = 0, wrong = 0;
      tiles.template for_each<1>(int(tile), 0, CountVisits<M>{layout, element, 1, true, &visits, &wrong});
      CHECK(wrong == 0);
      CHECK(visits == 1);
    }
  };
  check(HalfSpectrumLayout<3>{3002, 3001, 3000});
  check(HalfSpectrumLayout<2>{150000, 150001});
}

TEST_CASE("bricks cover every stored element once") {
  for (const auto& layout :
       {HalfSpectrumLayout<3>{4, 4, 5}, HalfSpectrumLayout<3>{9, 33, 20}, HalfSpectrumLayout<3>{40, 7, 16}}) {
    const Impl::Bricks<3> bricks{layout, {8, 8, 4}};
    std::vector<int> visits(layout.elements());
    for (int brick = 0; brick < bricks.count(); ++brick) {
      int first[3];
      bricks.first(brick, first);
      for (int z = first[2]; z < first[2] + 4 && z <= layout.size[2] / 2; ++z)
        for (int y = first[1]; y < first[1] + 8 && y <= layout.size[1] / 2; ++y)
          for (int x = first[0]; x < first[0] + 8 && x <= layout.size[0] / 2; ++x)
            ++visits.at(layout.row({x, y, z}) + x);
    }
    CHECK(std::count(visits.begin(), visits.end(), 1) == layout.elements());
  }
  const Impl::Bricks<3> huge{{3002, 3001, 3000}, {8, 8, 4}};
  CHECK(huge.count() == std::int64_t(188) * 376 * 750);
}

TEST_CASE("scratch of Strategy::Duplicated beyond 2^33 values") {
  const std::int64_t elements = std::int64_t(3000) * 3000 * 1501;
  const Space space;
  CHECK(scratch_size(space, Strategy::Duplicated, elements, false) >= space.concurrency() * 2 * elements);
  CHECK(scratch_size(space, Strategy::Duplicated, elements, true) >= space.concurrency() * 3 * elements);
}
