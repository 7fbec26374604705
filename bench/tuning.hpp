// What the programs tune_* share: times around fences, the place where one alternative overtakes another, constants
// fitted to times, and how they are printed.
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/impl/execution.hpp>

#include <Kokkos_Random.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <random>
#include <string>
#include <vector>

namespace Tuning {

using Space = Kokkos::DefaultExecutionSpace;
using Complex = Kokkos::complex<float>;
template <class Data>
using View = Kokkos::View<Data, Kokkos::LayoutRight, Space>;
inline constexpr bool host = Bracewell::Impl::is_host<Space>;

/// The device, the date, and what its numbers are worth.
inline void print_device(const char* program, bool of_gpus_only) {
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 12); // lines appear as they are measured
  const std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof date, "%Y-%m-%d", std::localtime(&now));
  std::printf("%s, %s, %s, %d threads\n", program, date, Space::name(), Space().concurrency());
#ifdef KOKKOS_ENABLE_CUDA
  std::printf("%s\n", Space().cuda_device_prop().name);
#endif
  if (host && of_gpus_only)
    std::printf("What is marked * decides on GPUs only: here it is run, on small sizes, and says nothing.\n");
}

/// Median of at least 7 runs and 0.2 seconds (on hosts 3 runs), each up to a fence, after one that is not counted.
template <class Run>
double median_seconds(const Space& space, const Run& run) {
  using Clock = std::chrono::steady_clock;
  run();
  space.fence();
  std::vector<double> seconds;
  double all = 0;
  while (seconds.size() < (host ? 3 : 7) || (!host && all < 0.2 && seconds.size() < 200)) {
    const auto start = Clock::now();
    run();
    space.fence();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    all += seconds.back();
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  return seconds[seconds.size() / 2];
}

/// The times of two alternatives over a quantity that one of them is chosen by.
class Crossing {
public:
  Crossing(const std::string& decides, const std::string& first, const std::string& second)
      : decides_(decides), first_(first), second_(second) {}

  void add(double quantity, double seconds_of_first, double seconds_of_second) {
    at_.push_back({quantity, seconds_of_first, seconds_of_second});
  }

  /// Where the second becomes the faster, between measurements on a line of logarithms, beside the number in use.
  void print(double in_use) const {
    std::printf("\n%s\n%16s%16s us%16s us%10s\n", decides_.c_str(), "", first_.c_str(), second_.c_str(),
                "ratio");
    for (const Point& p : at_)
      std::printf("%16.4g%19.1f%19.1f%10.2f\n", p.quantity, 1e6 * p.first, 1e6 * p.second,
                  p.first / p.second);
    std::string measured = at_.empty() || at_.front().gain() < 0 ? "beyond the largest" : "below the least";
    for (std::size_t i = 1; i < at_.size(); ++i)
      if (at_[i - 1].gain() < 0 && at_[i].gain() >= 0) {
        const double part = at_[i - 1].gain() / (at_[i - 1].gain() - at_[i].gain());
        char text[32];
        std::snprintf(text, sizeof text, "%.3g",
                      at_[i - 1].quantity * std::pow(at_[i].quantity / at_[i - 1].quantity, part));
        measured = text; // the last of them, where there are more
      }
    std::printf("  the second is the faster from: %s    in use: %.3g\n", measured.c_str(), in_use);
  }

private:
  struct Point {
    double quantity, first, second;
    double gain() const { return std::log(first / second); }
  };
  std::string decides_, first_, second_;
  std::vector<Point> at_;
};

/// Constants, none negative, that make sums of terms times constants equal to values, by least squares of relative
/// errors.
class Fit {
public:
  explicit Fit(std::size_t constants) : constants_(constants, 0) {}

  void add(std::vector<double> terms, double value) {
    for (double& term : terms)
      term /= value;
    rows_.push_back(std::move(terms));
  }

  /// Coordinate by coordinate, which converges for a few constants of one sign.
  std::vector<double> constants() {
    for (int step = 0; step < 20000; ++step)
      for (std::size_t c = 0; c < constants_.size(); ++c) {
        double along = 0, square = 0;
        for (const auto& row : rows_) {
          along += row[c] * (1 - sum(row));
          square += row[c] * row[c];
        }
        constants_[c] = square > 0 ? std::max(0., constants_[c] + along / square) : 0;
      }
    return constants_;
  }

  /// Largest relative error of a sum.
  double error() const {
    double largest = 0;
    for (const auto& row : rows_)
      largest = std::max(largest, std::abs(1 - sum(row)));
    return largest;
  }

private:
  double sum(const std::vector<double>& row) const {
    double total = 0;
    for (std::size_t c = 0; c < row.size(); ++c)
      total += row[c] * constants_[c];
    return total;
  }

  std::vector<double> constants_;
  std::vector<std::vector<double>> rows_;
};

inline void print_constant(const std::string& name, double fitted, double in_use) {
  std::printf("  %-44s fitted %10.3g    in use %10.3g\n", name.c_str(), fitted, in_use);
}

/// A View of complex or real numbers between -1 and 1.
template <class Value>
Kokkos::View<Value*, Kokkos::LayoutRight, Space> random_values(const std::string& label, std::int64_t size) {
  const Kokkos::View<Value*, Kokkos::LayoutRight, Space> values(label, size);
  using Part = typename Bracewell::Impl::RealOf<Value>::type;
  const Kokkos::View<Part*, Kokkos::LayoutRight, Space> parts(reinterpret_cast<Part*>(values.data()),
                                                              size * sizeof(Value) / sizeof(Part));
  Kokkos::fill_random(parts, Kokkos::Random_XorShift64_Pool<Space>(7), Part(-1), Part(1));
  return values;
}

/// Uniformly distributed rotations [count, D, D].
template <int D>
Kokkos::View<float*, Kokkos::LayoutRight, Space> random_rotations(std::int64_t count) {
  const Kokkos::View<float*, Kokkos::LayoutRight, Space> matrices("matrices", count * D * D);
  const auto on_host = Kokkos::create_mirror_view(matrices);
  std::mt19937 engine(7);
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < count; ++i) {
    double w = normal(engine), x = normal(engine), y = normal(engine), z = normal(engine); // a quaternion
    if (D == 2)
      x = y = 0;
    const double s = 2 / (w * w + x * x + y * y + z * z);
    const double m[3][3] = {{1 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)},
                            {s * (x * y + w * z), 1 - s * (x * x + z * z), s * (y * z - w * x)},
                            {s * (x * z - w * y), s * (y * z + w * x), 1 - s * (x * x + y * y)}};
    for (int e = 0; e < D * D; ++e)
      on_host(i * D * D + e) = float(m[e / D][e % D]);
  }
  Kokkos::deep_copy(matrices, on_host);
  return matrices;
}

} // namespace Tuning
