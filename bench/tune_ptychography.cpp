// Prints what the fused plan of ptychography is chosen and shaped by: for every size that the fused kernel knows,
// where windows lie (in the memory of the chip or in a workspace, by how many teams of a multiprocessor) and what a
// pattern takes, beside lines and the general path; the reduced grid; for the path of lines the lines, threads and memory of its teams, and the
// same times; times by the type of numbers and the number of patterns; then the times by the size of groups (options.workspace_bytes). Loss and both gradients, float.

#include "tuning.hpp"

#include <bracewell/ptychography/detail/line_teams.hpp>
#include <bracewell/ptychography/detail/plans/fused_plan.hpp>
#include <bracewell/ptychography/ptychography_loss.hpp>

namespace {

using namespace Tuning;
using namespace Bracewell;

/// With lines on hosts, too, where programs do without.
struct Detectors : Impl::EveryFusedDetector {
  template <class>
  static constexpr bool lines = true;
};

/// A raster scan of `side` x `side` positions that overlap; patterns are stored as Storage.
template <class Real = float, class Storage = Real>
struct Experiment {
  using Value = Kokkos::complex<Real>;
  Space space;
  int n, m, side, size, modes;
  View<Value**> object, object_gradient;
  View<Value***> probe, probe_gradient;
  View<double> loss{"loss"};

  Experiment(int n_, int m_, int side_, int modes_ = 1)
      : n(n_), m(m_), side(side_), size(m + side * std::max(1, m / 12)), modes(modes_),
        object("object", size, size), object_gradient("object gradient", size, size),
        probe("probe", modes, m, m), probe_gradient("probe gradient", modes, m, m) {
    fill(object);
    fill(probe);
  }

  template <class Image>
  static void fill(const Image& image) {
    const auto values = static_cast<std::int64_t>(image.size());
    Kokkos::deep_copy(View<Value*>(image.data(), image.size()), random_values<Value>("values", values));
  }

  int patterns() const { return side * side; }

  /// Seconds of a pattern.
  double time(const PtychographyOptions& options) const {
    Kokkos::View<int* [2], Kokkos::HostSpace> corners("positions", patterns());
    for (int j = 0; j < patterns(); ++j)
      for (int axis = 0; axis < 2; ++axis)
        corners(j, axis) = (axis == 0 ? j / side : j % side) * (size - m) / side;
    PtychographyLoss<Space, Real, Impl::CompiledWith<Storage, Detectors>> model(
        space, {.object = {size, size}, .probe = m, .detector = n, .modes = modes}, corners, options);
    const int group = std::min(patterns(), 64);
    const Kokkos::View<std::uint16_t***, Kokkos::LayoutRight, Kokkos::HostSpace> counts("counts", group, n,
                                                                                        n);
    for (std::size_t i = 0; i < counts.size(); ++i)
      counts.data()[i] = static_cast<std::uint16_t>(90 + i % 21);
    for (int first = 0; first < patterns(); first += group)
      model.set_patterns(space, first,
                         Kokkos::subview(counts, std::pair(0, std::min(group, patterns() - first)),
                                         Kokkos::ALL, Kokkos::ALL));
    const double seconds = median_seconds(space, [&] {
      model.evaluate(space, object, probe,
                     {.loss = loss, .object_gradient = object_gradient, .probe_gradient = probe_gradient});
    });
    return seconds / patterns();
  }
};

void sizes() {
  std::printf("\n%6s%6s%12s%8s%10s%14s%10s%12s%12s%12s%12s\n", "n", "m", "team, wksp.", "teams", "KB a team",
              "windows", "allowed", "fused us", "lines us", "general us", "automatic us");
  const double allowed = double(Impl::chip_memory(Space()));
  for (const int n : {40, 48, 64, 128, 160, 192, 256, 512})
    for (const int m : {5 * n / 16, n / 2, n}) {
      const Experiment<> experiment(n, m, host ? 4 : (n > 256 ? 24 : 48));
      Impl::visit_fused_sizes<Impl::EveryFusedDetector>(n, m, [&](auto known) {
        using Sizes = decltype(known);
        constexpr int teams = Sizes::template chip_teams<float>();
        const double bytes = double(Sizes::template chip_bytes<float>(m, teams == 2 ? 256 : 512));
        std::printf("%6d%6d%12d%8d%10.1f%14s%10.1f", n, m, Sizes::template team_size<float>(), teams,
                    bytes / 1024, teams > 0 && bytes <= allowed ? "on the chip" : "workspace",
                    allowed / 1024);
      });
      for (const auto path :
           {PatternPath::Fused, PatternPath::Lines, PatternPath::General, PatternPath::Automatic})
        std::printf("%12.3f", 1e6 * experiment.time({.counts = 100, .path = path}));
      std::printf("\n");
    }
}

/// What a pattern takes where windows of the fused kernel lie in a workspace, by the type of numbers and by the number of
/// patterns: choose_pattern_path takes Fused for all of them.
template <class Real, class Storage>
void workspaces(const char* name) {
  for (const int n : {192, 256, 512})
    for (const int side : {3, 12, n > 256 ? 24 : 48}) {
      const Experiment<Real, Storage> experiment(n, n / 2, side);
      std::printf("%8s%6d%6d%10d", name, n, n / 2, side * side);
      for (const auto path : {PatternPath::Fused, PatternPath::Lines, PatternPath::General})
        std::printf("%12.3f", 1e6 * experiment.time({.counts = 100, .path = path}));
      std::printf("\n");
    }
}

void workspaces() {
  std::printf("\n%8s%6s%6s%10s%12s%12s%12s\n", "numbers", "n", "m", "patterns", "fused us", "lines us",
              "general us");
  workspaces<float, float>("float");
  workspaces<float, Half>("half");
  workspaces<double, double>("double");
}

void reduced_grid() {
  const Experiment<> experiment(256, 80, host ? 12 : 64);
  std::printf(
      "\ndetector 256, probe 80: us a pattern on the whole detector and on the reduced grid: %.3f %.3f\n",
      1e6 * experiment.time({.counts = 100}), 1e6 * experiment.time({.counts = 100, .reduced_grid = true}));
}

/// Lines, threads and KB of a team.
void print_teams(const Impl::RadixPasses<float>& passes, int lines_of_wave, int sums) {
  const auto teams = Impl::LineTeams::choose<Space>(passes, lines_of_wave, sums);
  std::printf("%8d%9d%8.1f", teams.lines.by(), teams.threads,
              double(Impl::LineTeams::bytes<Space>(passes, teams.lines.by(), sums)) / 1024);
}

void lines() {
  using Constants = Impl::PtychographyTuning;
  std::printf("\nlines: at most %d threads and %.1f KB a team\n%6s%6s%7s%25s%25s%12s%12s\n",
              Constants::line_threads, double(Constants::line_bytes) / 1024, "n", "m", "modes",
              "columns: lines, thr., KB", "rows: lines, thr., KB", "lines us", "general us");
  for (const int n : host ? std::vector{64, 100} : std::vector{64, 100, 128, 192, 256, 400, 512, 1024})
    for (const int modes : {1, 4}) {
      const Experiment<> experiment(n, n / 2, host ? 4 : (n > 256 ? 24 : 48), modes);
      const Impl::RadixPlan<Space, float> plan(experiment.space, "plan", n);
      std::printf("%6d%6d%7d", n, n / 2, modes);
      print_teams(plan.forward(), n / 2, 0);
      print_teams(plan.forward(), n, modes > 1 ? 1 : 0);
      std::printf("%12.3f", 1e6 * experiment.time({.counts = 100, .path = PatternPath::Lines}));
      std::printf("%12.3f\n", 1e6 * experiment.time({.counts = 100, .path = PatternPath::General}));
    }
}

void groups() {
  const int n = host ? 64 : 256, m = host ? 20 : 80;
  const Experiment<> experiment(n, m, host ? 8 : 64);
  std::printf("\nworkspace_bytes (in use: %zu MB, lines %zu MB), detector %d, probe %d, %d patterns\n"
              "%10s%12s%12s%12s\n",
              Impl::PtychographyTuning::group_bytes >> 20, Impl::line_group_bytes(Space()) >> 20, n, m,
              experiment.patterns(), "MB", "fused us", "lines us", "general us");
  for (std::size_t megabytes = 10; megabytes <= 5120; megabytes *= 2) {
    PtychographyOptions options{
        .counts = 100, .path = PatternPath::Fused, .workspace_bytes = megabytes << 20};
    std::printf("%10zu%12.3f", megabytes, 1e6 * experiment.time(options));
    options.path = PatternPath::Lines;
    std::printf("%12.3f", 1e6 * experiment.time(options));
    options.path = PatternPath::General;
    std::printf("%12.3f\n", 1e6 * experiment.time(options));
  }
}

} // namespace

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  print_device("tune_ptychography", false);
  sizes();
  if (!host)
    workspaces();
  reduced_grid();
  lines();
  groups();
}
