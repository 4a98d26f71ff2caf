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

// A spare is ended after so long, however much memory there is: its trial hardly wants it back.
inline constexpr std::chrono::minutes kMaxSpareAge{5};

// Replicas that have left their group and wait, loaded and warm, to be their trial's next ones. To
// the service they have exited. Belongs to the agent's owner thread; does not block.
class SparePool {
 public:
  using Clock = ReplicaProcess::Clock;

  explicit SparePool(std::int64_t memory_bytes) : memory_bytes_(memory_bytes) {}

  // Takes a parked replica in. Ends the longest parked until the rest fit into the memory, in which
  // counts what they say that they hold on their GPUs.
  void Add(std::unique_ptr<ReplicaProcess> spare, Clock::time_point now,
           std::int64_t device_bytes = 0);
  // Takes one in that is killed, and that nobody is to have: what is left is that the system takes
  // back its memory.
  void AwaitEnd(std::unique_ptr<ReplicaProcess> killed, Clock::time_point now);
  // The spare that was parked last among those that were started as `start` asks; nullptr: there is
  // none.
  std::unique_ptr<ReplicaProcess> Take(const v1::StartReplica& start,
                                       const std::function<bool(const ReplicaProcess&)>& suits);

  void EndIf(const std::function<bool(const ReplicaProcess&)>& condition);
  void EndTrial(std::int64_t trial_id);

  // For the owner's poll: two descriptors a spare, in the order that Hear() takes them back.
  void Watch(std::vector<pollfd>& fds) const;
  void Hear(std::span<const pollfd> fds);
  void ListenedInVain(Clock::duration time);
  void KeepTime(Clock::time_point now, Clock::duration lease);
  // The next moment at which KeepTime has something to do; max: there is none.
  Clock::time_point NextTime(Clock::time_point now, Clock::duration lease) const;

  std::size_t size() const { return spares_.size(); }
  // Of all that have not ended.
  void ForEach(const std::function<void(const ReplicaProcess&)>& call) const;

  // Hands the spares over to the next agent in this process, and takes them over there.
  void HandOver(v1::AgentHandover& handover) const;
  void TakeOver(const v1::AgentHandover& handover);

 private:
  struct Spare {
    std::unique_ptr<ReplicaProcess> process;
    Clock::time_point since;
    std::int64_t memory_bytes = 0;  // at most, until it is counted; with those on its GPU
    std::int64_t device_bytes = 0;
    bool ending = false;
    std::optional<Clock::time_point> counted{};
  };

  void End(Spare& spare);
  // Whether those that are not ending fit into the memory.
  bool Fit() const;
  // To count what is a process's own takes tens of milliseconds of the owner's time where all cores
  // are busy: it is done where the spares might not fit.
  static void Count(Spare& spare, Clock::time_point now);
  static void ForgetOldCount(Spare& spare, Clock::time_point now);

  const std::int64_t memory_bytes_;
  std::vector<Spare> spares_;  // by time of parking
};

// The memory that the end of a process would free: what it alone has written. Not what it shares
// with the process that it was forked from, nor what the kernel can read from files again. 0: the
// process is gone.
std::int64_t OwnMemoryBytes(int pid);

}  // namespace espalier
