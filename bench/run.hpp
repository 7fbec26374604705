// SPDX-License-Identifier: MIT
// What main does in every program of benchmarks.
#pragma once

#include <benchmark/benchmark.h>

#include <initializer_list>
#include <limits>
#include <string_view>
#include <vector>

namespace Bench {

// Programs read CSV, which Google Benchmark would drop in favour of JSON.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
/// Google Benchmark's columns are the counters of the first row, and it aborts at a row with others.
class AllCounters : public benchmark::CSVReporter {
public:
  explicit AllCounters(std::initializer_list<const char*> counters) : counters_(counters) {}

  void ReportRuns(const std::vector<Run>& rows) override {
    std::vector<Run> complete = rows;
    for (Run& row : complete)
      for (const char* const counter : counters_)
        row.counters.emplace(counter, std::numeric_limits<double>::quiet_NaN());
    CSVReporter::ReportRuns(complete);
  }

private:
  std::vector<const char*> counters_;
};
#pragma GCC diagnostic pop

/// Runs the benchmarks that the command line asks for; returns the exit code.
/// @param counters  of all rows together: as CSV, those that a row lacks are nan
inline int run(int argc, char** argv, std::initializer_list<const char*> counters) {
  bool csv = false, csv_file = false, file = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    csv = csv || option == "--benchmark_format=csv";
    csv_file = csv_file || option == "--benchmark_out_format=csv";
    file = file || option.starts_with("--benchmark_out=");
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  AllCounters display(counters), to_file(counters);
  benchmark::RunSpecifiedBenchmarks(csv ? &display : nullptr, file && csv_file ? &to_file : nullptr);
  benchmark::Shutdown();
  return 0;
}

} // namespace Bench
