// SPDX-License-Identifier: MIT
#include "common/hdf5.hpp"
#include "common/tiff.hpp"
#include "pictures.hpp"
#include "support.hpp"

#include <hdf5.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>

using namespace DriverTest;

namespace {

const std::string tomography = BRACEWELL_TOMOGRAPHY;

/// A disc of attenuation 1 / radius about (x, y), in closed form, whose radius shrinks from row to row.
struct Disc {
  int width = 96, rows = 3, angles = 240;
  double x = 7, y = -4, radius = 25, centre = 48, span = 180;

  double radius_of(int row) const { return radius * (1 - 0.1 * row / rows); }

  /// Integral of the chord 2 sqrt(r^2 - s^2): the detector's pixels see means.
  static double area(double s, double r) {
    const double t = std::clamp(s / r, -1.0, 1.0);
    return r * r * (t * std::sqrt(1 - t * t) + std::asin(t));
  }

  std::vector<float> projections() const {
    std::vector<float> values;
    for (int p = 0; p < angles; ++p)
      for (int row = 0; row < rows; ++row)
        for (int i = 0; i < width; ++i) {
          const double theta = p * span / angles * std::numbers::pi / 180, r = radius_of(row);
          const double s = i - centre - x * std::cos(theta) - y * std::sin(theta);
          values.push_back(static_cast<float>((area(s + 0.5, r) - area(s - 0.5, r)) / radius));
        }
    return values;
  }

  /// Largest deviation from the truth 3 pixels and more away from the edges.
  double error(const std::vector<float>& slices) const {
    double worst = 0;
    for (std::size_t k = 0; k < slices.size(); ++k) {
      const int pixel = static_cast<int>(k) % (width * width), row = static_cast<int>(k) / (width * width);
      const int column = pixel % width - width / 2, line = width / 2 - pixel / width; // up
      const double distance = std::hypot(column - x, line - y) - radius_of(row);
      if (std::hypot(column, line) < width / 2 - 2 && std::abs(distance) > 3)
        worst = std::max(worst, std::abs(slices[k] * radius - (distance < 0 ? 1 : 0)));
    }
    return worst;
  }

  std::vector<double> theta() const {
    std::vector<double> degrees;
    for (int p = 0; p < angles; ++p)
      degrees.push_back(p * span / angles);
    return degrees;
  }
};

/// Attenuation, or raw counts with flat and dark frames.
void write_scan(const fs::path& path, const Disc& disc, bool raw = false) {
  Hdf5Writer writer(path);
  std::vector<float> values = disc.projections();
  if (raw) {
    std::vector<std::uint16_t> counts, flat, dark;
    for (const float value : values)
      counts.push_back(static_cast<std::uint16_t>(std::lround(200 + 60000 * std::exp(-value))));
    for (int i = 0; i < 2 * disc.rows * disc.width; ++i)
      flat.push_back(60200), dark.push_back(200);
    counts[5] = 0; // a pixel that failed
    writer.write<std::uint16_t>("/exchange/data", {disc.angles, disc.rows, disc.width}, counts);
    writer.write<std::uint16_t>("/exchange/data_white", {2, disc.rows, disc.width}, flat);
    writer.write<std::uint16_t>("/exchange/data_dark", {2, disc.rows, disc.width}, dark);
  } else {
    writer.write<float>("/exchange/data", {disc.angles, disc.rows, disc.width}, values);
  }
  writer.write<double>("/exchange/theta", {disc.angles}, disc.theta());
  writer.commit();
}

std::vector<float> slices(const fs::path& path) { return Hdf5Reader(path).read<float>("/exchange/data"); }

double number_after(const std::string& text, const std::string& word) {
  const auto at = text.find(word);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + word.size()));
}

/// Largest resident set of a command, bytes.
double peak_memory(const TemporaryFolder& folder, const std::string& command) {
  if (IoTest::sanitized)
    SKIP("a sanitizer takes memory of its own");
  const pid_t child = ::fork();
  if (child == 0) {
    if (::chdir(folder.path().c_str()) == 0)
      ::execl("/bin/sh", "sh", "-c", ("exec " + command + " >/dev/null 2>&1").c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  struct rusage usage {};
  REQUIRE(::wait4(child, &status, 0, &usage) == child);
  REQUIRE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  return usage.ru_maxrss * 1024.0;
}

} // namespace

TEST_CASE("a disc comes back with its attenuation by every method") {
  for (const Disc& disc : {Disc{}, Disc{.width = 97, .centre = 50.3}}) {
    const TemporaryFolder folder;
    write_scan(folder / "scan.h5", disc);
    for (const char* method : {"fourier", "log-polar", "line"}) {
      CAPTURE(method, disc.width);
      const std::string line = run_well(
          folder, tomography + " --scan scan.h5 --no-log --out slices.h5 --filter hann --method " + method);
      CHECK(std::ranges::count(line, '\n') == 1);
      CHECK(line.find("3 slices of") != std::string::npos);
      CHECK(std::abs(number_after(line, "centre ") - disc.centre) < 0.2);
      CHECK(disc.error(slices(folder / "slices.h5")) < 0.04);
    }
    CHECK(Hdf5Reader(folder / "slices.h5").attribute("/exchange/data", "centre").value_or(0) > 40);
    CHECK(fs::file_size(folder / "slices_middle.png") > 0);
  }
}

TEST_CASE("raw counts, flat and dark frames; TIFF has what HDF5 has") {
  const TemporaryFolder folder;
  const Disc disc;
  write_scan(folder / "scan.h5", disc, true);
  run_well(folder, tomography + " --scan scan.h5 --out slices.h5 --filter hann");
  CHECK(disc.error(slices(folder / "slices.h5")) < 0.05);
  run_well(folder, tomography + " --scan scan.h5 --out slices.tif --filter hann --rows 0:1");
  const TiffReader tiff(folder / "slices.tif");
  REQUIRE((tiff.width() == 96 && tiff.height() == 96));
  std::vector<float> page(96 * 96), first = slices(folder / "slices.h5");
  tiff.read_rows(0, 0, 96, page);
  first.resize(page.size());
  // The axis is searched for in another row.
  CHECK(relative_error(page, first) < 0.02);
}

TEST_CASE("compressed and big-endian projections give the slices that plain ones give", "[hosts]") {
  const TemporaryFolder folder;
  const Disc disc{.rows = 20, .angles = 100};
  write_scan(folder / "scan.h5", disc, true);
  const std::string run_it = tomography + " --centre 48 --scan ";
  run_well(folder, run_it + "scan.h5 --out expected.h5");
  const auto counts = Hdf5Reader(folder / "scan.h5").read<std::uint16_t>("/exchange/data");
  fs::copy(folder / "scan.h5", folder / "packed.h5");
  for (const hsize_t chunk_rows : {3, 20}) { // parts of projections, and whole ones
    const hid_t file = H5Fopen((folder / "packed.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    H5Ldelete(file, "/exchange/data", H5P_DEFAULT);
    const hsize_t shape[] = {100, 20, 96}, chunk[] = {7, chunk_rows, 96};
    const hid_t space = H5Screate_simple(3, shape, nullptr), properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(properties, 3, chunk), H5Pset_shuffle(properties), H5Pset_deflate(properties, 1);
    const hid_t dataset =
        H5Dcreate2(file, "/exchange/data", H5T_STD_U16BE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    REQUIRE(H5Dwrite(dataset, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, counts.data()) >= 0);
    H5Dclose(dataset), H5Pclose(properties), H5Sclose(space), H5Fclose(file);
    run_well(folder, run_it + "packed.h5 --out slices.h5");
    CHECK(slices(folder / "slices.h5") == slices(folder / "expected.h5"));
    run_well(folder, run_it + "packed.h5 --out slices.h5 --rows 11:17");
    std::vector<float> some = slices(folder / "expected.h5");
    some.erase(some.begin() + 17 * 96 * 96, some.end());
    some.erase(some.begin(), some.begin() + 11 * 96 * 96);
    CHECK(relative_error(slices(folder / "slices.h5"), some) < 1e-4); // --tolerance: pairs are others
  }
}

TEST_CASE("--output-type float16 keeps three digits, as HDF5 and as TIFF; --timings says where time went") {
  const TemporaryFolder folder;
  write_scan(folder / "scan.h5", Disc{}, true);
  const std::string run_it = tomography + " --scan scan.h5 --centre 48 --out ";
  run_well(folder, run_it + "expected.h5");
  const Outcome outcome = run(folder, run_it + "halves.h5 --output-type float16 --timings");
  REQUIRE(outcome.code == 0);
  for (const char* word : {"timings: ", "; reconstruct ", "read ", "compute ", "write ", "waiting for"})
    CHECK(outcome.err.find(word) != std::string::npos);
  run_well(folder, run_it + "halves.tif --output-type float16");
  const auto expected = slices(folder / "expected.h5"), halves = slices(folder / "halves.h5");
  CHECK(relative_error(halves, expected) < 0x1p-11);
  CHECK(fs::file_size(folder / "halves.h5") < fs::file_size(folder / "expected.h5") * 6 / 10);
  std::vector<float> pages(expected.size());
  const TiffReader tiff(folder / "halves.tif");
  for (std::size_t page = 0; page < 3; ++page)
    tiff.read_rows(std::int64_t(page), 0, 96, std::span(pages).subspan(page * 96 * 96, 96 * 96));
  CHECK(pages == halves);
  // Values that it does not hold.
  expect_bad_input(folder, run_it + "x.h5 --no-log --flat '' --dark '' --output-type float16 --filter none",
                   {"--output-type float16", "65504"});
  CHECK(run(folder, run_it + "/dev/null").code == 0); // for measuring
  CHECK_FALSE(fs::exists("/dev/null_middle.png"));
}

TEST_CASE("a sinogram as TIFF, over a whole turn with both ends", "[hosts]") {
  const TemporaryFolder folder;
  Disc disc{.rows = 1, .angles = 481, .centre = 45.5};
  disc.span = 360.0 * disc.angles / (disc.angles - 1);
  TiffWriter writer(folder / "sinogram.tif", disc.width, disc.angles, 1);
  writer.write(disc.projections());
  writer.commit();
  run_well(folder,
           tomography + " --scan sinogram.tif --no-log --span 360 --both-ends --filter hann --out slices.h5");
  CHECK(disc.error(slices(folder / "slices.h5")) < 0.04);
  // Log-polar reconstruction takes half a turn only.
  expect_bad_input(folder,
                   tomography + " --scan sinogram.tif --no-log --span 360 --method log-polar --out x.h5",
                   {"sinogram.tif: angle 1 is", "--method"});
}

TEST_CASE("TIFF: a series of files and all pages are the scan that HDF5 has", "[hosts]") {
  const TemporaryFolder folder;
  const Disc disc;
  write_scan(folder / "scan.h5", disc, true);
  run_well(folder, tomography + " --scan scan.h5 --out expected.h5 --centre 48");
  const Hdf5Reader scan(folder / "scan.h5");
  const auto write = [&](const std::string& dataset, const std::string& name, bool pages) {
    const auto values = scan.read<float>(dataset);
    const auto pixels = static_cast<std::size_t>(disc.rows * disc.width);
    std::optional<TiffWriter> file;
    for (std::size_t f = 0; f < values.size() / pixels; ++f) {
      if (f == 0 || !pages)
        file.emplace(folder / (name + (pages ? "" : std::to_string(f)) + ".tif"), disc.width, disc.rows,
                     pages ? 1000 : 1);
      file->write(std::span(values).subspan(f * pixels, pixels));
      if (!pages || f + 1 == values.size() / pixels)
        file->commit();
    }
  };
  for (const char* name : {"p", "flats"})
    fs::create_directory(folder / name);
  write("/exchange/data", "p/view_", false);
  write("/exchange/data", "all", true);
  write("/exchange/data_white", "flats/f", false);
  write("/exchange/data_dark", "dark", true);
  for (const char* name : {"p", "'p/view_*.tif'", "all.tif"}) {
    CAPTURE(name);
    run_well(folder, tomography + " --scan " + name +
                         " --flat flats --dark dark.tif --span 180 --out slices.h5 --centre 48");
    CHECK(slices(folder / "slices.h5") == slices(folder / "expected.h5"));
  }
  expect_bad_input(folder, tomography + " --scan all.tif --flat nothing --out x.h5", {"nothing"});
  expect_bad_input(folder, tomography + " --scan all.tif --flat slices_middle.png --out x.h5",
                   {"slices_middle.png", "not a TIFF"});
}

TEST_CASE("a scan in parts is the scan at once, and memory stays within the limit") {
  const TemporaryFolder folder;
  const Disc disc{.width = 512, .rows = 64, .angles = 60, .radius = 70, .centre = 256};
  write_scan(folder / "scan.h5", disc);
  for (const std::string method : {"fourier", "line"}) {
    CAPTURE(method);
    // So near the precision the grid is the same for any number of slices at a time.
    const std::string command = tomography +
                                " --scan scan.h5 --no-log --centre 256 --tolerance 1e-6 --method " + method +
                                " --memory-limit ";
    const Outcome refused = run(folder, command + "1 --out parts.h5");
    const double least = number_after(refused.err, " needs "), limit = least + 15;
    const double free = peak_memory(folder, command + "4000 --out all.h5");
    const double limited = peak_memory(folder, command + std::to_string(limit) + " --out parts.h5");
    INFO(refused.err << free << " " << limited);
    CHECK(limited < limit * 1e6);
    CHECK(free > limit * 1e6); // the limit made a difference
    CHECK(relative_error(slices(folder / "parts.h5"), slices(folder / "all.h5")) < 1e-6);
  }
  expect_bad_input(folder, tomography + " --scan scan.h5 --no-log --out x.h5 --centre 256 --memory-limit 10",
                   {"--memory-limit", "needs"});
}

namespace {

/// What a run says about its input, which --strict refuses.
std::string warning(const TemporaryFolder& folder, const std::string& command) {
  const Outcome outcome = run(folder, command);
  INFO(command << '\n' << outcome.err);
  REQUIRE(outcome.code == 0);
  const auto at = outcome.err.find("warning: ");
  if (at == std::string::npos)
    return {};
  expect_bad_input(folder, command + " --strict", {"--strict"});
  return outcome.err.substr(at);
}

} // namespace

TEST_CASE(
    "tomography: assumed angles, transmission without flats, radians, flats below darks, a detector beyond "
    "the frame: said",
    "[hosts]") {
  const TemporaryFolder folder;
  const Disc disc{.rows = 1};
  const auto says = [](const std::string& text, const std::vector<std::string>& words) {
    INFO(text);
    for (const auto& word : words)
      CHECK(text.find(word) != std::string::npos);
  };
  const auto write = [&](const Disc& of, const auto& more) {
    Hdf5Writer writer(folder / "scan.h5");
    writer.write<float>("/exchange/data", {of.angles, of.rows, of.width}, of.projections());
    more(writer);
    writer.commit();
  };
  const std::string command = tomography + " --scan scan.h5 --out slices.h5 --filter hann ";
  const auto nothing = [](Hdf5Writer&) {};
  write(disc, nothing);
  says(warning(folder, command + "--no-log --centre 48"),
       {"scan.h5", "no angles", "240", "180 degrees", "--span"});
  CHECK(disc.error(slices(folder / "slices.h5")) < 0.04);
  CHECK(warning(folder, command + "--no-log --centre 48 --span 180").empty());
  says(warning(folder, command + "--centre 48 --span 180"),
       {"scan.h5", "transmission", "attenuation", "--log takes"});

  const auto radians = [&](const std::string& unit, double of_radian = 1) {
    return [&disc, unit, of_radian](Hdf5Writer& writer) {
      std::vector<double> theta = disc.theta();
      for (double& angle : theta)
        angle *= of_radian * std::numbers::pi / 180;
      writer.write<double>("/exchange/theta", {disc.angles}, theta);
      if (!unit.empty())
        writer.write_attribute("/exchange/theta", "units", unit);
    };
  };
  write(disc, radians(""));
  says(warning(folder, command + "--no-log --centre 48"), {"scan.h5", "radians", "--angle-unit"});
  CHECK(disc.error(slices(folder / "slices.h5")) < 0.04);
  CHECK(warning(folder, command + "--no-log --centre 48 --angle-unit radians").empty());
  CHECK(disc.error(slices(folder / "slices.h5")) < 0.04);
  for (const auto& [unit, of_radian] : {std::pair("radian", 1.0),
                                        {"mrad", 1000.0},
                                        {"grad", 200 / std::numbers::pi},
                                        {"gon", 200 / std::numbers::pi}}) {
    write(disc, radians(unit, of_radian));
    CHECK(warning(folder, command + "--no-log --centre 48").empty());
    CHECK(disc.error(slices(folder / "slices.h5")) < 0.04);
  }

  write_scan(folder / "raw.h5", disc, true);
  CHECK(warning(folder, tomography + " --scan raw.h5 --out slices.h5 --centre 48").empty());
  expect_bad_input(folder,
                   tomography + " --scan raw.h5 --out swapped.h5 --centre 48 --flat /exchange/data_dark "
                                "--dark /exchange/data_white",
                   {"raw.h5", "flat frames are not above dark ones in 96 of 96 pixels", "--flat and --dark"});

  const Disc wide{.rows = 1, .x = 20, .radius = 40};
  write(wide, nothing);
  says(warning(folder, command + "--no-log --centre 48 --span 180"),
       {"scan.h5", "beyond the detector", "--air"});

  // The outputs say so, too.
  const std::string record = Hdf5Reader(folder / "slices.h5").text_attribute("/", "provenance");
  says(record,
       {"--no-log --centre 48 --span 180", "assumed: scan.h5: the object goes on beyond the detector"});
}

TEST_CASE("slices as TIFF files and as Zarr are those of HDF5; a script repeats the run", "[hosts]") {
  const TemporaryFolder folder;
  write_scan(folder / "scan.h5", Disc{}, true);
  const std::string command = tomography + " --scan scan.h5 --centre 50 --rows 0:3 --out ";
  run_well(folder, command + "slices.h5");
  const std::vector<float> expected = slices(folder / "slices.h5");
  const std::size_t pixels = expected.size() / 3, bytes = pixels * sizeof(float);
  const auto slice = [&](std::size_t k) {
    return std::string(reinterpret_cast<const char*>(expected.data() + k * pixels), bytes);
  };

  run_well(folder, command + "series/slice_%03d.tif");
  for (std::size_t k = 0; k < 3; ++k) {
    const TiffReader reader(folder / ("series/slice_00" + std::to_string(k) + ".tif"));
    std::vector<float> values(pixels);
    reader.read_rows(0, 0, reader.height(), values);
    CHECK(std::memcmp(values.data(), slice(k).data(), bytes) == 0);
  }
  CHECK(TiffReader(folder / "series").pages() == 3); // what else is there is no TIFF
  CHECK(fs::exists(folder / "series/slice_middle.png"));
  run_well(folder, command + "series/slice_%03d.tif"); // again
  // Of another run there may be more.
  expect_bad_input(folder, tomography + " --scan scan.h5 --centre 50 --rows 0:2 --out series/slice_%03d.tif",
                   {"slice_002.tif", "another run"});
  expect_bad_input(folder, command + "series/slice_%x.tif", {"slice_%05d.tif"});
  expect_bad_input(folder,
                   tomography + " --scan series --no-log --centre 20 --span 180 --out series/slice_%03d.tif",
                   {"this run would overwrite", "slice_000.tif"});

  for (int again = 0; again < 2; ++again) {
    run_well(folder, command + "slices.zarr");
    for (std::size_t k = 0; k < 3; ++k)
      CHECK(read_text(folder / ("slices.zarr/0/" + std::to_string(k) + "/0/0")) == slice(k));
  }
  CHECK(read_text(folder / "slices.zarr/.zgroup") == "{\"zarr_format\": 2}\n");
  const std::string n = std::to_string(std::lround(std::sqrt(double(pixels)))),
                    shape = read_text(folder / "slices.zarr/0/.zarray"),
                    text = read_text(folder / "slices.zarr/.zattrs");
  for (const std::string& words :
       {"\"shape\": [3, " + n + ", " + n + "]", "\"chunks\": [1, " + n + ", " + n + "]",
        std::string("\"dtype\": \"<f4\""), std::string("\"order\": \"C\"")})
    CHECK(shape.find(words) != std::string::npos);
  for (const char* words :
       {"\"version\": \"0.4\"", "\"path\": \"0\"", "\"y_axis\": \"up\"", "\"centre\": 50"})
    CHECK(text.find(words) != std::string::npos);
  fs::create_directory(folder / "other.zarr");
  expect_bad_input(folder, command + "other.zarr", {"other.zarr", "has no .zgroup"});

  // Nothing of a run that fails.
  const auto names = [&] {
    std::vector<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
      if (entry.path().extension() != ".text")
        all.push_back(entry.path().string());
    std::ranges::sort(all);
    return all;
  };
  const auto before = names();
  for (const std::string out : {"new.zarr", "new/slice_%d.tif", "slices.zarr"}) {
    CAPTURE(out);
    CHECK(run(folder, command + out + " --output-type float16 --hardening 1e9").code == 2);
    CHECK(names() == before);
  }
  for (const auto& [out, picture] :
       {std::pair("new.zarr", "new_first.png"), std::pair("new/slice_%d.tif", "slice_first.png")}) {
    CAPTURE(out);
    if (!IoTest::sanitized)
      CHECK(run(folder, ended_after(picture, 1) + command + out + " --solver sirt --iterations 3").code ==
            128 + SIGTERM);
    CHECK(names() == before);
  }

  const std::string script = read_text(folder / "slices_run.sh");
  CHECK(script.find("--centre 50 --rows 0:3 --out slices.zarr\n") != std::string::npos);
  fs::remove_all(folder / "slices.zarr");
  const std::string programs = fs::path(tomography).parent_path().string();
  run_well(folder, "PATH='" + programs + "':$PATH sh slices_run.sh");
  CHECK(read_text(folder / "slices.zarr/0/1/0/0") == slice(1));
}

TEST_CASE("while a run goes on there is a picture of the middle slice", "[.turn-4]") {
  const TemporaryFolder folder;
  write_scan(folder / "scan.h5", Disc{}, true);
  run_well(
      folder,
      "mkdir seen; ( " + tomography +
          " --scan scan.h5 --centre 50 --solver sirt --method line --iterations 20 --out x.h5 && touch "
          "done ) & "
          "while kill -0 $! 2>/dev/null; do if [ -e x_first.png ] && [ ! -e seen/x_first.png ]; then "
          "cp x_first.png seen; [ -e x.h5 ] || touch seen/before_slices; fi; sleep 0.02; done; [ -e done ]");
  CHECK(fs::file_size(folder / "seen/x_first.png") > 0);
  CHECK(fs::exists(folder / "seen/before_slices"));
  CHECK_FALSE(fs::exists(folder / "x_first.png"));
  CHECK(fs::file_size(folder / "x_middle.png") > 0);
}

TEST_CASE("--air with --no-log subtracts") {
  const TemporaryFolder folder;
  const Disc disc{.rows = 1};
  {
    Hdf5Writer writer(folder / "scan.h5");
    std::vector<float> values = disc.projections();
    for (std::size_t i = 0; i < values.size(); ++i) // the beam drifts from view to view
      values[i] += 0.3f * std::sin(float(i / 96)) + 0.5f;
    writer.write<float>("/exchange/data", {disc.angles, 1, disc.width}, values);
    writer.commit();
  }
  run_well(folder,
           tomography + " --scan scan.h5 --no-log --air 0:10 --span 180 --filter hann --out slices.h5");
  CHECK(disc.error(slices(folder / "slices.h5")) < 0.04);
}

TEST_CASE("a first angle for files without angles", "[hosts]") {
  const TemporaryFolder folder;
  const Disc disc{.rows = 1};
  Disc turned = disc; // by 30 degrees, about the axis
  const double c = std::cos(std::numbers::pi / 6), s = std::sin(std::numbers::pi / 6);
  turned.x = c * disc.x - s * disc.y, turned.y = s * disc.x + c * disc.y;
  TiffWriter writer(folder / "sinogram.tif", disc.width, disc.angles, 1);
  writer.write(disc.projections());
  writer.commit();
  const std::string command =
      tomography + " --scan sinogram.tif --no-log --centre 48 --span 180 --out slices.h5 ";
  run_well(folder, command + "--filter hann --first-angle 30");
  CHECK(turned.error(slices(folder / "slices.h5")) < 0.04);
  CHECK(disc.error(slices(folder / "slices.h5")) > 0.5);
  write_scan(folder / "scan.h5", disc);
  expect_bad_input(folder, tomography + " --scan scan.h5 --out x.h5 --first-angle 3",
                   {"scan.h5", "--first-angle", "--span"});
}

TEST_CASE("all options are checked before the axis is searched", "[hosts]") {
  const TemporaryFolder folder;
  write_scan(folder / "scan.h5", Disc{});
  for (const std::string options :
       {"--stripes sorting --stripe-window 4", "--method log-polar --density-weights",
        "--method log-polar --span 360", "--memory-limit 3", "--air 5:990"}) {
    const Outcome outcome = run(folder, tomography + " --scan scan.h5 --no-log --out x.h5 " + options);
    INFO(options << '\n' << outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.err.find("note: ") ==
          std::string::npos); // notes come before the search, which comes before work
  }
}

TEST_CASE("--try-centres A:B:STEP gives one slice at many centres as one picture") {
  const TemporaryFolder folder;
  write_scan(folder / "scan.h5", Disc{});
  const std::string command = tomography + " --scan scan.h5 --no-log --try-centres ";
  for (const std::string method : {"fourier", "line", "log-polar"})
    CHECK(run_well(folder, command + "46:50:1 --out centres.png --method " + method)
              .find("slice 1 at 5 centres") != std::string::npos);
  run_well(folder, command + "47:48:0.25 --out centres.pdf --rows 0:1");
  CHECK(read_text(folder / "centres.pdf").starts_with("%PDF-"));
  CHECK(files_in(folder) == std::vector<std::string>{"centres.pdf", "centres.png", "scan.h5"});
  for (const char* range : {"46", "46:50", "50:46:1", "46:50:0", "46:50:-1", "46:50:1x", "0:90:0.1"})
    expect_bad_input(folder, command + range + " --out x.png", {"--try-centres", "FIRST:LAST:STEP"});
  expect_bad_input(folder, command + "46:50:1 --out x.h5", {"x.h5", ".png"});
}

TEST_CASE("what a beam and a detector did is undone: drift, hardening, zingers, small pixels") {
  const TemporaryFolder folder;
  const Disc disc; // in pixels of 2 x 2
  const Disc fine{.width = 192, .rows = 6, .x = 14, .y = -8, .radius = 50, .centre = 96.5};
  std::vector<std::uint16_t> counts, flat, dark;
  for (const float value : fine.projections()) {
    const auto k = counts.size();
    const double beam = 20000 * (1 + 0.5 * double(k / (192 * 6)) / 240),
                 harder = (std::sqrt(1 + 0.4 * value) - 1) / 0.2; // value = harder + 0.1 harder^2
    counts.push_back(static_cast<std::uint16_t>(std::lround(200 + beam * std::exp(-harder))));
    if (k % 5003 < 2)
      counts.back() = 60000;
  }
  for (int i = 0; i < 4 * fine.rows * fine.width; ++i)
    flat.push_back(i < 2 * fine.rows * fine.width ? 20200 : 30200), dark.push_back(200);
  Hdf5Writer writer(folder / "scan.h5");
  writer.write<std::uint16_t>("/exchange/data", {fine.angles, fine.rows, fine.width}, counts);
  writer.write<std::uint16_t>("/exchange/data_white", {4, fine.rows, fine.width}, flat);
  writer.write<std::uint16_t>("/exchange/data_dark", {4, fine.rows, fine.width}, dark);
  writer.write<double>("/exchange/theta", {fine.angles}, fine.theta());
  writer.commit();
  const std::vector<std::string> steps{"--flat-at 0,240", "--hardening 1,0.1", "--zingers 0.2"};
  const auto error = [&](std::size_t without, const std::string& more = "--centre 48") {
    std::string command = tomography + " --scan scan.h5 --out slices.h5 --filter hann --binning 2 " + more;
    for (std::size_t i = 0; i < steps.size(); ++i)
      command += i == without ? "" : " " + steps[i];
    run_well(folder, command);
    return disc.error(slices(folder / "slices.h5"));
  };
  CHECK(error(3) < 0.01);
  for (const std::size_t without : {0, 1, 2})
    CHECK(error(without) > 0.02);
  // A part of the detector, and slices that are wider than it.
  CHECK(error(3, "--centre 40 --columns 8:92 --size 96") < 0.01);
  CHECK(error(3, "--centre 40 --columns 8:92 --size 96 --method line --memory-limit 400") < 0.01);
}

TEST_CASE("half acquisition: a disc that is wider than the detector comes back whole") {
  const TemporaryFolder folder;
  const Disc disc;
  write_scan(folder / "scan.h5", {.width = 60, .angles = 480, .centre = 50, .span = 360});
  const std::string command = tomography + " --scan scan.h5 --no-log --filter hann --half-acquisition ";
  const Outcome outcome = run(folder, command + "--out slices.h5 --size 96");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err.find("19 columns are seen twice") != std::string::npos);
  CHECK(std::abs(number_after(outcome.out, "centre ") - 50) < 0.1);
  CHECK(disc.error(slices(folder / "slices.h5")) < 0.05);
  CHECK(run_well(folder, command + "--out all.h5 --centre 50 --method line").find("101 x 101") !=
        std::string::npos);
  run_well(folder, command + "--try-centres 49:51:1 --out centres.png");
}

TEST_CASE("laminography: a volume comes of all rows at once") {
  // A Gaussian, of whose spectrum a double cone is missing: 1 - cos(tilt) of all, and so much of its middle.
  const TemporaryFolder folder;
  const int width = 32, rows = 28, angles = 60;
  const double tilt = 30 * std::numbers::pi / 180, sigma = 2, x = 4, y = -3, z = 1;
  std::vector<float> values;
  std::vector<double> theta;
  for (int p = 0; p < angles; ++p) {
    theta.push_back(360. * p / angles);
    const double c = std::cos(theta.back() * std::numbers::pi / 180),
                 s = std::sin(theta.back() * std::numbers::pi / 180);
    for (int row = 0; row < rows; ++row)
      for (int i = 0; i < width; ++i) {
        const double u = i - 16.5 - x * c - y * s,
                     v = row - rows / 2 - z * std::cos(tilt) - (y * c - x * s) * std::sin(tilt);
        values.push_back(float(std::sqrt(2 * std::numbers::pi) * sigma *
                               std::exp(-0.5 * (u * u + v * v) / (sigma * sigma))));
      }
  }
  Hdf5Writer writer(folder / "scan.h5");
  writer.write<float>("/exchange/data", {angles, rows, width}, values);
  writer.write<double>("/exchange/theta", {angles}, theta);
  writer.commit();
  const std::string command = tomography + " --scan scan.h5 --no-log --centre 16.5 ";
  const auto voxel = [&](const std::vector<float>& volume, int depth) {
    return volume[std::size_t(((depth / 2 + int(z)) * width + width / 2 - int(y)) * width + width / 2 +
                              int(x))];
  };
  run_well(folder, command + "--laminography 30 --filter ramp --depth 6 --out direct.h5");
  CHECK(std::abs(voxel(slices(folder / "direct.h5"), 6) - std::cos(tilt)) < 0.01);
  CHECK(Hdf5Reader(folder / "direct.h5").attribute("/exchange/data", "laminography") == 30);
  CHECK(fs::file_size(folder / "direct_middle.png") > 0);
  for (const std::string method : {"fourier", "line"}) {
    const std::string line = run_well(folder, command +
                                                  "--laminography 30 --out solved.h5 --output-type float16 "
                                                  "--solver cgls --iterations 10 --method " +
                                                  method);
    CHECK(line.find("28 slices of 32 x 32") != std::string::npos);
    CHECK(number_after(line, "residual ") < 0.03); // of 5
  }
  // An axis that is not tilted.
  run_well(folder, command + "--laminography 0 --tolerance 1e-6 --out tilted.h5");
  run_well(folder, command + "--tolerance 1e-6 --out upright.h5");
  const std::vector<float> tilted = slices(folder / "tilted.h5"), upright = slices(folder / "upright.h5");
  REQUIRE(tilted.size() == upright.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < tilted.size(); ++i) {
    difference += std::pow(tilted[i] - upright[i], 2);
    norm += std::pow(upright[i], 2);
  }
  CHECK(std::sqrt(difference / norm) < 1e-5);
  for (const auto& [options, message] : {std::pair{"--method line", "takes a --solver"},
                                         {"--method log-polar", "knows no tilt"},
                                         {"--half-acquisition", "do not go"},
                                         {"--memory-limit 30", "6 slices"}}) {
    const Outcome outcome = run(folder, command + "--laminography 30 --depth 6 --out no.h5 " + options);
    CHECK(outcome.code == 2);
    CHECK(outcome.err.find(message) != std::string::npos);
  }
  CHECK(run(folder, tomography + " --scan scan.h5 --no-log --laminography 30 --out no.h5")
            .err.find("--centre") != std::string::npos);
}

TEST_CASE("a detector that is turned about the beam; --try-tilts") {
  const TemporaryFolder folder;
  const Disc disc{.rows = 24};
  const double roll = 2 * std::numbers::pi / 180, middle_row = 11.5, middle = 47.5;
  std::vector<float> values;
  for (int p = 0; p < disc.angles; ++p)
    for (int y = 0; y < disc.rows; ++y)
      for (int x = 0; x < disc.width; ++x) { // the upright detector's pixel, and its attenuation
        const double row = middle_row + std::cos(roll) * (y - middle_row) + std::sin(roll) * (x - middle),
                     i = middle - std::sin(roll) * (y - middle_row) + std::cos(roll) * (x - middle);
        const double theta = p * std::numbers::pi / disc.angles, r = disc.radius * (1 - 0.02 * row);
        const double s = i - disc.centre - disc.x * std::cos(theta) - disc.y * std::sin(theta);
        values.push_back(static_cast<float>((Disc::area(s + 0.5, r) - Disc::area(s - 0.5, r)) / disc.radius));
      }
  Hdf5Writer writer(folder / "scan.h5");
  writer.write<float>("/exchange/data", {disc.angles, disc.rows, disc.width}, values);
  writer.commit();
  const std::string command =
      tomography + " --scan scan.h5 --no-log --span 180 --centre 48 --filter hann --rows 10:14 ";
  const auto error = [&](const std::string& options) {
    run_well(folder, command + "--out slices.h5 " + options);
    double worst = 0;
    for (int row = 10; row < 14; ++row) {
      const auto all = slices(folder / "slices.h5");
      const Disc one{.rows = 1, .radius = disc.radius * (1 - 0.02 * row)};
      std::vector<float> slice(all.begin() + (row - 10) * 96 * 96, all.begin() + (row - 9) * 96 * 96);
      for (float& value : slice)
        value *= float(disc.radius / one.radius);
      worst = std::max(worst, one.error(slice));
    }
    return worst;
  };
  CHECK(error("--roll 2") < 0.01);
  CHECK(error("") > 0.05);
  CHECK(run_well(folder, command + "--try-tilts 1:3:1 --out tilts.png").find("at 3 rolls") !=
        std::string::npos);
}

TEST_CASE("phase retrieval brings back what waves have spread") {
  const TemporaryFolder folder;
  const Disc disc{.rows = 1};
  write_scan(folder / "clean.h5", disc);
  const double a = std::numbers::pi * 50 * 1.23984198e-9 / 20 * 4e-3 / 1e-12; // the options below, in metres
  std::vector<float> seen = disc.projections();
  for (int p = 0; p < disc.angles; ++p) {
    const auto row = std::span(seen).subspan(std::size_t(p * disc.width), std::size_t(disc.width));
    std::vector<double> waves(row.begin(), row.end());
    for (double& value : waves)
      value = std::exp(-value);
    for (std::size_t i = 1; i + 1 < waves.size(); ++i)
      row[i] = float(waves[i] - a / (4 * std::numbers::pi * std::numbers::pi) *
                                    (waves[i - 1] + waves[i + 1] - 2 * waves[i]));
    row[0] = row[row.size() - 1] = 1; // air
  }
  Hdf5Writer writer(folder / "scan.h5");
  writer.write<float>("/exchange/data", {disc.angles, 1, disc.width}, seen);
  writer.commit();
  const std::string command = tomography + " --span 180 --centre 48 --filter hann --out slices.h5 --scan ";
  run_well(folder, command + "clean.h5 --no-log");
  const auto expected = slices(folder / "slices.h5");
  const std::string beam = " --energy 20 --distance 4 --pixel-size 1 --delta-beta 50";
  const auto error = [&](const std::string& method) {
    const Outcome outcome = run(folder, command + "scan.h5 --phase " + method + beam);
    REQUIRE(outcome.code == 0);
    if (method != "none")
      CHECK(outcome.err.find("the filter of --phase reaches 8 pixels, more than the 1 rows") !=
            std::string::npos);
    return relative_error(slices(folder / "slices.h5"), expected);
  };
  CHECK(error("generalised-paganin") < 0.01);
  CHECK(error("paganin") < 0.1);
  CHECK(error("none") > 0.1);
  CHECK(error("weak-object") < 1); // the object is strong
}

TEST_CASE("--demo simulates a scan, finds its axis and reconstructs it") {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& options) {
    const std::string line = run_well(folder, tomography + " --demo results " + options);
    CHECK(std::abs(number_after(line, ", centre ") - 131.4) < 0.3);
    return number_after(line, "relative error ");
  };
  const double with_stripes = error("--stripes none --method line");
  CHECK(error("--method line") < 0.75 * with_stripes); // rings are gone
  CHECK(error("--method line --stripes all") < 0.9 * with_stripes);
  CHECK(error("") < 0.1);
  const Region slice{8, 30, 256, 256}, beside{24, 30, 240, 256};
  const PictureFile shown(page_picture("docs/programs/tomography.png"), slice);
  CHECK(difference(shown, PictureFile(folder / "results/slices_middle.png", slice)) < 3);
  CHECK(difference(shown, PictureFile(folder / "results/slices_middle.png", beside)) > 10);
  CHECK(error("--method log-polar") < 0.1);
  run_well(folder, tomography + " --demo results --centre 131.4 --pictures svg");
  for (const char* name : {"scan.h5", "slices.h5", "slices_middle.png", "slices_middle.svg"})
    CHECK(fs::file_size(folder / "results" / name) > 0);
}

TEST_CASE("--help of bracewell-tomography names every option", "[hosts]") {
  const TemporaryFolder folder;
  const std::string help = run_well(folder, tomography + " --help");
  for (const char* option :
       {"--scan",       "--out",         "--data",         "--flat",     "--dark",    "--angles",
        "--span",       "--both-ends",   "--no-log",       "--air",      "--stripes", "--dead",
        "--centre",     "--method",      "--tolerance",    "--filter",   "--padding", "--density-weights",
        "--corners",    "--rows",        "--memory-limit", "--demo",     "--version", "--first-angle",
        "--angle-unit", "--try-centres", "--strict",       "--pictures", "--solver",  "--align"})
    CHECK(help.find(option) != std::string::npos);
}

TEST_CASE("bad usage and bad scans end with one message, code 2 and no output", "[hosts]") {
  const TemporaryFolder folder;
  const Disc disc{.width = 32, .rows = 2, .angles = 20, .radius = 8, .centre = 16};
  write_scan(folder / "scan.h5", disc);
  const auto bad = [&](const std::string& arguments, const std::vector<std::string>& words) {
    expect_bad_input(folder, tomography + " " + arguments, words);
  };
  const std::string good = "--scan scan.h5 --no-log --out x.h5 ";
  bad("", {"--scan", "--demo"});
  bad("--scan scan.h5", {"--out"});
  bad(good + "--demo x", {"--demo"});
  bad("--scan none.h5 --out x.h5", {"none.h5"});
  bad("--scan scan.h5 --out x.png", {"x.png", ".h5, .tif or .zarr"});
  bad("--scan scan.h5 --out scan.h5", {"overwrite"});
  bad("--scan scan.h5 --out nowhere/x.h5", {"nowhere"});
  bad(good + "--method magic", {"--method"});
  bad(good + "--filter magic", {"--filter"});
  bad(good + "--centre middle", {"--centre middle"});
  bad(good + "--centre 1e9", {": --centre: expected a pixel within four widths"});
  bad("--scan scan.h5 --no-log --out x.h5 --strict --centre -5", {"--centre -5", "outside", "--strict"});
  bad(good + "--rows 1", {"--rows 1", "BEGIN:END"});
  bad(good + "--rows 1:3", {"scan.h5", "0:2", "1:3"});
  bad(good + "--air 5:99", {"scan.h5", "0:32"});
  bad(good + "--both-ends", {"--span"});
  bad(good + "--tolerance 3", {"--tolerance"});
  bad(good + "--stripes sorting --stripe-window 4", {"--stripe-window", "odd"});
  bad(good + "--data /exchange/none", {"scan.h5", "/exchange/none"});
  bad(good + "--data /exchange", {"group"});
  bad(good + "--data /exchange/theta", {"[angles, rows, width]", "[20]"});
  bad(good + "--centre 16 --method log-polar --span 170",
      {"scan.h5: angle 1 is 8.5 degrees", "even steps of 9 over 180", "--method fourier"});
  bad(good + "--pictures gif", {"--pictures", "png|pdf|svg", "gif"});
  bad(good + "--phase paganin --distance 10 --pixel-size 1 --delta-beta 9", {"--phase takes a --energy"});
  bad(good + "--binning 3", {"--binning"});
  bad(good + "--binning 4", {"scan.h5", "--binning of at most 2"});
  bad(good + "--columns 5:99", {"scan.h5", "--columns within 0:32"});
  bad(good + "--flat-at 5,2", {"--flat-at", "in order"});
  bad(good + "--flat-at 0,10",
      {"scan.h5", "flat frames at each of the 2 times", "found flat frames of 0 times"});
  bad(good + "--half-acquisition", {"scan.h5", "--half-acquisition takes 350 degrees"});
  bad(good + "--half-acquisition --span 360 --centre 20 --size 99", {"--size 99", "at most 41"});
  bad(good + "--half-acquisition --span 360 --centre 40", {"--centre", "0 to 31"});
  bad(good + "--half-acquisition --span 360 --centre 20 --density-weights", {"--density-weights"});
  bad(good + "--zingers 0", {"--zingers"});
  bad(good + "--roll 50", {"--roll"});
  bad("--scan scan.h5 --no-log --out x.png --try-tilts 0:1:1", {"--try-tilts", "--centre"});

  write_text(folder / "text.h5", "no scan");
  bad("--scan text.h5 --out x.h5", {"text.h5", "not an HDF5 file"});
  write_text(folder / "text.tif", "no scan at all");
  bad("--scan text.tif --out x.h5", {"text.tif", "not a TIFF file"});
  const Bytes bytes = read_bytes(folder / "scan.h5");
  write_bytes(folder / "cut.h5", std::span(bytes).first(bytes.size() / 2));
  bad("--scan cut.h5 --no-log --out x.h5", {"cut.h5"});

  const auto with = [&](const auto& change, const std::vector<std::string>& words) {
    {
      Hdf5Writer writer(folder / "bad.h5");
      writer.write<float>("/exchange/data", {20, 2, 32}, disc.projections());
      change(writer);
      writer.commit();
    }
    bad("--scan bad.h5 --no-log --out x.h5", words);
  };
  with([](Hdf5Writer& w) { w.write<double>("/exchange/theta", {3}, std::vector<double>(3)); },
       {"bad.h5", "/exchange/theta", "expected 20 angles", "found 3"});
  with([](Hdf5Writer& w) { w.write<double>("/exchange/theta", {20}, std::vector<double>(20, NAN)); },
       {"bad.h5", "not finite"});
  with(
      [](Hdf5Writer& w) {
        w.write<float>("/exchange/data_white", {1, 3, 32}, std::vector<float>(96));
      },
      {"bad.h5", "/exchange/data_white", "[1, 3, 32]"});
  with(
      [](Hdf5Writer& w) {
        w.write<float>("/exchange/data_dark", {1, 2, 32}, std::vector<float>(64));
      },
      {"bad.h5", "no /exchange/data_white"});
  with([](Hdf5Writer& w) { w.write<double>("/exchange/theta", {20}, std::vector<double>(20, 1.0)); },
       {"bad.h5", "all 20 angles are 1"});
  with(
      [](Hdf5Writer& w) {
        std::vector<double> angles(20);
        std::iota(angles.begin(), angles.end(), 0.0);
        w.write<double>("/exchange/theta", {20}, angles);
      },
      {"bad.h5", "170 degrees", "--centre"});
}

namespace {

/// A command of docs/programs/tomography.md; the centre that it finds.
double centre_of_data(const TemporaryFolder& folder, const std::string& name, const std::string& options) {
  return number_after(run_well(folder, tomography + " --scan " + shared_data("tomography/" + name).string() +
                                           " --out slices.h5 " + options),
                      ", centre ");
}

} // namespace

TEST_CASE("the axes of real scans are found") {
  shared_data("tomography/tooth.h5");
  const TemporaryFolder folder;
  CHECK(std::abs(centre_of_data(folder, "tooth.h5", "") - 295.75) < 0.5);
  CHECK(std::abs(centre_of_data(folder, "savu_24737_raw.h5", "--rows 65:100") - 86.0) < 0.5);
  CHECK(std::abs(centre_of_data(folder, "sinogram_360_neutron_image.tif",
                                "--span 360 --both-ends --air 0:30 --stripes sorting") -
                 245.0) < 1);
  // Small bright grains are points at 629 to 630.
  CHECK(std::abs(centre_of_data(folder, "dendrites_sinogram.h5", "--no-log --stripes sorting") - 629.5) < 1);
}
