// SPDX-License-Identifier: MIT
// Scans as files have them: orders of angles, layouts, frames that are no data, and the axis.
#include "common/hdf5.hpp"
#include "common/provenance.hpp"
#include "common/tiff.hpp"
#include "support.hpp"

#include <hdf5.h>

#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

using namespace DriverTest;

namespace {

const std::string tomography = BRACEWELL_TOMOGRAPHY;
constexpr int width = 64, rows = 2;
constexpr double pi = std::numbers::pi;

/// To the last bit where sums have an order.
bool are_same(const std::vector<float>& a, const std::vector<float>& b) {
#ifdef BRACEWELL_SUMS_WITHOUT_ORDER
  return relative_error(a, b) < 1e-5;
#else
  return a == b;
#endif
}

/// A disc of attenuation 1 / radius in closed form, as counts with 200 of them dark and 60000 of the beam.
struct Disc {
  double x = 9, y = -5, radius = 14, centre = 30.25;

  static double area(double s, double r) {
    const double t = std::clamp(s / r, -1.0, 1.0);
    return r * r * (t * std::sqrt(1 - t * t) + std::asin(t));
  }

  std::vector<std::uint16_t> counts(const std::vector<double>& degrees) const {
    std::vector<std::uint16_t> values;
    for (const double angle : degrees)
      for (int row = 0; row < rows; ++row)
        for (int i = 0; i < width; ++i) {
          const double theta = angle * pi / 180, s = i - centre - x * std::cos(theta) - y * std::sin(theta),
                       r = radius - row;
          const double value = (area(s + 0.5, r) - area(s - 0.5, r)) / radius;
          values.push_back(std::uint16_t(std::lround(200 + 60000 * std::exp(-value))));
        }
    return values;
  }

  /// Largest deviation from the truth 3 pixels and more away from the edges.
  double error(const std::vector<float>& slices) const {
    double worst = 0;
    for (std::size_t k = 0; k < slices.size(); ++k) {
      const int pixel = int(k) % (width * width), row = int(k) / (width * width);
      const int column = pixel % width - width / 2, line = width / 2 - pixel / width; // up
      const double distance = std::hypot(column - x, line - y) - (radius - row);
      if (std::hypot(column, line) < width / 2 - 4 && std::abs(distance) > 3)
        worst = std::max(worst, std::abs(slices[k] * radius - (distance < 0 ? 1 : 0)));
    }
    return worst;
  }
};

std::vector<double> even_angles(int count, double span = 180) {
  std::vector<double> angles;
  for (int p = 0; p < count; ++p)
    angles.push_back(p * span / count);
  return angles;
}

/// Frames of one value.
std::vector<std::uint16_t> frames(int count, std::uint16_t value) {
  return std::vector<std::uint16_t>(std::size_t(count * rows * width), value);
}

using Counts = std::vector<std::uint16_t>;
using Scans = std::vector<std::vector<double>>; ///< their angles

void write(const fs::path& path, const std::vector<double>& angles, const Counts& counts,
           const Counts& flat = frames(5, 60200), const std::vector<double>& said = {}) {
  Hdf5Writer writer(path);
  writer.write<std::uint16_t>("/exchange/data", {std::int64_t(angles.size()), rows, width}, counts);
  writer.write<std::uint16_t>("/exchange/data_white",
                              {std::int64_t(flat.size()) / (rows * width), rows, width}, flat);
  writer.write<std::uint16_t>("/exchange/data_dark", {3, rows, width}, frames(3, 200));
  writer.write<double>("/exchange/theta", {std::int64_t(angles.size())}, said.empty() ? angles : said);
  writer.commit();
}

std::vector<float> slices(const TemporaryFolder& folder) {
  return Hdf5Reader(folder / "x.h5").read<float>("/exchange/data");
}

std::string command(const std::string& options) {
  return tomography + " --out x.h5 " +
         (options.find("--solver") == std::string::npos ? "--filter hann " : "") + options;
}

} // namespace

TEST_CASE("any order of the angles gives the slices of the sorted scan, by all steps along the angles",
          "[hosts]") {
  const TemporaryFolder folder;
  const Disc disc;
  const int count = 150;
  for (const double span : {180., 360.}) {
    std::vector<double> golden, interlaced, unwrapped;
    for (int p = 0; p < count; ++p) {
      unwrapped.push_back(p * 180 * (std::sqrt(5.) - 1) / 2);
      golden.push_back(std::fmod(unwrapped.back(), span));
      interlaced.push_back((p % 30 * 5 + p / 30) * span / count);
    }
    for (const auto& angles : span == 180 ? Scans{golden, unwrapped} : Scans{interlaced}) {
      std::vector<double> sorted;
      for (const double angle : angles)
        sorted.push_back(std::fmod(angle, span == 180 && angles != unwrapped ? 180 : 360));
      std::ranges::sort(sorted);
      Counts shuffled = disc.counts(angles);
      write(folder / "sorted.h5", sorted, disc.counts(sorted));
      write(folder / "scan.h5", angles, shuffled);
      for (const char* const steps : {"", "--zingers 0.3", "--stripes sorting", "--stripes all",
                                      "--stripes offset", "--stripes wavelet"}) {
        CAPTURE(span, steps);
        run_well(folder, command("--scan sorted.h5 --centre 30.25 ") + steps);
        const std::vector<float> expected = slices(folder);
        run_well(folder, command("--scan scan.h5 --centre 30.25 ") + steps);
        // Where views begin along a turn changes what lies at the ends, no more.
        CHECK(relative_error(slices(folder), expected) < (angles == unwrapped ? 0.02 : 1e-3));
      }
      run_well(folder, command("--scan scan.h5 --centre 30.25"));
      CHECK(disc.error(slices(folder)) < 0.06);
    }
  }
}

TEST_CASE("layouts: image_key, frames and angles elsewhere, a folder of TIFF files, missing numbers",
          "[hosts]") {
  const TemporaryFolder folder;
  const Disc disc;
  const std::vector<double> angles = even_angles(120);
  const Counts counts = disc.counts(angles);
  write(folder / "scan.h5", angles, counts);
  run_well(folder, command("--scan scan.h5 --centre 30.25"));
  const std::vector<float> expected = slices(folder);
  CHECK(disc.error(expected) < 0.06);

  { // NXtomo: flat frames before and after, a dark one between, one that is none of all
    Counts all;
    std::vector<std::int64_t> keys;
    std::vector<double> of_all;
    const auto add = [&](const Counts& some, std::int64_t key, double angle) {
      all.insert(all.end(), some.begin(), some.end()), keys.push_back(key), of_all.push_back(angle);
    };
    const std::size_t frame = rows * width;
    const auto projection = [&](std::size_t p) {
      return Counts(counts.begin() + std::ptrdiff_t(p * frame),
                    counts.begin() + std::ptrdiff_t((p + 1) * frame));
    };
    add(frames(1, 60200), 1, 0), add(frames(1, 60200), 1, 0), add(frames(1, 200), 2, 0);
    for (std::size_t p = 0; p < angles.size(); ++p) {
      if (p == 50)
        add(frames(1, 60200), 1, 75), add(frames(1, 7), 3, 75);
      add(projection(p), 0, angles[p]);
    }
    add(frames(1, 60200), 1, 180);
    const std::string diamond = "/entry1/tomo_entry/", esrf = "/entry0000/";
    for (const auto& [detector, of_angles] : std::vector<std::pair<std::string, std::string>>{
             {diamond + "instrument/detector/", diamond + "sample/rotation_angle"},
             {diamond + "data/", diamond + "data/rotation_angle"}, // as Savu has it
             {esrf + "instrument/detector/", esrf + "sample/rotation_angle"}}) {
      CAPTURE(detector, of_angles);
      Hdf5Writer writer(folder / "nx.h5");
      writer.write<std::uint16_t>(detector + "data", {std::int64_t(keys.size()), rows, width}, all);
      writer.write<std::int64_t>(detector + "image_key", {std::int64_t(keys.size())}, keys);
      writer.write<double>(of_angles, {std::int64_t(keys.size())}, of_all);
      writer.commit();
      run_well(folder, command("--scan nx.h5 --centre 30.25"));
      CHECK(relative_error(slices(folder), expected) < 1e-6);
    }
  }
  // The spellings of Data Exchange
  for (const auto& [white, dark, theta] : std::vector<std::array<std::string, 3>>{
           {"data_flat", "data_dark", "angles"}, {"white", "dark", "angle"}, {"flat", "dark", "theta"}}) {
    CAPTURE(white, dark, theta);
    Hdf5Writer writer(folder / "nx.h5");
    writer.write<std::uint16_t>("/exchange/data", {120, rows, width}, counts);
    writer.write<std::uint16_t>("/exchange/" + white, {5, rows, width}, frames(5, 60200));
    writer.write<std::uint16_t>("/exchange/" + dark, {3, rows, width}, frames(3, 200));
    writer.write<double>("/exchange/" + theta, {120}, angles);
    writer.commit();
    run_well(folder, command("--scan nx.h5 --centre 30.25"));
    CHECK(relative_error(slices(folder), expected) < 1e-6);
  }

  { // frames and angles elsewhere
    Hdf5Writer writer(folder / "bare.h5");
    writer.write<std::uint16_t>("/exchange/data", {120, rows, width}, counts);
    writer.commit();
    Hdf5Writer other(folder / "flats.h5");
    other.write<std::uint16_t>("/entry/bright", {5, rows, width}, frames(5, 60200));
    other.write<std::uint16_t>("/entry/shade", {3, rows, width}, frames(3, 200));
    other.commit();
    std::string text = "# degrees\n";
    for (const double angle : angles)
      text += shortest(angle) + "\n";
    write_text(folder / "angles.txt", text);
  }
  run_well(folder,
           command("--scan bare.h5 --centre 30.25 --flat flats.h5:/entry/bright --dark flats.h5:/entry/shade "
                   "--angles angles.txt"));
  CHECK(relative_error(slices(folder), expected) < 1e-3);
  expect_bad_input(folder, command("--scan scan.h5 --angles /exchange/thetaa"),
                   {"scan.h5", "/exchange/thetaa"});
  expect_bad_input(folder, command("--scan scan.h5 --angles gone.txt"), {"gone.txt"});
  expect_bad_input(folder, command("--scan scan.h5 --flat flats.h5:/entry/gone"),
                   {"flats.h5", "/entry/gone"});
  expect_bad_input(folder,
                   command("--scan bare.h5 --flat flats.h5:/entry/bright --centre 30 --angles flats.h5"),
                   {"flats.h5"});

  // A folder of files
  fs::create_directories(folder / "tif");
  const auto write_tiff = [&](const std::string& name, int count, const auto& value, int missing) {
    for (int k = 0; k < count; ++k) {
      if (k == missing)
        continue;
      char number[16];
      std::snprintf(number, sizeof number, "%04d", k);
      TiffWriter writer(folder / "tif" / (name + number + ".tif"), width, rows, 1);
      std::vector<float> page;
      for (int i = 0; i < rows * width; ++i)
        page.push_back(float(value(k * rows * width + i)));
      writer.write(page);
      writer.commit();
    }
  };
  write_tiff(
      "scan_", 120, [&](int i) { return counts[std::size_t(i)]; }, -1);
  write_tiff(
      "flat_", 5, [](int) { return 60200; }, -1);
  write_tiff(
      "dark_", 3, [](int) { return 200; }, -1);
  run_well(folder, command("--scan tif --centre 30.25 --angles angles.txt"));
  CHECK(relative_error(slices(folder), expected) < 1e-3);
  expect_bad_input(folder, command("--scan tif --centre 30.25 --angles gone.txt"), {"gone.txt"});
  fs::remove(folder / "tif" / "scan_0040.tif");
  for (const char* const of : {"--angles angles.txt", "--span 180"}) {
    const Outcome outcome = run(folder, command(std::string("--scan tif --centre 30.25 ") + of));
    REQUIRE(outcome.code == 0);
    CHECK(outcome.err.find("1 numbers are missing") != std::string::npos);
    CHECK(outcome.out.find("119 projections") != std::string::npos);
    CHECK(disc.error(slices(folder)) < 0.06);
  }
  write_tiff(
      "other_", 2, [](int) { return 60200; }, -1);
  expect_bad_input(folder, command("--scan tif --centre 30.25"), {"119 of scan_*", "2 of other_*"});
}

TEST_CASE("a source that is missing of a virtual dataset is named", "[hosts]") {
  const TemporaryFolder folder;
  const std::vector<double> angles = even_angles(40);
  write(folder / "part.h5", angles, Disc().counts(angles));
  const hid_t file = H5Fcreate((folder / "scan.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t shape[] = {80, rows, width}, part[] = {40, rows, width}, second[] = {40, 0, 0},
                first[] = {0, 0, 0};
  const hid_t space = H5Screate_simple(3, shape, nullptr), source = H5Screate_simple(3, part, nullptr),
              properties = H5Pcreate(H5P_DATASET_CREATE), links = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, first, nullptr, part, nullptr);
  H5Pset_virtual(properties, space, "part.h5", "/exchange/data", source);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, second, nullptr, part, nullptr);
  H5Pset_virtual(properties, space, "gone.h5", "/exchange/data", source);
  H5Sselect_all(space);
  H5Dclose(H5Dcreate2(file, "/exchange/data", H5T_STD_U16LE, space, links, properties, H5P_DEFAULT));
  H5Pclose(links), H5Pclose(properties), H5Sclose(source), H5Sclose(space), H5Fclose(file);
  expect_bad_input(folder, command("--scan scan.h5 --centre 30.25"),
                   {"scan.h5", "/exchange/data", "gone.h5", "missing"});
  fs::copy(folder / "part.h5", folder / "gone.h5");
  run_well(folder, command("--scan scan.h5 --centre 30.25 --span 180"));
}

TEST_CASE("frames that are no data are counted, left out, and refused above a share", "[hosts]") {
  const TemporaryFolder folder;
  const Disc disc;
  const std::vector<double> angles = even_angles(120);
  const Counts counts = disc.counts(angles);
  const std::string plain = command("--scan scan.h5 --centre 30.25 ");
  const auto spoil = [&](const std::vector<int>& frames, std::uint16_t value) {
    Counts spoilt = counts;
    for (const int frame : frames)
      std::fill_n(spoilt.begin() + frame * rows * width, rows * width, value);
    write(folder / "scan.h5", angles, spoilt);
  };
  // Dropped frames, a shut shutter, and a detector that saw too much.
  for (const std::uint16_t value : {0, 205, 65535}) {
    CAPTURE(value);
    spoil({7, 30, 31, 77}, value);
    const Outcome outcome = run(folder, plain);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(disc.error(slices(folder)) < 0.06);
    CHECK(outcome.err.find(
              "4 of 120 frames have no light or are saturated (row 1 of projections 7, 30, 31, 77)") !=
          std::string::npos);
    CHECK(Hdf5Reader(folder / "x.h5").attribute("/exchange/data", "unused_frames") == 4);
    fs::remove(folder / "x.h5"), fs::remove(folder / "x_middle.png");
    expect_bad_input(folder, plain + "--strict", {"4 of 120 frames", "--strict"});
  }
  { // Frames with 2 % of the light are data, and so are frames of which half a row is dark
    Counts dim = counts;
    for (std::size_t i = 0; i < rows * width; ++i)
      dim[9 * rows * width + i] = 200 + 1200;
    for (std::size_t row = 0; row < rows; ++row)
      std::fill_n(dim.begin() + std::ptrdiff_t((10 * rows + row) * width), width / 2, std::uint16_t(200));
    write(folder / "scan.h5", angles, dim);
    CHECK(run_well(folder, plain).find("120 projections") != std::string::npos);
  }
  { // Without flat frames the light is the usual brightness of the projections
    Counts spoilt = counts;
    for (const int frame : {7, 30})
      std::fill_n(spoilt.begin() + frame * rows * width, rows * width, std::uint16_t(400));
    Hdf5Writer writer(folder / "bare.h5");
    writer.write<std::uint16_t>("/exchange/data", {120, rows, width}, spoilt);
    writer.commit();
    const Outcome outcome = run(folder, command("--scan bare.h5 --span 180 --centre 30.25 --air 0:3"));
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.err.find("2 of 120 frames have no light or are saturated (row 1 of projections 7, 30)") !=
          std::string::npos);
    CHECK(outcome.out.find("118 projections") != std::string::npos);
  }
  std::vector<int> many(40);
  std::iota(many.begin(), many.end(), 50);
  spoil(many, 0);
  expect_bad_input(folder, plain, {"40 of 120 frames have no light", "expected 25 % at most"});
  write(folder / "scan.h5", angles, frames(120, 201));
  expect_bad_input(folder, plain, {"most projections has no data", "shutter"});

  // The scan stopped: frames were not written, to chunks of one frame each.
  const auto stopped = [&](hsize_t written) {
    const hid_t file = H5Fcreate((folder / "scan.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t shape[] = {120, rows, width}, one[] = {1, rows, width}, first[] = {0, 0, 0},
                  some[] = {written, rows, width};
    const hid_t space = H5Screate_simple(3, shape, nullptr), memory = H5Screate_simple(3, some, nullptr),
                properties = H5Pcreate(H5P_DATASET_CREATE), links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    H5Pset_chunk(properties, 3, one);
    const hid_t data =
        H5Dcreate2(file, "/exchange/data", H5T_STD_U16LE, space, links, properties, H5P_DEFAULT);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, first, nullptr, some, nullptr);
    H5Dwrite(data, H5T_NATIVE_UINT16, memory, space, H5P_DEFAULT, counts.data());
    for (const char* name : {"/exchange/data_white", "/exchange/data_dark"}) {
      const Counts frame = frames(1, std::string(name).ends_with("white") ? 60200 : 200);
      const hid_t whole = H5Screate_simple(3, one, nullptr),
                  set = H5Dcreate2(file, name, H5T_STD_U16LE, whole, links, H5P_DEFAULT, H5P_DEFAULT);
      H5Dwrite(set, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, frame.data());
      H5Dclose(set), H5Sclose(whole);
    }
    H5Dclose(data), H5Pclose(properties), H5Pclose(links), H5Sclose(space), H5Sclose(memory), H5Fclose(file);
  };
  stopped(116);
  const Outcome outcome = run(folder, plain + "--span 180");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err.find("4 of 120 frames were never written (projection 116 is the first)") !=
        std::string::npos);
  CHECK(disc.error(slices(folder)) < 0.1);
  stopped(70);
  expect_bad_input(folder, plain + "--span 180",
                   {"50 of 120 frames were never written", "--leave-out 70:120 goes on without them"});
  expect_bad_input(folder, command("--scan scan.h5 --span 180 --leave-out 70:120"), {"170 degrees"});
}

TEST_CASE("faults of files that were seen have their right slices or a sentence", "[hosts]") {
  const char* const data = std::getenv("BRACEWELL_TEST_DATA");
  const fs::path of_cases = fs::path(data ? data : "") / "cases" / "faults";
  if (!data || !fs::exists(of_cases / "aborted.h5"))
    SKIP("BRACEWELL_TEST_DATA has no cases/faults");
  const TemporaryFolder folder;
  const auto slices_of = [&](const std::string& file, const std::string& word) {
    const Outcome outcome = run(folder, tomography + " --out x.h5 --centre 32 --scan " + file);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.err.find(word) != std::string::npos);
    return slices(folder);
  };
  const auto refused = [&](const std::string& file, const std::vector<std::string>& words) {
    expect_bad_input(folder, tomography + " --out no.h5 --centre 16 --scan " + file, words);
  };
  const auto path = [&](const char* name) { return (of_cases / name).string(); };
  const std::vector<float> whole = slices_of(path("master.h5"), "");
  CHECK(relative_error(slices_of(path("dropped.h5"), "4 of 120 frames"), whole) < 0.05);
  CHECK(relative_error(slices_of(path("saturated.h5"), "2 of 120 frames"), whole) < 0.05);
  CHECK(relative_error(slices_of(path("nodark.h5"), "no dark ones"), whole) < 0.05);
  refused(path("aborted.h5"), {"50 of 120 frames were never written"});
  refused(path("vds_self.h5"), {"refers to itself"});
  refused(path("vds_dot.h5"), {"refers to itself"});
  fs::copy(of_cases / "master.h5", folder / "master.h5");
  refused("master.h5", {"part0.h5", "missing"});
  fs::copy(of_cases / "part0.h5", folder / "part0.h5");
  refused("master.h5", {"part1.h5", "missing"});
}

TEST_CASE("a beam that is narrower than the detector, or changes, and columns that make rings", "[hosts]") {
  const TemporaryFolder folder;
  const Disc disc;
  const std::vector<double> angles = even_angles(120);
  const Counts counts = disc.counts(angles);
  const auto seen = [&](const std::string& options) {
    const Outcome outcome = run(folder, command("--scan scan.h5 " + options));
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const auto place = outcome.out.find("centre ");
    CHECK(std::abs(std::stod(outcome.out.substr(place + 7)) - disc.centre) < 0.1);
    return outcome.err;
  };
  write(folder / "scan.h5", angles, counts);
  const std::string clean = seen("");
  CHECK(disc.error(slices(folder)) < 0.06);
  seen("--stripes sorting");
  const double of_sorting = disc.error(slices(folder));
  for (const char* const word : {"ends of row", "the beam changed", "rings"})
    CHECK(clean.find(word) == std::string::npos);

  // Columns 0 to 3 and 60 to 63 see the noise of the detector, beside 1 % and 10 % of the light.
  std::mt19937 random(5);
  const auto shaded = [&](Counts all) {
    const auto light = [](std::size_t x) {
      const double shade[] = {0, 0, 0, 0, 0.01, 0.1};
      const std::size_t from_end = std::min<std::size_t>(x, width - 1 - x);
      return from_end < 6 ? shade[from_end] : 1;
    };
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = std::uint16_t(
          std::lround(200 + (all[i] - 200) * light(i % width) + std::normal_distribution(0., 3.)(random)));
    return all;
  };
  const Counts narrow = shaded(counts), narrow_flat = shaded(frames(5, 60200));
  write(folder / "scan.h5", angles, narrow, narrow_flat);
  CHECK(seen("").find(
            "10 of 64 columns at the ends of row 1 have no light in the flat frames: the next column "
            "that has some stands for them; --columns 5:59 goes on without them") != std::string::npos);
  CHECK(disc.error(slices(folder)) < 0.06);
  CHECK(Hdf5Reader(folder / "x.h5").attribute("/exchange/data", "unused_columns") == 10);
  seen("--stripes sorting");
  CHECK(disc.error(slices(folder)) < of_sorting + 0.01);
  seen("--columns 0:64 --rows 0:1");
  const Outcome cut = run(folder, command("--scan scan.h5 --columns 5:59 --strict --centre 25.25"));
  INFO(cut.err);
  CHECK(cut.code == 0);
  expect_bad_input(folder, command("--scan scan.h5 --strict"), {"10 of 64 columns", "--columns 5:59"});
  Counts dark_end = frames(5, 60200);
  for (std::size_t i = 0; i < dark_end.size(); ++i)
    dark_end[i] = i % width < 17 ? 200 : 60200;
  write(folder / "scan.h5", angles, counts, dark_end);
  expect_bad_input(folder, command("--scan scan.h5"),
                   {"17 of 64 columns", "25 % at most; --columns 17:64 goes on without them"});

  // Flat frames that are no numbers say nothing either.
  const auto with_flat = [&](std::size_t end) {
    std::vector<float> flat(rows * width, 60200);
    for (std::size_t i = 0; i < flat.size(); ++i)
      if (i % width < end)
        flat[i] = std::numeric_limits<float>::quiet_NaN();
    Hdf5Writer writer(folder / "scan.h5");
    writer.write<std::uint16_t>("/exchange/data", {std::int64_t(angles.size()), rows, width}, counts);
    writer.write<float>("/exchange/data_white", {1, rows, width}, flat);
    writer.write<std::uint16_t>("/exchange/data_dark", {1, rows, width}, frames(1, 200));
    writer.write<double>("/exchange/theta", {std::int64_t(angles.size())}, angles);
    writer.commit();
  };
  with_flat(5);
  CHECK(seen("").find("5 of 64 columns at the ends of row 1 have no light") != std::string::npos);
  CHECK(disc.error(slices(folder)) < 0.06);
  with_flat(width);
  expect_bad_input(folder, command("--scan scan.h5"),
                   {"64 of 64 columns", "25 % at most; are --flat and --dark right?"});

  // Half of the light is gone, from the middle of the scan on.
  Counts changed = counts;
  for (std::size_t i = changed.size() / 2; i < changed.size(); ++i)
    changed[i] = std::uint16_t(200 + (changed[i] - 200) / 2);
  write(folder / "scan.h5", angles, changed);
  const Outcome outcome = run(folder, command("--scan scan.h5 --centre 30.25"));
  CHECK(outcome.err.find(
            "changes alike from view to view, by a factor of 2: the beam changed, if they see air, and "
            "--air ") != std::string::npos);
  CHECK(outcome.err.find("goes on beyond") == std::string::npos);
  const std::string air = outcome.err.substr(outcome.err.find("--air "));
  const std::string mended = seen(air.substr(0, air.find(" divides")));
  CHECK(mended.find("the beam changed") == std::string::npos);
  CHECK(disc.error(slices(folder)) < 0.06);

  // Pixels that count up to 1 % too much or too little, beside noise.
  std::vector<double> gains;
  for (int i = 0; i < rows * width; ++i)
    gains.push_back(std::uniform_real_distribution(0.99, 1.01)(random));
  for (const bool stripes : {false, true}) {
    Counts spoilt = counts;
    for (std::size_t i = 0; i < spoilt.size(); ++i)
      spoilt[i] =
          std::uint16_t(std::lround(200 + (spoilt[i] - 200) * (stripes ? gains[i % gains.size()] : 1) *
                                              std::normal_distribution(1., 0.01)(random)));
    write(folder / "scan.h5", angles, spoilt);
    CAPTURE(stripes);
    CHECK((seen("").find("which makes rings: --stripes sorting takes them out") != std::string::npos) ==
          stripes);
    CHECK(seen("--stripes sorting").find("rings") == std::string::npos);
  }
}

TEST_CASE("frames and sinograms of two dimensions are those of three", "[hosts]") {
  const TemporaryFolder folder;
  const std::vector<double> angles = even_angles(90);
  const auto count = std::int64_t(angles.size());
  const Counts counts = Disc().counts(angles);
  Counts flat, flat_row, first_row; // of pixels that differ
  for (int i = 0; i < rows * width; ++i)
    flat.push_back(std::uint16_t(50200 + 37 * (i % 101)));
  flat_row.assign(flat.begin(), flat.begin() + width);
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (i / width % rows == 0)
      first_row.push_back(counts[i]);
  struct Part {
    Hdf5Shape shape;
    Counts values;
  };
  const auto slices_of = [&](const Part& data, const Part& white, const Part& dark) {
    Hdf5Writer writer(folder / "scan.h5");
    writer.write<std::uint16_t>("/exchange/data", data.shape, data.values);
    writer.write<std::uint16_t>("/exchange/data_white", white.shape, white.values);
    writer.write<std::uint16_t>("/exchange/data_dark", dark.shape, dark.values);
    writer.write<double>("/exchange/theta", {count}, angles);
    writer.commit();
    const Outcome outcome = run(folder, command("--scan scan.h5 --centre 30.25"));
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return slices(folder);
  };
  const Part data{{count, rows, width}, counts};
  const Counts dark(rows * width, 200);
  const std::vector<float> expected = slices_of(data, {{1, rows, width}, flat}, {{1, rows, width}, dark});
  CHECK(are_same(slices_of(data, {{rows, width}, flat}, {{rows, width}, dark}), expected));
  const std::vector<float> of_row(expected.begin(), expected.begin() + width * width);
  const Counts dark_rows(3 * width, 200), dark_row(width, 200);
  const Part with_rows{{count, 1, width}, first_row}, sinogram{{count, width}, first_row};
  Counts twice = flat_row;
  twice.insert(twice.end(), flat_row.begin(), flat_row.end());
  for (const Part& row : {with_rows, sinogram}) {
    CHECK(relative_error(slices_of(row, {{1, 1, width}, flat_row}, {{1, 1, width}, dark_row}), of_row) <
          1e-5);
    CHECK(relative_error(slices_of(row, {{2, width}, twice}, {{3, width}, dark_rows}), of_row) < 1e-5);
    CHECK(relative_error(slices_of(row, {{width}, flat_row}, {{width}, dark_row}), of_row) < 1e-5);
  }
  Hdf5Writer writer(folder / "scan.h5");
  writer.write<std::uint16_t>("/exchange/data", data.shape, data.values);
  writer.write<std::uint16_t>("/exchange/data_white", {width}, flat_row);
  writer.write<double>("/exchange/theta", {count}, angles);
  writer.commit();
  expect_bad_input(
      folder, command("--scan scan.h5"),
      {"/exchange/data_white", "expected frames [any, rows, width] or one frame [rows, width]", "[64]"});
  expect_bad_input(folder, command("--scan scan.h5 --data /exchange/theta --flat ''"),
                   {"/exchange/theta", "[angles, rows, width] or a sinogram [angles, width]", "[90]"});
}

TEST_CASE("angles that are there twice, a closed flat frame, dead and saturated columns, views left out",
          "[hosts]") {
  const TemporaryFolder folder;
  const Disc disc;
  std::vector<double> angles = even_angles(120);
  Counts counts = disc.counts(angles);
  const auto error_of = [&](const std::string& options, const std::vector<std::string>& words = {}) {
    const Outcome outcome = run(folder, command("--scan scan.h5 --centre 30.25 " + options));
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    for (const auto& word : words)
      CHECK((outcome.err + outcome.out).find(word) != std::string::npos);
    return disc.error(slices(folder));
  };
  Counts flat = frames(5, 60200);
  std::fill_n(flat.begin() + 3 * rows * width, rows * width, std::uint16_t(210)); // the shutter was closed
  write(folder / "scan.h5", angles, counts, flat);
  CHECK(error_of("", {"flat frame 3 is left out"}) < 0.06);
  expect_bad_input(folder, command("--scan scan.h5 --centre 30.25 --strict"), {"flat frame 3"});
  CHECK(error_of("--leave-out-flats 3", {"4 of 5 flat frames", "4 flat and 3 dark frames"}) < 0.06);
  run_well(folder, command("--scan scan.h5 --centre 30.25 --leave-out-flats 3 --strict"));
  expect_bad_input(folder, command("--scan scan.h5 --leave-out-flats 4:6"), {"--leave-out-flats", "0:5"});
  expect_bad_input(folder, command("--scan scan.h5 --leave-out-flats 0:5"), {"leaves no flat frame"});
  CHECK(error_of("--leave-out 7,30:32", {"117 projections"}) < 0.06);
  expect_bad_input(folder, command("--scan scan.h5 --leave-out 7:200"), {"--leave-out", "0:120"});

  const std::vector<std::string> methods{"", "--stripes sorting", "--stripes all"};
  write(folder / "scan.h5", angles, counts);
  std::vector<double> clean;
  for (const std::string& steps : methods)
    clean.push_back(error_of(steps));
  for (std::size_t p = 0; p < angles.size(); ++p)
    for (int row = 0; row < rows; ++row) {
      std::uint16_t* const line = counts.data() + (p * rows + std::size_t(row)) * width;
      line[2] = line[3] = line[4] = 0, line[60] = 65535;
    }
  write(folder / "scan.h5", angles, counts);
  for (std::size_t k = 0; k < methods.size(); ++k) {
    CAPTURE(methods[k], clean[k]);
    CHECK(error_of(methods[k], {"4 dead columns (2, 3, 4, 60)", "120 saturated"}) < clean[k] + 0.02);
  }

  // In the shadow of the object.
  const std::string cgls = "--solver cgls --iterations 15 ";
  write(folder / "scan.h5", angles, disc.counts(angles));
  const double of_clean = error_of(cgls);
  counts = disc.counts(angles);
  for (std::size_t line = 0; line < angles.size() * rows; ++line)
    for (const std::size_t column : {24, 25, 26, 27, 37})
      counts[line * width + column] = 0;
  write(folder / "scan.h5", angles, counts);
  CHECK(error_of(cgls, {"5 dead columns (24, 25, 26, 27, 37)", "iterations weigh them less"}) <
        of_clean + 0.1);

  // The beam was off: counts about those of dark frames.
  counts = disc.counts(angles);
  for (const std::size_t p : {5, 40, 41, 119})
    for (std::size_t i = 0; i < rows * width; ++i)
      counts[p * rows * width + i] = std::uint16_t(195 + i % 11);
  write(folder / "scan.h5", angles, counts);
  const std::vector<std::string> some{"", "--stripes sorting", cgls};
  std::vector<std::vector<float>> of_blank;
  for (const std::string& steps : some) {
    error_of(steps, {"4 of 120 frames have no light", "of projections 5, 40, 41, 119): they are left out",
                     "116 projections"});
    of_blank.push_back(slices(folder));
  }
  const std::string found = run_well(folder, command("--scan scan.h5"));
  CHECK(std::abs(std::stod(found.substr(found.find("centre ") + 7)) - disc.centre) < 0.1);
  expect_bad_input(folder, command("--scan scan.h5 --strict"), {"have no light"});
  write(folder / "scan.h5", angles, disc.counts(angles));
  for (std::size_t k = 0; k < some.size(); ++k) {
    error_of(some[k] + " --leave-out 5,40:42,119");
    CHECK(are_same(slices(folder), of_blank[k]));
  }

  // Angles as radians, in words or by their size; and as counts of an encoder.
  const auto times = [&](double factor) {
    std::vector<double> said;
    for (const double angle : angles)
      said.push_back(factor * angle);
    return said;
  };
  write(folder / "scan.h5", angles, disc.counts(angles), frames(5, 60200), times(pi / 180));
  CHECK(error_of("--angle-unit radians", {"radians"}) < 0.06);
  CHECK(error_of("", {"are taken as radians"}) < 0.06);
  write(folder / "scan.h5", angles, disc.counts(angles), frames(5, 60200), times(1000 / 1.5));
  expect_bad_input(folder, command("--scan scan.h5 --centre 30.25 --strict"), {"counts of an encoder?"});

  std::vector<double> twice = angles;
  for (int p = 20; p < 60; ++p)
    twice.push_back(angles[std::size_t(p)]);
  write(folder / "scan.h5", twice, disc.counts(twice));
  CHECK(error_of("") < 0.06);
  CHECK(error_of("--density-weights") < 0.06);
  CHECK(error_of("--even-weights") > 0.15);
}

TEST_CASE("the axis: small objects beside the middle, whole turns, nothing to find; tilt series") {
  const TemporaryFolder folder;
  for (const double span : {180., 360.})
    for (const Disc& disc : {Disc{.x = 3, .y = 2, .radius = 5, .centre = 14.5}, Disc{}, Disc{.centre = 33}}) {
      const std::vector<double> angles = even_angles(150, span);
      write(folder / "scan.h5", angles, disc.counts(angles));
      const Outcome outcome = run(folder, command("--scan scan.h5"));
      INFO(outcome.err);
      REQUIRE(outcome.code == 0);
      const auto at = outcome.out.find("centre ");
      REQUIRE(at != std::string::npos);
      CHECK(std::abs(std::stod(outcome.out.substr(at + 7)) - disc.centre) < 0.15);
      CHECK(outcome.err.find("by the centre of mass at") != std::string::npos);
      CHECK((outcome.err.find("by opposite views at") != std::string::npos) == (span > 180));
    }
  const std::vector<double> angles = even_angles(40);
  write(folder / "scan.h5", angles, frames(40, 30000));
  expect_bad_input(folder, command("--scan scan.h5"), {"scan.h5", "row 1 has the value 30000 everywhere"});

  // A tilt series, by angles beside it and in an .mdoc
  const Disc disc{.x = 4, .y = -3, .centre = 31.5};
  std::vector<double> tilts;
  std::string text, mdoc;
  for (int k = 0; k < 77; ++k) {
    tilts.push_back(-76 + 2 * k);
    text += " " + shortest(tilts.back()) + "\n";
    mdoc +=
        "[ZValue = " + std::to_string(k) + "]\nTiltAngle = " + shortest(tilts.back()) + "\nDefocus = -3\n\n";
  }
  const Counts counts = disc.counts(tilts);
  std::vector<float> attenuation;
  for (const std::uint16_t count : counts)
    attenuation.push_back(float(-std::log((count - 200) / 60000.)));
  MrcWriter writer(folder / "ts.mrc", MrcWriter::Kind::Stack, width, rows);
  writer.write(attenuation);
  writer.close();
  std::vector<float> by_text;
  for (const char* const name : {"ts.rawtlt", "ts.tlt", "ts.mrc.mdoc"}) {
    write_text(folder / name, fs::path(name).extension() == ".mdoc" ? mdoc : text);
    const Outcome outcome = run(folder, command("--scan ts.mrc"));
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.err.find("by the centre of mass, as the images see all") != std::string::npos);
    CHECK(outcome.err.find("taken as attenuation already") != std::string::npos);
    CHECK(disc.error(slices(folder)) < 0.5); // a wedge is missing
    if (!by_text.empty())
      CHECK(are_same(slices(folder), by_text));
    by_text = slices(folder);
    fs::remove(folder / name);
  }
}

namespace {

/// An ellipse: its value, half axes, middle and turn.
struct Oval {
  double value, a, b, x = 0, y = 0, turn = 0;

  double chord(double s, double theta) const {
    const double half = std::hypot(a * std::cos(theta - turn), b * std::sin(theta - turn)),
                 t = s - x * std::cos(theta) - y * std::sin(theta);
    return 2 * value * a * b / (half * half) * std::sqrt(std::max(0.0, half * half - t * t));
  }
};

/// A phantom that the detector sees `room` pixels of on either side of the axis.
std::vector<Oval> phantom(const std::string& kind, double room, std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<Oval> parts;
  if (kind == "head" || kind == "wide")
    for (const Oval& part :
         {Oval{1, .69, .92}, Oval{-.8, .6624, .874, 0, -.0184}, Oval{-.2, .11, .31, .22, 0, -.314},
          Oval{-.2, .16, .41, -.22, 0, .314}, Oval{.1, .21, .25, 0, .35}, Oval{.1, .046, .046, 0, .1},
          Oval{.1, .023, .046, .06, -.605}, Oval{.3, .08, .05, .35, .45, .52}}) {
      const double r = (kind == "head" ? 0.95 : 1.7) * room; // the wide one goes on beyond the detector
      parts.push_back({part.value, r * part.a, r * part.b, r * part.x, r * part.y, part.turn});
    }
  else if (kind == "small") // beside the axis
    parts = {{1, .2 * room, .16 * room, .55 * room, .3 * room, .4},
             {-.5, .06 * room, .06 * room, .6 * room, .3 * room}};
  else { // foam
    parts = {{1, .85 * room, .85 * room}};
    for (int hole = 0; hole < 40; ++hole) {
      const double r = (.02 + .07 * uniform(random)) * .85 * room, turn = 2 * pi * uniform(random),
                   at = .72 * room * std::sqrt(uniform(random));
      parts.push_back({-.6, r, r, at * std::cos(turn), at * std::sin(turn)});
    }
  }
  return parts;
}

} // namespace

TEST_CASE("the axes of 32 phantoms: one may be wrong, none in silence", "[hosts]") {
  const TemporaryFolder folder;
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  constexpr std::array<int, 4> widths{64, 100, 128, 81};
  constexpr std::array<double, 4> places{0.25, 3.6, -13.98, 16.2}; // of the axis, from the middle
  int wrong = 0, silent = 0, warned = 0;
  for (const std::string kind : {"head", "small", "wide", "foam"})
    for (std::size_t k = 0; k < widths.size(); ++k)
      for (const int turns : {1, 2}) { // halves
        const int n = widths[k], views = int(0.9 * turns * n);
        const double axis = (n - 1) / 2. + places[k], noise = k % 2 == 0 ? 0 : 0.01;
        const std::vector<Oval> parts = phantom(kind, std::min(axis, n - 1 - axis), random);
        std::vector<float> values;
        constexpr int fine = 4; // samples of a pixel
        for (int p = 0; p < views; ++p)
          for (int i = 0; i < n; ++i) {
            double sum = 0;
            for (int j = 0; j < fine; ++j)
              for (const Oval& part : parts)
                sum += part.chord(i + (j + 0.5) / fine - 0.5 - axis, pi * turns * p / views) / fine;
            values.push_back(float(sum));
          }
        const double largest = *std::ranges::max_element(values);
        for (float& value : values)
          value = float(1.5 * (value / largest + noise * normal(random)));
        Hdf5Writer writer(folder / "scan.h5");
        writer.write<float>("/exchange/data", {views, 1, n}, values);
        writer.commit();
        const Outcome outcome = run(folder, tomography + " --scan scan.h5 --no-log --out /dev/null --span " +
                                                std::to_string(180 * turns));
        const auto at = outcome.out.find("centre ");
        const bool found = outcome.code == 0 && at != std::string::npos,
                   said = outcome.code == 2 || outcome.err.find("the axis is ") != std::string::npos ||
                          outcome.err.find("the axis, ") != std::string::npos;
        CAPTURE(kind, n, turns, axis, outcome.err);
        CHECK((found || outcome.code == 2));
        const bool is_wrong = !found || std::abs(std::stod(outcome.out.substr(at + 7)) - axis) > 0.5;
        CHECK_FALSE((is_wrong && !said));
        wrong += is_wrong, silent += is_wrong && !said, warned += said;
      }
  CHECK(wrong <= 1);
  CHECK(silent == 0);
  CHECK(warned <= 10); // of objects that go on beyond the detector: whoever warns always says nothing
}

namespace {

/// The files of cases/tomography, [slices, 200, 200] of which are known.
class Cases {
public:
  explicit Cases(const fs::path& folder) : folder_(folder) {
    const std::string file = read_text(folder / "truth.npy");
    const std::size_t header =
        10 + static_cast<unsigned char>(file[8]) + 256 * static_cast<unsigned char>(file[9]);
    truth_.resize((file.size() - header) / sizeof(double));
    std::memcpy(truth_.data(), file.data() + header, truth_.size() * sizeof(double));
    REQUIRE(truth_.size() == 6 * n * n);
  }

  /// Relative L2 of what a run wrote in 0.9 of the disc, over all slices. With y up, truth has it down.
  /// @param scaled  up to a factor
  double error(const std::vector<float>& slices, bool scaled = false) const {
    REQUIRE(slices.size() == truth_.size());
    double with_truth = 0, own = 0, norm = 0;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const std::size_t slice = i / (n * n), row = i / n % n, column = i % n;
      if (std::hypot(double(row) - n / 2, double(column) - n / 2) >= 0.45 * n)
        continue;
      const double truth = truth_[(slice * n + (n - row) % n) * n + column];
      with_truth += truth * slices[i], own += std::pow(slices[i], 2), norm += truth * truth;
    }
    const double factor = scaled ? with_truth / own : 1;
    return std::sqrt((norm - 2 * factor * with_truth + factor * factor * own) / norm);
  }

  std::string path(const std::string& name) const { return "'" + (folder_ / name).string() + "'"; }

private:
  static constexpr std::size_t n = 200;
  fs::path folder_;
  std::vector<double> truth_;
};

} // namespace

TEST_CASE("scans that went wrong once have their right slices", "[hosts]") {
  const char* const data = std::getenv("BRACEWELL_TEST_DATA");
  const fs::path of_cases = fs::path(data ? data : "") / "cases" / "tomography";
  if (!data || !fs::exists(of_cases / "truth.npy"))
    SKIP("BRACEWELL_TEST_DATA has no cases/tomography");
  const Cases cases(of_cases);
  const TemporaryFolder folder;
  const auto error_of = [&](const std::string& scan, const std::string& options, const std::string& word,
                            bool scaled = false) {
    CAPTURE(scan, options);
    const Outcome outcome = run(folder, tomography + " --out x.h5 --scan " + scan + " " + options);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK((outcome.err + outcome.out).find(word) != std::string::npos);
    return cases.error(slices(folder), scaled);
  };
  struct Case {
    std::string file, options;
    double right;
    std::string word;
  };
  const std::string axis = "--centre 97.25 ";
  for (const Case& one : std::vector<Case>{
           {"th_golden.h5", axis + "--zingers 0.5", 0.127, "they are sorted"},
           {"th_golden.h5", axis + "--stripes all", 0.142, "they are sorted"},
           {"th_golden.h5", axis + "--zingers 0.5 --angles " + cases.path("golden_angles.txt"), 0.127,
            "they are sorted"},
           {"th_golden_unwrapped.h5", axis + "--stripes all", 0.142, "they are sorted"},
           {"nxtomo.nxs", "", 0.13, "from /entry1/tomo_entry/instrument/detector/image_key 300 projections"},
           {"nxtomo.nxs", axis + "--stripes all", 0.142, "10 flat and 10 dark frames, of 2 times"},
           {"deadcols.h5", axis + "--stripes all", 0.175, "5 dead columns (30, 31, 32, 60, 140)"},
           {"deadcols.h5", axis + "--stripes sorting", 0.175, "300 saturated"},
           {"deadcols.h5", axis + "--solver cgls --iterations 12", 0.16, "iterations weigh them less"},
           {"deadcols.h5", axis + "--solver fista-tv --iterations 80 --nonnegative", 0.11, "leave them out"},
           {"deadcols.h5", "", 0.16, "the axis"},
           {"th_dup50.h5", axis, 0.118, "not evenly spread"},
           {"noflat.h5", axis + "--flat " + cases.path("flats_only.h5") + ":/entry/data", 0.12, "10 flat"},
           {"noflat.h5", axis + "--flat " + cases.path("flats.tif") + " --dark " + cases.path("darks.tif"),
            0.12, "10 flat and 10 dark frames"},
           {"tif_all", axis, 0.12,
            "300 projections (scan_*), 10 flat frames (flat_*), 10 dark frames (dark_*)"},
       }) {
    CAPTURE(one.file, one.options);
    CHECK(error_of(cases.path(one.file), one.options, one.word) < one.right);
  }
  // A tilt series of 152 degrees, whose numbers are attenuation in some unit.
  CHECK(error_of(cases.path("ts.mrc"), "", "taken as attenuation already", true) < 0.3);
  const std::string line = run_well(folder, tomography + " --out x.h5 --scan " + cases.path("ctr60.h5"));
  CHECK(std::abs(std::stod(line.substr(line.find("centre ") + 7)) - 60) < 0.2);
  expect_bad_input(folder, tomography + " --out no.h5 --scan " + cases.path("vds_gone.h5"),
                   {"gone.h5", "missing"});
  for (const auto& [from, to] : std::vector<std::array<std::string, 2>>{
           {"vds_gone.h5", "vds_gone.h5"}, {"part_a.h5", "part_a.h5"}, {"part_b.h5", "gone.h5"}})
    fs::copy(of_cases / from, folder / to);
  CHECK(error_of("vds_gone.h5", axis, "10 flat and 10 dark frames") < 0.12);
  CHECK(Hdf5Reader(folder / "x.h5").text_attribute("/exchange/data", "y_axis") == "up");
}

TEST_CASE("slices are those of ASTRA: a blob beside the axis lies where x cos + y sin sees it, y up") {
  const TemporaryFolder folder;
  // As ASTRA and scikit-image have it: x to the right, y up, s = x cos(theta) + y sin(theta) from the axis.
  const double x = 11, y = 7, sigma = 2.5, centre = 32.25;
  const int count = 120;
  std::vector<float> attenuation;
  for (int p = 0; p < count; ++p)
    for (int row = 0; row < rows; ++row)
      for (int i = 0; i < width; ++i) {
        const double theta = pi * p / count, s = i - centre - x * std::cos(theta) - y * std::sin(theta);
        attenuation.push_back(float(std::sqrt(2 * pi) * sigma * std::exp(-0.5 * s * s / (sigma * sigma))));
      }
  Hdf5Writer writer(folder / "scan.h5");
  writer.write<float>("/exchange/data", {count, rows, width}, attenuation);
  writer.commit();
  for (const std::string method : {"fourier", "line", "log-polar", "line --solver cgls"})
    for (const std::string hand : {"up", "down"}) {
      CAPTURE(method, hand);
      run_well(folder, tomography +
                           " --scan scan.h5 --no-log --span 180 --centre 32.25 --out x.h5 --y-axis " + hand +
                           " --method " + method +
                           (method.find("solver") == std::string::npos ? " --filter ramp" : ""));
      const std::vector<float> found = slices(folder);
      double off = 0, norm = 0;
      for (int line = 1; line < width; ++line)
        for (int column = 0; column < width; ++column) {
          const double right = column - width / 2, up = (hand == "up" ? 1 : -1) * (width / 2 - line);
          if (std::hypot(right, up) > width / 2 - 3)
            continue;
          const double truth =
              std::exp(-0.5 * ((right - x) * (right - x) + (up - y) * (up - y)) / (sigma * sigma));
          off += std::pow(found[std::size_t(line * width + column)] - truth, 2), norm += truth * truth;
        }
      CHECK(std::sqrt(off / norm) < 0.05);
      CHECK(Hdf5Reader(folder / "x.h5").text_attribute("/exchange/data", "y_axis") == hand);
    }
  expect_bad_input(folder, tomography + " --scan scan.h5 --span 180 --centre 32 --out no.h5 --y-axis left",
                   {"--y-axis"});
}
