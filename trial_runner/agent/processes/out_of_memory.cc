#include "trial_runner/agent/processes/out_of_memory.h"

#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace espalier {

OutOfMemory::OutOfMemory(ControlGroups groups)
    : groups_(std::move(groups)), kills_(groups_.out_of_memory_kills()) {}

std::string OutOfMemory::WhyKilled() {
  const std::optional<std::int64_t> kills = groups_.out_of_memory_kills();
  const bool more = kills && *kills > kills_.value_or(0);
  kills_ = kills;
  if (!more) return "";
  constexpr std::int64_t kMegabyte = std::int64_t{1} << 20;
  const std::optional<std::int64_t> limit = groups_.memory_bytes();
  return absl::StrCat("was killed: out of memory",
                      limit ? absl::StrCat(" (limit ", *limit / kMegabyte, " MB)") : "");
}

void KillFirst(pid_t process, bool first) {
  std::string usual = "0";
  std::ifstream("/proc/self/oom_score_adj") >> usual;
  std::ofstream(absl::StrCat("/proc/", process, "/oom_score_adj")) << (first ? "1000" : usual);
}

}  // namespace espalier
