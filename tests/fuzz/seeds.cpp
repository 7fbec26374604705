// SPDX-License-Identifier: MIT
// All seeds of fuzzing, and all that it found, through the readers: what they may do is to accept or to refuse.
#include "seeds.hpp"
#include "../common/support.hpp"
#include "cxi.hpp"
#include "hdf5.hpp"
#include "mrc.hpp"
#include "object.hpp"
#include "scan.hpp"
#include "star.hpp"
#include "tiff.hpp"

#include <sys/resource.h>

using namespace IoTest;

namespace {

/// Memory that no small file may ask for is not there.
[[maybe_unused]] const int limited = [] {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which take terabytes of addresses
  const rlimit two_gigabytes{std::uint64_t(2) << 30, RLIM_INFINITY};
  return ::setrlimit(RLIMIT_AS, &two_gigabytes);
#else
  return 0;
#endif
}();

/// The seeds, as they are and cut short, and the files that were found.
void run_all(void (*target)(Fuzz::Bytes), const std::string& name, void (*write_seeds)(const fs::path&)) {
  const TemporaryFolder folder;
  write_seeds(folder.path());
  std::size_t seeds = 0;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    const auto bytes = read_bytes(entry.path());
    for (const std::size_t size : {bytes.size(), bytes.size() / 2, bytes.size() - 1})
      target(Fuzz::Bytes(bytes).first(size));
    ++seeds;
  }
  CHECK(seeds > 0);
  const fs::path found = fs::path(BRACEWELL_FUZZ_FOUND) / name;
  if (fs::exists(found))
    for (const auto& entry : fs::directory_iterator(found))
      target(read_bytes(entry.path()));
}

} // namespace

TEST_CASE("MRC files that fuzzing found") { run_all(Fuzz::mrc, "mrc", Fuzz::write_mrc_seeds); }

TEST_CASE("STAR files that fuzzing found") { run_all(Fuzz::star, "star", Fuzz::write_star_seeds); }

TEST_CASE("TIFF files that fuzzing found") { run_all(Fuzz::tiff, "tiff", Fuzz::write_tiff_seeds); }

TEST_CASE("HDF5 files that fuzzing found") { run_all(Fuzz::hdf5, "hdf5", Fuzz::write_hdf5_seeds); }

TEST_CASE("ptychographic measurements that fuzzing found") {
  run_all(Fuzz::cxi, "cxi", Fuzz::write_cxi_seeds);
}

TEST_CASE("ptychographic reconstructions that fuzzing found") {
  run_all(Fuzz::object, "object", Fuzz::write_object_seeds);
}

TEST_CASE("tomographic scans that fuzzing found") { run_all(Fuzz::scan, "scan", Fuzz::write_scan_seeds); }
