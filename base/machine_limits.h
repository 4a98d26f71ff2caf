#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace espalier {

// What the control groups of a process allow it: version 1 and 2, its own group's limits and those
// of all groups around it. `root` is for tests: a folder with another proc/self/cgroup,
// proc/self/mountinfo and what these name.
class ControlGroups {
 public:
  explicit ControlGroups(std::string root = "");

  // Of how many cores' time it may use all; none: of any number.
  std::optional<double> cpu_quota() const;
  std::optional<std::int64_t> memory_bytes() const;
  // How many processes of its group have been killed for want of memory; none: it is not told.
  std::optional<std::int64_t> out_of_memory_kills() const;

 private:
  // The folders of its group and of those around it, the own one first.
  struct Hierarchy {
    bool unified = false;  // version 2
    std::vector<std::string> folders;
  };
  std::optional<Hierarchy> Find(const std::string& controller) const;
  std::optional<Hierarchy> FindIn(const std::string& controller, bool unified) const;

  std::string root_;
};

// The cores that this process may use at a time: those on which it may run, as far as its groups
// give it so much time. At least 1.
int UsableCores();

// The machine's memory, or what its groups allow if that is less.
std::int64_t UsableMemory_bytes();

}  // namespace espalier
