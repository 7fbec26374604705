// The communicator as any number of processes; built without MPI, as one.

#include "../deep_copy.hpp"

#include <bracewell/distributed/overlaps.hpp>
#include <bracewell/project/backproject.hpp>

#include <catch2/catch_session.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

using namespace Bracewell;

namespace {

using Space = Kokkos::DefaultExecutionSpace;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;
template <class DataType>
using HostView = Kokkos::View<DataType, Kokkos::LayoutRight, Kokkos::HostSpace>;

Communicator<Space> all_processes(const Space& space, Transport transport = Transport::Automatic) {
#if defined(BRACEWELL_ENABLE_MPI)
  return Communicator<Space>(space, MPI_COMM_WORLD, transport);
#else
  (void)space, (void)transport;
  return {};
#endif
}

/// Values of a process: small whole numbers, whose sums are exact in float in any order.
int value(int rank, std::int64_t i) { return int((i * 7 + 13) % 101) * (rank + 1) - 50; }

int sum_of_values(int processes, std::int64_t i) {
  int sum = 0;
  for (int rank = 0; rank < processes; ++rank)
    sum += value(rank, i);
  return sum;
}

template <class ViewType>
void fill(const ViewType& view, int rank) {
  const auto host = Kokkos::create_mirror_view(view);
  for (std::size_t i = 0; i < view.size(); ++i)
    host.data()[i] = typename ViewType::value_type(value(rank, std::int64_t(i)));
  Test::deep_copy(view, host);
}

template <class ViewType>
std::int64_t wrong_sums(const ViewType& view, int processes) {
  const auto host = Test::on_host(view);
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < view.size(); ++i)
    wrong += host.data()[i] != typename ViewType::value_type(sum_of_values(processes, std::int64_t(i)));
  return wrong;
}

void check_sums(const Communicator<Space>& processes) {
  const Space space;
  const auto piece = Communicator<Space>::piece_bytes;
  // More than a piece of each precision, ends that fall into others, complex numbers, no elements, the host's memory.
  const View<float*> large("large", static_cast<std::size_t>(piece / 4 + 5));
  const View<double**> odd("odd", 3, 7);
  const View<Kokkos::complex<double>***> waves("waves", 2, static_cast<std::size_t>(piece / 32), 3);
  const View<Kokkos::complex<float>*> one("one", 1);
  const View<float*> none("none", 0);
  const HostView<float**> on_host("on_host", 11, 13);
  const auto fill_all = [&] {
    fill(large, processes.rank());
    fill(odd, processes.rank());
    fill(waves, processes.rank());
    fill(one, processes.rank());
    fill(on_host, processes.rank());
  };
  const auto check_all = [&] {
    space.fence();
    CHECK(wrong_sums(large, processes.size()) == 0);
    CHECK(wrong_sums(odd, processes.size()) == 0);
    CHECK(wrong_sums(waves, processes.size()) == 0);
    CHECK(wrong_sums(one, processes.size()) == 0);
    CHECK(wrong_sums(on_host, processes.size()) == 0);
  };
  fill_all();
  processes.sum(space, large, odd, waves, one, none, on_host);
  check_all();
  fill_all();
  processes.reduce_in_order(space, large, odd, waves, one, none, on_host);
  check_all();
}

} // namespace

TEST_CASE("sums over processes are those of all their Views") {
  const Space space;
  check_sums(all_processes(space));
  check_sums(all_processes(space, Transport::Host));
}

TEST_CASE("MPI that reads the memory of the device sums the same") {
#if defined(BRACEWELL_ENABLE_MPI)
  const Space space;
  if (!Impl::is_host<Space> && !Impl::Processes::may_read_devices()) {
    CHECK_THROWS_WITH(
        all_processes(space, Transport::Device),
        Catch::Matchers::Equals("Bracewell::Communicator: transport: expected Host, as this MPI was built "
                                "without support of devices, found Device"));
    return;
  }
  check_sums(all_processes(space, Transport::Device));
#endif
}

TEST_CASE("sums in order have the bits of the documented tree") {
  const Space space;
  const auto processes = all_processes(space);
  constexpr int count = 1000;
  // 1/3 to the power of the rank and more: rounding differs from order to order.
  const auto summand = [](int rank, int i) { return float(std::pow(1.0 / 3, rank) * (1 + 0.37 * i)); };
  const HostView<float*> numbers("numbers", count);
  for (int i = 0; i < count; ++i)
    numbers(i) = summand(processes.rank(), i);
  processes.reduce_in_order(space, numbers);
  std::int64_t wrong = 0;
  for (int i = 0; i < count; ++i) {
    std::vector<float> sums;
    for (int rank = 0; rank < processes.size(); ++rank)
      sums.push_back(summand(rank, i));
    for (std::size_t step = 1; step < sums.size(); step *= 2)
      for (std::size_t rank = 0; rank + step < sums.size(); rank += 2 * step)
        sums[rank] += sums[rank + step];
    wrong += numbers(i) != sums[0];
  }
  CHECK(wrong == 0);
}

TEST_CASE("shares are neighbours, even, and all there is") {
  const Space space;
  const auto processes = all_processes(space);
  for (const std::int64_t count : {0, 1, 2, 3, 5, 100, 101}) {
    const Share mine = processes.share(count);
    CHECK(mine.size() >= count / processes.size());
    CHECK(mine.size() <= (count + processes.size() - 1) / processes.size());
    const HostView<double*> taken("taken", static_cast<std::size_t>(count));
    for (auto i = mine.begin; i < mine.end; ++i)
      taken(i) = processes.rank() + 1;
    const HostView<double*> next("next", static_cast<std::size_t>(processes.size()) + 1);
    next(processes.rank()) = double(mine.begin);
    processes.sum(space, taken, next);
    next(processes.size()) = double(count);
    for (int rank = 0; rank < processes.size(); ++rank) {
      CHECK(next(rank) <= next(rank + 1));
      for (auto i = std::int64_t(next(rank)); i < std::int64_t(next(rank + 1)); ++i)
        CHECK(taken(i) == rank + 1);
    }
  }
  CHECK_THROWS_WITH(
      processes.share(-1),
      Catch::Matchers::Equals("Bracewell::Communicator::share: count: expected at least 0, found -1"));
}

TEST_CASE("a broadcast gives all what one has") {
  const Space space;
  const auto processes = all_processes(space);
  for (int root = 0; root < processes.size(); ++root) {
    const View<Kokkos::complex<float>**> large("large", 700, 1001); // more than a piece
    fill(large, processes.rank());
    processes.broadcast(space, large, root);
    const auto host = Test::on_host(large);
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < large.size(); ++i)
      wrong += host.data()[i] != Kokkos::complex<float>(float(value(root, std::int64_t(i))));
    CHECK(wrong == 0);
  }
}

TEST_CASE("a broadcast takes any values") {
  const Space space;
  const auto processes = all_processes(space);
  const HostView<char*> letters("letters", 5);
  const HostView<std::int64_t**> numbers("numbers", 3, 7);
  for (int i = 0; i < 5; ++i)
    letters(i) = char('a' + processes.rank() + i);
  Test::deep_copy(numbers, std::int64_t(1) << (40 + processes.rank()));
  const int root = processes.size() - 1;
  processes.broadcast(space, letters, root);
  processes.broadcast(space, numbers, root);
  for (int i = 0; i < 5; ++i)
    CHECK(letters(i) == char('a' + root + i));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    CHECK(numbers.data()[i] == std::int64_t(1) << (40 + root));
}

TEST_CASE("overlaps of rectangles are summed in the order of ranks, with the same bits in all") {
  const Space space;
  const auto processes = all_processes(space);
  using Complex = Kokkos::complex<float>;
  // Rounding differs from order to order.
  const auto value = [](int rank, std::int64_t row, std::int64_t column) {
    return Complex(float(std::pow(1.0 / 3, rank) * (1 + 0.37 * double(row))),
                   float(rank + 1) / float(column + 3));
  };
  std::mt19937_64 generator(5); // the same in all processes
  const auto random = [&](std::int64_t count) {
    return std::int64_t(generator() % static_cast<std::uint64_t>(count));
  };
  for (int turn = 0; turn < 12; ++turn) {
    std::vector<Rectangle> rectangles;
    for (int rank = 0; rank < processes.size(); ++rank) {
      const std::int64_t row = random(20), column = random(30);
      rectangles.push_back({{row, column}, {row + random(15), column + random(25)}}); // empty, too
    }
    if (turn == 0)
      rectangles[0] = {{-3, 0}, {40, 60}}; // all others are within it
    if (turn == 1)
      rectangles.assign(rectangles.size(), Rectangle{});
    const Rectangle own = rectangles[std::size_t(processes.rank())];
    const View<Complex**> values("values", std::size_t(own.rows()), std::size_t(own.columns()));
    const auto host = Kokkos::create_mirror_view(values);
    const auto for_each_element = [&](const auto& visit) {
      for (std::int64_t row = own.begin[0]; row < own.end[0]; ++row)
        for (std::int64_t column = own.begin[1]; column < own.end[1]; ++column)
          visit(row, column, host(row - own.begin[0], column - own.begin[1]));
    };
    for_each_element([&](std::int64_t row, std::int64_t column, Complex& own_value) {
      own_value = value(processes.rank(), row, column);
    });
    Test::deep_copy(values, host);
    const Overlaps<Space, Complex> overlaps(space, processes, rectangles);
    const View<double*> whole("whole", 3); // which every process has
    fill(whole, processes.rank());
    if (turn % 2 == 0)
      overlaps.sum(space, values);
    else
      overlaps.sum(space, values, whole);
    space.fence();
    CHECK((turn % 2 == 0 || wrong_sums(whole, processes.size()) == 0));
    Test::deep_copy(host, values);
    std::int64_t wrong = 0, exchanged = 0;
    for_each_element([&](std::int64_t row, std::int64_t column, const Complex& found) {
      Complex sum = 0;
      for (int rank = 0; rank < processes.size(); ++rank) {
        if (!rectangles[std::size_t(rank)].has(row, column))
          continue;
        sum += value(rank, row, column);
        exchanged += rank == processes.rank() ? 0 : std::int64_t(sizeof(Complex));
      }
      wrong += found != sum;
    });
    CHECK(wrong == 0);
    CHECK(overlaps.exchanged_bytes() == exchanged);
  }
}

TEST_CASE("wrong arguments end in one sentence on every process") {
  const Space space;
  const auto processes = all_processes(space);
  const View<float**> view("view", 4, 6);
  CHECK_THROWS_WITH(
      processes.sum(space, view, Kokkos::subview(view, 1, Kokkos::ALL)),
      Catch::Matchers::Equals("Bracewell::Communicator::sum: views: expected memory of its own, found "
                              "memory shared with views"));
  CHECK_THROWS_AS(processes.sum(space, Kokkos::subview(view, Kokkos::ALL, std::pair(0, 2))), Error); // gaps
  CHECK_THROWS_AS(processes.broadcast(space, view, processes.size()), Error);
  CHECK_THROWS_AS(processes.broadcast(space, view, -1), Error);
  const auto count = std::to_string(processes.size());
  CHECK_THROWS_WITH((Overlaps<Space, float>(space, processes, {})),
                    Catch::Matchers::Equals("Bracewell::Overlaps: rectangles: expected one for each of " +
                                            count + " processes, found 0"));
  const Overlaps<Space, float> whole(space, processes,
                                     std::vector(std::size_t(processes.size()), Rectangle{{1, 2}, {4, 8}}));
  CHECK_THROWS_WITH(
      whole.sum(space, view),
      Catch::Matchers::Equals("Bracewell::Overlaps::sum: values: expected [3, 6], found [4, 6]"));
#if defined(BRACEWELL_ENABLE_MPI)
  CHECK_THROWS_WITH(Communicator<Space>(space, MPI_COMM_NULL),
                    Catch::Matchers::Equals(
                        "Bracewell::Communicator: communicator: expected processes, found MPI_COMM_NULL"));
#if !defined(BRACEWELL_ENABLE_NCCL)
  if (processes.size() > 1)
    CHECK_THROWS_AS(all_processes(space, Transport::Collectives), Error);
#endif
#endif
}

#if defined(BRACEWELL_ENABLE_MPI)
TEST_CASE("the caller's communicator may be freed, and parts of the world are worlds") {
  const Space space;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  Communicator<Space> processes(space, half);
  MPI_Comm_free(&half);
  const auto copy = processes;
  processes = Communicator<Space>();
  CHECK(copy.rank() == rank / 2);
  check_sums(copy);
  copy.barrier();
}
#endif

TEST_CASE("back-projections of shares sum to that of all", "[project]") {
  const Space space;
  const auto processes = all_processes(space);
  using Complex = Kokkos::complex<double>;
  constexpr int all = 7;
  const HostView<Complex****> all_projections("projections", 1, all, 16, 9);
  const HostView<double****> all_matrices("matrices", 1, all, 3, 3);
  for (int p = 0; p < all; ++p) {
    const double angle = 0.3 * p, c = std::cos(angle), s = std::sin(angle);
    const double matrix[3][3] = {{c, 0, -s}, {0, 1, 0}, {s, 0, c}};
    for (int i = 0; i < 9; ++i)
      all_matrices(0, p, i / 3, i % 3) = matrix[i / 3][i % 3];
    for (int i = 0; i < 16 * 9; ++i)
      all_projections(0, p, i / 9, i % 9) = Complex(std::sin(i + p), std::cos(2.0 * i - p));
  }
  const auto part = [&](Share share) {
    const auto poses = std::pair(share.begin, share.end);
    const View<Complex****> projections("projections", 1, std::size_t(share.size()), 16, 9);
    const View<double****> matrices("matrices", 1, std::size_t(share.size()), 3, 3);
    const HostView<Complex****> some("some", 1, std::size_t(share.size()), 16, 9);
    const HostView<double****> their("their", 1, std::size_t(share.size()), 3, 3);
    Test::deep_copy(some, Kokkos::subview(all_projections, Kokkos::ALL, poses, Kokkos::ALL, Kokkos::ALL));
    Test::deep_copy(their, Kokkos::subview(all_matrices, Kokkos::ALL, poses, Kokkos::ALL, Kokkos::ALL));
    Test::deep_copy(projections, some);
    Test::deep_copy(matrices, their);
    return std::pair(projections, matrices);
  };
  const View<Complex****> expected("expected", 1, 16, 16, 9), data("data", 1, 16, 16, 9);
  const auto [whole, whole_matrices] = part({0, all});
  backproject(space, whole, {.matrices = whole_matrices}, {.data = expected});

  const Share mine = processes.share(all);
  const auto [projections, matrices] = part(mine);
  backproject(space, projections, {.matrices = matrices}, {.data = data});
  processes.sum(space, data);
  space.fence();
  const auto a = Test::on_host(data);
  const auto b = Test::on_host(expected);
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error = std::max(error, Kokkos::abs(a.data()[i] - b.data()[i]));
    norm = std::max(norm, Kokkos::abs(b.data()[i]));
  }
  CHECK(norm > 1);
  CHECK(error <= 1e-14 * norm);
}

int main(int argc, char* argv[]) {
#if defined(BRACEWELL_ENABLE_MPI)
  MPI_Init(&argc, &argv);
#endif
  int failed = 0;
  {
    Kokkos::ScopeGuard kokkos(argc, argv);
    failed = Catch::Session().run(argc, argv);
  }
#if defined(BRACEWELL_ENABLE_MPI)
  MPI_Finalize();
#endif
  return failed;
}
