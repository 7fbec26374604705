// SPDX-License-Identifier: MIT
#include "jobs.hpp"

#include "common/hdf5_blocks.hpp"
#include "common/pipeline.hpp"
#include "common/tiff.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <thread>

#include <tiffio.h>

namespace ProgramBench {
namespace {

using namespace Bracewell::Examples;

constexpr std::int64_t batch = 8; ///< rows at a time

/// As bracewell-tomography on a machine with a GPU.
int io_threads() { return std::clamp(int(std::thread::hardware_concurrency()) / 4, 1, 4); }

std::span<const std::byte> bytes_of_all(const std::vector<std::uint16_t>& values) {
  return std::as_bytes(std::span(values));
}

/// Counts behind a disc about (width / 9, width / 20) of a third of the width, which attenuates by e: a projection, whose
/// rows are alike.
void fill_frame(double angle, const Sizes& sizes, std::span<std::uint16_t> counts) {
  const std::int64_t width = sizes.width;
  const auto row = counts.first(static_cast<std::size_t>(width));
  const double radius = double(width) / 3, axis = double(width) / 2,
               centre = axis + double(width) / 9 * std::cos(angle) + double(width) / 20 * std::sin(angle);
  for (std::int64_t x = 0; x < width; ++x) {
    const double s = (double(x) - centre) / radius, chord = s * s < 1 ? std::sqrt(1 - s * s) : 0;
    row[static_cast<std::size_t>(x)] = static_cast<std::uint16_t>(200 + 60000 * std::exp(-chord));
  }
  for (std::size_t at = row.size(); at < counts.size(); at += row.size())
    std::ranges::copy(row, counts.subspan(at).begin());
}

/// uint16 as detectors write it.
void make_scan(const std::filesystem::path& path, const Sizes& sizes) {
  const std::int64_t rows = sizes.rows, angles = sizes.angles, width = sizes.width;
  const auto frame = static_cast<std::size_t>(rows * width);
  constexpr std::int64_t flats = 10;
  Hdf5Writer writer(path);
  writer.create_stored("/exchange/data", {angles, rows, width}, StoredType::UInt16);
  std::vector<double> theta(static_cast<std::size_t>(angles));
  for (std::size_t p = 0; p < theta.size(); ++p)
    theta[p] = 180.0 * double(p) / double(angles);
  writer.write<double>("/exchange/theta", {angles}, theta);
  writer.write<std::uint16_t>("/exchange/data_white", {flats, rows, width},
                              std::vector<std::uint16_t>(std::size_t(flats) * frame, 60200));
  writer.write<std::uint16_t>("/exchange/data_dark", {flats, rows, width},
                              std::vector<std::uint16_t>(std::size_t(flats) * frame, 200));
  const int threads = io_threads();
  std::vector<std::vector<std::uint16_t>> frames(std::size_t(threads) + 1, std::vector<std::uint16_t>(frame));
  const auto slot = [&](std::int64_t item) -> std::vector<std::uint16_t>& {
    return frames[std::size_t(item) % frames.size()];
  };
  Stage make{.name = "make", .threads = threads, .slots = int(frames.size())};
  make.work = [&](std::int64_t p) {
    fill_frame(theta[std::size_t(p)] * std::numbers::pi / 180, sizes, slot(p));
  };
  Stage write{.name = "write", .threads = threads};
  write.work = [&](std::int64_t p) {
    writer.write_stored("/exchange/data", p * rows * width, bytes_of_all(slot(p)));
  };
  run_stages(angles, {make, write});
  writer.commit();
}

void write_tiff(const std::filesystem::path& path, const Sizes& sizes, std::span<std::uint16_t> frame) {
  const TiffHandle file(TIFFOpen(path.c_str(), "w"));
  const auto rows = static_cast<std::uint32_t>(sizes.rows), width = static_cast<std::uint32_t>(sizes.width);
  bool done = file != nullptr;
  for (const auto& [tag, value] :
       {std::pair{TIFFTAG_IMAGEWIDTH, width}, std::pair{TIFFTAG_IMAGELENGTH, rows},
        std::pair{TIFFTAG_ROWSPERSTRIP, rows}, std::pair{TIFFTAG_BITSPERSAMPLE, std::uint32_t(16)},
        std::pair{TIFFTAG_PHOTOMETRIC, std::uint32_t(PHOTOMETRIC_MINISBLACK)}})
    done = done && TIFFSetField(file.get(), static_cast<std::uint32_t>(tag), value) == 1;
  const auto bytes = static_cast<tmsize_t>(frame.size_bytes());
  if (!done || TIFFWriteEncodedStrip(file.get(), 0, frame.data(), bytes) != bytes ||
      TIFFFlush(file.get()) != 1)
    throw std::runtime_error(path.string() + " cannot be written");
}

/// The same scan as detectors write it that make a file of every frame.
void make_tiffs(const std::filesystem::path& folder, const Sizes& sizes) {
  std::filesystem::create_directories(folder);
  const auto frame = static_cast<std::size_t>(sizes.rows * sizes.width);
  for (const auto& [name, value] : {std::pair{"flat.tif", 60200}, std::pair{"dark.tif", 200}}) {
    std::vector<std::uint16_t> counts(frame, static_cast<std::uint16_t>(value));
    write_tiff(folder / name, sizes, counts);
  }
  Stage make{.name = "make", .threads = io_threads()};
  make.work = [&](std::int64_t p) {
    std::vector<std::uint16_t> counts(frame);
    fill_frame(std::numbers::pi * double(p) / double(sizes.angles), sizes, counts);
    write_tiff(folder / ("p_" + std::to_string(p) + ".tif"), sizes, counts);
  };
  run_stages(sizes.angles, {make});
}

} // namespace

void copy_scan(const std::filesystem::path& scan, const std::filesystem::path& slices) {
  const Hdf5Reader reader(scan);
  const Hdf5Blocks blocks(reader, "/exchange/data");
  const std::int64_t angles = blocks.shape()[0], rows = blocks.shape()[1], width = blocks.shape()[2];
  Hdf5Writer writer(slices);
  writer.create_stored("/exchange/data", {rows, width, width}, StoredType::Float32);
  std::vector<std::vector<std::byte>> in(std::size_t(io_threads()) + 1);
  for (auto& slot : in)
    slot.resize(std::size_t(blocks.bytes({angles, batch, width})));
  const std::vector<std::byte> out(std::size_t(batch * width * width) * sizeof(float), std::byte(1));
  const auto count = [&](std::int64_t item) { return std::min(batch, rows - item * batch); };
  Stage read{.name = "read", .threads = io_threads(), .slots = int(in.size())};
  read.work = [&](std::int64_t item) {
    const Hdf5Slab slab{{0, item * batch, 0}, {angles, count(item), width}};
    blocks.read(slab,
                std::span(in[std::size_t(item) % in.size()]).first(std::size_t(blocks.bytes(slab.count))));
  };
  Stage write{.name = "write", .threads = io_threads()};
  write.work = [&](std::int64_t item) {
    writer.write_stored("/exchange/data", item * batch * width * width,
                        std::span(out).first(std::size_t(count(item) * width * width) * sizeof(float)));
  };
  run_stages((rows + batch - 1) / batch, {read, write});
  writer.commit();
}

std::vector<Job> tomography_jobs(const std::filesystem::path& folder, const Sizes& sizes) {
  make_scan(folder / "scan.h5", sizes);
  make_tiffs(folder / "scan", sizes);
  const double items = double(sizes.rows), in = 2 * items * double(sizes.angles * sizes.width),
               slices = items * double(sizes.width * sizes.width);
  const auto job = [&](const std::string& name, const std::string& out, double bytes_per_pixel,
                       const std::vector<std::string>& more, const std::string& scan = "scan.h5") {
    std::vector<std::string> command{BRACEWELL_TOMOGRAPHY, "--scan", scan, "--timings", "--out", out};
    command.insert(command.end(), more.begin(), more.end());
    return Job{name, command, items, in + bytes_per_pixel * slices, "slices", {"slices.h5"}};
  };
  const std::vector<std::string> centre{"--centre", std::to_string(sizes.width / 2)},
      log_polar{"--centre", std::to_string(sizes.width / 2), "--method", "log-polar"};
  const auto with = [](std::vector<std::string> options, const std::vector<std::string>& more) {
    options.insert(options.end(), more.begin(), more.end());
    return options;
  };
  return {{"reading and writing alone",
           {MEASURE_PROGRAMS, "--copy", "scan.h5", "slices.h5"},
           items,
           in + 4 * slices,
           "slices",
           {"slices.h5"}},
          job("tomography, Fourier", "slices.h5", 4, centre),
          job("tomography, log-polar", "slices.h5", 4, log_polar),
          job("tomography, Fourier, float16", "slices.h5", 2, with(centre, {"--output-type", "float16"})),
          job("tomography, Fourier, no output", "/dev/null", 0, centre),
          job("tomography, log-polar, no output", "/dev/null", 0, log_polar),
          job("tomography, Fourier, no output, a TIFF file of every projection", "/dev/null", 0,
              with(centre, {"--flat", "scan/flat.tif", "--dark", "scan/dark.tif", "--span", "180"}),
              "scan/p_*.tif"),
          job("tomography, Fourier, no output, stripes and axis", "/dev/null", 0, {"--stripes", "sorting"})};
}

} // namespace ProgramBench
