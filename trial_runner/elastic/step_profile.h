#pragma once

#include <map>
#include <vector>

#include "allocator/goodput/profile.h"

namespace espalier {

// The measured times of one optimizer step.
struct MeasuredStepTimes {
  std::int64_t accumulation_count = 0;  // microbatches before the last
  double accumulation_time_s = 0;
  double optimizer_time_s = 0;  // last microbatch, all-reduce and update
  double sync_time_s = 0;       // of which: waiting for the all-reduce
};

// Sums of step times by shape since the last Take().
class StepProfile {
 public:
  // The first step of a shape in a group is left out, because it pays the one-time cost of memory
  // and caches.
  void StartGroup() { warm_.clear(); }
  void Add(const ProfileKey& shape, const MeasuredStepTimes& times);
  std::vector<ProfileEntry> Take();

 private:
  std::map<ProfileKey, ProfileEntry> sums_;
  std::map<ProfileKey, bool> warm_;
};

}  // namespace espalier
