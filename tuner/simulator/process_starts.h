#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace espalier {

// Starting a process keeps a processor busy, mostly with linking its libraries, and the starts of
// a machine share its processors.
struct StartLoad {
  double cpu_s = 0;        // processor time of one start
  double cores = 0;        // processors of a machine; 0: one for each start
  double spread = 0;       // each start needs (1 - spread) to (1 + spread) times cpu_s; 0 to 1
  std::uint64_t seed = 0;  // of which
};

// The starts under way on one machine, which share its processors evenly: none has more than one.
// Pure; one owner. Times may not go back.
class ProcessStarts {
 public:
  explicit ProcessStarts(const StartLoad& load) : load_(load) {}

  void Begin(ReplicaId replica, Time now);
  void GiveUp(ReplicaId replica, Time now);  // one that does not start is none of its business
  // The replicas that have had their processor time since the last call, by id.
  std::vector<ReplicaId> TakeDone(Time now);
  // When the next one will have had it, if nothing begins or ends before; nullopt: none is
  // starting.
  std::optional<Time> NextDone() const;

 private:
  double Rate() const;  // of one start, in processors
  void Advance(Time now);

  const StartLoad load_;
  std::map<ReplicaId, double> left_cpu_s_;
  Time since_;  // when they were so
};

}  // namespace espalier
