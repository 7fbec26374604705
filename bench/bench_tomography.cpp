// SPDX-License-Identifier: MIT
// Parallel-beam back-projection and projection without filter, `angles` over pi, detectors of n pixels,
// float; the Fourier method at tolerance 1e-4. GB_per_s counts projections and images once. `error` is the
// relative error (L2) at 256 values chosen at random, against the sums that define them: of random numbers
// for the Fourier method, of filtered projections of a phantom (Hann) for the log-polar one. Steps before
// back-projection (filter, stripes, phase, outliers) take projections of the same size.

#include "run.hpp"

#include <bracewell/optimize/least_squares.hpp>
#include <bracewell/tomography/filter.hpp>
#include <bracewell/tomography/fourier_laminography.hpp>
#include <bracewell/tomography/fourier_normal.hpp>
#include <bracewell/tomography/line.hpp>
#include <bracewell/tomography/line_laminography.hpp>
#include <bracewell/tomography/log_polar.hpp>
#include <bracewell/tomography/outliers.hpp>
#include <bracewell/tomography/phase.hpp>
#include <bracewell/tomography/stripes.hpp>

#include <Kokkos_Random.hpp>

#include <cmath>
#include <memory>
#include <numbers>
#include <random>
#include <string>

namespace {

using namespace Bracewell;
using Space = Kokkos::DefaultExecutionSpace;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;
using Volume = View<float***>;

std::vector<double> half_turn(std::int64_t count) {
  std::vector<double> angles(count);
  for (std::int64_t p = 0; p < count; ++p)
    angles[p] = std::numbers::pi * double(p) / double(count);
  return angles;
}

/// The sums that define back-projection and projection, in double, of slice 0: trigonometric interpolation of
/// rows of `values`, `upsampling` per pixel, about the centre n / 2.
struct DirectSums {
  View<const float***> projections, images;
  View<const double*> angles;
  View<const int**> chosen; ///< pixels (x, y), or (angle, value)
  View<double*> sums;
  int n, upsampling;
  bool backproject;
  using Team = Kokkos::TeamPolicy<Space>::member_type;

  KOKKOS_FUNCTION double kernel(double u) const { // u in values of the row
    const double pi = Kokkos::numbers::pi, values = double(n) * upsampling, small = pi * u / values;
    if (Kokkos::abs(Kokkos::sin(small)) < 1e-13)
      return 1;
    return Kokkos::sin(pi * u) / (values * (int(values) % 2 ? Kokkos::sin(small) : Kokkos::tan(small)));
  }

  KOKKOS_FUNCTION double position(double theta, int x, int y) const {
    return ((x - n / 2) * Kokkos::cos(theta) + (y - n / 2) * Kokkos::sin(theta) + n / 2) * upsampling;
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int i = team.league_rank(), a = chosen(i, 0), b = chosen(i, 1);
    const int lines = backproject ? int(angles.size()) : n, count = backproject ? n * upsampling : n;
    double sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, lines),
        [&](int line, double& partial) {
          for (int j = 0; j < count; ++j)
            partial += backproject ? kernel(position(angles(line), a, b) - j) * projections(0, line, j)
                                   : kernel(position(angles(a), j, line) - b) * images(0, line, j);
        },
        sum);
    Kokkos::single(Kokkos::PerTeam(team),
                   [&] { sums(i) = sum * Kokkos::numbers::pi / double(angles.size()); });
  }
};

/// Relative error at values chosen at random: images within the disc, rows anywhere.
double error(const Space& space, const Volume& projections, const Volume& images, bool backproject) {
  const int n = int(images.extent(1)), count = 256, P = int(projections.extent(1));
  const int values = int(projections.extent(2));
  const View<int**> chosen("chosen", count, 2);
  const View<double*> angles("angles", P), sums("sums", count);
  const View<float*> found("found", count);
  const auto host_angles = Kokkos::create_mirror_view(angles);
  const auto host_chosen = Kokkos::create_mirror_view(chosen);
  const auto at = half_turn(P);
  std::copy(at.begin(), at.end(), host_angles.data());
  std::mt19937 generator(1);
  for (int i = 0; i < count;) {
    const int a = int(generator() % unsigned(backproject ? n : P)),
              b = int(generator() % unsigned(backproject ? n : values));
    if (backproject && std::hypot(a - n / 2, b - n / 2) > n / 2 - 2)
      continue;
    host_chosen(i, 0) = a;
    host_chosen(i++, 1) = b;
  }
  Kokkos::deep_copy(angles, host_angles);
  Kokkos::deep_copy(chosen, host_chosen);
  Kokkos::parallel_for("direct", Kokkos::TeamPolicy<Space>(space, count, Kokkos::AUTO),
                       DirectSums{projections, images, angles, chosen, sums, n, values / n, backproject});
  Kokkos::parallel_for(
      "found", Kokkos::RangePolicy<Space>(space, 0, count), KOKKOS_LAMBDA(int i) {
        found(i) =
            backproject ? images(0, chosen(i, 1), chosen(i, 0)) : projections(0, chosen(i, 0), chosen(i, 1));
      });
  const auto exact = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), sums);
  const auto ours = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), found);
  double difference = 0, norm = 0;
  for (int i = 0; i < count; ++i) {
    difference += std::pow(ours(i) - exact(i), 2);
    norm += std::pow(exact(i), 2);
  }
  return std::sqrt(difference / norm);
}

void fourier(benchmark::State& state, bool backproject, FourierTomographyOptions options) {
  try {
    const Space space;
    const std::int64_t n = state.range(0), angles = state.range(1), slices = state.range(2);
    options.slices = slices;
    const FourierTomography<Space, float> plan(space, {.angles = half_turn(angles), .width = int(n)},
                                               options);
    const View<float***> projections("projections", slices, angles, n), images("images", slices, n, n);
    for (const auto& view : {projections, images})
      Kokkos::fill_random(space, View<float*>(view.data(), view.size()),
                          Kokkos::Random_XorShift64_Pool<Space>(1), -1.f, 1.f);
    const auto run = [&] {
      if (backproject)
        plan.backproject(space, projections, images);
      else
        plan.project(space, images, projections);
      space.fence();
    };
    run(); // warm-up
    for (auto _ : state)
      run();
    state.counters["error"] = error(space, projections, images, backproject);
    const auto rate = benchmark::Counter::kIsIterationInvariantRate;
    state.counters["GB_per_s"] =
        benchmark::Counter(double(projections.size() + images.size()) * sizeof(float) / 1e9, rate);
    state.counters["grid"] = plan.plan().grid_shape()[0];
    state.counters["memory_GB"] = double(plan.memory_bytes()) / 1e9;
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

struct Size {
  int n, angles, slices, upsampling; ///< values per pixel of the rows
};

/// Line integrals of an ellipse's rim and some ellipses within, about the centre n / 2.
struct Phantom {
  Volume rows; ///< [1, angles, n]

  KOKKOS_FUNCTION void operator()(int index) const {
    const double table[6][6] = {{0, 0, 0.62, 0.83, 0, 1},        {0, -0.02, 0.6, 0.79, 0, -0.8},
                                {0.2, 0, 0.1, 0.28, -0.3, -0.2}, {-0.2, 0, 0.14, 0.37, 0.3, -0.2},
                                {0, 0.3, 0.19, 0.22, 0, 0.1},    {0.05, -0.5, 0.02, 0.05, 0.5, 0.3}};
    const int n = int(rows.extent(2)), p = index / n;
    const double theta = Kokkos::numbers::pi * p / double(rows.extent(1)), half = 0.5 * n;
    double sum = 0;
    for (const auto& e : table) {
      const double s = (index % n - n / 2) / half - e[0] * Kokkos::cos(theta) - e[1] * Kokkos::sin(theta);
      const double c = e[2] * Kokkos::cos(theta - e[4]), d = e[3] * Kokkos::sin(theta - e[4]);
      const double inside = c * c + d * d - s * s;
      sum += inside > 0 ? 2 * half * e[5] * e[2] * e[3] * Kokkos::sqrt(inside) / (c * c + d * d) : 0;
    }
    rows(0, p, index % n) = float(sum);
  }
};

/// The relative error of the back-projection of a phantom, as slice 0.
template <class Call>
double error_of_phantom(const Space& space, const Size& size, const Call& call, const Volume& projections,
                        const Volume& images) {
  const Volume rows("rows", 1, size.angles, size.n), fine("fine", 1, size.angles, size.n * size.upsampling);
  Kokkos::parallel_for("phantom", Kokkos::RangePolicy<Space>(space, 0, size.angles * size.n), Phantom{rows});
  ProjectionFilter<Space, float>(space, size.angles, size.n,
                                 {.filter = TomographyFilter::Hann, .upsampling = size.upsampling})
      .execute(space, rows, fine);
  const auto slice = Kokkos::subview(projections, std::pair(0, 1), Kokkos::ALL, Kokkos::ALL);
  Kokkos::deep_copy(space, slice, fine);
  call(space, projections, images);
  return error(space, projections, images, true);
}

/// Times what make(space, size) returns: a function of (space, projections, images).
template <class Make>
void run_on_random(benchmark::State& state, const Make& make, int upsampling, bool check) {
  try {
    const Space space;
    const Size size{int(state.range(0)), int(state.range(1)), int(state.range(2)), upsampling};
    const auto call = make(space, size);
    const Volume projections("projections", size.slices, size.angles, size.upsampling * size.n),
        images("images", size.slices, size.n, size.n);
    for (const auto& view : {projections, images})
      Kokkos::fill_random(space, View<float*>(view.data(), view.size()),
                          Kokkos::Random_XorShift64_Pool<Space>(1), -1.f, 1.f);
    call(space, projections, images); // warm-up
    space.fence();
    for (auto _ : state) {
      call(space, projections, images);
      space.fence();
    }
    if (check)
      state.counters["error"] = error_of_phantom(space, size, call, projections, images);
    state.counters["GB_per_s"] =
        benchmark::Counter(double(projections.size() + images.size()) * sizeof(float) / 1e9,
                           benchmark::Counter::kIsIterationInvariantRate);
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

auto line(const Space& space, const Size& size, bool projection) {
  return std::make_shared<LineTomography<Space, float>>(
      space, ParallelBeamGeometry{.angles = half_turn(size.angles), .width = size.n},
      LineTomographyOptions{.projection = projection});
}

auto line_backproject(const Space& space, const Size& size) {
  return [plan = line(space, size, false)](const Space& instance, const Volume& projections,
                                           const Volume& images) {
    plan->backproject(instance, projections, images);
  };
}

auto line_project(const Space& space, const Size& size) {
  return [plan = line(space, size, true)](const Space& instance, const Volume& projections,
                                          const Volume& images) {
    plan->project(instance, images, projections);
  };
}

auto log_polar(const Space& space, const Size& size) {
  return std::make_shared<LogPolarTomography<Space, float>>(
      space, ParallelBeamGeometry{.angles = half_turn(size.angles), .width = size.n},
      LogPolarTomographyOptions{.slices = size.slices, .row_upsampling = size.upsampling});
}

auto log_polar_backproject(const Space& space, const Size& size) {
  return [plan = log_polar(space, size)](const Space& instance, const Volume& projections,
                                         const Volume& images) {
    plan->backproject(instance, projections, images);
  };
}

auto log_polar_project(const Space& space, const Size& size) {
  return
      [plan = log_polar(space, size)](const Space& instance, const Volume& projections,
                                      const Volume& images) { plan->project(instance, images, projections); };
}

auto filter(const Space& space, const Size& size) {
  const auto plan = std::make_shared<ProjectionFilter<Space, float>>(
      space, std::int64_t(size.slices) * size.angles, size.n);
  return [plan](const Space& instance, const Volume& projections, const Volume&) {
    plan->execute(instance, projections, projections);
  };
}

/// `method` names one of stripe removal.
auto stripes(StripeMethod method) {
  return [method](const Space& space, const Size& size) {
    const StripeOptions options{.method = method, .window = method == StripeMethod::All ? 21 : 5};
    const auto plan = std::make_shared<StripeRemoval<Space, float>>(space, size.angles, size.n, options);
    return [plan](const Space& instance, const Volume& projections, const Volume&) {
      plan->execute(instance, projections);
    };
  };
}

/// By a filter that reaches 16 pixels beyond the frames, of as many rows as slices.
auto phase(const Space& space, const Size& size) {
  const auto plan = std::make_shared<PhaseRetrieval<Space, float>>(
      space, size.angles, int(size.slices), size.n,
      PhaseOptions{.wavelength = 6e-11, .distance = 0.1, .pixel_size = 2e-6, .delta_beta = 32});
  return [plan](const Space& instance, const Volume& projections, const Volume&) {
    plan->execute(instance, projections, projections);
  };
}

auto outliers(const Space&, const Size& size) {
  const Volume cleaned("cleaned", size.slices, size.angles, size.n);
  return [cleaned](const Space& instance, const Volume& projections, const Volume&) {
    remove_outliers(instance, projections, cleaned);
  };
}

/// backproject(project(images)): by both operators, or by the convolution.
auto normal(bool by_convolution) {
  return [by_convolution](const Space& space, const Size& size) {
    const auto plan = std::make_shared<FourierNormal<Space, float>>(
        space, ParallelBeamGeometry{.angles = half_turn(size.angles), .width = size.n},
        FourierTomographyOptions{.slices = size.slices});
    const Volume results("results", size.slices, size.n, size.n);
    return [=](const Space& instance, const Volume& projections, const Volume& images) {
      if (by_convolution)
        return plan->normal(instance, images, results);
      plan->project(instance, images, projections);
      plan->backproject(instance, projections, results);
    };
  };
}

/// Ten iterations of conjugate gradients from zero, by a pair or by its normal operator.
auto cgls(bool by_normal) {
  return [by_normal](const Space& space, const Size& size) {
    const auto pair = std::make_shared<FourierNormal<Space, float>>(
        space, ParallelBeamGeometry{.angles = half_turn(size.angles), .width = size.n},
        FourierTomographyOptions{.slices = size.slices, .units = ProjectionUnits::LineIntegrals});
    const auto solver = std::make_shared<LeastSquaresSolver<Space, float>>(
        space, LeastSquaresShape{.data = {size.slices, size.angles, size.n},
                                 .images = {size.slices, size.n, size.n},
                                 .normal = by_normal});
    return [=](const Space& instance, const Volume& projections, const Volume& images) {
      Kokkos::deep_copy(instance, images, 0);
      solver->solve(instance, *pair, projections, images, {.iterations = 10});
    };
  };
}

/// Back-projection or projection about an axis that is tilted by half a radian, of as many rows as slices.
template <class Plan>
auto laminography(bool backproject) {
  return [backproject](const Space& space, const Size& size) {
    auto angles = half_turn(size.angles);
    for (double& angle : angles)
      angle *= 2;
    const auto plan = std::make_shared<Plan>(
        space, TiltedBeamGeometry{
                   .beam = {.angles = angles, .width = size.n}, .rows = int(size.slices), .tilt = 0.5});
    return [=](const Space& instance, const Volume& projections, const Volume& volume) {
      if (backproject)
        plan->backproject(instance, projections, volume);
      else
        plan->project(instance, volume, projections);
    };
  };
}

template <class Make>
void register_volume(const char* name, const Make& make) {
  benchmark::RegisterBenchmark((std::string("tomography/laminography/") + name).c_str(),
                               [=](benchmark::State& state) { run_on_random(state, make, 1, false); })
      ->ArgNames({"n", "angles", "rows"})
      ->Args({64, 100, 64})
      ->Args({256, 400, 256})
      ->Args({512, 800, 512})
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

template <class Make>
void register_iterations(const char* name, const Make& make) {
  benchmark::RegisterBenchmark((std::string("tomography/") + name).c_str(),
                               [=](benchmark::State& state) { run_on_random(state, make, 1, false); })
      ->ArgNames({"n", "angles", "slices"})
      ->Args({512, 32, 8}) // few views
      ->Args({512, 64, 8})
      ->Args({512, 128, 8})
      ->Args({512, 256, 8})
      ->Args({512, 800, 8})
      ->Args({2048, 128, 64})
      ->Args({2048, 256, 64})
      ->Args({2048, 512, 64})
      ->Args({2048, 1500, 64})
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

template <class Make>
void register_method(const char* name, const Make& make, int upsampling = 1, bool check = false) {
  benchmark::RegisterBenchmark(
      (std::string("tomography/") + name).c_str(),
      [=](benchmark::State& state) { run_on_random(state, make, upsampling, check); })
      ->ArgNames({"n", "angles", "slices"})
      ->Args({362, 724, 64})
      ->Args({724, 1447, 64})
      ->Args({1448, 2895, 64})
      ->Args({1840, 3619, 64})
      ->Args({2896, 5790, 64})
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

void register_fourier(const std::string& name, bool backproject,
                      const FourierTomographyOptions& options = {}) {
  benchmark::RegisterBenchmark(("tomography/fourier/" + name).c_str(),
                               [=](benchmark::State& state) { fourier(state, backproject, options); })
      ->ArgNames({"n", "angles", "slices"})
      ->Args({362, 724, 64})
      ->Args({724, 1447, 64})
      ->Args({1448, 2895, 64})
      ->Args({1840, 3619, 64})
      ->Args({2896, 5790, 64})
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

} // namespace

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  register_fourier("backproject", true);
  register_fourier("backproject_sigma_2", true, {.oversampling = 2});
  register_fourier("project", false);
  register_iterations("fourier/project_and_back", normal(false));
  register_iterations("fourier/normal", normal(true));
  register_iterations("cgls/10_by_pair", cgls(false));
  register_iterations("cgls/10_by_normal", cgls(true));
  register_method("log_polar/backproject", log_polar_backproject, 1, true);
  register_method("log_polar/backproject_rows_2", log_polar_backproject, 2, true);
  register_method("log_polar/project", log_polar_project);
  register_method("log_polar/project_rows_2", log_polar_project, 2);
  register_method("line/backproject", line_backproject);
  register_method("line/project", line_project);
  register_method("filter", filter);
  register_method("stripes/offset", stripes(StripeMethod::Offset));
  register_method("stripes/sorting", stripes(StripeMethod::Sorting));
  register_method("stripes/all", stripes(StripeMethod::All));
  register_method("stripes/wavelet", stripes(StripeMethod::Wavelet));
  register_volume("fourier_backproject", laminography<FourierLaminography<Space, float>>(true));
  register_volume("fourier_project", laminography<FourierLaminography<Space, float>>(false));
  register_volume("line_backproject", laminography<LineLaminography<Space, float>>(true));
  register_volume("line_project", laminography<LineLaminography<Space, float>>(false));
  register_method("phase", phase);
  register_method("outliers", outliers);
  return Bench::run(argc, argv, {"GB_per_s", "error", "grid", "memory_GB"});
}
