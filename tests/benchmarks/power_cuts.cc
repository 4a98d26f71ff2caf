// bench: power_cuts - a power cut, EIO or ENOSPC at every call of a recorded run: what is lost,
// half or does not start
//
// The run is in tests/benchmarks/power_cuts/sessions.cc: service, agents and trials on one disk.
// After each call the power is cut, and everything starts again on each kind of disk that this may
// leave (trials.cc); then each session is played again with each of its calls failing, and after a
// sync that failed the service goes on until the power is cut. `calls` are those of the run,
// `restarts` the disks that were started on; `lost`: something that a client was told is not there;
// `half`: something half is taken for whole; `do_not_start`: the service does not.
//
// bench_power_cuts --calls            lists the calls by session and number
// bench_power_cuts SESSION [CALL [cut | EIO | ENOSPC]]
//                                     tries that alone, and says all that it finds: what a message
//                                     names can be tried again in a moment

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/check.h"
#include "spdlog/spdlog.h"
#include "tests/benchmarks/power_cuts/trials.h"
#include "tests/benchmarks/programs/smoke.h"

namespace espalier::power_cuts {
namespace {

constexpr std::size_t kSomeExamples = 20;
constexpr std::size_t kAllExamples = std::numeric_limits<std::size_t>::max();

// What a worker sends back: fixed, through a pipe.
struct Sums {
  std::int64_t calls = 0;
  std::int64_t tried = 0;  // ways at calls
  std::int64_t restarts = 0;
  std::int64_t lost = 0;
  std::int64_t half = 0;
  std::int64_t do_not_start = 0;
  std::array<std::int64_t, 10> kinds{};
};

struct Share {
  std::int64_t worker = 0;
  std::int64_t workers = 1;
  std::int64_t every = 1;  // call
  // What is to be tried alone; empty and 0: all.
  std::string session{};
  std::int64_t call = 0;
  std::string how{};
};

std::string ScratchFolder() {
  const char* memory = "/dev/shm";
  std::string name =
      std::string(access(memory, W_OK) == 0 ? memory
                                            : std::filesystem::temp_directory_path().c_str()) +
      "/espalier-power-XXXXXX";
  ESPALIER_CHECK(mkdtemp(name.data()) != nullptr, "cannot make " + name);
  return name;
}

// Every so many calls, from a place that differs between sessions.
bool Mine(const Share& share, std::int64_t number) {
  return number % share.every == 0 && number / share.every % share.workers == share.worker;
}

void TryCall(const Share& share, const Recorded& recorded, std::int64_t call, Trials& trials,
             std::int64_t& tried) {
  const auto wanted = [&](const char* how) {
    const bool is = share.how.empty() || share.how == how;
    tried += is ? 1 : 0;
    return is;
  };
  if (wanted("cut")) trials.CutPower(recorded, call);
  if (call == 0) return;
  if (wanted("EIO")) trials.Fail(recorded, {.at = call, .error = EIO});
  if (wanted("ENOSPC")) trials.Fail(recorded, {.at = call, .error = ENOSPC});
}

Sums Work(const Share& share) {
  const std::string folder = ScratchFolder();
  Sums sums;
  {
    Trials trials(folder, share.session.empty() ? kSomeExamples : kAllExamples);
    std::int64_t number = 0;
    for (const Recorded& recorded : trials.Record()) {
      const auto calls = std::ssize(recorded.calls);
      sums.calls += calls;
      for (const FileCall& call : recorded.calls) ++sums.kinds[static_cast<std::size_t>(call.kind)];
      if (!share.session.empty() && share.session != recorded.session->name) continue;
      for (std::int64_t call = 0; call <= calls; ++call) {
        if (share.call != 0 && share.call != call) continue;
        if (Mine(share, number++)) TryCall(share, recorded, call, trials, sums.tried);
      }
    }
    const Tally& tally = trials.tally();
    for (const std::string& example : tally.examples) {
      std::fprintf(stderr, "%s\n", example.c_str());
    }
    sums.restarts = tally.restarts;
    sums.lost = tally.lost;
    sums.half = tally.half;
    sums.do_not_start = tally.do_not_start;
  }
  std::filesystem::remove_all(folder);
  return sums;
}

// For whoever wants to see what the numbers in messages stand for.
int ListCalls() {
  const std::string folder = ScratchFolder();
  {
    Trials trials(folder, 0);
    for (const Recorded& recorded : trials.Record()) {
      for (std::size_t i = 0; i < recorded.calls.size(); ++i) {
        const FileCall& call = recorded.calls[i];
        std::printf("%s %zu %s %d %s %s %ld %zu\n", recorded.session->name, i + 1,
                    NameOf(call.kind), call.node, call.name.c_str(), call.to_name.c_str(),
                    call.offset, call.bytes.size());
      }
    }
  }
  std::filesystem::remove_all(folder);
  return 0;
}

// One process a worker: each has a record of its own.
std::vector<Sums> WorkTogether(Share share) {
  std::vector<std::pair<pid_t, int>> workers;
  for (share.worker = 0; share.worker < share.workers; ++share.worker) {
    std::array<int, 2> ends{};
    ESPALIER_CHECK(pipe(ends.data()) == 0, "pipe");
    const pid_t process = fork();
    if (process == 0) {
      const Sums sums = Work(share);
      _exit(write(ends[1], &sums, sizeof sums) == sizeof sums ? 0 : 1);
    }
    close(ends[1]);
    workers.emplace_back(process, ends[0]);
  }
  std::vector<Sums> all;
  for (const auto& [process, end] : workers) {
    Sums sums;
    ESPALIER_CHECK(read(end, &sums, sizeof sums) == sizeof sums, "a worker has ended early");
    waitpid(process, nullptr, 0);
    close(end);
    all.push_back(sums);
  }
  return all;
}

int Usage() {
  std::fprintf(
      stderr,
      "power_cuts: tries nothing; needs SESSION [CALL [cut|EIO|ENOSPC]], with a session and "
      "a number that --calls lists\n");
  return 2;
}

int Main(int argc, char** argv) {
  spdlog::set_level(spdlog::level::off);
  constexpr std::int64_t kSmokeEvery = 61;
  if (argc > 1 && std::string_view(argv[1]) == "--calls") return ListCalls();
  Share share{.workers = std::max(1u, std::thread::hardware_concurrency())};
  if (benchmarks::IsSmoke(argc, argv)) {
    share.every = kSmokeEvery;
  } else if (argc > 1) {
    share.session = argv[1];
    if (argc > 2 && (!absl::SimpleAtoi(argv[2], &share.call) || share.call < 1)) return Usage();
    if (argc > 3) share.how = argv[3];
  }
  const std::vector<Sums> all = WorkTogether(share);
  Sums sum = all.front();
  for (std::size_t i = 1; i < all.size(); ++i) {
    ESPALIER_CHECK(all[i].kinds == sum.kinds, "two records of one run differ");
    sum.tried += all[i].tried;
    sum.restarts += all[i].restarts;
    sum.lost += all[i].lost;
    sum.half += all[i].half;
    sum.do_not_start += all[i].do_not_start;
  }
  if (sum.tried == 0) return Usage();
  std::printf(
      "{\"calls\": %ld, \"restarts\": %ld, \"lost\": %ld, \"half\": %ld, \"do_not_start\": %ld",
      sum.calls, sum.restarts, sum.lost, sum.half, sum.do_not_start);
  for (std::size_t kind = 0; kind < sum.kinds.size(); ++kind) {
    std::printf(", \"calls_%s\": %ld", NameOf(static_cast<FileCall::Kind>(kind)), sum.kinds[kind]);
  }
  std::printf("}\n");
  return sum.lost + sum.half + sum.do_not_start == 0 ? 0 : 1;
}

}  // namespace
}  // namespace espalier::power_cuts

int main(int argc, char** argv) { return espalier::power_cuts::Main(argc, argv); }
