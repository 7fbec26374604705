// Projection operators: bench_projectors --benchmark_filter='project/3d_to_2d/.*/box:256/batch:8/poses:2048'
// Random half spectra and uniformly distributed rotations with shifts of a few pixels; float unless the name
// says otherwise; `_prepared` and `_prepared_half` read a PreparedReference, whose making is not timed. Before it is timed,
// every operator is compared with its definition (definition.hpp) on the same inputs: `error` is the relative error
// in L2. Rates
// come from the median of at least 15 runs, whatever --benchmark_min_time.

#include "projectors.hpp"
#include "run.hpp"

#include <bracewell/project/score_poses.hpp>

#if defined(KOKKOS_ENABLE_CUDA)
#include <cublas_v2.h>
#elif __has_include(<Eigen/Core>)
#include <Eigen/Core>
#endif

namespace Bench {

// projectors_unit.cpp, once for each.
#define BENCH_UNIT(name) void name();
BENCH_UNITS
#undef BENCH_UNIT

namespace {

/// Images [images, box, box/2+1] with filters, and candidates for their poses.
template <class Kernel>
struct ScoringProblem {
  using T = float;
  using Complex = Kokkos::complex<T>;
  template <class Data>
  using View = Kokkos::View<Data, Kokkos::LayoutRight, Space>;

  Space space;
  std::int64_t box, images, poses, shifts;
  View<Complex****> volume{"volume", 1, box, box, box / 2 + 1};
  View<Complex***> spectra{"images", images, box, box / 2 + 1};
  View<T***> filters{"filters", images, box, box / 2 + 1};
  View<T****> matrices = random_rotations<T, 3>(1, poses);
  View<T**> candidate_shifts{"shifts", shifts, 2};

  explicit ScoringProblem(const benchmark::State& state)
      : box(state.range(0)), images(state.range(1)), poses(state.range(2)), shifts(state.range(3)) {
    fill_random(volume);
    fill_random(spectra);
    fill_random(filters);
    fill_random(candidate_shifts);
    space.fence();
  }

  /// Of the products with rows of 2 K real numbers, K frequencies within the radius.
  double operations() const {
    double frequencies = 0;
    for (std::int64_t y = -(box - 1) / 2; y <= box / 2; ++y)
      for (std::int64_t x = 0; x <= box / 2; ++x)
        frequencies += 4 * (x * x + y * y) <= box * box;
    return 4 * double(images * shifts) * double(poses) * frequencies;
  }

  /// The best scores against the squared difference from what `project` yields there.
  template <class Best, class Indices>
  double error(const Best& best, const Indices& best_poses, const Indices& best_shifts) const {
    const auto score = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), best);
    const auto pose = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), best_poses),
               shift = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), best_shifts);
    const auto all_matrices = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), matrices);
    const auto all_shifts = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), candidate_shifts);
    const View<T****> at("matrices", 1, images, 3, 3), of_images(filters.data(), 1, images, box, box / 2 + 1);
    const View<T***> moved("shifts", 1, images, 2);
    const View<Complex****> projections("projections", 1, images, box, box / 2 + 1);
    const auto host_at = Kokkos::create_mirror_view(at);
    const auto host_moved = Kokkos::create_mirror_view(moved);
    for (std::int64_t i = 0; i < images; ++i) {
      std::copy_n(&all_matrices(0, pose(i, 0), 0, 0), 9, &host_at(0, i, 0, 0));
      std::copy_n(&all_shifts(shift(i, 0), 0), 2, &host_moved(0, i, 0));
    }
    Kokkos::deep_copy(at, host_at);
    Kokkos::deep_copy(moved, host_moved);
    project<Kernel>(space, volume, {.matrices = at, .shifts = moved, .filters = of_images}, projections);
    const auto p = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), projections);
    const auto x = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), spectra);
    const HalfSpectrumLayout<2> layout{{int(box), int(box)}};
    Squares squares;
    for (std::int64_t i = 0; i < images; ++i) {
      double sum = 0;
      for (std::int64_t e = 0; e < layout.elements(); ++e) {
        int k[2];
        layout.frequency(e, k);
        const auto difference = Kokkos::complex<double>(x.data()[i * layout.elements() + e]) -
                                Kokkos::complex<double>(p.data()[i * layout.elements() + e]);
        if (4 * (k[0] * k[0] + k[1] * k[1]) <= box * box)
          sum += layout.multiplicity(k[0]) * Kokkos::real(difference * Kokkos::conj(difference));
      }
      squares.add(double(score(i, 0)), sum);
    }
    return squares.relative_error();
  }
};

/// The best pose and shift of every image.
template <class Kernel, class Stored>
void score_benchmark(benchmark::State& state) {
  using Problem = ScoringProblem<Kernel>;
  const Problem problem(state);
  const auto& space = problem.space;
  PoseScoring<Space> scoring(space, {.images = problem.images,
                                     .shifts = int(problem.shifts),
                                     .height = int(problem.box),
                                     .width = int(problem.box),
                                     .best = 1});
  // Types named for nvcc.
  using Images = ScoredImages<float, Space::memory_space>;
  using Scores = PoseScores<float, Space::memory_space>;
  scoring.set_images(space, Images{.spectra = problem.spectra, .filters = problem.filters});
  scoring.set_shifts(space, problem.candidate_shifts);
  const auto reference = prepare<Kernel, Stored>(space, problem.volume);
  const typename Problem::template View<float***> matrices(problem.matrices.data(), problem.poses, 3, 3);
  const typename Problem::template View<float**> best("best", problem.images, 1);
  const typename Problem::template View<int**> poses("poses", problem.images, 1),
      shifts("shifts", problem.images, 1);
  const double seconds = measure(
      state, space, std::is_same_v<Stored, HalfComplex> ? 5e-4 : 1e-5,
      [&] {
        scoring.score(space, reference, matrices, Scores{.best = best, .poses = poses, .shifts = shifts});
      },
      [&] { return problem.error(best, poses, shifts); });
  state.counters["Tflop_per_s"] = problem.operations() / 1e12 / seconds;
}

#if defined(KOKKOS_ENABLE_CUDA) || __has_include(<Eigen/Core>)
/// What it takes without fusing at least: projections in memory, and their product with rows of images and shifts that
/// are there already, by cuBLAS, or Eigen on hosts.
void apart_benchmark(benchmark::State& state) {
  const ScoringProblem<Linear> problem(state);
  const auto& space = problem.space;
  const std::int64_t numbers = problem.box * (problem.box / 2 + 1) * 2,
                     rows = problem.images * problem.shifts;
  const auto reference = prepare<Linear>(space, problem.volume);
  const Kokkos::View<Kokkos::complex<float>****, Kokkos::LayoutRight, Space> projections(
      "projections", 1, problem.poses, problem.box, problem.box / 2 + 1);
  const Kokkos::View<float**, Kokkos::LayoutRight, Space> images("rows", rows, numbers),
      product("product", problem.poses, rows);
  fill_random(images);
#if defined(KOKKOS_ENABLE_CUDA)
  cublasHandle_t handle;
  cublasCreate(&handle);
  cublasSetStream(handle, space.cuda_stream());
#endif
  const double seconds = measure(
      state, space, 1,
      [&] {
        project(space, reference, {.matrices = problem.matrices}, projections);
        const auto* const samples = reinterpret_cast<const float*>(projections.data());
#if defined(KOKKOS_ENABLE_CUDA)
        const float one = 1, zero = 0;
        cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, int(rows), int(problem.poses), int(numbers), &one,
                    images.data(), int(numbers), samples, int(numbers), &zero, product.data(), int(rows));
#else
        using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
        const Eigen::Map<const Matrix> left(samples, problem.poses, numbers),
            right(images.data(), rows, numbers);
        Eigen::Map<Matrix>(product.data(), problem.poses, rows).noalias() = left * right.transpose();
#endif
      },
      [] { return 0.; });
  state.counters["Tflop_per_s"] = problem.operations() / 1e12 / seconds;
#if defined(KOKKOS_ENABLE_CUDA)
  cublasDestroy(handle);
#endif
}
#endif

void register_scoring() {
  const auto add = [](const char* name, auto run) {
    benchmark::RegisterBenchmark(name, run)
        ->ArgNames({"box", "images", "poses", "shifts"})
        ->Args({64, 64, 4608, 49})
        ->Args({128, 64, 4608, 49})
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  };
  add("score_poses/3d_to_2d/linear", score_benchmark<Linear, Kokkos::complex<float>>);
  add("score_poses/3d_to_2d/catmull_rom", score_benchmark<CatmullRom, Kokkos::complex<float>>);
  add("score_poses_half/3d_to_2d/linear", score_benchmark<Linear, HalfComplex>);
#if defined(KOKKOS_ENABLE_CUDA) || __has_include(<Eigen/Core>)
  add("score_poses_apart/3d_to_2d/linear", apart_benchmark);
#endif
}

} // namespace
} // namespace Bench

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
#define BENCH_UNIT(name) Bench::name();
  BENCH_UNITS
#undef BENCH_UNIT
  Bench::register_scoring();
  return Bench::run(argc, argv, {"GB_per_s", "Gtaps_per_s", "Tflop_per_s", "error", "kproj_per_s"});
}
