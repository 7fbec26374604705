// SPDX-License-Identifier: MIT
// Least squares of bracewell-tomography on few views, limited angles and noise.

#include "bracewell-tomography/wave_fit.hpp"
#include "common/hdf5.hpp"
#include "common/picture.hpp"
#include "pictures.hpp"
#include "support.hpp"

using namespace DriverTest;

namespace {

const std::string tomography = BRACEWELL_TOMOGRAPHY;

/// Discs of even attenuation, in closed form.
struct Discs {
  struct Disc {
    double x, y, radius, value;
  };
  static constexpr Disc discs[] = {{0, 0, 24, 1}, {-8, 5, 7, -0.7}, {9, -4, 5, 0.8}, {4, 12, 3, -0.6}};

  int angles = 24, rows = 2, width = 64;
  double span = 180, noise = 0;
  double centre = 32.4;

  std::vector<float> projections(bool transmission) const {
    std::mt19937 generator(5);
    const auto uniform = [&] { return (generator() + 0.5) / 4294967296.0; };
    std::vector<float> values;
    for (int p = 0; p < angles; ++p)
      for (int row = 0; row < rows; ++row)
        for (int i = 0; i < width; ++i) {
          const double theta = p * span / angles * std::numbers::pi / 180;
          double sum = 0;
          for (const Disc& disc : discs) {
            const double s = i - centre - disc.x * std::cos(theta) - disc.y * std::sin(theta);
            sum += disc.value * (area(s + 0.5, disc.radius) - area(s - 0.5, disc.radius));
          }
          sum *= scale;
          const double normal =
              std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
          sum += noise * std::exp(sum / 2) * normal; // of photons: 1 / weight is the transmission
          values.push_back(static_cast<float>(transmission ? std::exp(-sum) : sum));
        }
    return values;
  }

  void write(const fs::path& path, bool transmission = false) const {
    Hdf5Writer writer(path);
    writer.write<float>("/exchange/data", {angles, rows, width}, projections(transmission));
    std::vector<double> degrees;
    for (int p = 0; p < angles; ++p)
      degrees.push_back(p * span / angles);
    writer.write<double>("/exchange/theta", {angles}, degrees);
    writer.commit();
  }

  /// |slices - truth| / |truth|.
  double error(const std::vector<float>& slices, int image = 64) const {
    std::vector<float> truth;
    for (int row = 0; row < rows; ++row)
      for (int y = 0; y < image; ++y)
        for (int x = 0; x < image; ++x) {
          int inside = 0;
          double sum = 0;
          for (int k = 0; k < 16; ++k)
            for (const Disc& disc : discs) {
              const double dx = x - image / 2 + (k % 4 - 1.5) / 4 - disc.x,
                           dy = image / 2 - y + (k / 4 - 1.5) / 4 - disc.y; // up
              if (dx * dx + dy * dy < disc.radius * disc.radius)
                sum += disc.value / 16, ++inside;
            }
          truth.push_back(static_cast<float>(scale * sum));
        }
    return relative_error(slices, truth);
  }

private:
  static constexpr double scale = 0.03; ///< attenuation per pixel

  /// Integral of the chord 2 sqrt(r^2 - s^2).
  static double area(double s, double r) {
    const double t = std::clamp(s / r, -1.0, 1.0);
    return r * r * (t * std::sqrt(1 - t * t) + std::asin(t));
  }
};

std::vector<float> slices(const fs::path& path) { return Hdf5Reader(path).read<float>("/exchange/data"); }

double number_after(const std::string& text, const std::string& word) {
  const auto at = text.find(word);
  INFO(text);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + word.size()));
}

} // namespace

TEST_CASE("few views and limited angles: iterations come closer than filtered back-projection") {
  const TemporaryFolder folder;
  struct Scan {
    Discs discs;
    double cgls, sirt, tv; ///< factors by which the error is less, at least
  };
  for (const Scan& scan :
       {Scan{{.angles = 20}, 1.15, 2, 2.8}, Scan{{.angles = 40, .span = 110}, 2.1, 2.5, 6}}) {
    CAPTURE(scan.discs.span);
    scan.discs.write(folder / "scan.h5");
    const std::string command =
        tomography + " --scan scan.h5 --no-log --centre 32.4 --out slices.h5 --memory-limit 400 ";
    const auto error = [&](const std::string& options) {
      run_well(folder, command + options);
      return scan.discs.error(slices(folder / "slices.h5"));
    };
    const double filtered = error("");
    for (const std::string method : {"line", "fourier"}) {
      const double cgls = error("--solver cgls --method " + method),
                   sirt = error("--solver sirt --nonnegative --method " + method),
                   tv = error("--solver fista-tv --nonnegative --method " + method);
      CAPTURE(method, filtered, cgls, sirt, tv);
      CHECK(filtered > scan.cgls * cgls);
      CHECK(filtered > scan.sirt * sirt);
      CHECK(filtered > scan.tv * tv);
    }
    const auto host = Hdf5Reader(folder / "slices.h5");
    CHECK(host.attribute("/exchange/data", "iterations").value_or(0) == 200);
    CHECK(host.attribute("/exchange/data", "residual").value_or(0) > 0);
    CHECK(host.attribute("/exchange/data", "total_variation").value_or(0) > 0);
  }
}

TEST_CASE("--noise ends where the sinogram's noise is left; --weights transmission counts photons") {
  const TemporaryFolder folder;
  const Discs discs{.angles = 60, .noise = 0.02};
  discs.write(folder / "scan.h5", true);
  const std::string command = tomography + " --scan scan.h5 --centre 32.4 --out slices.h5 --solver ";
  const auto run_it = [&](const std::string& options) {
    const std::string line = run_well(folder, command + options);
    return std::pair(number_after(line, " after "), number_after(line, ", residual "));
  };
  for (const std::string solver : {"cgls", "sirt --iterations 400", "fista-tv"}) {
    CAPTURE(solver);
    const auto [iterations, residual] = run_it(solver + " --weights transmission --noise 0.02");
    CHECK(iterations > 2);
    CHECK(iterations < (solver == "cgls" ? 20 : 200));
    CHECK(residual < 0.0205);
    CHECK(residual > 0.017);
  }
  const auto error = [&](const std::string& options) {
    run_it(options);
    return discs.error(slices(folder / "slices.h5"));
  };
  const double early = error("cgls --noise 0.02 --weights transmission"),
               late = error("cgls --iterations 60");
  CAPTURE(early, late);
  CHECK(1.3 * early < late);
}

TEST_CASE("slices of iterations are the same in slabs, for half acquisition, and beyond the detector") {
  const TemporaryFolder folder;
  const Discs discs{.angles = 30, .rows = 5};
  discs.write(folder / "scan.h5");
  const std::string command = tomography + " --scan scan.h5 --no-log --centre 32.4 ";
  for (const std::string method : {"fourier --solver cgls", "fourier --solver sirt --iterations 30",
                                   "line --solver fista-tv --iterations 20"}) {
    CAPTURE(method);
    run_well(folder, command + "--out all.h5 --method " + method);
    run_well(folder, command + "--out parts.h5 --rows 3:5 --method " + method);
    auto all = slices(folder / "all.h5");
    all.erase(all.begin(), all.begin() + 3 * 64 * 64);
    // (The factor of total variation is over another row's attenuation.)
    CHECK(relative_error(slices(folder / "parts.h5"), all) < 2e-3);
  }
  // Wider slices than the detector sees: what is beyond counts for nothing.
  run_well(folder, command + "--out wide.h5 --size 80 --solver sirt --nonnegative");
  CHECK(discs.error(slices(folder / "wide.h5"), 80) < 0.25);
  // Half of the object is seen at a time.
  const Discs half{.angles = 120, .width = 40, .span = 360, .centre = 33};
  half.write(folder / "half.h5");
  run_well(folder, tomography + " --scan half.h5 --no-log --half-acquisition --centre 33 --size 64 --out "
                                "slices.h5 --solver cgls");
  CHECK(half.error(slices(folder / "slices.h5")) < 0.15);
  CHECK(run_well(folder, tomography + " --scan half.h5 --no-log --half-acquisition --try-centres 32:34:1 "
                                      "--out c.png --solver cgls --iterations 5")
            .find("3 centres") != std::string::npos);
  // Smaller ones: said.
  const auto outcome = run(folder, command + "--out small.h5 --size 50 --solver cgls");
  CHECK(outcome.code == 0);
  CHECK(outcome.err.find("--size 50: --solver takes what lies beyond the slices for air") !=
        std::string::npos);
  expect_bad_input(folder, command + "--out x.h5 --size 50 --solver cgls --strict",
                   {"--size 50", "--strict"});
}

TEST_CASE("options that a solver does not take are refused", "[hosts]") {
  const TemporaryFolder folder;
  Discs{.angles = 16}.write(folder / "scan.h5");
  const auto bad = [&](const std::string& options, const std::vector<std::string>& words) {
    expect_bad_input(folder, tomography + " --scan scan.h5 --no-log --centre 32.4 --out x.h5 " + options,
                     words);
  };
  bad("--solver magic", {"--solver", "cgls"});
  bad("--iterations 5", {"--iterations", "--solver"});
  bad("--noise 0.1", {"--noise", "--solver"});
  bad("--solver cgls --filter hann", {"--solver", "--filter"});
  bad("--solver cgls --padding zero", {"--solver", "--padding"});
  bad("--solver cgls --density-weights", {"--solver", "--density-weights"});
  bad("--solver cgls --iterations 0", {"--iterations"});
  bad("--solver sirt --noise 0", {"--noise"});
  bad("--solver cgls --nonnegative", {"--nonnegative", "sirt and fista-tv"});
  bad("--solver sirt --total-variation 1", {"--total-variation", "fista-tv"});
  bad("--solver fista-tv --total-variation -1", {"--total-variation"});
  bad("--solver cgls --method log-polar", {"--method log-polar", "100 times"});
  bad("--method log-polar --span 120", {"scan.h5: angle 1 is 7.5", "--method log-polar"});
  bad("--solver cgls --memory-limit 3", {"--memory-limit", "needs"});
}

namespace {

/// A scan of blobs that drifts: projections in closed form at angles and shifts that the file does not know.
struct Drift {
  static constexpr int angles = 120, rows = 6, width = 96;
  static constexpr double centre = 47.3;
  std::vector<double> angle_errors, shifts; ///< degrees, pixels

  Drift() {
    std::mt19937 generator(11);
    const auto uniform = [&] { return generator() / 4294967296.0 - 0.5; };
    for (int p = 0; p < angles; ++p) {
      const double t = double(p) / angles;
      angle_errors.push_back(0.15 * std::sin(5 * t) + 0.1 * uniform());
      shifts.push_back(2.2 * t * t - 0.8 + 0.8 * std::sin(9 * t) + uniform());
    }
  }

  void write(const fs::path& path) const {
    std::vector<float> values;
    for (int p = 0; p < angles; ++p)
      for (int row = 0; row < rows; ++row)
        for (int i = 0; i < width; ++i) {
          const double theta = (180.0 * p / angles + angle_errors[std::size_t(p)]) * std::numbers::pi / 180;
          double sum = 0;
          for (int k = 0; k < 9; ++k) { // other blobs in every row
            const double radius = 6 + 31 * std::fmod(0.37 * k + 0.21 * row, 1.0), turn = 2.4 * k + 0.9 * row,
                         sigma = 1.6 + 0.3 * k;
            const double s = i - centre - shifts[std::size_t(p)] - radius * std::cos(theta - turn);
            sum += 0.05 * std::exp(-s * s / (2 * sigma * sigma)) * sigma;
          }
          values.push_back(static_cast<float>(sum));
        }
    Hdf5Writer writer(path);
    writer.write<float>("/exchange/data", {angles, rows, width}, values);
    writer.commit();
  }

  struct Errors {
    double degrees, pixels; ///< the largest ones
  };
  /// But for a turn of everything, and for shifts of an object that is elsewhere (both by least squares).
  Errors errors(const std::vector<double>& found_degrees, const std::vector<double>& found_shifts,
                double found_centre) const {
    double turn = 0;
    for (int p = 0; p < angles; ++p)
      turn += (found_degrees[std::size_t(p)] - 180.0 * p / angles - angle_errors[std::size_t(p)]) / angles;
    double cc = 0, cs = 0, ss = 0, c1 = 0, s1 = 0;
    std::vector<double> off;
    for (int p = 0; p < angles; ++p) {
      off.push_back(found_centre + found_shifts[std::size_t(p)] - centre - shifts[std::size_t(p)]);
      const double c = std::cos(p * std::numbers::pi / angles), s = std::sin(p * std::numbers::pi / angles);
      cc += c * c, cs += c * s, ss += s * s, c1 += c * off.back(), s1 += s * off.back();
    }
    const double a = (c1 * ss - s1 * cs) / (cc * ss - cs * cs), b = (s1 * cc - c1 * cs) / (cc * ss - cs * cs);
    Errors worst{0, 0};
    for (int p = 0; p < angles; ++p) {
      const double c = std::cos(p * std::numbers::pi / angles), s = std::sin(p * std::numbers::pi / angles);
      worst.pixels = std::max(worst.pixels, std::abs(off[std::size_t(p)] - a * c - b * s));
      worst.degrees = std::max(worst.degrees, std::abs(found_degrees[std::size_t(p)] - 180.0 * p / angles -
                                                       angle_errors[std::size_t(p)] - turn));
    }
    return worst;
  }
};

} // namespace

TEST_CASE("--align finds the angles and the shifts of a scan that drifts") {
  const TemporaryFolder folder;
  const Drift drift;
  drift.write(folder / "scan.h5");
  const std::string command = tomography + " --scan scan.h5 --no-log --span 180 --out slices.h5 ";
  std::vector<double> degrees(Drift::angles), shifts(Drift::angles);
  for (int p = 0; p < Drift::angles; ++p)
    degrees[std::size_t(p)] = 180.0 * p / Drift::angles;
  const auto before = drift.errors(degrees, shifts, 47);
  CHECK(before.degrees > 0.15);
  CHECK(before.pixels > 1);
  const Outcome outcome = run(folder, command + "--align-angles --centre 47 --solver cgls --method line");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err.find("pixels off (root mean square)") != std::string::npos);
  std::ifstream table(folder / "slices_views.txt");
  std::string line;
  std::getline(table, line);
  CHECK(line.find("angle_degrees") != std::string::npos);
  for (std::size_t p = 0; p < degrees.size(); ++p)
    table >> degrees[p] >> shifts[p];
  REQUIRE(bool(table));
  const auto after = drift.errors(degrees, shifts, 47);
  CAPTURE(before.degrees, before.pixels, after.degrees, after.pixels);
  CHECK(after.degrees < 0.02);
  CHECK(after.pixels < 0.1);
  const double without = number_after(run_well(folder, command + "--centre 47 --solver cgls"), "residual ");
  CHECK(10 * number_after(outcome.out, "residual ") < without);
  { // A scan that does not drift keeps its views.
    Drift still;
    std::ranges::fill(still.shifts, 0), std::ranges::fill(still.angle_errors, 0);
    still.write(folder / "still.h5");
    const std::string plain =
        tomography + " --scan still.h5 --no-log --span 180 --centre 47.3 --out slices.h5 --overwrite ";
    run_well(folder, plain);
    const std::vector<float> expected = slices(folder / "slices.h5");
    const Outcome kept = run(folder, plain + "--align");
    INFO(kept.err);
    REQUIRE(kept.code == 0);
    CHECK(kept.err.find("they stay as they are") != std::string::npos);
    CHECK(slices(folder / "slices.h5") == expected);
  }
  for (const std::string options : {"--method log-polar", "--half-acquisition --span 360"})
    expect_bad_input(folder,
                     tomography + " --scan scan.h5 --no-log --out x.h5 --centre 47 --align " + options,
                     {"--align"});
}

TEST_CASE("--align leaves smaller errors of shifts than centres of mass do") {
  // Ellipses of constant attenuation with noise. Corners of slices, which some views do not see, must not make up for
  // shifts: that is a wave of 0.2 pixels, four periods a turn, at a lower residual.
  constexpr int views = 300, rows = 2, width = 200;
  constexpr double centre = 97.25, parts[5][5] = {{0.02, 58, 77, 0, 0},
                                                  {-0.016, 55, 73, 0, -1.5},
                                                  {-0.004, 12, 30, 18, 4},
                                                  {0.004, 16, 20, -10, 25},
                                                  {0.006, 6, 5, 26, -36}}; // value, half axes, middle
  std::mt19937 generator(3);
  std::normal_distribution<double> normal;
  std::vector<double> angles, shifts;
  std::vector<float> values;
  std::vector<double> by_mass(views);
  for (int p = 0; p < views; ++p) {
    angles.push_back(p * std::numbers::pi / views);
    shifts.push_back(1.2 * std::sin(p / 40.0) + 0.6 * normal(generator));
    const double c = std::cos(angles.back()), s = std::sin(angles.back());
    double mass = 0, moment = 0;
    for (int row = 0; row < rows; ++row)
      for (int i = 0; i < width; ++i) {
        double sum = 0;
        for (const auto& [value, a, b, x, y] : parts)
          for (int k = 0; k < 4; ++k) {
            const double squared = a * a * c * c + b * b * s * s,
                         t = i + (k - 1.5) / 4 - centre - shifts.back() - (row == 0 ? x : -x) * c - y * s;
            sum += 0.5 * value * a * b / squared * std::sqrt(std::max(0.0, squared - t * t));
          }
        values.push_back(float(sum + 0.008 * normal(generator)));
        mass += values.back(), moment += double(values.back()) * i;
      }
    by_mass[std::size_t(p)] = moment / mass - centre;
  }
  const TemporaryFolder folder;
  Hdf5Writer writer(folder / "scan.h5");
  writer.write<float>("/exchange/data", {views, rows, width}, values);
  writer.commit();
  // Root mean square but for a constant, a cosine and a sine, which are an axis and an object that are elsewhere.
  const auto error_of = [&](const std::vector<double>& found) {
    std::vector<double> off;
    for (std::size_t p = 0; p < std::size_t(views); ++p)
      off.push_back(found[p] - shifts[p]);
    const WaveFit fit(angles, off);
    double squares = 0;
    for (std::size_t p = 0; p < std::size_t(views); ++p)
      squares += std::pow(off[p] - fit.at(angles[p]), 2) / views;
    return std::sqrt(squares);
  };
  run_well(folder, tomography + " --scan scan.h5 --no-log --span 180 --centre 97.25 --align --out slices.h5");
  std::ifstream table(folder / "slices_views.txt");
  std::string line;
  std::getline(table, line);
  std::vector<double> found(views);
  for (double& shift : found) {
    double angle = 0;
    table >> angle >> shift;
  }
  REQUIRE(bool(table));
  CAPTURE(error_of(by_mass), error_of(found));
  CHECK(error_of(found) < 0.5 * error_of(by_mass));
  CHECK(error_of(found) < 0.05);
}

namespace {

constexpr int demo_width = 256, demo_row = 8;

/// A slice of the demonstration, or its truth.
std::vector<float> demo_slice(const fs::path& path) {
  auto values = slices(path);
  constexpr std::size_t pixels = demo_width * demo_width;
  if (values.size() > pixels)
    values = std::vector<float>(values.begin() + demo_row * pixels, values.begin() + (demo_row + 1) * pixels);
  REQUIRE(values.size() == pixels);
  return values;
}

/// Relative error in the disc that the object is in, as --demo counts it.
double demo_error(const std::vector<float>& slice, const std::vector<float>& truth) {
  std::vector<float> found, expected;
  for (int i = 0; i < demo_width * demo_width; ++i)
    if (std::hypot(i % demo_width - demo_width / 2, i / demo_width - demo_width / 2) <= 0.45 * demo_width) {
      found.push_back(slice[std::size_t(i)]);
      expected.push_back(truth[std::size_t(i)]);
    }
  return relative_error(found, expected);
}

/// Means over 2 x 2 pixels.
std::vector<float> halved(const std::vector<float>& slice) {
  std::vector<float> means;
  for (int y = 0; y < demo_width; y += 2)
    for (int x = 0; x < demo_width; x += 2) {
      const auto at = std::size_t(y * demo_width + x);
      means.push_back((slice[at] + slice[at + 1] + slice[at + demo_width] + slice[at + demo_width + 1]) / 4);
    }
  return means;
}

} // namespace

// With FIGURE=docs/iterative.png in the environment it draws the figure of the page, too.
TEST_CASE("the commands of docs/iterative.md reconstruct few views and limited angles") {
  const TemporaryFolder folder;
  const std::string commands = commands_of(fs::path(BRACEWELL_SOURCE_DIR) / "docs/iterative.md");
  REQUIRE(commands.find("--solver fista-tv") != std::string::npos);
  run_well(folder, "set -e\nPATH=" + fs::path(tomography).parent_path().string() + ":$PATH\n" + commands);
  struct Result {
    const char* name;
    double few, limited; ///< errors of the page, at most
  };
  std::vector<Picture> rows;
  for (const std::string scan : {"few", "limited"}) {
    const auto truth = demo_slice(folder / scan / "truth.h5");
    std::vector<std::vector<float>> shown{halved(truth)};
    std::vector<std::string> captions{scan == "few" ? "truth; 30 views" : "truth; 120 degrees"};
    for (const Result& result : {Result{"fbp", 0.17, 0.41}, Result{"cgls", 0.13, 0.25},
                                 Result{"sirt", 0.10, 0.22}, Result{"fista-tv", 0.085, 0.17}}) {
      const auto slice = demo_slice(folder / scan / (std::string(result.name) + ".h5"));
      const double error = demo_error(slice, truth);
      CAPTURE(scan, result.name, error);
      CHECK(error < (scan == "few" ? result.few : result.limited));
      char caption[40];
      std::snprintf(caption, sizeof caption, "%s: %.2f", result.name, error);
      captions.emplace_back(caption);
      shown.push_back(halved(slice));
      if (std::getenv("FIGURE"))
        std::printf("%s %s %.3f\n", scan.c_str(), result.name, error);
    }
    std::vector<Picture> row;
    for (std::size_t k = 0; k < shown.size(); ++k)
      row.push_back(grey_panel({.caption = captions[k],
                                .values = shown[k],
                                .width = demo_width / 2,
                                .height = demo_width / 2,
                                .range = {-0.001F, 0.013F},
                                .pixel_size = 2,
                                .points = demo_width / 2}));
    rows.push_back(side_by_side(row));
    if (scan == "limited") {
      write_picture(folder / "iterative.png", stacked(rows));
      CHECK(difference(PictureFile(page_picture("docs/iterative.png")),
                       PictureFile(folder / "iterative.png")) < 3);
      if (std::getenv("FIGURE"))
        write_picture(std::getenv("FIGURE"), stacked(rows));
    }
  }
}
