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

#include "common/signals.hpp"

#include <bracewell/impl/execution.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

using namespace IoTest;

namespace {

/// Memory that no small file may ask for is not there.
[[maybe_unused]] const int limited = [] {
  const rlimit two_gigabytes{std::uint64_t(2) << 30, RLIM_INFINITY};
  // Sanitizers take terabytes of addresses, and so does CUDA.
  constexpr bool unlimited = sanitized || !Bracewell::Impl::is_host<Kokkos::DefaultExecutionSpace>;
  return unlimited ? 0 : ::setrlimit(RLIMIT_AS, &two_gigabytes);
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

TEST_CASE("a file that the HDF5 library crashes over ends a program with one sentence and code 2") {
  const TemporaryFolder folder;
  const fs::path file = fs::path(BRACEWELL_FUZZ_FOUND) / "library/heap_at_no_address.h5";
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open((folder / "stderr").c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    Bracewell::Examples::remove_unfinished_on_signals();
    Fuzz::accepts([&] { static_cast<void>(Bracewell::Examples::read_reconstruction(file)); });
    ::_exit(0); // a library that does not crash over it
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  const std::string said = read_text(folder / "stderr");
  if (WEXITSTATUS(status) != 0) {
    CHECK(WEXITSTATUS(status) == 2);
    CHECK(said.ends_with(": " + file.string() + ": is damaged: the library that reads it failed over it\n"));
  }
}
