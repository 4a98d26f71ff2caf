#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "trial_runner/agent/replica_process.h"

namespace espalier {

// Ends ranks that have others of their trial on other nodes, when the service has not been heard
// for a lease: it takes them for lost, and may have started them again elsewhere. Belongs to the
// agent's owner thread.
class CutOffRanks {
 public:
  using Clock = ReplicaProcess::Clock;
  using Replicas = std::map<std::int64_t, std::unique_ptr<ReplicaProcess>>;

  void ServiceHeard(Clock::time_point at) { heard_at_ = at; }
  // When they are ended if nothing is heard until then; none: there are no such ranks, or the
  // service has not told its lease yet.
  std::optional<Clock::time_point> EndsAt(const Replicas& running, double lease_s) const;
  void EndWhenDue(Replicas& running, double lease_s, const std::string& node,
                  Clock::time_point now);
  // Whether it was ended so. It is forgotten.
  bool TakeEnded(std::int64_t replica_id) { return ended_.erase(replica_id) > 0; }

 private:
  Clock::time_point heard_at_;
  std::set<std::int64_t> ended_;
};

}  // namespace espalier
