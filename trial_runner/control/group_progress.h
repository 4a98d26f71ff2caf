#pragma once

#include <cstdint>
#include <mutex>

#include "tuner/messages/replica_messages.h"

namespace espalier {

// How far this replica is between two groups. The thread that does the work records it, and the
// control plane tells the service, so that nothing that makes progress is taken to hang. Any
// thread.
class GroupProgress {
 public:
  void Begin(GroupPhase phase, std::int64_t generation) {
    const std::lock_guard lock(mutex_);
    now_ = {.generation = generation, .phase = phase};
  }
  void Expect(std::int64_t bytes_total) {
    const std::lock_guard lock(mutex_);
    now_.bytes_total = bytes_total;
  }
  // Counted only in that phase.
  void Add(GroupPhase phase, std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (now_.phase == phase) now_.bytes += bytes;
  }
  void End() {
    const std::lock_guard lock(mutex_);
    now_ = {};
  }
  ReplicaForming Read() const {
    const std::lock_guard lock(mutex_);
    return now_;
  }

 private:
  mutable std::mutex mutex_;
  ReplicaForming now_;
};

}  // namespace espalier
