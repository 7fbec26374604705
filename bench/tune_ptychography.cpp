// Prints what the fused plan of ptychography is chosen and shaped by: for every size that the fused kernel knows,
// where windows lie (in the memory of the chip or in a workspace, by how many teams of a multiprocessor) and what a
// pattern takes, beside lines and the general path; the reduced grid; for the path of lines the lines, threads and memory of its teams, and the
// same times; times by the type of numbers and the number of patterns; then the times by the size of groups (options.workspace_bytes). Loss and both gradients, float.

#include "ptychography_workspaces.hpp"

#include <bracewell/ptychography/detail/line_teams.hpp>
#include <bracewell/ptychography/detail/plans/fused_plan.hpp>

namespace {

using namespace Tuning;

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

void types() {
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
    types();
  reduced_grid();
  lines();
  groups();
}
