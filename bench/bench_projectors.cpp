// Projection operators: bench_projectors --benchmark_filter='project/3d_to_2d/.*/box:256/batch:8/poses:2048'
// Random half spectra and uniformly distributed rotations with shifts of a few pixels; float unless the name
// says otherwise; `_prepared` and `_prepared_half` read a PreparedReference, whose making is not timed. Before it is timed,
// every operator is compared with its definition (definition.hpp) on the same inputs: `error` is the relative error
// in L2. Rates
// come from the median of at least 15 runs, whatever --benchmark_min_time.

#include "definition.hpp"

#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/project.hpp>
#include <bracewell/project/score_poses.hpp>

#include <Kokkos_Random.hpp>
#include <benchmark/benchmark.h>
#if defined(KOKKOS_ENABLE_CUDA)
#include <cublas_v2.h>
#elif __has_include(<Eigen/Core>)
#include <Eigen/Core>
#endif

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace Bracewell;
using Space = Kokkos::DefaultExecutionSpace;

template <class View>
void fill_random(const View& view) {
  using T = typename Impl::RealOf<typename View::value_type>::type;
  const Kokkos::View<T*, Kokkos::LayoutRight, Space> flat(
      reinterpret_cast<T*>(view.data()), view.size() * sizeof(typename View::value_type) / sizeof(T));
  Kokkos::fill_random(flat, Kokkos::Random_XorShift64_Pool<Space>(20260101), T(-1), T(1));
}

/// Uniformly distributed rotations [batch, poses, D, D]: from normalised Gaussian quaternions, or a uniform
/// angle in 2D.
template <class T, int D>
auto random_rotations(std::int64_t batch, std::int64_t poses) {
  const Kokkos::View<T****, Kokkos::LayoutRight, Space> matrices("matrices", batch, poses, D, D);
  const auto host = Kokkos::create_mirror_view(matrices);
  std::mt19937 engine(7);
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < batch * poses; ++i) {
    double w = normal(engine), x = normal(engine), y = normal(engine), z = normal(engine);
    if (D == 2)
      x = y = 0;
    const double norm = std::sqrt(w * w + x * x + y * y + z * z);
    w /= norm, x /= norm, y /= norm, z /= norm;
    const double m[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
                            {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
                            {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}};
    for (int r = 0; r < D; ++r)
      for (int c = 0; c < D; ++c)
        host.data()[(i * D + r) * D + c] = static_cast<T>(m[r][c]);
  }
  Kokkos::deep_copy(matrices, host);
  return matrices;
}

template <class Kernel, class T, int M, int D>
struct Problem {
  using Complex = Kokkos::complex<T>;
  template <class Value, int rank>
  using View = Kokkos::View<
      std::conditional_t<rank == 3, Value***, std::conditional_t<rank == 4, Value****, Value*****>>,
      Kokkos::LayoutRight, Space>;

  std::int64_t box, batch, poses;
  View<Complex, D + 1> volume;
  View<Complex, M + 2> images;
  View<T, 4> matrices;
  View<T, 3> shifts;

  explicit Problem(const benchmark::State& state)
      : box(state.range(0)), batch(state.range(1)), poses(state.range(2)), volume(make_volume<Complex>()),
        images(make_images<Complex>()), matrices(random_rotations<T, D>(batch, poses)),
        shifts("shifts", batch, poses, M) {
    fill_random(volume);
    fill_random(images);
    fill_random(shifts);
    space.fence();
  }

  Space space;

  template <class Value>
  View<Value, D + 1> make_volume() const {
    if constexpr (D == 2)
      return View<Value, D + 1>("volume", batch, box, box / 2 + 1);
    else
      return View<Value, D + 1>("volume", batch, box, box, box / 2 + 1);
  }

  template <class Value>
  View<Value, M + 2> make_images() const {
    if constexpr (M == 2)
      return View<Value, M + 2>("images", batch, poses, box, box / 2 + 1);
    else
      return View<Value, M + 2>("images", batch, poses, box, box, box / 2 + 1);
  }

  Poses<T, Space::memory_space> pose_arrays() const { return {.matrices = matrices, .shifts = shifts}; }

  /// The last batch, by definition.
  Bench::Definition<Kernel, T, M, D> definition() const {
    return {static_cast<int>(box), poses, last(matrices), last(shifts)};
  }
  /// Where the last batch begins.
  template <class AnyView>
  auto* last(const AnyView& view) const {
    return view.data() + (batch - 1) * (std::int64_t(view.size()) / batch);
  }

  /// Of a projection, within the radius.
  double samples() const {
    return M == 2 ? std::acos(-1.) / 8 * std::pow(box, 2) : std::acos(-1.) / 12 * std::pow(box, 3);
  }

  /// Projections, taps and the least bytes (projections, and volumes once) per second.
  void count(benchmark::State& state, double seconds, int taps_per_axis, double image_bytes,
             double volume_bytes) const {
    const double elements = std::pow(box, M - 1) * double(box / 2 + 1),
                 voxels = std::pow(box, D - 1) * double(box / 2 + 1);
    const double projections = double(batch * poses);
    state.counters["kproj_per_s"] = projections / 1e3 / seconds;
    state.counters["Gtaps_per_s"] = projections * samples() * std::pow(taps_per_axis, D) / 1e9 / seconds;
    state.counters["GB_per_s"] =
        (projections * elements * image_bytes + double(batch) * voxels * volume_bytes) / 1e9 / seconds;
  }
};

/// Runs once, compares (check() gives a relative error), and measures: the median of at least 15 runs, each
/// up to a fence, in seconds.
template <class Run, class Check>
double measure(benchmark::State& state, const Space& space, double tolerance, const Run& run,
               const Check& check) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  const auto timed = [&] {
    const auto start = Clock::now();
    run();
    space.fence();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  };
  try {
    run();
    const double error = check();
    state.counters["error"] = error;
    if (!(error < tolerance)) {
      state.SkipWithError(("differs from the definition by " + std::to_string(error)).c_str());
      return std::numeric_limits<double>::infinity();
    }
    for (auto _ : state)
      timed();
    while (seconds.size() < 15)
      timed();
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
    return std::numeric_limits<double>::infinity();
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  return seconds[seconds.size() / 2];
}

template <class Functor>
double relative_error(const Space& space, std::int64_t count, const Functor& compare) {
  Bench::Squares squares;
  Kokkos::parallel_reduce("check", Kokkos::RangePolicy<Space>(space, 0, count), compare,
                          Kokkos::Sum<Bench::Squares>(squares));
  return squares.relative_error();
}

constexpr std::int64_t checked_samples = 512;

/// Positions are rounded at up to box / 2, which costs that many roundings of values that change from voxel
/// to voxel, as random ones do.
template <class T>
double tolerance(std::int64_t box) {
  return 2 * double(box) * std::numeric_limits<T>::epsilon();
}

/// What `project` reads of a problem: the View, or a reference prepared from it.
struct AsView {
  template <class Kernel, class Problem>
  static auto of(const Problem& problem) {
    return [&problem](auto... arguments) { project<Kernel>(problem.space, problem.volume, arguments...); };
  }
};
template <class Stored>
struct Prepared {
  template <class Kernel, class Problem>
  static auto of(const Problem& problem) {
    return [&space = problem.space, reference = prepare<Kernel, Stored>(problem.space, problem.volume)](
               auto... arguments) { project(space, reference, arguments...); };
  }
};

template <class Source, class Kernel, class T, int M, int D>
void project_benchmark(benchmark::State& state) {
  const Problem<Kernel, T, M, D> problem(state);
  const auto project_all = Source::template of<Kernel>(problem);
  const double rounding = std::is_same_v<Source, Prepared<HalfComplex>> ? 5e-4 : 0;
  const double seconds = measure(
      state, problem.space, tolerance<T>(problem.box) + rounding,
      [&] { project_all(problem.pose_arrays(), problem.images, ProjectionOptions()); },
      [&] {
        return relative_error(problem.space, checked_samples,
                              Bench::CheckProjections<Kernel, T, M, D>{problem.definition(),
                                                                       problem.last(problem.volume),
                                                                       problem.last(problem.images)});
      });
  problem.count(state, seconds, Kernel::width, sizeof(Kokkos::complex<T>), sizeof(Kokkos::complex<T>));
}

/// Relative error of sums over all samples at some voxels.
template <class Kernel, class T, int M, int D, class Data, class Weight, class Weights>
double scatter_error(const Problem<Kernel, T, M, D>& problem, bool both, const Data& data,
                     const Weight& weight, const Weights& weights) {
  using Sums = Bench::SumAtVoxels<Kernel, T, M, D>;
  const Kokkos::View<Kokkos::complex<double>*, Space> sums("sums", +Sums::voxels);
  const Kokkos::View<double*, Space> weight_sums("weight_sums", +Sums::voxels);
  const bool weighted = weights.data() != nullptr;
  const Sums sum{problem.definition(),
                 both,
                 problem.last(problem.images),
                 weighted ? problem.last(weights) : nullptr,
                 sums.data(),
                 weight_sums.data()};
  Kokkos::parallel_for("sum_at_voxels",
                       Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                           problem.space, 0, problem.poses * sum.defined.elements(M)),
                       sum);
  return relative_error(problem.space, Sums::voxels,
                        Bench::CheckVoxels<Kernel, T, M, D>{sum, problem.last(data),
                                                            weighted ? problem.last(weight) : nullptr});
}

template <class Kernel, class T, int M, int D>
void backproject_benchmark(benchmark::State& state, Strategy strategy) {
  const Problem<Kernel, T, M, D> problem(state);
  Kokkos::deep_copy(problem.volume, 0);
  const auto weight = problem.template make_volume<T>();
  const auto weights = problem.template make_images<T>();
  fill_random(weights);
  const double seconds = measure(
      state, problem.space, tolerance<T>(problem.box),
      [&] {
        backproject<Kernel>(problem.space, problem.images, problem.pose_arrays(),
                            {.data = problem.volume, .weight = weight, .weights = weights},
                            {.strategy = strategy});
      },
      [&] { return scatter_error(problem, true, problem.volume, weight, weights); });
  problem.count(state, seconds, Kernel::width, 1.5 * sizeof(Kokkos::complex<T>),
                3 * sizeof(Kokkos::complex<T>));
}

enum class Gradients { Reconstruction, Poses, All };

/// Relative error of the gradients of a few poses.
template <class Kernel, class T, int M, int D, class Matrices, class Shifts>
double pose_error(const Problem<Kernel, T, M, D>& problem, const Matrices& matrices, const Shifts& shifts) {
  Bench::Squares squares;
  const auto found_matrices = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), matrices);
  const auto found_shifts = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), shifts);
  for (std::int64_t pose = 0; pose < problem.poses; pose += (problem.poses + 3) / 4)
    for (int entry = 0; entry < (D + 1) * M; ++entry) {
      double expected = 0;
      const Bench::PoseDerivative<Kernel, T, M, D> derivative{
          problem.definition(), problem.last(problem.volume), problem.last(problem.images), pose, entry};
      Kokkos::parallel_reduce("pose_derivative",
                              Kokkos::RangePolicy<Space>(problem.space, 0, derivative.defined.elements(M)),
                              derivative, expected);
      squares.add(double(entry < D * M ? problem.last(found_matrices)[(pose * D + entry / M) * D + entry % M]
                                       : problem.last(found_shifts)[pose * M + entry - D * M]),
                  expected);
    }
  return squares.relative_error();
}

template <class Kernel, class T, int M, int D>
void project_gradients_benchmark(benchmark::State& state, Gradients wanted, Strategy strategy) {
  const Problem<Kernel, T, M, D> problem(state);
  const auto gradient = problem.template make_volume<Kokkos::complex<T>>();
  const auto matrices = Kokkos::create_mirror(Space(), problem.matrices);
  const auto shifts = Kokkos::create_mirror(Space(), problem.shifts);
  ProjectGradients<T, Space::memory_space> gradients;
  if (wanted != Gradients::Poses)
    gradients.reconstruction = gradient;
  if (wanted != Gradients::Reconstruction)
    gradients.matrices = matrices, gradients.shifts = shifts;
  // The slope of a linear kernel jumps from voxel to voxel. Rounding puts about 3 box epsilon of the samples
  // on the other side; each of them is off by as much as a sample brings.
  double bound = tolerance<T>(problem.box);
  const double samples = problem.samples(),
               flips = 3 * samples * double(problem.box) * std::numeric_limits<T>::epsilon();
  if (wanted != Gradients::Reconstruction && Kernel::width == 2 && flips > 1e-3)
    bound = std::sqrt((flips + 3) / samples);
  const double seconds = measure(
      state, problem.space, bound,
      [&] {
        project_gradients<Kernel>(problem.space, problem.volume, problem.pose_arrays(), problem.images,
                                  gradients, {.strategy = strategy});
      },
      [&] {
        double error = 0;
        if (gradients.reconstruction)
          error =
              scatter_error(problem, false, gradient, Kokkos::View<T*, Space>(), Kokkos::View<T*, Space>());
        if (gradients.matrices)
          error = std::max(error, pose_error(problem, matrices, shifts));
        return error;
      });
  problem.count(state, seconds, Kernel::width, sizeof(Kokkos::complex<T>), 2 * sizeof(Kokkos::complex<T>));
}

/// @tparam prepared  whether the cotangent of the data is a PreparedReference; that of the weights is a View
template <bool prepared, class Kernel, class T, int M, int D>
void backproject_gradients_benchmark(benchmark::State& state) {
  const Problem<Kernel, T, M, D> problem(state);
  const auto weight = problem.template make_volume<T>();
  const auto weights = problem.template make_images<T>();
  const auto gradient = problem.template make_images<Kokkos::complex<T>>();
  const auto weights_gradient = problem.template make_images<T>();
  fill_random(weight);
  fill_random(weights);
  BackprojectGradients<T, typename Space::memory_space, D> outputs{
      .weight = weight, .weights = weights, .projections = gradient, .projection_weights = weights_gradient};
  std::optional<PreparedReference<Kernel, Space, D, Kokkos::complex<T>>> cotangent;
  if (prepared)
    cotangent.emplace(prepare<Kernel>(problem.space, problem.volume, ReadBy::BackprojectGradients));
  else
    outputs.data = problem.volume;
  const double seconds = measure(
      state, problem.space, tolerance<T>(problem.box),
      [&] {
        if (prepared)
          backproject_gradients(problem.space, problem.images, problem.pose_arrays(), *cotangent, outputs);
        else
          backproject_gradients<Kernel>(problem.space, problem.images, problem.pose_arrays(), outputs);
      },
      [&] {
        return relative_error(problem.space, checked_samples,
                              Bench::CheckProjectionGradients<Kernel, T, M, D>{
                                  problem.definition(), problem.last(problem.volume), problem.last(weight),
                                  problem.last(gradient), problem.last(weights_gradient)});
      });
  problem.count(state, seconds, Kernel::width, 1.5 * sizeof(Kokkos::complex<T>),
                1.5 * sizeof(Kokkos::complex<T>));
}

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
    Bench::Squares squares;
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

template <class Kernel, class T, int M, int D>
void register_operators(const std::string& suffix) {
  const auto add = [&](const std::string& operation, bool forward, auto run) {
    const std::string m = std::to_string(M) + "d", d = std::to_string(D) + "d";
    const std::string dimensions = forward ? d + "_to_" + m : m + "_to_" + d;
    benchmark::RegisterBenchmark((operation + "/" + dimensions + "/" + Kernel::name + suffix).c_str(), run)
        ->ArgNames({"box", "batch", "poses"})
        ->ArgsProduct(
            M == 3 ? std::vector<std::vector<std::int64_t>>{{32, 64, 128}, {1}, {1, 8, 64}}
                   : std::vector<std::vector<std::int64_t>>{{32, 64, 128, 256}, {1, 8}, {8, 128, 512, 2048}})
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  };
  add("project", true, project_benchmark<AsView, Kernel, T, M, D>);
  add("project_prepared", true, project_benchmark<Prepared<Kokkos::complex<T>>, Kernel, T, M, D>);
  if constexpr (sizeof(T) == 4)
    add("project_prepared_half", true, project_benchmark<Prepared<HalfComplex>, Kernel, T, M, D>);
  for (const auto& [strategy, name] :
       {std::pair{Strategy::Automatic, ""}, {Strategy::Atomic, "_atomic"}, {Strategy::Owned, "_owned"}}) {
    const auto tag = strategy;
    const std::string tail = name;
    add("backproject" + tail, false,
        [tag](benchmark::State& state) { backproject_benchmark<Kernel, T, M, D>(state, tag); });
    for (const auto& [wanted, which] : {std::pair{Gradients::Reconstruction, "reconstruction"},
                                        {Gradients::Poses, "poses"},
                                        {Gradients::All, "all"}}) {
      const auto gradients = wanted;
      add("project_gradients_" + (which + tail), true, [tag, gradients](benchmark::State& state) {
        project_gradients_benchmark<Kernel, T, M, D>(state, gradients, tag);
      });
    }
  }
  add("backproject_gradients", false, backproject_gradients_benchmark<false, Kernel, T, M, D>);
  add("backproject_gradients_prepared", false, backproject_gradients_benchmark<true, Kernel, T, M, D>);
}

} // namespace

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  register_operators<Linear, float, 2, 2>("");
  register_operators<Linear, float, 2, 3>("");
  register_operators<CatmullRom, float, 2, 2>("");
  register_operators<CatmullRom, float, 2, 3>("");
  register_operators<CubicBSpline, float, 2, 3>("");
  register_operators<Linear, float, 3, 3>("");
  register_operators<CatmullRom, float, 3, 3>("");
  register_operators<Linear, double, 2, 3>("_double");
  register_operators<CatmullRom, double, 2, 3>("_double");
  register_scoring();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
