#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/machine_limits.h"

namespace espalier {

// What the system does where memory runs out: it kills a process of the group whose limit is
// reached, or of the machine, and says so nowhere but in the group's count. One thread.
class OutOfMemory {
 public:
  explicit OutOfMemory(ControlGroups groups = ControlGroups());

  // Of a process that has died of SIGKILL, which nobody here has sent: whether the system has
  // killed one since the last call, and so most likely this one. "was killed: out of memory (limit
  // 760 MB)"; empty: it has not.
  std::string WhyKilled();

 private:
  ControlGroups groups_;
  std::optional<std::int64_t> kills_;
};

// Where memory runs out, this process is killed before others, or as they are.
void KillFirst(pid_t process, bool first);

}  // namespace espalier
