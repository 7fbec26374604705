// SPDX-License-Identifier: MIT
#include "processes.hpp"

#include "input_error.hpp"
#include "views.hpp"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <span>
#include <streambuf>
#include <thread>
#include <utility>

namespace Bracewell::Examples {
namespace {

int rank = 0, count = 1, count_here = 1; // of this process, of all, and of those on its host
Communicator<Kokkos::DefaultExecutionSpace>* communicator = nullptr;

/// Frees the communicator, which all do together: where this process fails, the others are elsewhere, and MPI_Abort frees it.
void end_communication() {
  if (count == 1 || std::uncaught_exceptions() == 0)
    delete std::exchange(communicator, nullptr);
}

#if defined(BRACEWELL_ENABLE_MPI)
/// Whether a launcher of Open MPI, MPICH or Slurm started this process: MPI_Init takes a third of a second, which a
/// program that was started by hand does not wait for.
bool started_by_launcher() {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS"})
    if (std::getenv(name) != nullptr)
      return true;
  return false;
}

constexpr int failure = 1; // the tag of messages that say so
#endif

} // namespace

bool is_first_process() { return rank == 0; }

int process_count() { return count; }

int process_count_on_host() { return count_here; }

void require_one_process() {
  if (count > 1)
    throw InputError("expected one process, as this work is not shared out, found " + std::to_string(count));
}

const Communicator<Kokkos::DefaultExecutionSpace>& processes() {
  if (!communicator) {
    using All = Communicator<Kokkos::DefaultExecutionSpace>;
#if defined(BRACEWELL_ENABLE_MPI)
    communicator = count > 1 ? new All(Kokkos::DefaultExecutionSpace(), MPI_COMM_WORLD) : new All();
#else
    communicator = new All();
#endif
    Kokkos::push_finalize_hook(end_communication);
  }
  return *communicator;
}

double sum_over_processes(double value) {
  processes().sum(Space(), host_view(std::span(&value, 1)));
  return value;
}

std::string text_of_first_process(const std::string& text) {
  const Kokkos::DefaultExecutionSpace space;
  const Kokkos::View<std::size_t*, Kokkos::HostSpace> size("size", 1);
  size(0) = text.size();
  processes().broadcast(space, size);
  std::string result = text;
  result.resize(size(0));
  processes().broadcast(space, host_view(result));
  return result;
}

/// Takes what is written to stdout and stderr.
class ProcessGroup::Silence : std::streambuf {
public:
  Silence() : out_(std::cout.rdbuf(this)), error_(std::cerr.rdbuf(this)) {}
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  ~Silence() override {
    std::cout.rdbuf(out_);
    std::cerr.rdbuf(error_);
  }

private:
  int overflow(int character) override { return traits_type::not_eof(character); }

  std::streambuf* out_;
  std::streambuf* error_;
};

ProcessGroup::ProcessGroup() {
#if defined(BRACEWELL_ENABLE_MPI)
  if (!started_by_launcher())
    return;
  int given = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED,
                  &given); // threads that read take parts of the work
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  MPI_Comm here = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  MPI_Comm_size(here, &count_here);
  MPI_Comm_free(&here);
  if (rank > 0)
    silence_ = std::make_unique<Silence>();
#endif
}

ProcessGroup::~ProcessGroup() {
#if defined(BRACEWELL_ENABLE_MPI)
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (initialised)
    MPI_Finalize();
#endif
}

bool ProcessGroup::agree([[maybe_unused]] bool value) const {
#if defined(BRACEWELL_ENABLE_MPI)
  if (count > 1) {
    const int own = value ? 1 : 0;
    int sum = 0;
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return sum == own * count;
  }
#endif
  return true;
}

void ProcessGroup::fail([[maybe_unused]] int code, const std::function<void(std::ostream&)>& say) {
  silence_.reset();
#if defined(BRACEWELL_ENABLE_MPI)
  using namespace std::chrono;
  if (count > 1) {
    // What is wrong with options or inputs is found by all, each a little earlier or later. One hears of lower ranks that
    // failed, too, and of all that speak: it takes a while until they have ended the others.
    const auto tell = [](int first, int end) {
      for (int other = first; other < end; ++other) {
        MPI_Request request; // is never waited for: the others may be at work
        MPI_Isend(nullptr, 0, MPI_BYTE, other, failure, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
      }
    };
    tell(rank + 1, count);
    int heard = 0;
    for (const auto end = steady_clock::now() + milliseconds(300); !heard && steady_clock::now() < end;
         std::this_thread::sleep_for(milliseconds(1)))
      MPI_Iprobe(MPI_ANY_SOURCE, failure, MPI_COMM_WORLD, &heard, MPI_STATUS_IGNORE);
    if (heard) { // the other one's message is the one; it ends this process
      std::this_thread::sleep_for(seconds(10));
    } else {
      tell(0, rank);
      say(std::cerr);
    }
    MPI_Abort(MPI_COMM_WORLD, code); // the others get SIGTERM, and remove what they began
  }
#endif
  say(std::cerr);
}

} // namespace Bracewell::Examples
