#pragma once

#include "trial_runner/collectives/collectives.h"

namespace espalier {

// One operation of Collectives.
struct StagedOperation {
  enum class Kind { kAllReduceSum, kBroadcast, kSend, kReceive };
  Kind kind = Kind::kAllReduceSum;
  CollectiveBuffer buffer;
  int peer = 0;        // root, receiver or sender
  bool reads = true;   // whether this member's content matters
  bool writes = true;  // whether it changes
};

void StartOnHost(Collectives& host, const StagedOperation& operation);

}  // namespace espalier
