// Times what several processes do together, one GPU each: `mpirun -n 2 bench_distributed`. A line per case: its name as
// of the other benchmarks, the milliseconds of the slowest process, and those of them that sums alone take. Sums by
// every transport that is there; insertion of all particles of a reconstruction and the sum of its volumes; steps of a
// ptychographic solver. Without MPI, and as one process, the same work without sums, for comparison.

#include "tuning.hpp"

#include <bracewell/distributed/communicator.hpp>
#include <bracewell/distributed/overlaps.hpp>
#include <bracewell/geometry/rotations.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/ptychography/solver.hpp>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace Tuning;
using namespace Bracewell;

struct Processes {
  Space space;
  std::vector<Communicator<Space>> transports; ///< the first one is used for work

  Processes() {
#if defined(BRACEWELL_ENABLE_MPI)
    transports.emplace_back(space, MPI_COMM_WORLD);
    if (transports[0].transport() != Transport::Host)
      transports.emplace_back(space, MPI_COMM_WORLD, Transport::Host);
#else
    transports.emplace_back();
#endif
  }

  const Communicator<Space>& all() const { return transports[0]; }

  /// Milliseconds of the slowest process, the median of some calls; all of them begin together.
  template <class Work>
  double milliseconds(const Work& work, int repeats = 7) const {
    std::vector<double> times;
    for (int i = 0; i <= repeats; ++i) {
      space.fence();
      all().barrier();
      const auto begin = std::chrono::steady_clock::now();
      work();
      space.fence();
      const std::chrono::duration<double, std::milli> own = std::chrono::steady_clock::now() - begin;
      const Kokkos::View<double*, Kokkos::HostSpace> of_all("times", static_cast<std::size_t>(all().size()));
      of_all(all().rank()) = own.count();
      all().sum(space, of_all);
      double slowest = 0;
      for (int rank = 0; rank < all().size(); ++rank)
        slowest = std::max(slowest, of_all(rank));
      if (i > 0) // the first one is not counted
        times.push_back(slowest);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  void print(const std::string& name, double milliseconds, double of_sums) const {
    if (all().rank() == 0) {
      std::printf("distributed/%s/processes:%d %.3f ms, sums %.3f ms\n", name.c_str(), all().size(),
                  milliseconds, of_sums);
      std::fflush(stdout);
    }
  }
};

const char* name_of(Transport transport) {
  return transport == Transport::Host ? "host" : transport == Transport::Device ? "device" : "collectives";
}

void sums(const Processes& processes, bool small) {
  for (const auto& transport : processes.transports)
    for (const std::int64_t kilobytes : {50, 2100, 16000, 128000, 810000}) {
      if (small && kilobytes > 16000)
        break;
      const View<float*> values("values", static_cast<std::size_t>(kilobytes * 250));
      const double time = processes.milliseconds([&] { transport.sum(processes.space, values); },
                                                 kilobytes > 100000 ? 3 : 21);
      processes.print("sum/" + std::string(name_of(transport.transport())) +
                          "/kilobytes:" + std::to_string(kilobytes),
                      time, time);
    }
}

/// Batches of the same images at other poses, which lie in memory; data and weight of one half set.
void reconstruction(const Processes& processes, std::int64_t particles, int box) {
  constexpr std::int64_t batch = 2000;
  const auto n = static_cast<std::size_t>(box), padded = 2 * n;
  const Share mine = processes.all().share(particles);
  const View<Complex****> images("images", 1, batch, n, n / 2 + 1);
  const View<float****> weights("weights", 1, batch, n, n / 2 + 1),
      weight("weight", 1, padded, padded, n + 1);
  const View<Complex****> data("data", 1, padded, padded, n + 1);
  Kokkos::deep_copy(View<Complex*>(images.data(), images.size()),
                    random_values<Complex>("values", std::int64_t(images.size())));
  Kokkos::deep_copy(weights, 1.0f);
  const View<float****> matrices("matrices", 1, static_cast<std::size_t>(mine.size()), 3, 3);
  const auto host = Kokkos::create_mirror_view(matrices);
  std::mt19937_64 generator(static_cast<std::uint64_t>(processes.all().rank()));
  for (std::int64_t i = 0; i < mine.size(); ++i) {
    const auto rotation = rotation_matrix(random_rotation<double>(generator));
    for (int entry = 0; entry < 9; ++entry)
      host(0, i, entry / 3, entry % 3) = static_cast<float>(rotation(entry / 3, entry % 3));
  }
  Kokkos::deep_copy(matrices, host);
  const auto insert = [&] {
    for (std::int64_t first = 0; first < mine.size(); first += batch) {
      const std::int64_t last = std::min(first + batch, mine.size());
      const auto part = [&](const auto& view, std::int64_t from, std::int64_t to) {
        return Kokkos::subview(view, Kokkos::ALL, std::pair(from, to), Kokkos::ALL, Kokkos::ALL);
      };
      backproject(processes.space, part(images, 0, last - first), {.matrices = part(matrices, first, last)},
                  {.data = data, .weight = weight, .weights = part(weights, 0, last - first)},
                  {.oversampling = 2});
    }
  };
  const auto sum = [&] { processes.all().sum(processes.space, data, weight); };
  const double whole = processes.milliseconds([&] { insert(), sum(); }, 3);
  processes.print("reconstruct/box:" + std::to_string(box) + "/particles:" + std::to_string(particles), whole,
                  processes.milliseconds(sum, 3));
}

/// Steps of all patterns of a raster scan.
void ptychography(const Processes& processes, int side, int n, int m) {
  const Space& space = processes.space;
  const int object = 512, patterns = side * side;
  const Share mine = processes.all().share(patterns);
  const auto corner = [&](std::int64_t index) { return int(index * (object - m) / side); };
  // What the patterns of each process reach, as bracewell-ptychography has it.
  std::vector<Rectangle> rectangles;
  for (std::int64_t rank = 0, size = processes.all().size(); rank < size; ++rank) {
    const std::int64_t first = patterns * rank / size, last = patterns * (rank + 1) / size - 1;
    rectangles.push_back({{rank == 0 ? 0 : corner(first / side), 0},
                          {rank + 1 == size ? object : corner(last / side) + m, object}});
  }
  const Rectangle own = rectangles[static_cast<std::size_t>(processes.all().rank())];
  Kokkos::View<int* [2], Kokkos::HostSpace> corners("corners", static_cast<std::size_t>(mine.size()));
  for (std::int64_t j = 0; j < mine.size(); ++j) {
    corners(j, 0) = corner((mine.begin + j) / side) - static_cast<int>(own.begin[0]);
    corners(j, 1) = corner((mine.begin + j) % side);
  }
  const PtychographyShape shape{.object = {own.rows(), object}, .probe = m, .detector = n};
  using Solver = PtychographySolver<Space, float, Impl::CompiledWith<float, Impl::FusedDetectors<128, 256>>>;
  typename Solver::Loss loss(space, shape, corners,
                             {.loss = PatternLoss::Amplitude, .scale = PatternScale::None});
  const std::int64_t group = 64;
  const Kokkos::View<std::uint16_t***, Kokkos::LayoutRight, Kokkos::HostSpace> counts("counts", group, n, n);
  for (std::size_t i = 0; i < counts.size(); ++i)
    counts.data()[i] = static_cast<std::uint16_t>(90 + i % 21);
  for (std::int64_t first = 0; first < mine.size(); first += group)
    loss.set_patterns(
        space, first,
        Kokkos::subview(counts,
                        std::pair<std::int64_t, std::int64_t>(0, std::min(group, mine.size() - first)),
                        Kokkos::ALL, Kokkos::ALL));
  Solver solver(space, shape, std::move(loss), {});
  Kokkos::deep_copy(space, solver.amplitude(), 1.0f);
  Kokkos::deep_copy(space, solver.probe(), Complex(1));
  const Overlaps<Space, Complex> overlaps(space, processes.all(), rectangles);
  const auto sum = [&](const Space& instance, const auto& numbers, const auto& object_gradient,
                       const auto& probe_gradient) {
    overlaps.sum(instance, object_gradient, numbers, probe_gradient);
  };
  solver.set_reduction(space, {.patterns = patterns, .sum = sum, .origin = own.begin});
  constexpr int steps = 20;
  const double whole = processes.milliseconds([&] {
    for (int step = 0; step < steps; ++step)
      solver.step(space);
  }) / steps;
  const View<Complex**> object_gradient("object_gradient", static_cast<std::size_t>(own.rows()), object);
  const View<Complex***> probe_gradient("probe_gradient", 1, m, m);
  const View<double*> value("loss", 1);
  const std::string name = "ptychography/n:" + std::to_string(n) + "/m:" + std::to_string(m) +
                           "/patterns:" + std::to_string(patterns);
  processes.print(name, whole, processes.milliseconds([&] {
    for (int i = 0; i < steps; ++i)
      sum(space, value, object_gradient, probe_gradient);
  }) / steps);
  if (processes.all().size() > 1) { // each process by itself
    solver.set_reduction(space, {.patterns = patterns, .sum = [](const Space&, const auto&...) {}});
    processes.print(name + "/without_sums", processes.milliseconds([&] {
      for (int step = 0; step < steps; ++step)
        solver.step(space);
    }) / steps,
                    0);
  }
}

void measure(const Processes& processes, const std::string& which, bool small) {
  if (which.empty() || which == "sum")
    sums(processes, small);
  if (which.empty() || which == "reconstruct")
    reconstruction(processes, small ? 2000 : 100000, small ? 64 : 256);
  if (which.empty() || which == "ptychography") {
    ptychography(processes, small ? 8 : 64, 256, 80);
    if (!small)
      ptychography(processes, 256, 128, 40);
  }
}

} // namespace

int main(int argc, char* argv[]) {
#if defined(BRACEWELL_ENABLE_MPI)
  MPI_Init(&argc, &argv);
#endif
  {
    const Kokkos::ScopeGuard kokkos(Kokkos::InitializationSettings().set_map_device_id_by("mpi_rank"));
    std::string which; // sum, reconstruct, ptychography; all by default
    bool small = false;
    for (int i = 1; i < argc; ++i)
      std::strcmp(argv[i], "--small") == 0 ? void(small = true) : void(which = argv[i]);
    measure(Processes(), which, small);
  }
#if defined(BRACEWELL_ENABLE_MPI)
  MPI_Finalize();
#endif
}
