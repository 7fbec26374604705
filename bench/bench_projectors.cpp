// Projection operators: bench_projectors --benchmark_filter='project/3d_to_2d/.*/box:256/batch:8/poses:2048'
// Random half spectra and uniformly distributed rotations with shifts of a few pixels; float unless the name
// says otherwise.

#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/project.hpp>

#include <Kokkos_Random.hpp>
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <string>

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

template <class T, int M, int D>
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

  /// Projections, taps and the least bytes (projections, and volumes once) per second.
  void count(benchmark::State& state, int taps_per_axis, double image_bytes, double volume_bytes) const {
    const double samples =
        M == 2 ? std::acos(-1.) / 8 * std::pow(box, 2) : std::acos(-1.) / 12 * std::pow(box, 3);
    const double elements = std::pow(box, M - 1) * double(box / 2 + 1),
                 voxels = std::pow(box, D - 1) * double(box / 2 + 1);
    const double projections = double(batch * poses);
    const auto rate = benchmark::Counter::kIsIterationInvariantRate;
    state.counters["kproj_per_s"] = benchmark::Counter(projections / 1e3, rate);
    state.counters["Gtaps_per_s"] =
        benchmark::Counter(projections * samples * std::pow(taps_per_axis, D) / 1e9, rate);
    state.counters["GB_per_s"] = benchmark::Counter(
        (projections * elements * image_bytes + double(batch) * voxels * volume_bytes) / 1e9, rate);
  }
};

template <class Run>
void measure(benchmark::State& state, const Space& space, const Run& run) {
  try {
    run(); // warm-up
    space.fence();
    for (auto _ : state) {
      run();
      space.fence();
    }
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

template <class Kernel, class T, int M, int D>
void project_benchmark(benchmark::State& state) {
  const Problem<T, M, D> problem(state);
  measure(state, problem.space,
          [&] { project<Kernel>(problem.space, problem.volume, problem.pose_arrays(), problem.images); });
  problem.count(state, Kernel::width, sizeof(Kokkos::complex<T>), sizeof(Kokkos::complex<T>));
}

template <class Kernel, class T, int M, int D>
void backproject_benchmark(benchmark::State& state, Strategy strategy) {
  const Problem<T, M, D> problem(state);
  const auto weight = problem.template make_volume<T>();
  const auto weights = problem.template make_images<T>();
  fill_random(weights);
  measure(state, problem.space, [&] {
    backproject<Kernel>(problem.space, problem.images, problem.pose_arrays(),
                        {.data = problem.volume, .weight = weight, .weights = weights},
                        {.strategy = strategy});
  });
  problem.count(state, Kernel::width, 1.5 * sizeof(Kokkos::complex<T>), 3 * sizeof(Kokkos::complex<T>));
}

enum class Gradients { Reconstruction, Poses, All };

template <class Kernel, class T, int M, int D>
void project_gradients_benchmark(benchmark::State& state, Gradients wanted, Strategy strategy) {
  const Problem<T, M, D> problem(state);
  const auto gradient = problem.template make_volume<Kokkos::complex<T>>();
  const auto matrices = Kokkos::create_mirror(Space(), problem.matrices);
  const auto shifts = Kokkos::create_mirror(Space(), problem.shifts);
  ProjectGradients<T, Space::memory_space> gradients;
  if (wanted != Gradients::Poses)
    gradients.reconstruction = gradient;
  if (wanted != Gradients::Reconstruction)
    gradients.matrices = matrices, gradients.shifts = shifts;
  measure(state, problem.space, [&] {
    project_gradients<Kernel>(problem.space, problem.volume, problem.pose_arrays(), problem.images, gradients,
                              {.strategy = strategy});
  });
  problem.count(state, Kernel::width, sizeof(Kokkos::complex<T>), 2 * sizeof(Kokkos::complex<T>));
}

template <class Kernel, class T, int M, int D>
void backproject_gradients_benchmark(benchmark::State& state) {
  const Problem<T, M, D> problem(state);
  const auto weight = problem.template make_volume<T>();
  const auto weights = problem.template make_images<T>();
  const auto gradient = problem.template make_images<Kokkos::complex<T>>();
  const auto weights_gradient = problem.template make_images<T>();
  fill_random(weight);
  fill_random(weights);
  measure(state, problem.space, [&] {
    backproject_gradients<Kernel>(problem.space, problem.images, problem.pose_arrays(),
                                  {.data = problem.volume,
                                   .weight = weight,
                                   .weights = weights,
                                   .projections = gradient,
                                   .projection_weights = weights_gradient});
  });
  problem.count(state, Kernel::width, 1.5 * sizeof(Kokkos::complex<T>), 1.5 * sizeof(Kokkos::complex<T>));
}

template <class Kernel, class T, int M, int D>
void register_operators(const std::string& suffix) {
  const auto add = [&](const std::string& operation, bool forward, auto run) {
    const std::string m = std::to_string(M) + "d", d = std::to_string(D) + "d";
    const std::string dimensions = forward ? d + "_to_" + m : m + "_to_" + d;
    benchmark::RegisterBenchmark((operation + "/" + dimensions + "/" + Kernel::name + suffix).c_str(), run)
        ->ArgNames({"box", "batch", "poses"})
        ->ArgsProduct({{32, 64, 128, 256}, {1, 8}, {8, 128, 512, 2048}})
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  };
  add("project", true, project_benchmark<Kernel, T, M, D>);
  for (const auto& [strategy, name] :
       {std::pair{Strategy::Automatic, ""}, {Strategy::Atomic, "_atomic"}, {Strategy::Owned, "_owned"}}) {
    const auto tag = strategy;
    const std::string tail = name;
    add("backproject" + tail, false,
        [tag](benchmark::State& state) { backproject_benchmark<Kernel, T, M, D>(state, tag); });
    for (const auto& [wanted, which] :
         {std::pair{Gradients::Reconstruction, "reconstruction"}, {Gradients::All, "all"}}) {
      const auto gradients = wanted;
      add("project_gradients_" + (which + tail), true, [tag, gradients](benchmark::State& state) {
        project_gradients_benchmark<Kernel, T, M, D>(state, gradients, tag);
      });
    }
  }
  add("project_gradients_poses", true, [](benchmark::State& state) {
    project_gradients_benchmark<Kernel, T, M, D>(state, Gradients::Poses, Strategy::Automatic);
  });
  add("backproject_gradients", false, backproject_gradients_benchmark<Kernel, T, M, D>);
}

} // namespace

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  register_operators<Linear, float, 2, 2>("");
  register_operators<Linear, float, 2, 3>("");
  register_operators<CatmullRom, float, 2, 2>("");
  register_operators<CatmullRom, float, 2, 3>("");
  register_operators<CubicBSpline, float, 2, 3>("");
  register_operators<Linear, double, 2, 3>("_double");
  register_operators<CatmullRom, double, 2, 3>("_double");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
