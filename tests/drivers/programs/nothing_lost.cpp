// SPDX-License-Identifier: MIT
// No input is written to, nothing is left half written: what users lost, tried again.
#include "support.hpp"

#include "common/hdf5.hpp"

#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace DriverTest;

namespace {

const std::string project = BRACEWELL_PROJECT, reconstruct = BRACEWELL_RECONSTRUCT, refine = BRACEWELL_REFINE,
                  tomography = BRACEWELL_TOMOGRAPHY, ptychography = BRACEWELL_PTYCHOGRAPHY;

/// A map, projections of it in images.mrcs, particles.star that names them, and slices of attenuation.
struct Scene {
  TemporaryFolder folder;
  int box = 16;

  explicit Scene(int count = 6) {
    const auto gaussians = random_gaussians(4, box / 5.0, 2);
    const auto particles = random_particles(count, 1);
    write_map(folder / "map.mrc", gaussian_map(gaussians, box), box);
    write_stack(folder / "images.mrcs", gaussian_projections(gaussians, particles, box), box, box);
    write_text(folder / "particles.star", star_text(particles, box, "images.mrcs"));
    write_text(folder / "poses.star", star_text(particles, box));
    Hdf5Writer scan(folder / "scan.h5");
    std::vector<float> values(8 * 2 * 32, 1.0f);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] += i % 32 == 16 ? 1.0f : 0.0f; // scans of one value are refused
    scan.write<float>("/exchange/data", {8, 2, 32}, values);
    scan.commit();
  }

  /// Every file of the folder with its bytes.
  std::vector<std::pair<std::string, Bytes>> contents() const {
    std::vector<std::pair<std::string, Bytes>> all;
    for (const auto& name : files_in(folder))
      if (fs::is_regular_file(folder / name))
        all.emplace_back(name, read_bytes(folder / name));
    return all;
  }
};

void expect_refused(const Scene& scene, const std::string& command) {
  const auto before = scene.contents();
  expect_bad_input(scene.folder, command, {"overwrite"});
  CHECK((scene.contents() == before));
}

/// The command has to end with code 1 and a message that has `word`, and the files stay as they were.
void expect_failure(const Scene& scene, const std::string& command, const std::string& word) {
  const auto before = scene.contents();
  const Outcome outcome = run(scene.folder, command);
  INFO(command << '\n' << outcome.err);
  CHECK(outcome.code == 1);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.find(word) != std::string::npos);
  CHECK((scene.contents() == before));
}

/// Whether files without a name can be made in the folder.
bool has_nameless_files(const TemporaryFolder& folder) {
  const int descriptor = ::open(folder.path().c_str(), O_TMPFILE | O_RDWR, 0600);
  if (descriptor >= 0)
    ::close(descriptor);
  return descriptor >= 0;
}

/// Starts a program, calls `meanwhile` as soon as it says something, which is before it works, sends a signal
/// and returns how it ended, as waitpid has it.
int interrupted(
    const TemporaryFolder& folder, const std::string& command, int signal,
    const std::function<void()>& meanwhile = [] {}) {
  const fs::path said = folder / "stderr.text";
  fs::remove(said);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::signal(signal, SIG_DFL); // whatever the tests were started with
    const int file = ::open(said.c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(file, STDERR_FILENO);
    ::dup2(file, STDOUT_FILENO);
    if (::chdir(folder.path().c_str()) == 0)
      ::execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
    ::_exit(127);
  }
  for (int tries = 0; tries < 6000 && (!fs::exists(said) || fs::file_size(said) == 0); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  meanwhile();
  ::kill(child, signal);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  INFO(read_text(said));
  return status;
}

/// A projection that takes long: more noise than anybody wants.
const std::string long_run = project + " --map map.mrc --star poses.star --out out.mrcs --batch 1 --noise 1";

/// Hidden files whose names end as those of unfinished outputs do.
std::vector<std::string> unfinished(const TemporaryFolder& folder) {
  std::vector<std::string> names = files_in(folder);
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".tmp"); });
  return names;
}

void wait_for(const std::function<bool()>& condition) {
  for (int tries = 0; tries < 2000 && !condition(); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

} // namespace

TEST_CASE("the stack that a STAR file names is not replaced by a map, by projections or by poses",
          "[hosts]") {
  const Scene scene;
  fs::create_hard_link(scene.folder / "images.mrcs",
                       scene.folder / "images.mrc"); // a name that maps may have
  fs::create_hard_link(scene.folder / "images.mrcs", scene.folder / "other.star");
  expect_refused(scene, reconstruct + " --star particles.star --out images.mrc");
  expect_refused(scene, refine + " --map map.mrc --star particles.star --out other.star");
  expect_refused(scene, project + " --map map.mrc --star particles.star --out images.mrcs");
}

TEST_CASE("references and maps are not replaced by derived names", "[hosts]") {
  const Scene scene;
  fs::copy(scene.folder / "map.mrc", scene.folder / "ref_half1.mrc");
  fs::copy(scene.folder / "particles.star", scene.folder / "ref_fsc.txt");
  fs::copy(scene.folder / "particles.star", scene.folder / "images.star");
  expect_refused(scene, reconstruct + " --star particles.star --reference ref_half1.mrc --out ref.mrc");
  expect_refused(scene, reconstruct + " --star ref_fsc.txt --out ref.mrc");
  expect_refused(scene, project + " --map map.mrc --star images.star --out images.mrc");
  expect_refused(scene, reconstruct + " --star particles.star --reference map.mrc --out map.mrc");
  expect_refused(scene, refine + " --map map.mrc --star particles.star --out particles.star");
}

TEST_CASE("an input under another name is not replaced: links, folders", "[hosts]") {
  const Scene scene;
  fs::create_symlink("images.mrcs", scene.folder / "symbolic.mrc");
  fs::create_hard_link(scene.folder / "images.mrcs", scene.folder / "hard.mrc");
  fs::create_directory(scene.folder / "sub");
  for (const char* name : {"symbolic.mrc", "hard.mrc", "sub/../hard.mrc"})
    expect_refused(scene, reconstruct + " --star particles.star --out " + name);
  expect_refused(scene, project + " --map map.mrc --star particles.star --out sub/../images.mrcs");
}

TEST_CASE("scans and measurements are not replaced by slices, objects or pictures", "[hosts]") {
  const Scene scene;
  fs::create_symlink("scan.h5", scene.folder / "link.h5");
  fs::create_hard_link(scene.folder / "scan.h5", scene.folder / "other_middle.png");
  fs::create_hard_link(scene.folder / "scan.h5", scene.folder / "other_probe.png");
  expect_refused(scene, tomography + " --scan scan.h5 --out scan.h5");
  expect_refused(scene, tomography + " --scan scan.h5 --out link.h5");
  expect_refused(scene, tomography + " --scan scan.h5 --out other.h5");
  expect_refused(scene, ptychography + " --data scan.h5 --data-path /exchange/data --out scan.h5");
  expect_refused(scene, ptychography + " --data scan.h5 --data-path /exchange/data --out other.h5");
}

TEST_CASE("a full disk ends every program with a message, code 1 and no part of its outputs") {
  const Scene scene(40);
  const std::string full = "ulimit -f 8; "; // blocks of 512 bytes
  expect_failure(scene, full + project + " --map map.mrc --star poses.star --out out.mrcs",
                 "out.mrcs: cannot be written");
  expect_failure(scene, full + reconstruct + " --star particles.star --no-ctf --out out.mrc",
                 "cannot be written");
  expect_failure(
      scene, full + refine + " --map map.mrc --no-ctf --iterations 1 --star particles.star --out out.star",
      "out.star: cannot be written");
  expect_failure(scene, full + tomography + " --scan scan.h5 --no-log --centre 16 --out out.h5",
                 "cannot be written");
  expect_failure(scene, full + tomography + " --scan scan.h5 --no-log --centre 16 --out out.tif",
                 "cannot be written");
}

TEST_CASE("a read error, a shorter or a vanished input in the middle ends with a message and code 1") {
  const Scene scene;
  const std::string command = reconstruct + " --star particles.star --no-ctf --out out.mrc";
  expect_failure(scene, with_fault("read:images.mrcs") + command, "images.mrcs: cannot be read");
  expect_failure(scene, with_fault("shorter:images.mrcs") + command, "images.mrcs: became shorter");
  expect_failure(scene, with_fault("vanished:images.mrcs") + command, "images.mrcs: cannot be opened");
  const std::string refinement = refine + " --map map.mrc --no-ctf --star particles.star --out out.star";
  expect_failure(scene, with_fault("read:images.mrcs") + refinement, "images.mrcs: cannot be read");
}

TEST_CASE("a disk that is full in the middle ends the stages of a program with one message and code 1") {
  const Scene scene(40);
  const auto fails = [&](int writes, const std::string& command) {
    expect_failure(scene, with_fault("full:" + std::to_string(writes)) + command,
                   "cannot be written: No space left on device");
    const std::string said = read_text(scene.folder / "stderr.text");
    CHECK(said.find("cannot be written") == said.rfind("cannot be written"));
  };
  fails(5, project + " --map map.mrc --star poses.star --batch 3 --out out.mrcs");
  fails(2, reconstruct + " --star particles.star --no-ctf --batch 3 --out out.mrc");
  fails(0, tomography + " --scan scan.h5 --no-log --centre 16 --out out.h5");
}

TEST_CASE("slow disks change nothing") {
  const Scene scene(40);
  const auto both = [&](const std::string& command, const std::string& ending) {
    run_well(scene.folder, command + "plain" + ending);
    run_well(scene.folder, with_fault("slow") + command + "slow" + ending);
    return std::pair(scene.folder / ("slow" + ending), scene.folder / ("plain" + ending));
  };
  const auto images = both(project + " --map map.mrc --star poses.star --batch 3 --out ", ".mrcs");
  CHECK(relative_error(read_stack(images.first).values, read_stack(images.second).values) < 1e-6);
  const auto maps = both(reconstruct + " --star particles.star --no-ctf --batch 3 --out ", ".mrc");
  CHECK(relative_error(read_stack(maps.first).values, read_stack(maps.second).values) < 1e-5);
  const auto slices = both(tomography + " --scan scan.h5 --no-log --centre 16 --out ", ".h5");
  CHECK(relative_error(Hdf5Reader(slices.first).read<float>("/exchange/data"),
                       Hdf5Reader(slices.second).read<float>("/exchange/data")) < 1e-6);
}

TEST_CASE("SIGINT, SIGTERM and SIGHUP end a run with 128 + the signal and leave nothing") {
  const Scene scene(20000);
  const auto before = files_in(scene.folder);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const int status = interrupted(scene.folder, long_run, signal);
    CAPTURE(signal);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 128 + signal);
    CHECK(files_in(scene.folder) == before);
  }
}

TEST_CASE("signals remove unfinished files where files need names, which say whose they are") {
  const Scene scene(20000);
  const auto before = files_in(scene.folder);
  std::vector<std::string> there;
  const auto look = [&] { wait_for([&] { return !(there = unfinished(scene.folder)).empty(); }); };
  const int status = interrupted(scene.folder, "env " + with_fault("nameless") + long_run, SIGTERM, look);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGTERM);
  REQUIRE(there.size() == 1);
  CHECK(there[0].starts_with(".out.mrcs.bracewell-"));
  CHECK(files_in(scene.folder) == before);
}

TEST_CASE("a signal that comes as soon as an unfinished file or folder has its name removes it") {
  const Scene scene;
  const auto ends = [&](const std::string& command) {
    const auto before = scene.contents();
    const Outcome outcome = run(scene.folder, with_fault("made") + command);
    INFO(command << '\n' << outcome.err);
    CHECK(outcome.code == 128 + SIGTERM);
    CHECK((scene.contents() == before));
  };
  ends(project + " --map map.mrc --star poses.star --out out.mrcs");
  ends(tomography + " --scan scan.h5 --no-log --centre 16 --out out.h5");
  ends(tomography + " --scan scan.h5 --no-log --centre 16 --out slices.zarr");
}

TEST_CASE("SIGKILL leaves nothing where the file system can do that") {
  const Scene scene(20000);
  if (!has_nameless_files(scene.folder))
    SKIP("this file system has no O_TMPFILE");
  const auto before = files_in(scene.folder);
  const int status = interrupted(scene.folder, long_run, SIGKILL,
                                 [] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); });
  CHECK(WIFSIGNALED(status));
  CHECK(files_in(scene.folder) == before);
}

TEST_CASE("where files need names outputs are the same") {
  const Scene scene;
  run_well(scene.folder, project + " --map map.mrc --star poses.star --out a.mrcs");
  fs::rename(scene.folder / "a.mrcs", scene.folder / "first.mrcs");
  run_well(scene.folder, with_fault("nameless") + project + " --map map.mrc --star poses.star --out a.mrcs");
  CHECK(read_bytes(scene.folder / "a.mrcs") == read_bytes(scene.folder / "first.mrcs"));
  run_well(scene.folder,
           with_fault("nameless") + tomography + " --scan scan.h5 --no-log --centre 16 --out slices.h5");
  CHECK(Hdf5Reader(scene.folder / "slices.h5").has_dataset("/exchange/data"));
  CHECK(unfinished(scene.folder).empty());
}

TEST_CASE("outputs that are write-protected are replaced with --overwrite alone", "[hosts]") {
  const Scene scene;
  write_text(scene.folder / "out.mrcs", "precious");
  fs::permissions(scene.folder / "out.mrcs", fs::perms::owner_read);
  const std::string command = project + " --map map.mrc --star poses.star --out out.mrcs";
  expect_bad_input(scene.folder, command, {"out.mrcs: is there and write-protected", "--overwrite"});
  CHECK(read_text(scene.folder / "out.mrcs") == "precious");
  run_well(scene.folder, command + " --overwrite");
  CHECK(read_stack(scene.folder / "out.mrcs").count == 6);
}

TEST_CASE("names that nobody typed replace nothing but what a program made", "[hosts]") {
  const Scene scene;
  const std::string before = read_text(scene.folder / "particles.star");
  const std::string command = project + " --map map.mrc --star poses.star --out particles.mrcs";
  expect_bad_input(scene.folder, command,
                   {"particles.star: is there, and bracewell-project did not make it", "--overwrite"});
  CHECK(read_text(scene.folder / "particles.star") == before);
  expect_bad_input(scene.folder, reconstruct + " --demo .", {"particles.star", "did not make it"});
  expect_bad_input(scene.folder, tomography + " --demo .", {"scan.h5", "did not make it"});
  // A run over its own outputs, of every kind.
  for (int time = 0; time < 2; ++time) {
    run_well(scene.folder, project + " --map map.mrc --star poses.star --out again.mrcs");
    run_well(scene.folder, reconstruct + " --star particles.star --no-ctf --out again.mrc");
    for (const char* const ending : {"png", "pdf", "svg"})
      run_well(scene.folder,
               tomography + " --scan scan.h5 --no-log --centre 16 --out again.h5 --pictures " + ending);
    run_well(scene.folder, tomography + " --demo demo --demo-angles 60");
  }
  const Bytes picture = read_bytes(scene.folder / "again_middle.png");
  CHECK(std::string(picture.begin(), picture.end()).find("tEXtSoftware") == 37);
}

TEST_CASE("a second run with an output that is being written is refused, and says whose it is", "[hosts]") {
  const Scene scene(20000);
  const auto before = scene.contents();
  const auto meanwhile = [&] {
    const Outcome second =
        run(scene.folder, project + " --map map.mrc --star poses.star --out out.mrcs 2>said.text");
    CHECK(second.code == 2);
    const std::string said = read_text(scene.folder / "said.text");
    INFO(said);
    CHECK(said.find("out.mrcs: another run (process ") != std::string::npos);
    CHECK(said.find("is writing it: wait for its end") != std::string::npos);
    run_well(scene.folder, "ln -s . here && ( " + project +
                               " --map map.mrc --star poses.star --out here/out.mrcs; [ $? = 2 ] ); rm here");
  };
  const int status = interrupted(scene.folder, long_run, SIGTERM, meanwhile);
  CHECK(WEXITSTATUS(status) == 128 + SIGTERM);
  CHECK((scene.contents() == before));
}

TEST_CASE("the checkpoint of a run that is at work is not called one of an interrupted run") {
  const Scene scene(200);
  const std::string command = refine + " --star particles.star --map map.mrc --rounds 10 --batch 1 "
                                       "--checkpoint-every 0 --out live.star";
  const auto meanwhile = [&] {
    wait_for([&] { return fs::exists(scene.folder / "live_checkpoint.h5"); });
    REQUIRE(fs::exists(scene.folder / "live_checkpoint.h5"));
    for (const std::string option : {"", " --resume"}) {
      const Outcome second = run(scene.folder, command + option + " 2>said.text");
      const std::string said = read_text(scene.folder / "said.text");
      INFO(said);
      CHECK(second.code == 2);
      CHECK(said.find("live.star: another run (process ") != std::string::npos);
      CHECK(said.find("checkpoint") == std::string::npos);
    }
  };
  const int status = interrupted(scene.folder, "env " + with_fault("slow:20") + command, SIGTERM, meanwhile);
  CHECK(WEXITSTATUS(status) == 128 + SIGTERM);
  expect_bad_input(scene.folder, command, {"live_checkpoint.h5", "use --resume"}); // now it is
}

TEST_CASE("outputs that nobody can replace are told before the work", "[hosts]") {
  const Scene scene;
  write_text(scene.folder / "out.mrcs", "old");
  if (std::system(("chattr +i '" + (scene.folder / "out.mrcs").string() + "' 2>/dev/null").c_str()) != 0)
    SKIP("no file can be made immutable here");
  const Outcome outcome = run(scene.folder, project + " --map map.mrc --star poses.star --out out.mrcs");
  CHECK(std::system(("chattr -i '" + (scene.folder / "out.mrcs").string() + "'").c_str()) == 0);
  CHECK(outcome.code == 2);
  CHECK(outcome.err.find("out.mrcs: cannot be replaced: it is immutable") != std::string::npos);
}
