// SPDX-License-Identifier: MIT
// bracewell-ptychography: the demonstration, what it reads, real data, bad input.
#include "pictures.hpp"
#include "support.hpp"

#include "common/hdf5.hpp"

#include <cmath>
#include <complex>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <random>
#include <regex>
#include <sstream>

#include <zlib.h>

using namespace DriverTest;

namespace {

const std::string program = BRACEWELL_PTYCHOGRAPHY;

/// The number behind some words of a summary.
double number_after(const std::string& text, const std::string& words) {
  const std::size_t at = text.find(words);
  INFO(text);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + words.size()));
}

template <class T>
std::vector<T> read(const fs::path& path, const std::string& dataset) {
  return Hdf5Reader(path).read<T>(dataset);
}

/// A few patterns of the demonstration.
struct Scan {
  static constexpr std::int64_t count = 12, n = 64;
  std::vector<float> patterns; ///< [count, n, n], zero frequency in the middle
  std::vector<double> translation;

  /// Positions in object pixels, (row, column).
  std::vector<double> positions() const {
    std::vector<double> pixels;
    for (std::size_t i = 0; i < translation.size(); i += 3)
      for (const double metres : {translation[i + 1], translation[i]})
        pixels.push_back(metres / 2e-11);
    return pixels;
  }
  /// Patterns with the zero frequency at [0, 0].
  std::vector<float> unshifted() const {
    std::vector<float> result(patterns.size());
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      const std::size_t y = i / n % n, x = i % n;
      result[i - y * n - x + (y + n / 2) % n * n + (x + n / 2) % n] = patterns[i];
    }
    return result;
  }
};

/// The demonstration, run once: its folder and summary.
struct Demonstration {
  TemporaryFolder folder;
  std::string summary;
  Scan scan;

  Demonstration() : summary(run_well(folder, program + " --demo .")) {
    const Hdf5Reader file(folder / "scan.cxi");
    scan.patterns.resize(static_cast<std::size_t>(Scan::count * Scan::n * Scan::n));
    file.read("/entry_1/data_1/data", {{0, 0, 0}, {Scan::count, Scan::n, Scan::n}}, std::span(scan.patterns));
    scan.translation.resize(3 * Scan::count);
    file.read("/entry_1/data_1/translation", {{0, 0}, {Scan::count, 3}}, std::span(scan.translation));
  }
};

const Demonstration& demonstration() {
  static const Demonstration once;
  return once;
}

/// What write_cxi leaves out or changes.
struct Faults {
  std::string without = {};
  std::optional<double> energy = {};
  std::vector<std::int64_t> translation_shape = {Scan::count, 3};
  std::optional<double> y_pixel_size = {};
  std::vector<std::uint32_t> mask = {};
  std::string entry = "/entry_1/", number = "_1";
};

void write_cxi(const fs::path& path, const Scan& scan, const Faults& faults = {}) {
  Hdf5Writer file(path);
  const auto name = [&](const std::string& group, const std::string& member) {
    return faults.entry + group + faults.number + "/" + member;
  };
  const auto scalar = [&](const std::string& dataset, double value) {
    if (!dataset.ends_with("/" + faults.without))
      file.write_scalar(dataset, value);
  };
  const double wavelength = 1.96875e-12, distance = 1, pixel = wavelength / (64 * 2e-11);
  const std::string instrument = faults.entry + "instrument" + faults.number + "/";
  const std::string source = instrument + "source" + faults.number + "/";
  const std::string detector = instrument + "detector" + faults.number + "/";
  if (faults.energy)
    scalar(source + "energy", *faults.energy);
  else
    scalar(source + "wavelength", wavelength);
  scalar(detector + "distance", distance);
  scalar(detector + "x_pixel_size", pixel);
  scalar(detector + "y_pixel_size", faults.y_pixel_size.value_or(pixel));
  if (faults.without != "data")
    file.write<float>(name("data", "data"), {Scan::count, Scan::n, Scan::n}, scan.patterns);
  if (faults.without != "translation") {
    std::vector<double> values(static_cast<std::size_t>(hdf5_elements(faults.translation_shape)));
    std::copy_n(scan.translation.begin(), std::min(values.size(), scan.translation.size()), values.begin());
    file.write<double>(name("data", "translation"), faults.translation_shape, values);
  }
  if (!faults.mask.empty())
    file.write<std::uint32_t>(detector + "mask", {Scan::n, Scan::n}, faults.mask);
  file.commit();
}

const std::string few = " --passes 3 --probe-size 48 --convergence-angle 0.02 --defocus 11 ";

} // namespace

TEST_CASE("the demonstration finds its object") {
  const auto& [folder, summary, scan] = demonstration();
  CHECK(number_after(summary, "error against the reference ") < 0.05);
  CHECK(std::abs(number_after(summary, "defocus ") - 12) < 0.3);
  for (const auto* picture :
       {"scan_phase.png", "scan_amplitude.png", "scan_probe.png", "scan_loss.png", "scan_patterns.png"})
    CHECK(fs::file_size(folder / picture) > 1000);
  const Region inside{8, 30, 452, 480};
  const PictureFile shown(page_picture("docs/programs/ptychography.png"), inside);
  CHECK(difference(shown, PictureFile(folder / "scan_phase.png", inside)) < 3);
  CHECK(difference(shown, PictureFile(folder / "scan_amplitude.png", inside)) > 10);
  // From the document's start (0.9 + 0.1 N, 0.1 N) the loss falls with every step once Adam's averages are
  // filled.
  const auto losses = read<double>(folder / "scan.h5", "/loss");
  REQUIRE(losses.size() == 201);
  for (std::size_t pass = 11; pass < losses.size(); ++pass) {
    CAPTURE(pass);
    CHECK(losses[pass] < losses[pass - 1] * (1 + 1e-3));
  }
  CHECK(losses.back() < 0.03 * losses.front());
  // The error by itself: the best factor, over the middle of the object.
  const auto object = [](const fs::path& path) {
    const auto amplitude = read<float>(path, "/object/amplitude"), phase = read<float>(path, "/object/phase");
    std::vector<std::complex<double>> values;
    for (std::size_t y = 40; y < 96; ++y)
      for (std::size_t x = 40; x < 96; ++x)
        values.push_back(std::polar<double>(amplitude[y * 136 + x], phase[y * 136 + x]));
    return values;
  };
  const auto found = object(folder / "scan.h5"), truth = object(folder / "truth.h5");
  std::complex<double> product = 0;
  double found_norm = 0, truth_norm = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    product += std::conj(found[i]) * truth[i];
    found_norm += std::norm(found[i]);
    truth_norm += std::norm(truth[i]);
  }
  CHECK(std::sqrt(1 - std::norm(product) / (found_norm * truth_norm)) < 0.05);
}

TEST_CASE("one scan in several forms of file is one scan", "[hosts]") {
  const Scan& scan = demonstration().scan;
  const TemporaryFolder folder;
  const auto object = [&](const std::string& data, const std::string& options = "") {
    run_well(folder, program + " --data " + data + " --out out.h5" + few + options);
    auto values = read<float>(folder / "out.h5", "/object/phase");
    const auto amplitude = read<float>(folder / "out.h5", "/object/amplitude");
    values.insert(values.end(), amplitude.begin(), amplitude.end());
    return values;
  };
  write_cxi(folder / "scan.cxi", scan);
  const auto expected = object("scan.cxi");

  write_cxi(folder / "nexus.h5", scan, {.entry = "/entry/", .number = ""});
  CHECK(object("nexus.h5") == expected);
  write_cxi(folder / "energy.cxi", scan, {.energy = 1.98644586e-25 / 1.96875e-12});
  CHECK(relative_error(object("energy.cxi"), expected) < 1e-5);
  write_cxi(folder / "bare.cxi", scan, {.without = "wavelength"});
  CHECK(object("bare.cxi", "--wavelength 1.96875e-12") == expected);
  {
    Hdf5Writer file(folder / "plain.h5");
    file.write<float>("/data", {Scan::count, Scan::n, Scan::n}, scan.unshifted());
    file.write<double>("/scan", {Scan::count, 2}, scan.positions());
    file.commit();
  }
  CHECK(object("plain.h5", "--wavelength 1.96875e-12 --object-pixel 2e-11") == expected);

  // The same scan with its axes exchanged or reversed, and named so.
  Scan turned = scan;
  for (std::size_t i = 0; i < turned.translation.size(); i += 3) {
    turned.translation[i] = -scan.translation[i + 1];
    turned.translation[i + 1] = scan.translation[i];
  }
  write_cxi(folder / "turned.cxi", turned);
  CHECK(object("turned.cxi", "--axes=-xy") == expected);
  CHECK(relative_error(object("turned.cxi", "--rotation 90 --axes=-y-x"), expected) > 0.01);
}

TEST_CASE("masked pixels do not count") {
  const Scan& scan = demonstration().scan;
  const TemporaryFolder folder;
  std::vector<std::uint32_t> mask(Scan::n * Scan::n, 0);
  mask[5 * Scan::n + 7] = 1, mask[40 * Scan::n + 33] = 8, mask[0] = 0x800; // the last is no fault
  write_cxi(folder / "clean.cxi", scan, {.mask = mask});
  Scan spoilt = scan;
  for (std::size_t j = 0; j < Scan::count; ++j) {
    spoilt.patterns[j * Scan::n * Scan::n + 5 * Scan::n + 7] = 1e9f;
    spoilt.patterns[j * Scan::n * Scan::n + 40 * Scan::n + 33] = std::numeric_limits<float>::quiet_NaN();
  }
  write_cxi(folder / "spoilt.cxi", spoilt, {.mask = mask});
  for (const std::string loss : {"amplitude", "poisson", "least-squares"}) {
    const auto losses = [&](const std::string& data) {
      run_well(folder, program + " --data " + data + " --out out.h5 --loss " + loss + few);
      return read<double>(folder / "out.h5", "/loss");
    };
    CHECK(losses("spoilt.cxi") == losses("clean.cxi"));
  }
  // A pixel that is no number in any pattern is masked.
  std::fill(mask.begin(), mask.end(), 0);
  mask[40 * Scan::n + 33] = 1;
  write_cxi(folder / "masked.cxi", scan, {.mask = mask});
  run_well(folder, program + " --data masked.cxi --out masked.h5" + few);
  for (std::size_t j = 0; j < Scan::count; ++j)
    spoilt.patterns[j * Scan::n * Scan::n + 5 * Scan::n + 7] =
        scan.patterns[j * Scan::n * Scan::n + 5 * Scan::n + 7];
  write_cxi(folder / "unmasked.cxi", spoilt);
  const Outcome outcome = run(folder, program + " --data unmasked.cxi --out new.h5" + few);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err.find("pixels of the detector 1 are not finite: they are masked") != std::string::npos);
  CHECK(read<double>(folder / "new.h5", "/loss") == read<double>(folder / "masked.h5", "/loss"));
}

TEST_CASE("every way of comparing and training lowers the loss") {
  const TemporaryFolder folder;
  write_cxi(folder / "scan.cxi", demonstration().scan);
  for (const std::string options :
       {"--loss poisson", "--loss least-squares --train aberrations", "--loss least-squares --reduced-grid",
        "--train nothing --storage half", "--batches 4 --subpixel", "--modes 2", "--every 2 --start random",
        "--detector 50 --probe-size 40"}) {
    INFO(options);
    run_well(folder,
             program + " --data scan.cxi --out out.h5 --convergence-angle 0.02 --defocus 12 --passes 8 " +
                 (options.find("probe-size") == std::string::npos ? "--probe-size 48 " : "") + options);
    const auto losses = read<double>(folder / "out.h5", "/loss");
    REQUIRE(losses.size() == 9);
    CHECK(losses.back() < 0.9 * losses.front());
  }
  const Hdf5Reader result(folder / "out.h5");
  CHECK(result.shape("/probe") == Hdf5Shape{1, 40, 40});
  CHECK(result.attribute("/settings", "patterns") == 12);
  CHECK(std::abs(*result.attribute("/settings", "wavelength") - 1.96875e-12) < 1e-18);
}

TEST_CASE("help, and wrong options", "[hosts]") {
  const TemporaryFolder folder;
  const std::string help = run_well(folder, program + " --help");
  for (const std::string word : {"--data", "--demo", "--loss", "--centre", "--defocus"})
    CHECK(help.find(word) != std::string::npos);
  write_cxi(folder / "scan.cxi", demonstration().scan);
  const std::string run_it = program + " --data scan.cxi --out new.h5 ";
  expect_bad_input(folder, program, {"--data and --out are required"});
  expect_bad_input(folder, program + " --demo new --data scan.cxi", {"--demo", "--data"});
  expect_bad_input(folder, program + " --demo new --defocus 3", {"--demo", "--defocus"});
  expect_bad_input(folder, run_it + "--loss squares", {"--loss"});
  expect_bad_input(folder, run_it + "--passes 0", {"--passes"});
  expect_bad_input(folder, run_it + "--probe-size 65", {"--probe-size 65", "64"});
  expect_bad_input(folder, run_it + "--detector 65", {"scan.cxi", "4 to 64", "65"});
  expect_bad_input(folder, run_it + "--batches 13", {"--batches 13", "12"});
  expect_bad_input(folder, run_it + "--axes yy", {"--axes yy"});
  expect_bad_input(folder, run_it + "--axes y", {"--axes y"});
  expect_bad_input(folder, run_it + "--centre 80 3", {"scan.cxi", "outside the frame"});
  expect_bad_input(folder, run_it + "--train aberrations", {"--convergence-angle"});
  expect_bad_input(folder, run_it + "--focus-distance 1e-3 --probe-size 32", {"near field", "64"});
  expect_bad_input(folder, run_it + "--reduced-grid", {"reduced_grid"});
  expect_bad_input(folder, program + " --data scan.cxi --out scan.cxi", {"would overwrite"});
  expect_bad_input(folder, program + " --data scan.cxi --out nowhere/new.h5", {"nowhere"});
  expect_bad_input(folder, run_it + "--reference scan.cxi", {"scan.cxi", "/object/amplitude"});
  expect_bad_input(folder,
                   program + " --out no.h5 --data '" + (demonstration().folder / "scan.cxi").string() +
                       "' --reference '" + (demonstration().folder / "truth.h5").string() + "'",
                   {"truth.h5: --reference: expected an object of", "--probe-size sets the window"});
}

TEST_CASE("malformed measurements are named with file and dataset", "[hosts]") {
  const Scan& scan = demonstration().scan;
  const TemporaryFolder folder;
  const std::string command = program + " --data scan.cxi --out new.h5";
  const auto expect = [&](const Faults& faults, const std::vector<std::string>& words,
                          const std::string& options = "") {
    write_cxi(folder / "scan.cxi", scan, faults);
    expect_bad_input(folder, command + " " + options, words);
  };
  write_text(folder / "scan.cxi", "not an HDF5 file");
  expect_bad_input(folder, command, {"scan.cxi"});
  expect_bad_input(folder, program + " --data none.cxi --out new.h5", {"none.cxi"});
  expect({.without = "data"}, {"scan.cxi", "diffraction patterns", "/entry_1/data_1/data"});
  expect({.without = "translation"}, {"scan.cxi", "scan positions", "/entry_1/data_1/translation"});
  expect({.without = "wavelength"}, {"scan.cxi", "--wavelength"});
  expect({.without = "distance"}, {"scan.cxi", "--distance"});
  expect({.energy = 300000.0}, {"scan.cxi", "joules", "300000"});
  expect({.energy = -1e-15}, {"/entry_1/instrument_1/source_1/energy", "> 0"});
  expect({.translation_shape = {Scan::count - 1, 3}},
         {"/entry_1/data_1/translation", "[12, 2 or 3]", "[11, 3]"});
  expect({.translation_shape = {Scan::count, 4}}, {"/entry_1/data_1/translation", "[12, 4]"});
  expect({.y_pixel_size = 1.0}, {"scan.cxi", "square detector pixels"});
  expect({.mask = std::vector<std::uint32_t>(Scan::n * Scan::n, 1)}, {"mask", "good pixels"});
  expect({}, {"scan.cxi", "positions within 100000"}, "--object-pixel 1e-20");
  expect({}, {"/nothing", "is not there"}, "--data-path /nothing");
  expect({}, {"/entry_1/data_1/translation", "[N, rows, columns]"},
         "--data-path /entry_1/data_1/translation");
  Scan faulty = scan;
  faulty.translation[4] = std::numeric_limits<double>::quiet_NaN();
  write_cxi(folder / "scan.cxi", faulty);
  expect_bad_input(folder, command, {"/entry_1/data_1/translation", "position 1", "not a number"});
  faulty = scan;
  std::ranges::fill(faulty.patterns, 0.0f);
  write_cxi(folder / "scan.cxi", faulty);
  expect_bad_input(folder, command, {"scan.cxi", "empty"});
}

namespace {

/// What a run warns of; --strict has to refuse it.
std::string warnings(const TemporaryFolder& folder, const std::string& arguments) {
  const std::string command = program + " --out out.h5 " + arguments;
  const Outcome outcome = run(folder, command);
  INFO(command << '\n' << outcome.err);
  REQUIRE(outcome.code == 0);
  std::string text;
  std::istringstream lines(outcome.err);
  for (std::string line; std::getline(lines, line);)
    if (line.find(": warning: ") != std::string::npos)
      text += line + '\n';
  if (!text.empty())
    expect_bad_input(folder, command + " --strict", {"--strict"});
  return text;
}

void says(const std::string& text, const std::vector<std::string>& words) {
  INFO(text);
  for (const auto& word : words)
    CHECK(text.find(word) != std::string::npos);
}

/// A plain HDF5 file of the scan, the values named in `more` beside it.
struct Plain {
  std::vector<float> patterns;
  std::vector<double> positions;
  std::vector<std::pair<std::string, double>> more = {};
  int modes = 0;

  explicit Plain(const Scan& scan) : patterns(scan.unshifted()), positions(scan.positions()) {}
  void write(const fs::path& path) const {
    Hdf5Writer file(path);
    const auto count = std::ssize(positions) / 2;
    file.write<float>("/data", {count, Scan::n, Scan::n}, patterns);
    file.write<double>("/scan", {count, 2}, positions);
    for (const auto& [name, value] : more)
      file.write_scalar(name, value);
    if (modes > 0) {
      std::vector<std::complex<float>> probe(static_cast<std::size_t>(modes * 48 * 48));
      for (std::size_t i = 0; i < probe.size(); ++i)
        probe[i] = float(
            std::exp(-0.01 * (std::pow(double(i / 48 % 48) - 24, 2) + std::pow(double(i % 48) - 24, 2))));
      file.write<std::complex<float>>("/probe", {modes, 48, 48}, probe);
    }
    file.commit();
  }
};

} // namespace

TEST_CASE("defocus, convergence angle and energy of the file are read", "[hosts]") {
  const TemporaryFolder folder;
  Plain plain(demonstration().scan);
  plain.more = {{"/wavelength", 1.96875e-12}, {"/convergence_angle", 0.02}, {"/defocus", 11e-9}};
  plain.write(folder / "plain.h5");
  const std::string command = "--data plain.h5 --object-pixel 2e-11 --probe-size 48 --passes 3";
  const std::string text = warnings(folder, command);
  says(text, {"plain.h5", "defocus of 11 nm", "--defocus -11"});
  const auto phase = read<float>(folder / "out.h5", "/object/phase");
  CHECK(warnings(folder, command + " --convergence-angle 0.02 --defocus 11").empty());
  CHECK(read<float>(folder / "out.h5", "/object/phase") == phase);
  warnings(folder, command + " --defocus 5");
  CHECK(read<float>(folder / "out.h5", "/object/phase") != phase);

  // Electrons of 300 kV: 1.96875 pm. Photons of this energy have 4.13 pm.
  plain.more = {{"/energy", 300e3 * 1.602176634e-19}, {"/convergence_angle", 0.02}, {"/defocus", 11e-9}};
  plain.write(folder / "plain.h5");
  says(warnings(folder, command), {"300 keV", "electrons", "--wavelength"});
  CHECK(std::abs(*Hdf5Reader(folder / "out.h5").attribute("/settings", "wavelength") - 1.96875e-12) < 2e-17);

  // /settings has all of them.
  const Hdf5Reader result(folder / "out.h5");
  CHECK(std::abs(result.attribute("/settings", "defocus").value_or(0) - 11) < 1e-6);
  CHECK(result.attribute("/settings", "convergence_angle") == 0.02);
  for (const char* name :
       {"modes", "probe_size", "decay", "train", "start", "object_pixel", "smoothness", "cs"})
    CHECK(result.attribute("/settings", name).has_value());
  says(result.text_attribute("/", "provenance"),
       {"--probe-size 48", "assumed: plain.h5: its energy of 300 keV"});
}

TEST_CASE("--defocus without an aperture is an error; angles above 0.1 rad are questioned (milliradians)",
          "[hosts]") {
  const TemporaryFolder folder;
  write_cxi(folder / "scan.cxi", demonstration().scan);
  const std::string run_it = program + " --data scan.cxi --out new.h5 ";
  for (const std::string option : {"--defocus 12", "--cs 0.1", "--astigmatism 3"})
    expect_bad_input(folder, run_it + option, {option.substr(0, option.find(' ')), "--convergence-angle"});
  expect_bad_input(folder, run_it + "--convergence-angle 20 --strict",
                   {"--convergence-angle 20", "milliradians", "0.02"});
}

TEST_CASE("without a probe and a lens a first probe is estimated from the mean pattern, with a warning") {
  const auto& [demo, summary, scan] = demonstration();
  const TemporaryFolder folder;
  const Outcome outcome =
      run(folder, program + " --data " + (demo / "scan.cxi").string() + " --reference " +
                      (demo / "truth.h5").string() + " --out out.h5 --probe-size 48 --passes 100");
  INFO(outcome.err << outcome.out);
  REQUIRE(outcome.code == 0);
  says(outcome.err, {"scan.cxi", "estimated from the mean pattern", "--probe-path", "--convergence-angle"});
  // A focused probe ends in a lattice of dots.
  CHECK(number_after(outcome.out, "error against the reference ") < 0.35);
}

TEST_CASE("plain HDF5: positions that collapse or leave the object, patterns whose brightest pixel is not at "
          "[0, 0], "
          "a second probe mode that nobody asked for: each a warning with the option that mends it",
          "[hosts]") {
  const TemporaryFolder folder;
  const Plain good(demonstration().scan);
  const std::string command = "--data plain.h5 --object-pixel 2e-11 --wavelength 1.96875e-12 --passes 2 "
                              "--probe-size 48 --convergence-angle 0.02 --defocus 12 ";
  good.write(folder / "plain.h5");
  CHECK(warnings(folder, command).empty());
  const auto expected = read<float>(folder / "out.h5", "/object/phase");

  Plain metres = good;
  for (double& position : metres.positions)
    position *= 2e-11;
  metres.write(folder / "plain.h5");
  says(warnings(folder, command), {"plain.h5", "collapse", "--positions-in-metres"});
  CHECK(warnings(folder, command + "--positions-in-metres").empty());
  CHECK(relative_error(read<float>(folder / "out.h5", "/object/phase"), expected) < 1e-5);
  Plain far = good;
  for (double& position : far.positions)
    position *= 20;
  far.write(folder / "plain.h5");
  says(warnings(folder, command), {"plain.h5", "leave", "window of 48", "--object-pixel"});

  Plain shifted = good; // zero frequency in the middle
  shifted.patterns = demonstration().scan.patterns;
  shifted.write(folder / "plain.h5");
  says(warnings(folder, command), {"plain.h5", "brightest around row 32, column 32", "--centre 32 32"});
  CHECK(warnings(folder, command + "--centre 32 32").empty());
  CHECK(relative_error(read<float>(folder / "out.h5", "/object/phase"), expected) < 1e-5);

  Plain probe = good;
  probe.modes = 2;
  probe.write(folder / "plain.h5");
  const std::string plain = "--data plain.h5 --passes 2 ";
  says(warnings(folder, plain), {"plain.h5", "2 probe modes", "--modes 2"});
  CHECK(warnings(folder, plain + "--modes 2").empty());
  CHECK(warnings(folder, plain + "--modes 1").empty());
}

TEST_CASE("a loss that grows is a warning, and the best state is kept and written") {
  const TemporaryFolder folder;
  write_cxi(folder / "scan.cxi", demonstration().scan);
  const std::string command = "--data scan.cxi --probe-size 48 --convergence-angle 0.02 --defocus 12 ";
  says(warnings(folder, command + "--algorithm adam --passes 20 --object-rate 3 --probe-rate 2"),
       {"the loss grew", "--object-rate"});
  const auto losses = read<double>(folder / "out.h5", "/loss");
  CHECK(losses.back() == std::ranges::min(losses));
}

TEST_CASE("mini-batches end where full passes end", "[.turn-4]") {
  const TemporaryFolder folder;
  const auto& [demo, summary, scan] = demonstration();
  const auto last = [&, &demo = demo](const std::string& options) {
    run_well(folder, program + " --data " + (demo / "scan.cxi").string() +
                         " --out out.h5 --algorithm adam --probe-size 48 --convergence-angle 0.02 --defocus "
                         "12 --passes 60 " +
                         options);
    return read<double>(folder / "out.h5", "/loss").back();
  };
  const double full = last(""), decaying = last("--batches 8"), constant = last("--batches 8 --no-decay");
  INFO(full << ' ' << decaying << ' ' << constant);
  CHECK(decaying < 1.02 * full);
  CHECK(decaying < constant);
}

TEST_CASE("memory: an estimate before work, and a refusal with numbers") {
  const TemporaryFolder folder;
  write_cxi(folder / "scan.cxi", demonstration().scan);
  expect_bad_input(folder, program + " --data scan.cxi --out new.h5 --memory-limit 5",
                   {"--memory-limit 5 MB", "12 patterns", "needs", " MB"});
}

TEST_CASE("a reconstruction that was interrupted goes on to the same result") {
  const TemporaryFolder folder;
  write_cxi(folder / "scan.cxi", demonstration().scan);
  for (const std::string model :
       {"--passes 40 --batches 3 --seed 5",
        "--passes 40 --train aberrations --convergence-angle 0.02 --defocus 11",
        "--passes 40 --refine-positions --position-rate 0.2",
        "--passes 20 --slices 2 --slice-distance 1e-8 --relaxation-modes 2 --find-factors "
        "--find-background"}) {
    const std::string options = " --data scan.cxi --probe-size 48 --checkpoint-every 0 " + model,
                      command = "env OMP_NUM_THREADS=1 " + program + options + " --out ";
    CAPTURE(command);
    run_well(folder, command + "whole.h5");
    const Outcome cut = run(folder, ended_after("part_checkpoint.h5", 2) + command + "part.h5");
    INFO(cut.err);
    REQUIRE(cut.code == 128 + SIGTERM);
    CHECK_FALSE(fs::exists(folder / "part.h5"));
    expect_bad_input(folder, command + "part.h5", {"part_checkpoint.h5", "use --resume"});
    expect_bad_input(folder, command + "part.h5 --resume --object-rate 0.02",
                     {"part_checkpoint.h5: --resume: was made without --object-rate 0.02"});
    expect_bad_input(folder, command + "other.h5 --resume", {"other_checkpoint.h5: is not there"});
    const std::string fewer = std::regex_replace(command, std::regex("--passes [0-9]+"), "--passes 1");
    expect_bad_input(folder, fewer + "part.h5 --resume", {"--passes 1", "were made already"});
    run_well(folder, command + "part.h5 --resume");
    CHECK_FALSE(fs::exists(folder / "part_checkpoint.h5"));
    for (const char* dataset : {"/object/amplitude", "/object/phase", "/loss"})
      CHECK(read<float>(folder / "part.h5", dataset) == read<float>(folder / "whole.h5", dataset));
    CHECK(read<std::complex<float>>(folder / "part.h5", "/probe") ==
          read<std::complex<float>>(folder / "whole.h5", "/probe"));
    for (const char* ending :
         {".h5", "_amplitude.png", "_phase.png", "_probe.png", "_loss.png", "_patterns.png"})
      fs::remove(folder / ("part" + std::string(ending)));
  }
}

TEST_CASE("--resume takes more passes, and a loss that is no number ends the first of them") {
  const TemporaryFolder folder;
  write_cxi(folder / "scan.cxi", demonstration().scan);
  const std::string command = program + " --data scan.cxi --probe-size 48 --checkpoint-every 0 --out part.h5";
  REQUIRE(run(folder, ended_after("part_checkpoint.h5", 2) + command + " --passes 5").code == 128 + SIGTERM);
  run_well(folder, command + " --passes 8 --resume");
  CHECK(read<double>(folder / "part.h5", "/loss").size() == 9); // of every pass, and at the end
  const Outcome outcome =
      run(folder, program + " --data scan.cxi --out bad.h5 --passes 200 --object-rate 1e30");
  INFO(outcome.err);
  CHECK(outcome.code != 0);
  CHECK(outcome.err.find("the loss is not a finite number in pass ") != std::string::npos);
  CHECK_FALSE(fs::exists(folder / "bad.h5"));
}

TEST_CASE("three columns of /scan are not believed", "[hosts]") {
  const TemporaryFolder folder;
  const Scan scan = demonstration().scan;
  {
    Hdf5Writer file(folder / "three.h5");
    file.write<float>("/data", {Scan::count, Scan::n, Scan::n}, scan.unshifted());
    std::vector<double> positions(3 * Scan::count);
    const std::vector<double> two = scan.positions();
    for (std::size_t i = 0; i < std::size_t(Scan::count); ++i)
      positions[3 * i] = two[2 * i], positions[3 * i + 1] = two[2 * i + 1];
    file.write<double>("/scan", {Scan::count, 3}, positions);
    file.commit();
  }
  expect_bad_input(folder, program + " --data three.h5 --out out.h5" + few, {"/scan", "found three columns"});
}

TEST_CASE("the demonstration's positions, modes and mask, and what is found of them") {
  const TemporaryFolder folder;
  const auto demo = [&](const std::string& name, const std::string& options) {
    return run_well(folder, program + " --demo " + name + " --passes 25 " + options);
  };
  // Positions off by up to 3 pixels are found, at least in part, and are not where nobody looks for them.
  const std::string errors = "--position-errors 3 ",
                    refined = demo("refined", errors + "--refine-positions --pictures svg"),
                    given = demo("given", errors);
  CHECK(number_after(refined, "positions off by ") < 0.7 * number_after(given, "positions off by "));
  CHECK(number_after(refined, "error against the reference ") <
        number_after(given, "error against the reference "));
  const Hdf5Shape positions{144, 2};
  CHECK(Hdf5Reader(folder / "refined/scan.h5").shape("/positions") == positions);
  for (const char* picture : {"scan_phase.svg", "scan_amplitude.svg", "scan_probe.svg", "scan_loss.svg"})
    CHECK(fs::file_size(folder / "refined" / picture) > 1000);
  // The truth has as many modes as are looked for; two explain patterns of two better than one.
  const std::string two = demo("modes", "--modes 2");
  CHECK(Hdf5Reader(folder / "modes/truth.h5").shape("/probe") == Hdf5Shape{2, 48, 48});
  CHECK(Hdf5Reader(folder / "modes/scan.h5").shape("/probe") == Hdf5Shape{2, 48, 48});
  run_well(folder, program + " --data modes/scan.cxi --out one.h5 --passes 25 --probe-size 48 "
                             "--convergence-angle 0.02 --defocus 10.5 --start random");
  CHECK(read<double>(folder / "modes/scan.h5", "/loss").back() <
        read<double>(folder / "one.h5", "/loss").back());
  // A gap of two rows and dead pixels, which the file says are no good, and which do not count.
  const std::string masked = demo("masked", "--masked-detector");
  const auto mask = read<std::uint32_t>(folder / "masked/scan.cxi", "/entry_1/instrument_1/detector_1/mask");
  const auto bad = std::ranges::count_if(mask, [](std::uint32_t value) { return value != 0; });
  CHECK(bad > 2 * 64);
  CHECK(bad < 2 * 64 + 64 * 64 / 16);
  CHECK(number_after(masked, "error against the reference ") < 0.3);
}

TEST_CASE("a checkpoint that is cut short or damaged is no state to go on from", "[hosts]") {
  const TemporaryFolder folder;
  write_cxi(folder / "scan.cxi", demonstration().scan);
  const std::string command =
      program + " --data scan.cxi --probe-size 48 --passes 100 --checkpoint-every 0 --out part.h5";
  REQUIRE(run(folder, ended_after("part_checkpoint.h5", 1) + command).code == 128 + SIGTERM);
  const Bytes bytes = read_bytes(folder / "part_checkpoint.h5");
  write_bytes(folder / "part_checkpoint.h5", std::span(bytes).first(bytes.size() / 2));
  expect_bad_input(folder, command + " --resume", {"part_checkpoint.h5"});
  // The fingerprint of the run, and nothing else.
  fs::remove(folder / "part_checkpoint.h5");
  write_bytes(folder / "whole.h5", bytes);
  const auto fingerprint = read<std::uint8_t>(folder / "whole.h5", "/fingerprint");
  {
    Hdf5Writer file(folder / "part_checkpoint.h5");
    file.write<std::uint8_t>("/fingerprint", {static_cast<std::int64_t>(fingerprint.size())}, fingerprint);
    file.write<double>("/losses", {2}, std::vector<double>{2, 1});
    file.commit();
  }
  expect_bad_input(folder, command + " --resume", {"part_checkpoint.h5", "/solver/amplitude"});
}

TEST_CASE("other steps than Adam's, and patterns that come from the host") {
  const TemporaryFolder folder;
  const fs::path demo = demonstration().folder / "scan.cxi";
  const std::string command =
      program + " --data " + demo.string() +
      " --probe-size 48 --convergence-angle 0.02 --defocus 11 --passes 8 --batches 12 ";
  for (const std::string algorithm : {"epie", "rpie", "lsq-ml"}) {
    const std::string summary = run_well(folder, command + "--out out.h5 --algorithm " + algorithm);
    const auto losses = read<double>(folder / "out.h5", "/loss");
    CAPTURE(summary);
    CHECK(losses.back() < 0.5 * losses.front());
  }
  const auto losses = read<double>(folder / "out.h5", "/loss"); // of lsq-ml
  const double least = number_after(
      run(folder, command + "--out streamed.h5 --algorithm lsq-ml --device-memory 1").err, "at least ");
  run_well(folder, command + "--out streamed.h5 --algorithm lsq-ml --device-memory " + std::to_string(least));
  const auto streamed = read<double>(folder / "streamed.h5", "/loss");
  REQUIRE(streamed.size() == losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i)
    CHECK(std::abs(streamed[i] / losses[i] - 1) < 1e-4);
  const std::string bad = command + "--out bad.h5 ";
  expect_bad_input(folder, bad + "--device-memory 0.1", {"--device-memory 0.1", "megabytes"});
  expect_bad_input(folder, bad + "--algorithm epie --loss poisson", {"--algorithm", "--loss"});
  expect_bad_input(folder, bad + "--algorithm rpie --train aberrations", {"--algorithm", "--train"});
  expect_bad_input(folder, bad + "--regularisation 0.5", {"--regularisation"});
}

TEST_CASE("several scans have one probe, and their own objects or one") {
  const TemporaryFolder folder;
  write_cxi(folder / "scan.cxi", demonstration().scan);
  run_well(folder, program + " --data scan.cxi --out one.h5" + few);
  run_well(folder, program + " --data scan.cxi scan.cxi --out two.h5" + few);
  run_well(folder, program + " --data scan.cxi scan.cxi --one-object --out same.h5" + few);
  fs::create_symlink("scan.cxi", folder / "link.cxi");
  expect_bad_input(folder, program + " --data scan.cxi link.cxi --strict --out link.h5" + few,
                   {"link.cxi", "file of two scans", "--strict"});
  const auto losses = read<double>(folder / "one.h5", "/loss");
  const auto positions = read<double>(folder / "one.h5", "/positions");
  const auto phase = read<float>(folder / "one.h5", "/object/phase");
  for (const std::string name : {"two.h5", "same.h5"}) { // the mean over patterns is what it was
    const auto others = read<double>(folder / name, "/loss");
    REQUIRE(others.size() == losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i)
      CHECK(std::abs(others[i] / losses[i] - 1) < 1e-3);
    CHECK(read<double>(folder / name, "/positions").size() == 2 * positions.size());
  }
  CHECK(read<float>(folder / "same.h5", "/object/phase").size() == phase.size());
  CHECK(read<float>(folder / "two.h5", "/object/phase").size() > 2 * phase.size());
  const auto below = read<double>(folder / "two.h5", "/positions");
  const double first = below[positions.size()] - below[0];
  CHECK(first == std::round(first));
  for (std::size_t i = 0; i < positions.size(); ++i)
    CHECK(std::abs(below[positions.size() + i] - positions[i] - (i % 2 == 0 ? first : 0)) < 1e-9);
  Faults other;
  other.y_pixel_size = std::nullopt;
  other.energy = 5e-14;
  write_cxi(folder / "other.cxi", demonstration().scan, other);
  expect_bad_input(folder, program + " --data scan.cxi other.cxi --out bad.h5" + few,
                   {"other.cxi", "same wavelength"});
  expect_bad_input(folder, program + " --data scan.cxi --one-object --out bad.h5" + few, {"--one-object"});
}

TEST_CASE("patterns without counts, or with values that are none, are left out, with a warning") {
  const TemporaryFolder folder;
  const Scan& scan = demonstration().scan;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(),
                  infinite = std::numeric_limits<float>::infinity();
  const auto losses = [&](const Scan& spoilt, const std::string& count) {
    write_cxi(folder / "scan.cxi", spoilt);
    const Outcome outcome = run(folder, program + " --data scan.cxi --out out.h5 --reproducible" + few);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.err.find(
              count + " of 12 patterns have no counts or values that are not finite: they are left out") !=
          std::string::npos);
    return read<double>(folder / "out.h5", "/loss");
  };
  const auto spoil = [&](const std::vector<std::int64_t>& patterns, std::int64_t pixels, float value) {
    Scan spoilt = scan;
    for (const std::int64_t pattern : patterns)
      std::fill_n(spoilt.patterns.begin() + pattern * Scan::n * Scan::n + (pixels == 1 ? 2100 : 0), pixels,
                  value);
    return spoilt;
  };
  const auto without = losses(spoil({3}, Scan::n * Scan::n, 0), "1");
  CHECK(std::isfinite(without.back()));
  for (const float value : {nan, infinite, -infinite})
    for (const std::int64_t pixels : {std::int64_t(1), Scan::n * Scan::n})
      CHECK(losses(spoil({3}, pixels, value), "1") == without);
  CHECK(losses(spoil({3, 7}, 1, nan), "2") == losses(spoil({3, 7}, Scan::n * Scan::n, 0), "2"));
  write_cxi(folder / "scan.cxi", spoil({1, 3, 7, 9}, 1, nan));
  expect_bad_input(folder, program + " --data scan.cxi --out bad.h5" + few,
                   {"4 of 12 patterns", "not finite", "25 % at most"});
}

TEST_CASE("negative counts of a background that was subtracted are 0, and no faults of pixels", "[hosts]") {
  const TemporaryFolder folder;
  Scan scan = demonstration().scan, clipped = scan;
  std::mt19937 random(4);
  for (std::size_t i = 0; i < scan.patterns.size(); ++i) {
    scan.patterns[i] += std::normal_distribution(-1.f, 2.f)(random);
    clipped.patterns[i] = std::max(0.f, scan.patterns[i]);
  }
  const auto losses = [&](const Scan& data, const char* word) {
    write_cxi(folder / "scan.cxi", data);
    const Outcome outcome = run(folder, program + " --data scan.cxi --out out.h5 --reproducible" + few);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.err.find(word) != std::string::npos);
    CHECK(outcome.err.find("masked") == std::string::npos);
    return read<double>(folder / "out.h5", "/loss");
  };
  CHECK(losses(scan, "pixels are negative in most patterns, and not always the same: was too much background "
                     "subtracted? Negative values are taken as 0") == losses(clipped, "note: "));
}

namespace {

/// One of the files that went wrong once.
std::string case_file(const std::string& name) {
  const char* folder = std::getenv("BRACEWELL_TEST_DATA");
  const fs::path path = fs::path(folder ? folder : "") / "cases/ptychography" / name;
  if (!folder || !fs::exists(path))
    SKIP("the cases are not there: " << path);
  return path.string();
}

} // namespace

TEST_CASE("pixels that did not count are masked, and said", "[hosts]") {
  const TemporaryFolder folder;
  const std::string gaps = case_file("m_neg.h5"), masked = case_file("m_ok.h5"), few_passes = " --passes 2";
  const auto object = [&](const std::string& file) {
    const std::string text = warnings(folder, "--data " + file + few_passes);
    auto values = read<float>(folder / "out.h5", "/object/phase");
    const auto amplitude = read<float>(folder / "out.h5", "/object/amplitude");
    values.insert(values.end(), amplitude.begin(), amplitude.end());
    return std::pair(values, text);
  };
  const auto [expected, nothing] = object(masked);
  CHECK(nothing.empty());
  const auto [found, text] = object(gaps);
  says(text, {"m_neg.h5", "are negative", "masked"});
  CHECK(relative_error(found, expected) < 1e-4);
  // The mask of gaps the other way round: no pixel that counts has light.
  const Outcome outcome = run(folder, program + " --out no.h5 --invert-mask --data " + masked);
  CHECK(outcome.code == 2);
  says(outcome.err, {"looks inverted", "--invert-mask", "all patterns are empty"});

  // Hot, stuck, dead and overflowing pixels of the demonstration.
  const Scan& scan = demonstration().scan;
  const std::string small = "--data scan.h5 --probe-size 48 --convergence-angle 0.02 --defocus 12 "
                            "--wavelength 1.96875e-12 --object-pixel 2e-11" +
                            few_passes;
  std::vector<std::uint16_t> counts;
  for (int repeat = 0; repeat < 2; ++repeat)
    for (const float value : scan.unshifted())
      counts.push_back(static_cast<std::uint16_t>(value));
  auto positions = scan.positions();
  positions.insert(positions.end(), positions.begin(), positions.end());
  const std::size_t pixels = Scan::n * Scan::n, patterns = counts.size() / pixels;
  const auto write = [&](const std::vector<std::uint32_t>& mask) {
    Hdf5Writer file(folder / "scan.h5");
    file.write<std::uint16_t>("/data", {std::int64_t(patterns), Scan::n, Scan::n}, counts);
    file.write<double>("/scan", {std::int64_t(patterns), 2}, positions);
    if (!mask.empty())
      file.write<std::uint32_t>("/mask", {Scan::n, Scan::n}, mask);
    file.commit();
  };
  write({});
  CHECK(warnings(folder, small).empty());
  // A mask that has 1 where pixels are good, but for some of those without light.
  std::vector<std::uint32_t> inverted(pixels, 1);
  for (std::size_t i = 30 * Scan::n; i < 31 * Scan::n; ++i)
    inverted[i] = 0;
  write(inverted);
  says(warnings(folder, small), {"scan.h5", "looks inverted", "--invert-mask"});
  CHECK(warnings(folder, small + " --invert-mask").empty());
  for (std::size_t j = 0; j < patterns; ++j) {
    counts[j * pixels + 20 * Scan::n + 25] = std::uint16_t(9000 + j % 3); // hot
    counts[j * pixels + 40 * Scan::n + 33] = 77;                          // stuck
  }
  counts[5 * pixels + 2 * Scan::n + 3] = 65535;
  write({});
  says(warnings(folder, small),
       {"1 hold the greatest value", "1 never change", "1 count far more than their neighbours"});
}

namespace {

double squared_difference_of_roots(int n, double mean) { return std::pow(std::sqrt(n) - std::sqrt(mean), 2); }
double half_deviance(int n, double mean) { return mean - n + (n > 0 ? n * std::log(n / mean) : 0); }

/// Of counting alone, as a part of all counts: the sum of part(n, mean) over Poisson's n, per pixel of the mean pattern.
template <class Count>
double counting_noise(const std::vector<Count>& counts, std::size_t pixels,
                      double (*part)(int, double) = squared_difference_of_roots) {
  const double patterns = double(counts.size()) / double(pixels);
  double noise = 0, all = 0;
  for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
    double sum = 0;
    for (std::size_t i = pixel; i < counts.size(); i += pixels)
      sum += counts[i];
    const double mean = sum / patterns;
    double chance = std::exp(-mean), squares = 0;
    for (int n = 0; mean > 0 && n < 10 * mean + 50; chance *= mean / ++n)
      squares += chance * part(n, mean);
    noise += patterns * squares, all += sum;
  }
  return noise / all;
}

} // namespace

TEST_CASE("dark counts are subtracted, rows and columns have their directions, rectangular frames are whole",
          "[hosts]") {
  const TemporaryFolder folder;
  const auto residual = [&](const std::string& name, const std::string& options = "") {
    return number_after(
        run_well(folder, program + " --data " + case_file(name) + " --out out.h5 --passes 16 " + options),
        "amplitude residual ");
  };
  // One and the same scan: with directions of rows and columns, with 20 counts more everywhere, and the middle of its columns.
  const std::string counts_of = "/entry_1/instrument_1/detector_1/data";
  const auto counts = read<std::uint32_t>(case_file("c_basis.cxi"), counts_of),
             more = read<std::uint32_t>(case_file("dark.cxi"), counts_of);
  REQUIRE(counts.size() == more.size());
  for (std::size_t i = 0; i < counts.size(); ++i)
    REQUIRE(more[i] == counts[i] + 20);
  const double noise = counting_noise(counts, 64 * 64);
  CHECK(noise > 0.002);
  CHECK(noise < 0.0023);
  // Object and probe have 63,000 numbers for 692,000 counts, so that they follow a part of the noise, and a quarter is too much.
  const double turned = residual("c_basis.cxi");
  const auto object = read<float>(folder / "out.h5", "/object/amplitude");
  CHECK(turned < noise);
  CHECK(turned > 0.75 * noise);
  CHECK(std::abs(residual("dark.cxi") - turned) < 0.002 * noise);
  CHECK(relative_error(read<float>(folder / "out.h5", "/object/amplitude"), object) < 1e-3);
  says(Hdf5Reader(folder / "out.h5").text_attribute("/", "provenance"), {"data_dark", "20 in the mean"});
  // The file's probe is the middle of the same one. Amplitudes miss at most the square root of the energy beyond.
  const auto probe =
      read<std::complex<float>>(case_file("c_basis.cxi"), "/entry_1/instrument_1/source_1/illumination");
  double beyond = 0, energy = 0;
  for (std::size_t i = 0; i < 64 * 64; ++i) {
    const bool inside = i / 64 >= 16 && i / 64 < 48 && i % 64 >= 16 && i % 64 < 48;
    energy += std::norm(probe[i]), beyond += inside ? 0 : std::norm(probe[i]);
  }
  CHECK(residual("strip.cxi") < std::pow(std::sqrt(noise) + std::sqrt(beyond / energy), 2));
  CHECK(residual("strip.cxi", "--probe-size 64") < noise);
  CHECK(Hdf5Reader(folder / "out.h5").attribute("/settings", "detector") == 64);
}

TEST_CASE("defaults find object and probe from a flat disc; what is no result is said") {
  const TemporaryFolder folder;
  const std::string summary = run_well(folder, program + " --out out.h5 --data " + case_file("disc.h5"));
  const double noise = counting_noise(read<std::uint32_t>(case_file("disc.h5"), "/data"), 64 * 64);
  CHECK(number_after(summary, "amplitude residual ") < noise);
  CHECK(std::abs(number_after(summary, "counting noise ") - noise) < 0.001 * noise);
  const auto errors = read<double>(folder / "out.h5", "/pattern_errors");
  double sum = 0;
  for (const double error : errors)
    sum += error;
  CHECK(errors.size() == 169);
  CHECK(std::abs(sum / 169 / read<double>(folder / "out.h5", "/loss").back() - 1) < 1e-4);
  says(warnings(folder, "--passes 12 --axes xy --train nothing --data " + case_file("c_basis.cxi")),
       {"c_basis.cxi", "amplitude residual", "try --try-axes (the eight --axes"});
}

TEST_CASE("the right axes are found and said, and the probe of the file can be left alone", "[.turn-3]") {
  const TemporaryFolder folder;
  const std::string data = "--data " + case_file("c_basis.cxi");
  // Those of basis_vectors, which yx stands for, are xy: both are right.
  says(warnings(folder, data + " --try-axes --passes 16 --axes=-yx"),
       {"c_basis.cxi", "--try-axes:", "xy", "are taken"});
  const double noise = counting_noise(
      read<std::uint32_t>(case_file("c_basis.cxi"), "/entry_1/instrument_1/detector_1/data"), 64 * 64);
  const double residual =
      read<double>(folder / "out.h5", "/loss").back() * 64 * 64 / 1e5; // counts of a pattern
  CHECK(residual < noise);
  CHECK(warnings(folder, data + " --try-axes --passes 3 --axes xy").empty()); // as basis_vectors have them
  says(warnings(folder, data + " --ignore-probe --passes 2"),
       {"c_basis.cxi", "estimated from the mean pattern"});
  expect_bad_input(folder, program + " " + data + " --out new.h5 --ignore-probe --probe-path /probe",
                   {"--ignore-probe", "--probe-path"});
}

TEST_CASE("a reconstruction goes on with other options, and a position far away is left out") {
  const TemporaryFolder folder;
  const auto& [demo, summary, scan] = demonstration();
  const std::string data = "--data " + (demo / "scan.cxi").string() + " --probe-size 48 ";
  const auto last = [&](const char* file) { return read<double>(folder / file, "/loss").back(); };
  run_well(folder, program + " " + data + "--passes 12 --out first.h5");
  run_well(folder, program + " " + data + "--passes 20 --modes 2 --continue first.h5 --out more.h5");
  CHECK(last("more.h5") < last("first.h5"));
  CHECK(Hdf5Reader(folder / "more.h5").shape("/probe") == Hdf5Shape{2, 48, 48});
  run_well(folder, program + " " + data + "--passes 4 --refine-positions --continue first.h5 --out moved.h5");
  CHECK(last("moved.h5") < 1.05 * last("first.h5"));
  const auto before = read<double>(folder / "first.h5", "/origin"),
             after = read<double>(folder / "moved.h5", "/origin");
  for (const std::size_t axis : {0, 1}) // a margin of 5 pixels of 2e-11 m
    CHECK(std::abs(after[axis] - before[axis] + 5 * 2e-11) < 1e-15);
  run_well(folder, program + " " + data +
                       "--passes 1 --object-rate 0 --train nothing --continue moved.h5 --out same.h5");
  CHECK(std::abs(last("same.h5") - last("moved.h5")) < 1e-3 * last("moved.h5"));
  write_cxi(folder / "scan.cxi", scan);
  expect_bad_input(folder, program + " --data scan.cxi --continue first.h5 --out new.h5",
                   {"first.h5: --continue: expected positions of the 12 patterns, found 144"});

  Plain plain(scan);
  Plain far = plain; // twice: one of 24 is less than a twentieth
  far.patterns.insert(far.patterns.end(), plain.patterns.begin(), plain.patterns.end());
  far.positions.insert(far.positions.end(), plain.positions.begin(), plain.positions.end());
  far.positions[10] = 5000;
  far.write(folder / "far.h5");
  const std::string lens =
      " --passes 2 --probe-size 48 --convergence-angle 0.02 --defocus 12 --object-pixel 2e-11 "
      "--wavelength 1.96875e-12";
  says(warnings(folder, "--data far.h5" + lens), {"far.h5", "1 of 24 positions", "number 5", "left out"});
  CHECK(Hdf5Reader(folder / "out.h5").shape("/positions") == Hdf5Shape{23, 2});
}

TEST_CASE("a probe that is given and stays keeps its power; modes are orthogonal, the strongest first") {
  const TemporaryFolder folder;
  Plain plain(demonstration().scan);
  plain.modes = 2;
  plain.write(folder / "plain.h5");
  run_well(folder, program + " --data plain.h5 --out out.h5 --passes 2 --modes 1 --train nothing");
  const auto power = [](const std::vector<std::complex<float>>& values) {
    double sum = 0;
    for (const auto& value : values)
      sum += std::norm(std::complex<double>(value));
    return sum;
  };
  auto given = read<std::complex<float>>(folder / "plain.h5", "/probe");
  given.resize(48 * 48);
  CHECK(std::abs(power(read<std::complex<float>>(folder / "out.h5", "/probe")) / power(given) - 1) < 1e-5);

  const std::string text = run_well(folder, program + " --data plain.h5 --out out.h5 --passes 3 --modes 2");
  const auto probe = read<std::complex<float>>(folder / "out.h5", "/probe");
  const auto powers = read<double>(folder / "out.h5", "/mode_powers");
  REQUIRE(powers.size() == 2);
  CHECK(powers[0] >= powers[1]);
  CHECK(std::abs(powers[0] + powers[1] - 1) < 1e-6);
  std::complex<double> product = 0;
  for (std::size_t i = 0; i < 48 * 48; ++i)
    product += std::conj(std::complex<double>(probe[i])) * std::complex<double>(probe[48 * 48 + i]);
  CHECK(std::abs(product) < 1e-4 * power(probe));
  CHECK(std::abs(power({probe.begin(), probe.begin() + 48 * 48}) / power(probe) - powers[0]) < 1e-5);
  CHECK(text.find(", modes ") != std::string::npos);
}

namespace {

/// A scan whose patterns are direct sums, of what goes beyond one probe on a thin object.
struct ThickScan {
  using Complex = std::complex<double>;
  static constexpr int m = 24, step = 3, across = 9, count = across * across, size = m + step * (across - 1);
  static constexpr double wavelength = 2e-12, pixel = 2e-11, fresnel_number = 6;
  int slices = 1;
  bool relaxed = false, weighted = false, lit = false; ///< probes, factors and a background of their own

  static double distance() { return std::pow(m * pixel, 2) / (wavelength * fresnel_number); }
  Complex object(int slice, int row, int column) const {
    const double y = row, x = column;
    if (slice == 0)
      return std::polar(1 - 0.15 * ((row / 5 + column / 7) % 2),
                        0.6 * std::sin(0.5 * x + 0.2 * y) * std::cos(0.3 * y));
    return std::polar(std::hypot(x - 22, y - 26) < 9 ? 0.85 : 1.0, 0.5 * ((column / 4 + row / 6) % 2));
  }
  static Complex probe(int k, double defocus = 0.08) {
    const double y = k / m - m / 2.0, x = k % m - m / 2.0;
    return std::polar(std::exp(-(y * y + x * x) / 50), defocus * (y * y + 0.9 * x * x));
  }
  double defocus(int j) const { return relaxed ? 0.08 + 0.02 * std::sin(0.3 * j) : 0.08; }
  double factor(int j) const { return weighted ? 1 + 0.25 * std::sin(1.7 * j) : 1; }
  double background(int k) const { return lit ? 2 + k % m % 3 : 0; }

  static std::vector<Complex> transform(std::vector<Complex> wave, int sign) {
    for (const int apart : {1, m}) {
      const std::vector<Complex> given = wave;
      for (int line = 0; line < m; ++line)
        for (int k = 0; k < m; ++k) {
          Complex sum = 0;
          for (int i = 0; i < m; ++i)
            sum += given[std::size_t(line * (m + 1 - apart) + i * apart)] *
                   std::polar(1.0, sign * 2 * M_PI * (k * i % m) / m);
          wave[std::size_t(line * (m + 1 - apart) + k * apart)] = sum;
        }
    }
    return wave;
  }
  /// Whole counts, the zero frequency at [0, 0].
  std::vector<float> patterns() const {
    std::vector<float> result;
    for (int j = 0; j < count; ++j) {
      std::vector<Complex> wave;
      for (int k = 0; k < m * m; ++k)
        wave.push_back(probe(k, defocus(j)));
      for (int slice = 0; slice < slices; ++slice) {
        for (int k = 0; k < m * m; ++k)
          wave[std::size_t(k)] *= object(slice, j / across * step + k / m, j % across * step + k % m);
        if (slice + 1 == slices)
          break;
        wave = transform(wave, -1);
        const auto frequency = [](int k) { return double(2 * k < m ? k : k - m); };
        for (int k = 0; k < m * m; ++k)
          wave[std::size_t(k)] *=
              std::polar(1.0 / (m * m), -M_PI / fresnel_number *
                                            (std::pow(frequency(k / m), 2) + std::pow(frequency(k % m), 2)));
        wave = transform(wave, 1);
      }
      wave = transform(wave, -1);
      for (int k = 0; k < m * m; ++k)
        result.push_back(float(std::round(factor(j) * std::norm(wave[std::size_t(k)]) + background(k))));
    }
    return result;
  }
  std::vector<double> positions() const {
    std::vector<double> result;
    for (int j = 0; j < count; ++j)
      for (const int place : {j / across, j % across})
        result.push_back(step * place);
    return result;
  }
  /// PATH, and beside it truth.h5. The probe written is not quite the right one.
  void write(const fs::path& path) const {
    std::vector<std::complex<float>> written, right;
    for (int k = 0; k < m * m; ++k)
      written.emplace_back(probe(k, 0.07)), right.emplace_back(probe(k));
    Hdf5Writer file(path);
    file.write<float>("/data", {count, m, m}, patterns());
    file.write<double>("/scan", {count, 2}, positions());
    file.write<std::complex<float>>("/probe", {m, m}, written);
    file.write_scalar("/wavelength", wavelength);
    file.commit();
    std::vector<float> amplitude, phase;
    for (int slice = 0; slice < slices; ++slice)
      for (int i = 0; i < size * size; ++i) {
        amplitude.push_back(float(std::abs(object(slice, i / size, i % size))));
        phase.push_back(float(std::arg(object(slice, i / size, i % size))));
      }
    Hdf5Shape shape{size, size};
    if (slices > 1)
      shape.insert(shape.begin(), slices);
    Hdf5Writer truth(path.parent_path() / "truth.h5");
    truth.write<float>("/object/amplitude", shape, amplitude);
    truth.write<float>("/object/phase", shape, phase);
    truth.write<std::complex<float>>("/probe", {1, m, m}, right);
    truth.write<double>("/positions", {count, 2}, positions());
    truth.commit();
  }
};

} // namespace

TEST_CASE("slices of an object are found, from the start and from a thin one, and told apart") {
  const TemporaryFolder folder;
  ThickScan{.slices = 2}.write(folder / "scan.h5");
  const std::string command = program + " --data scan.h5 --reference truth.h5 --object-pixel 2e-11 --out ";
  std::ostringstream slices;
  slices << " --slices 2 --slice-distance " << ThickScan::distance();
  const std::string thin = run_well(folder, command + "thin.h5"),
                    thick = run_well(folder, command + "thick.h5" + slices.str());
  INFO(thin << thick);
  CHECK(number_after(thick, "error against the reference ") <
        0.5 * number_after(thin, "error against the reference "));
  CHECK(number_after(thick, ", slices ") < 0.1);
  CHECK(number_after(thick, "amplitude residual ") < 0.1 * number_after(thin, "amplitude residual "));
  CHECK(Hdf5Reader(folder / "thick.h5").shape("/object/phase") ==
        Hdf5Shape{2, ThickScan::size, ThickScan::size});
  const std::string on = run_well(folder, command + "on.h5 --passes 30 --continue thin.h5" + slices.str());
  CHECK(number_after(on, "amplitude residual ") < number_after(thin, "amplitude residual "));
  const std::string further =
      run_well(folder, command + "further.h5 --passes 5 --continue thick.h5" + slices.str());
  CHECK(number_after(further, ", slices ") < 0.1);
  expect_bad_input(folder, command + "new.h5 --slices 3 --slice-distance 1e-8 2e-8 --continue thick.h5",
                   {"thick.h5", "1 or 3 slices, found 2"});
  expect_bad_input(folder, command + "new.h5 --slices 2", {"--slice-distance: expected 1", "found 0"});
  expect_bad_input(folder, command + "new.h5 --slices 4 --slice-distance 1e-8 1e-8",
                   {"--slice-distance: expected 1 or 3 numbers for 4 slices, found 2"});
  expect_bad_input(folder, command + "new.h5 --slices 1 --slice-distance 1e-8", {"--slices of 2 or more"});
  expect_bad_input(folder, command + "new.h5 --algorithm rpie" + slices.str(), {"--algorithm adam"});
  expect_bad_input(folder, program + " --data scan.h5 --out new.h5" + slices.str(), {"--object-pixel"});
}

TEST_CASE("probes that change along the scan, factors and a background are found") {
  const TemporaryFolder folder;
  const std::string command = program + " --data scan.h5 --reference truth.h5 --object-pixel 2e-11 --out ";
  const auto error = [&](const std::string& options) {
    return number_after(run_well(folder, command + options), "error against the reference ");
  };
  ThickScan{.relaxed = true}.write(folder / "scan.h5");
  const double one = error("one.h5"), relaxed = error("relaxed.h5 --relaxation-modes 2");
  CHECK(relaxed < 0.6 * one);
  // Modes are orthogonal, as strong as the probe, and their coefficients have no mean.
  constexpr std::size_t pixels = ThickScan::m * ThickScan::m;
  const auto modes = read<std::complex<float>>(folder / "relaxed.h5", "/relaxation/modes");
  const auto probe = read<std::complex<float>>(folder / "relaxed.h5", "/probe"),
             coefficients = read<std::complex<float>>(folder / "relaxed.h5", "/relaxation/coefficients");
  REQUIRE(modes.size() == 2 * pixels);
  REQUIRE(coefficients.size() == 2 * ThickScan::count);
  std::complex<double> cross = 0, mean = 0;
  double power = 0, first = 0;
  for (std::size_t i = 0; i < pixels; ++i) {
    cross += std::complex<double>(modes[i]) * std::conj(std::complex<double>(modes[pixels + i]));
    power += std::norm(probe[i]), first += std::norm(modes[i]);
  }
  for (std::size_t i = 0; i < coefficients.size(); i += 2)
    mean += std::complex<double>(coefficients[i]);
  CHECK(std::abs(cross) < 1e-4 * power);
  CHECK(std::abs(first / power - 1) < 1e-3);
  CHECK(std::abs(mean) < 1e-3 * ThickScan::count);
  // What was found is where another run begins.
  CHECK(error("on.h5 --passes 3 --relaxation-modes 3 --continue relaxed.h5") < 1.2 * relaxed);

  const ThickScan weighted{.weighted = true};
  weighted.write(folder / "scan.h5");
  const double even = error("even.h5"), found = error("factors.h5 --find-factors");
  CHECK(found < 0.5 * even);
  const std::string scaled = run_well(folder, command + "scaled.h5 --scale-models");
  CHECK(number_after(scaled, "error against the reference ") < 0.5 * even);
  CHECK(read<double>(folder / "scaled.h5", "/loss").back() <
        1.1 * read<double>(folder / "factors.h5", "/loss").back());
  CHECK(number_after(scaled, "amplitude residual ") > 0); // patterns have their counts
  const auto factors = read<float>(folder / "factors.h5", "/factors");
  REQUIRE(factors.size() == ThickScan::count);
  double off = 0;
  for (int j = 0; j < ThickScan::count; ++j)
    off = std::max(off, std::abs(factors[std::size_t(j)] - weighted.factor(j)));
  CHECK(off < 0.1);

  ThickScan{.lit = true}.write(folder / "scan.h5");
  const double dark = error("dark.h5"), background = error("background.h5 --find-background");
  CHECK(background < 0.6 * dark);
  const auto counts = read<float>(folder / "background.h5", "/background");
  REQUIRE(counts.size() == pixels);
  CHECK(std::ranges::all_of(counts, [](float value) { return value >= 0 && std::isfinite(value); }));
  // Dark pixels of rounded patterns never change, and count. There the background has its true values.
  const ThickScan lit{.lit = true};
  const std::vector<float> waves = ThickScan{}.patterns();
  double off_in_dark = 0, in_dark = 0;
  for (std::size_t k = 0; k < pixels; ++k) {
    double signal = 0;
    for (std::size_t j = 0; j < ThickScan::count; ++j)
      signal += waves[j * pixels + k] / ThickScan::count;
    if (signal < lit.background(int(k)))
      in_dark += lit.background(int(k)), off_in_dark += std::abs(counts[k] - lit.background(int(k)));
  }
  CHECK(in_dark > 300 * 3);
  CHECK(off_in_dark < 0.08 * in_dark);
  // A pixel that does not count has no background, also for a run that goes on.
  const auto patterns = lit.patterns();
  const auto scan_positions = lit.positions();
  std::vector<std::uint32_t> mask(pixels, 0);
  mask[12 * ThickScan::m + 7] = 1;
  {
    Hdf5Writer masked(folder / "masked.h5");
    masked.write<float>("/data", {ThickScan::count, ThickScan::m, ThickScan::m}, patterns);
    masked.write<double>("/scan", {ThickScan::count, 2}, scan_positions);
    masked.write<std::uint32_t>("/mask", {ThickScan::m, ThickScan::m}, mask);
    masked.commit();
  }
  const std::string of_masked = program + " --data masked.h5 --find-background --passes 4 --out ";
  run_well(folder, of_masked + "first.h5");
  run_well(folder, of_masked + "second.h5 --continue first.h5");
  for (const char* name : {"first.h5", "second.h5"}) {
    const auto found_counts = read<float>(folder / name, "/background");
    for (std::size_t k = 0; k < pixels; ++k)
      CHECK(std::isfinite(found_counts[k]) == (mask[k] == 0));
  }
  expect_bad_input(folder, command + "new.h5 --find-factors --scale-patterns",
                   {"--find-factors", "scaled one by one"});
  expect_bad_input(folder, command + "new.h5 --scale-models --scale-patterns", {"--scale-models"});
}

TEST_CASE("limits of amplitudes and a support of the probe hold") {
  const TemporaryFolder folder;
  ThickScan{}.write(folder / "scan.h5");
  const std::string command =
      program + " --data scan.h5 --reference truth.h5 --object-pixel 2e-11 --ignore-probe --passes 30 --out ";
  run_well(folder, command + "bound.h5 --amplitude-limits 0.5 1.1 --probe-support 9.5");
  for (const float amplitude : read<float>(folder / "bound.h5", "/object/amplitude"))
    CHECK((amplitude >= 0.5f && amplitude <= 1.1f));
  const auto probe = read<std::complex<float>>(folder / "bound.h5", "/probe");
  for (int k = 0; k < ThickScan::m * ThickScan::m; ++k)
    if (std::hypot(k / ThickScan::m - 12, k % ThickScan::m - 12) > 9.5)
      CHECK(probe[std::size_t(k)] == 0.0f);
  expect_bad_input(folder, command + "new.h5 --amplitude-limits 1 0.5", {"0 <= LOW < HIGH"});
}

TEST_CASE("a support of the object and smoothness hold; what does not fit is refused") {
  const TemporaryFolder folder;
  ThickScan{}.write(folder / "scan.h5");
  const std::string command = program + " --data scan.h5 --object-pixel 2e-11 --passes 12 --out ";
  run_well(folder, command + "free.h5");
  constexpr int size = ThickScan::size;
  std::vector<float> support(std::size_t(size) * size, 0);
  for (int y = 6; y < size - 9; ++y)
    for (int x = 8; x < size - 7; ++x)
      support[std::size_t(y * size + x)] = 1;
  {
    Hdf5Writer file(folder / "support.h5");
    file.write<float>("/support", {size, size}, support);
    file.commit();
  }
  run_well(folder, command + "bound.h5 --object-support support.h5 --beyond-support 0.5");
  const auto amplitude = read<float>(folder / "bound.h5", "/object/amplitude"),
             phase = read<float>(folder / "bound.h5", "/object/phase");
  int wrong = 0;
  for (std::size_t i = 0; i < support.size(); ++i)
    wrong += support[i] > 0 ? phase[i] == 0 : amplitude[i] != 0.5f || phase[i] != 0;
  CHECK(wrong == 0);
  const auto variation = [&](const char* file) {
    const auto values = read<float>(folder / file, "/object/phase");
    double sum = 0;
    for (std::size_t i = 0; i + 1 < values.size(); ++i)
      sum += std::abs(values[i + 1] - values[i]);
    return sum;
  };
  run_well(folder, command + "smooth.h5 --smooth 0.5");
  CHECK(variation("smooth.h5") < variation("free.h5"));
  support.resize(std::size_t(size) * (size - 1));
  {
    Hdf5Writer file(folder / "small.h5");
    file.write<float>("/support", {size, size - 1}, support);
    file.commit();
  }
  expect_bad_input(folder, command + "new.h5 --object-support small.h5",
                   {"small.h5", "/support", "as the object"});
  expect_bad_input(folder, command + "new.h5 --positions affine", {"--refine-positions"});
}

TEST_CASE("the Fourier ring correlation of halves is a table, a picture and a number") {
  const TemporaryFolder folder;
  write_cxi(folder / "scan.cxi", demonstration().scan);
  ThickScan{}.write(folder / "scan.h5");
  const std::string text =
      run_well(folder, program + " --data scan.h5 --object-pixel 2e-11 --passes 30 --frc --out out.h5");
  CHECK(text.find("halves agree to ") != std::string::npos);
  CHECK(fs::file_size(folder / "out_frc.png") > 1000);
  std::ifstream table(folder / "out_frc.txt");
  std::string header;
  std::getline(table, header);
  CHECK(header.find("correlation") != std::string::npos);
  std::vector<std::array<double, 4>> rows;
  for (std::array<double, 4> row{}; table >> row[0] >> row[1] >> row[2] >> row[3];)
    rows.push_back(row);
  REQUIRE(rows.size() > 8);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(std::abs(rows[i][0] * rows[i][1] - 1) < 1e-3); // frequency and period
    CHECK(std::abs(rows[i][2]) <= 1 + 1e-6);
    CHECK((rows[i][3] > 0 && rows[i][3] < 1));
  }
  CHECK(rows[1][2] > 0.9); // without noise
  CHECK(rows[rows.size() / 3][2] > 0.7);
  // The run itself is the one without halves.
  run_well(folder, program + " --data scan.h5 --object-pixel 2e-11 --passes 30 --out alone.h5");
  CHECK(read<float>(folder / "out.h5", "/object/phase") == read<float>(folder / "alone.h5", "/object/phase"));
}

TEST_CASE("scans in rows and columns, and positions in other forms, are the same scan", "[hosts]") {
  const Scan& scan = demonstration().scan;
  const TemporaryFolder folder;
  constexpr std::int64_t n = Scan::n;
  // A raster of 3 x 4, whatever the demonstration's patterns are of: they are only to be read alike.
  const double step = 1e-10;
  std::vector<double> places, rows, columns, both;
  for (int j = 0; j < Scan::count; ++j)
    places.insert(places.end(), {step * (j % 4), step * (j / 4), 0.0});
  Scan raster = scan;
  raster.translation = places;
  for (int j = 0; j < Scan::count; ++j)
    rows.push_back(step * (j / 4)), columns.push_back(step * (j % 4));
  const auto phase = [&](const std::string& data, const std::string& options = "") {
    run_well(folder, program + " --data " + data + " --out out.h5" + few + options);
    return read<float>(folder / "out.h5", "/object/phase");
  };
  write_cxi(folder / "raster.cxi", raster);
  const auto expected = phase("raster.cxi");
  const std::string geometry = "--wavelength 1.96875e-12 --object-pixel 2e-11 ";
  const auto file = [&](const char* name, const std::string& data, const Hdf5Shape& shape, const auto& more) {
    Hdf5Writer writer(folder / name);
    writer.write<float>(data, shape, scan.patterns);
    more(writer);
    writer.commit();
    return std::string(name);
  };
  const auto nothing = [](Hdf5Writer&) {};
  const std::string four = file("four.h5", "/stem/data", {3, 4, n, n}, nothing);
  CHECK(phase(four, geometry + "--data-path /stem/data --scan-step 1e-10") == expected);
  expect_bad_input(folder, program + " --data four.h5 --data-path /stem/data --out new.h5 " + geometry,
                   {"scan positions"});
  expect_bad_input(folder, program + " --data raster.cxi --out new.h5 --scan-step 1e-10", {"--scan-step"});
  const std::string single = file("single.h5", "/stem/data", {Scan::count, 1, n, n}, [&](Hdf5Writer& writer) {
    writer.write<double>("/y", {Scan::count}, rows);
    writer.write<double>("/x", {Scan::count, 1}, columns);
    std::vector<double> turned = columns; // [2, N]: x, y
    turned.insert(turned.end(), rows.begin(), rows.end());
    writer.write<double>("/turned", {2, Scan::count}, turned);
    std::vector<double> pixels;
    for (const double metres : turned)
      pixels.push_back(metres / 2e-11);
    writer.write<double>("/pixels", {2, Scan::count}, pixels);
    std::vector<double> named = turned;
    for (double& value : named)
      value *= 1e9;
    writer.write<double>("/named", {2, Scan::count}, named);
    writer.write_attribute("/named", "units", std::string("nm"));
  });
  const std::string in_single = geometry + "--data-path /stem/data --positions-path ";
  CHECK(phase(single, in_single + "/y /x") == expected);
  CHECK(phase(single, in_single + "/turned") == expected);
  CHECK(phase(single, in_single + "/pixels --positions-in-pixels") == expected);
  CHECK(relative_error(phase(single, in_single + "/named"), expected) < 1e-5);
  expect_bad_input(folder, program + " --data single.h5 --out new.h5 " + in_single + "/stem/data",
                   {"/stem/data"});
  // py4DSTEM: the axes are beside the patterns.
  const double detector = 1e-10 / (n * 2e-11);
  const std::string cube = file("cube.h5", "/root/datacube/data", {3, 4, n, n}, [&](Hdf5Writer& writer) {
    for (const auto& [name, size, unit] : {std::tuple("dim0", 1.0, "A"),
                                           {"dim1", 1.0, "A"},
                                           {"dim2", detector, "A^-1"},
                                           {"dim3", detector, "A^-1"}}) {
      const std::string place = std::string("/root/datacube/") + name;
      writer.write<double>(place, {2}, std::vector<double>{0, size});
      writer.write_attribute(place, "units", std::string(unit));
    }
  });
  CHECK(relative_error(phase(cube, "--wavelength 1.96875e-12"), expected) < 1e-5);
  // PtyPy: weights of good pixels, and keV.
  std::vector<float> weights(static_cast<std::size_t>(Scan::count * n * n), 0.5f);
  std::vector<std::uint32_t> mask(static_cast<std::size_t>(n * n), 0);
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (i % (n * n) == 70)
      weights[i] = 0, mask[70] = 1;
  std::vector<double> ordered;
  for (int j = 0; j < Scan::count; ++j)
    ordered.insert(ordered.end(), {rows[std::size_t(j)], columns[std::size_t(j)]});
  const std::string ptyd = file("scan.ptyd", "/chunks/0/data", {Scan::count, n, n}, [&](Hdf5Writer& writer) {
    writer.write<float>("/chunks/0/weights", {Scan::count, n, n}, weights);
    writer.write<double>("/chunks/0/positions", {Scan::count, 2}, ordered);
    writer.write_scalar("/meta/energy", 1.98644586e-25 / 1.96875e-12 / 1.602176634e-16);
    writer.write_scalar("/meta/distance", 1.0);
    const double pixel = 1.96875e-12 / (64 * 2e-11);
    writer.write<double>("/meta/psize", {2}, std::vector<double>{pixel, pixel});
  });
  write_cxi(folder / "masked.cxi", raster, {.mask = mask});
  CHECK(relative_error(phase(ptyd), phase("masked.cxi")) < 1e-5);
}

TEST_CASE("few counts are compared by Poisson's loss, and it is said", "[.turn-4]") {
  const TemporaryFolder folder;
  ThickScan scan;
  scan.write(folder / "many.h5"); // and the truth beside it
  const std::vector<float> patterns = scan.patterns();
  const auto positions = scan.positions();
  const auto probe = read<std::complex<float>>(folder / "many.h5", "/probe");
  double all = 0;
  for (const float value : patterns)
    all += value;
  std::string summary;
  const auto error = [&](const std::string& options, const std::string& says) {
    const Outcome outcome =
        run(folder, program + " --object-pixel 2e-11 --reference truth.h5 --out out.h5 " + options);
    summary = outcome.out;
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.err.find(says) != std::string::npos);
    return number_after(outcome.out, "error against the reference ");
  };
  double chosen = 0, amplitude = 0;
  for (const unsigned seed : {3u, 4u}) {
    std::mt19937_64 generator(seed);
    std::vector<std::uint16_t> counts;
    for (const float value : patterns) {
      const double expected = std::max(1e-9, value * 50.0 * ThickScan::count / all);
      counts.push_back(std::uint16_t(std::poisson_distribution<int>(expected)(generator)));
    }
    Hdf5Writer few_counts(folder / "few.h5");
    few_counts.write<std::uint16_t>("/data", {ThickScan::count, ThickScan::m, ThickScan::m}, counts);
    few_counts.write<double>("/scan", {ThickScan::count, 2}, positions);
    few_counts.write<std::complex<float>>("/probe", {ThickScan::m, ThickScan::m}, probe);
    few_counts.commit();
    const double own = error("--data few.h5", "for which --loss poisson is taken");
    const double noise = counting_noise(counts, ThickScan::m * ThickScan::m, half_deviance);
    CHECK(std::abs(number_after(summary, "counting noise ") - noise) < 0.001 * noise);
    CHECK(number_after(summary, "Poisson residual ") < noise);
    CHECK(number_after(summary, "Poisson residual ") > 0.5 * noise);
    CHECK(error("--data few.h5 --loss poisson", "") == own);
    chosen += own;
    amplitude += error("--data few.h5 --loss amplitude", "counts in a bright pixel: --loss poisson explains");
  }
  CHECK(chosen < 0.95 * amplitude);
  error("--data many.h5 --passes 2", "for which --loss amplitude is taken");
}

namespace {

void append(std::string& text, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    text += char(value >> 8 * i & 255);
}

/// A .zip of .npy files, as numpy.savez and numpy.savez_compressed write them.
class NumpyArchive {
public:
  explicit NumpyArchive(bool packed) : packed_(packed) {}
  template <class T>
  void add(const std::string& name, const std::string& descr, const std::string& shape,
           const std::vector<T>& values, const std::string& order = "False") {
    std::string head =
        "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': (" + shape + "), }";
    head += std::string(63 - (head.size() + 10) % 64, ' ') + '\n';
    std::string array = "\x93NUMPY";
    append(array, 1, 2), append(array, head.size(), 2);
    array += head + std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    const std::string stored = packed_ ? deflated(array) : array, file = name + ".npy";
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(array.data()), uInt(array.size()));
    const std::size_t local = text_.size();
    std::string both;
    append(both, 20, 2), append(both, 0, 2), append(both, packed_ ? 8 : 0, 2), append(both, 0, 4),
        append(both, crc, 4);
    append(both, stored.size(), 4), append(both, array.size(), 4), append(both, file.size(), 2);
    text_ += "PK\3\4" + both;
    append(text_, 0, 2);
    text_ += file + stored;
    entries_ += "PK\1\2";
    append(entries_, 20, 2);
    entries_ += both;
    append(entries_, 0, 2 + 2 + 2 + 2), append(entries_, 0, 4), append(entries_, local, 4);
    entries_ += file;
    ++count_;
  }
  std::string text() const {
    std::string all = text_ + entries_ + "PK\5\6";
    append(all, 0, 4), append(all, count_, 2), append(all, count_, 2), append(all, entries_.size(), 4);
    append(all, text_.size(), 4), append(all, 0, 2);
    return all;
  }

private:
  static std::string deflated(const std::string& text) {
    z_stream stream{};
    deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    std::string result(deflateBound(&stream, uLong(text.size())), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = uInt(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(result.data());
    stream.avail_out = uInt(result.size());
    CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    result.resize(stream.total_out);
    deflateEnd(&stream);
    return result;
  }

  bool packed_;
  std::uint64_t count_ = 0;
  std::string text_, entries_;
};

} // namespace

TEST_CASE("scans of NumPy, of an EMPAD and of MATLAB are the scans of HDF5", "[hosts]") {
  const Scan& scan = demonstration().scan;
  const TemporaryFolder folder;
  constexpr std::size_t n = Scan::n, count = Scan::count, pixels = n * n;
  const std::string geometry = " --wavelength 1.96875e-12 --object-pixel 2e-11 ";
  const auto phase = [&](const std::string& data, const std::string& options = "") {
    run_well(folder, program + " --data " + data + " --out out.h5" + few + geometry + options);
    return read<float>(folder / "out.h5", "/object/phase");
  };
  const auto put = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name, std::ios::binary) << text;
  };
  std::vector<std::uint16_t> counts;
  for (const float value : scan.unshifted())
    counts.push_back(std::uint16_t(value));
  const auto positions = scan.positions();
  Hdf5Writer plain(folder / "plain.h5");
  plain.write<std::uint16_t>("/data", {Scan::count, Scan::n, Scan::n}, counts);
  plain.write<double>("/scan", {Scan::count, 2}, positions);
  plain.commit();
  const auto expected = phase("plain.h5");
  for (const bool packed : {false, true}) {
    NumpyArchive archive(packed);
    archive.add("notes", "<U4", "2,", std::vector<char>(32));
    archive.add("data", "<u2", "12, 64, 64", counts);
    archive.add("scan", "<f8", "12, 2", positions);
    put("scan.npz", archive.text());
    CHECK(relative_error(phase("scan.npz"), expected) < (packed ? 1e-5 : 1e-30));
    CHECK(read_text(folder / "scan.npz") == archive.text());
    for (const double part : {0.3, 0.9, 0.9999}) {
      put("part.npz", archive.text().substr(0, std::size_t(part * double(archive.text().size()))));
      expect_bad_input(folder, program + " --data part.npz --out new.h5",
                       {"part.npz", "damaged or truncated"});
    }
  }
  { // other bytes than were packed
    NumpyArchive archive(true);
    archive.add("data", "<u2", "12, 64, 64", counts);
    std::string text = archive.text();
    text[text.size() - 22 - 46 - 8 + 16] ^= 1; // the check sum in the table of files, of which there is one
    put("other.npz", text);
    expect_bad_input(folder, program + " --data other.npz --out new.h5",
                     {"other.npz", "damaged or truncated"});
  }
  NumpyArchive turned(false);
  turned.add("data", "<u2", "12, 64, 64", counts, "True");
  put("turned.npz", turned.text());
  expect_bad_input(folder, program + " --data turned.npz --out new.h5",
                   {"turned.npz: data", "C order", "ascontiguousarray"});

  // An EMPAD: the raster's patterns in the middle of larger frames, two rows of which are no pixels.
  const double step = 1e-10;
  std::vector<double> rows, columns;
  for (std::size_t j = 0; j < count; ++j)
    rows.push_back(step * double(j / 4)), columns.push_back(step * double(j % 4));
  std::vector<float> frames(count * 130 * 128, 0);
  for (std::size_t j = 0; j < count; ++j) {
    for (std::size_t k = 0; k < pixels; ++k)
      frames[(j * 130 + 32 + k / n) * 128 + 32 + k % n] = scan.patterns[j * pixels + k];
    std::fill_n(frames.begin() + std::ptrdiff_t((j * 130 + 128) * 128), 256,
                std::numeric_limits<float>::quiet_NaN());
  }
  Hdf5Writer raster(folder / "raster.h5");
  raster.write<float>("/stem/data", {3, 4, Scan::n, Scan::n}, scan.patterns);
  raster.commit();
  const auto of_raster = phase("raster.h5", "--data-path /stem/data --scan-step 1e-10");
  const std::string raw(reinterpret_cast<const char*>(frames.data()), frames.size() * sizeof(float));
  put("scan_x4_y3.raw", raw);
  CHECK(phase("scan_x4_y3.raw", "--scan-step 1e-10 --detector 64") == of_raster);
  run_well(folder, program + " --data scan_x4_y3.raw --out out.h5 --passes 1 --scan-step 1e-10" + geometry);
  CHECK(read<std::complex<float>>(folder / "out.h5", "/probe").size() == 128 * 128);
  put("scan_x4_y4.raw", raw);
  expect_bad_input(folder, program + " --data scan_x4_y4.raw --out new.h5",
                   {"scan_x4_y4.raw", "16 frames", "found 12"});
  put("some.raw", raw.substr(4));
  expect_bad_input(folder, program + " --data some.raw --out new.h5", {"some.raw", "130 x 128"});

  // MATLAB 7.3: HDF5 behind 512 bytes of text. Its first axis is the last one of HDF5, so that rows and columns change places.
  std::vector<std::uint16_t> other;
  for (std::size_t j = 0; j < count; ++j)
    for (std::size_t k = 0; k < pixels; ++k)
      other.push_back(std::uint16_t(scan.patterns[j * pixels + k % n * n + k / n]));
  std::vector<double> of_rows, of_columns;
  for (std::size_t j = 0; j < count; ++j)
    of_rows.push_back(positions[2 * j]), of_columns.push_back(positions[2 * j + 1]);
  of_rows.insert(of_rows.end(), of_columns.begin(), of_columns.end());
  Hdf5Writer inner(folder / "inner.h5");
  inner.write<std::uint16_t>("/patterns", {Scan::count, Scan::n, Scan::n}, other);
  inner.write<double>("/positions", {2, Scan::count}, of_rows);
  inner.commit();
  std::string head = "MATLAB 7.3 MAT-file, Platform: GLNXA64";
  head.resize(512, ' ');
  put("scan.mat", head + read_text(folder / "inner.h5"));
  const std::string evenly =
      " --algorithm rpie"; // Adam's steps are long where rounding alone moves the object
  const auto straight = phase("plain.h5", evenly);
  const auto across =
      phase("scan.mat", "--data-path /patterns --positions-path /positions --positions-in-pixels" + evenly);
  const Hdf5Shape shape = Hdf5Reader(folder / "out.h5").shape("/object/phase");
  std::vector<float> back(across.size());
  for (std::int64_t row = 0; row < shape[0]; ++row)
    for (std::int64_t column = 0; column < shape[1]; ++column)
      back[std::size_t(column * shape[0] + row)] = across[std::size_t(row * shape[1] + column)];
  CHECK(relative_error(back, straight) < 1e-4); // sums in another order, in single precision
}

TEST_CASE("far field: a Siemens star measured with X-rays", "[.turn-3]") {
  const fs::path data = shared_data("ptychography/siemens-star-small.h5");
  const TemporaryFolder folder;
  const std::string summary =
      run_well(folder, program + " --data " + data.string() + " --out star.h5 --passes 12");
  CHECK(number_after(summary, "amplitude residual ") <= 0.0125);
}

TEST_CASE("near field: a Siemens star measured with X-rays") {
  const fs::path data = shared_data("ptychography/PETRAIII_P25_Near_Field_Ptycho.cxi");
  const TemporaryFolder folder;
  const std::string summary =
      run_well(folder, program + " --data " + data.string() +
                           " --out star.h5 --focus-distance 3.65e-3 --passes 6 --batches 20");
  CHECK(number_after(summary, "amplitude residual ") <= 0.01);
}
