// SPDX-License-Identifier: MIT
#include "jobs.hpp"

#include "common/hdf5.hpp"

#include <cmath>
#include <numeric>

#include <hdf5.h>

namespace ProgramBench {
namespace {

using namespace Bracewell::Examples;

/// Counts of a disc of light about [0, 0] with speckles of its own for every pattern: what a detector gives, but of no
/// object.
void fill_pattern(std::int64_t number, std::int64_t n, std::uint16_t* counts) {
  auto state = static_cast<std::uint32_t>(number * 2654435761u + 1);
  for (std::int64_t y = 0; y < n; ++y)
    for (std::int64_t x = 0; x < n; ++x) {
      const double dy = double(y < n / 2 ? y : y - n), dx = double(x < n / 2 ? x : x - n),
                   mean = 2000 * std::exp(-(dx * dx + dy * dy) / double(n * n) * 60);
      state = state * 1664525u + 1013904223u;
      counts[y * n + x] = static_cast<std::uint16_t>(mean * (double(state >> 8) / (1 << 24) + 0.5));
    }
}

/// Plain HDF5: patterns [count, n, n] as uint16, one by one deflated where asked for; positions on a square grid.
void make_patterns(const std::filesystem::path& path, const Sizes& sizes, bool deflated) {
  const std::int64_t count = sizes.patterns, n = sizes.detector;
  Hdf5Writer writer(path);
  const auto edge = static_cast<std::int64_t>(std::ceil(std::sqrt(double(count))));
  std::vector<double> positions;
  for (std::int64_t k = 0; k < count; ++k)
    for (const std::int64_t index : {k / edge, k % edge})
      positions.push_back(double(index) * double(n) / 16);
  writer.write<double>("/scan", {count, 2}, positions);
  writer.write_scalar("/wavelength", 1.5e-10);
  std::vector<std::uint16_t> pattern(static_cast<std::size_t>(n * n));
  if (!deflated) {
    writer.create_stored("/data", {count, n, n}, StoredType::UInt16);
    for (std::int64_t k = 0; k < count; ++k) {
      fill_pattern(k, n, pattern.data());
      writer.write_stored("/data", k * n * n, std::as_bytes(std::span(pattern)));
    }
    return writer.commit();
  }
  writer.commit();
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT),
              properties = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t shape[] = {hsize_t(count), hsize_t(n), hsize_t(n)}, chunk[] = {1, hsize_t(n), hsize_t(n)};
  const hid_t space = H5Screate_simple(3, shape, nullptr), one = H5Screate_simple(3, chunk, nullptr);
  H5Pset_chunk(properties, 3, chunk), H5Pset_shuffle(properties), H5Pset_deflate(properties, 1);
  const hid_t data = H5Dcreate2(file, "/data", H5T_STD_U16LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
  for (std::int64_t k = 0; k < count; ++k) {
    const hsize_t offset[] = {hsize_t(k), 0, 0};
    H5Sselect_hyperslab(space, H5S_SELECT_SET, offset, nullptr, chunk, nullptr);
    fill_pattern(k, n, pattern.data());
    H5Dwrite(data, H5T_NATIVE_UINT16, one, space, H5P_DEFAULT, pattern.data());
  }
  H5Dclose(data), H5Pclose(properties), H5Sclose(one), H5Sclose(space), H5Fclose(file);
}

} // namespace

std::vector<Job> ptychography_jobs(const std::filesystem::path& folder, const Sizes& sizes) {
  std::vector<Job> jobs;
  for (const bool deflated : {false, true}) {
    const std::string name = deflated ? "patterns_deflated.h5" : "patterns.h5";
    make_patterns(folder / name, sizes, deflated);
    jobs.push_back(
        {std::string("ptychography, one pass") + (deflated ? ", deflated" : ""),
         {BRACEWELL_PTYCHOGRAPHY, "--data", name, "--out", "object.h5", "--passes", "1", "--timings"},
         double(sizes.patterns),
         2 * double(sizes.patterns * sizes.detector * sizes.detector),
         "patterns"});
  }
  return jobs;
}

} // namespace ProgramBench
