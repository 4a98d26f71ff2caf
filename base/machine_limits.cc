#include "base/machine_limits.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace espalier {

namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "max" and -1 say that there is none, and so does what no machine has.
std::optional<std::int64_t> Limit(const std::string& text) {
  constexpr std::int64_t kNone = std::int64_t{1} << 60;
  std::int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number <= 0 || number >= kNone) return std::nullopt;
  return number;
}

template <typename Number>
void Lower(std::optional<Number>& least, std::optional<Number> limit) {
  if (limit && (!least || *limit < *least)) least = limit;
}

// "150000 100000": microseconds of time, and in which it is given.
std::optional<double> Share(const std::string& quota, const std::string& period) {
  const auto time = Limit(quota);
  const auto in = Limit(period);
  if (!time || !in) return std::nullopt;
  return static_cast<double>(*time) / static_cast<double>(*in);
}

bool Lists(const std::string& words, const std::string& word) {
  const std::vector<std::string> all = absl::StrSplit(words, ',');
  return std::ranges::find(all, word) != all.end();
}

}  // namespace

ControlGroups::ControlGroups(std::string root) : root_(std::move(root)) {}

std::optional<ControlGroups::Hierarchy> ControlGroups::Find(const std::string& controller) const {
  // Where both are there, a controller is in one of the two.
  auto found = FindIn(controller, /*unified=*/false);
  return found ? found : FindIn(controller, /*unified=*/true);
}

std::optional<ControlGroups::Hierarchy> ControlGroups::FindIn(const std::string& controller,
                                                              bool unified) const {
  std::optional<std::string> group;
  std::ifstream groups(absl::StrCat(root_, "/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {  // "4:cpu,cpuacct:/job"
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (unified ? parts[0] == "0" && parts[1].empty() : Lists(parts[1], controller)) {
      group = parts[2];
    }
  }
  if (!group) return std::nullopt;
  std::ifstream mounts(absl::StrCat(root_, "/proc/self/mountinfo"));
  for (std::string line; std::getline(mounts, line);) {
    // "35 31 0:32 /of /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
    const std::vector<std::string> sides = absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    if (sides.size() != 2) continue;
    const std::vector<std::string> place = absl::StrSplit(sides[0], ' ');
    const std::vector<std::string> kind = absl::StrSplit(sides[1], ' ');
    if (place.size() < 5 || kind.size() < 3) continue;
    if (unified ? kind[0] != "cgroup2" : kind[0] != "cgroup" || !Lists(kind[2], controller)) {
      continue;
    }
    // In a container the mount shows a part of the tree, and perhaps not the part that is named.
    std::string below = *group;
    if (const std::string& top = place[3]; top != "/") {
      const bool inside = below == top || below.starts_with(absl::StrCat(top, "/"));
      below = inside ? below.substr(top.size()) : "";
    }
    if (below == "/" || below.find("..") != std::string::npos) below.clear();
    Hierarchy found{unified, {}};
    const std::string mount = absl::StrCat(root_, place[4]);
    for (;;) {
      found.folders.push_back(absl::StrCat(mount, below));
      if (below.empty()) return found;
      below.erase(below.rfind('/'));
    }
  }
  return std::nullopt;
}

std::optional<double> ControlGroups::cpu_quota() const {
  std::optional<double> least;
  const auto found = Find("cpu");
  if (!found) return least;
  for (const std::string& folder : found->folders) {
    if (found->unified) {
      const std::vector<std::string> words = absl::StrSplit(FirstLine(folder + "/cpu.max"), ' ');
      if (words.size() == 2) Lower(least, Share(words[0], words[1]));
    } else {
      Lower(least, Share(FirstLine(folder + "/cpu.cfs_quota_us"),
                         FirstLine(folder + "/cpu.cfs_period_us")));
    }
  }
  return least;
}

std::optional<std::int64_t> ControlGroups::memory_bytes() const {
  std::optional<std::int64_t> least;
  const auto found = Find("memory");
  if (!found) return least;
  for (const std::string& folder : found->folders) {
    for (const char* const file : {"memory.max", "memory.high", "memory.limit_in_bytes"}) {
      Lower(least, Limit(FirstLine(absl::StrCat(folder, "/", file))));
    }
  }
  return least;
}

std::optional<std::int64_t> ControlGroups::out_of_memory_kills() const {
  const auto found = Find("memory");
  if (!found) return std::nullopt;
  const char* const name = found->unified ? "/memory.events" : "/memory.oom_control";
  std::ifstream file(found->folders.front() + name);
  std::string word;
  for (std::int64_t number = 0; file >> word >> number;) {
    if (word == "oom_kill") return number;
  }
  return std::nullopt;
}

int UsableCores() {
  cpu_set_t allowed;
  int cores = 1;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) cores = CPU_COUNT(&allowed);
  if (const auto quota = ControlGroups().cpu_quota()) {
    cores = std::min(cores, static_cast<int>(std::floor(std::min(*quota, 1e6))));
  }
  return std::max(1, cores);
}

std::int64_t UsableMemory_bytes() {
  const std::int64_t machine = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return std::min(machine, ControlGroups().memory_bytes().value_or(machine));
}

}  // namespace espalier
