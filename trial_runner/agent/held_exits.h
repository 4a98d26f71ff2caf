#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "tuner.pb.h"

namespace espalier {

// How replicas ended of themselves, while their GPU is looked at, or while it shows whether the
// agent was signalled as well: a system that shuts down, or a job that is cancelled, signals all
// processes at once, and then the programs have not failed. Pure; not thread-safe.
class HeldExits {
 public:
  using Clock = std::chrono::steady_clock;

  // What is known by now.
  struct Known {
    Clock::time_point now;
    std::int64_t looks = 0;  // at the GPUs that are done
    bool stopping = false;   // the agent ends
    bool leaving = false;    // its machine goes away
  };

  // Whether it died of a signal that a system may send to all processes of a machine or job.
  static bool DiedOfNotice(const v1::ReplicaExited& exited);

  // The first until it is known whether the agent has been signalled too, half a second at most.
  // The second until so many looks at the GPUs are done, or until `until`.
  void HoldForNotice(v1::ReplicaExited exited, Clock::time_point now);
  void HoldForGpus(v1::ReplicaExited exited, std::int64_t looks, Clock::time_point until);

  // Those that are to be told now. Those of a notice are of the agent's end.
  std::vector<v1::ReplicaExited> Take(const Known& known);
  // The rest, without waiting any longer.
  std::vector<v1::ReplicaExited> TakeAll(Known known);

  bool empty() const { return held_.empty(); }
  // When the first has waited long enough; Clock::time_point::max(): none waits.
  Clock::time_point NextTime() const;

 private:
  struct Held {
    std::optional<std::int64_t> looks;  // none: it died of a notice
    Clock::time_point until;
    v1::ReplicaExited exited;
  };

  std::vector<Held> held_;
};

}  // namespace espalier
