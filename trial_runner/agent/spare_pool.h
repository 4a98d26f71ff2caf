#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "handover.pb.h"
#include "trial_runner/agent/replica_process.h"

namespace espalier {

// However much memory there is: a trial that has not wanted it back for so long hardly will.
inline constexpr std::chrono::minutes kMaxSpareAge{5};

// Replicas that have left their group and wait, loaded and warm, to be their trial's next ones. To
// the service they have exited. Belongs to the agent's owner thread; does not block.
class SparePool {
 public:
  using Clock = ReplicaProcess::Clock;

  explicit SparePool(std::int64_t memory_bytes) : memory_bytes_(memory_bytes) {}

  // Takes a parked replica in. Ends the longest parked until the rest fit into the memory.
  void Add(std::unique_ptr<ReplicaProcess> spare, Clock::time_point now);
  // The one parked last of those that were started as `start` asks, and that suits; nullptr: none.
  std::unique_ptr<ReplicaProcess> Take(const v1::StartReplica& start,
                                       const std::function<bool(const ReplicaProcess&)>& suits);

  void EndIf(const std::function<bool(const ReplicaProcess&)>& condition);
  void EndTrial(std::int64_t trial_id);

  // For the owner's poll: two descriptors a spare, in the order that Hear() takes them back.
  void Watch(std::vector<pollfd>& fds) const;
  void Hear(std::span<const pollfd> fds);
  void ListenedInVain(Clock::duration time);
  void KeepTime(Clock::time_point now, Clock::duration lease);
  // When KeepTime has something to do; max: not by itself.
  Clock::time_point NextTime(Clock::time_point now, Clock::duration lease) const;

  std::size_t size() const { return spares_.size(); }

  // For the agent that is next in this process, and in it.
  void HandOver(v1::AgentHandover& handover) const;
  void TakeOver(const v1::AgentHandover& handover);

 private:
  struct Spare {
    std::unique_ptr<ReplicaProcess> process;
    Clock::time_point since;
    std::int64_t memory_bytes = 0;
    bool ending = false;
  };

  void End(Spare& spare);

  const std::int64_t memory_bytes_;
  std::vector<Spare> spares_;  // by time of parking
};

// Memory that the end of a process would free: resident, less what it shares with others. 0: it is
// gone.
std::int64_t OwnMemoryBytes(int pid);

}  // namespace espalier
