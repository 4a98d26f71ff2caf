#include "tuner/core/scheduling/work_left.h"

#include <algorithm>
#include <set>

#include "allocator/pool/speedup.h"
#include "tuner/core/state/slot_time.h"

namespace espalier {

namespace {

// What the trial has trained so far, as seconds on one slot by its present model.
double OneSlotSeconds(const Trial& trial, const Job& job, Time now) {
  SpeedupCurve speedup(job);
  double sum_s = 0;
  for (const SlotSpan& span : trial.spans) {
    std::set<NodeId> nodes;
    for (const Slot& slot : span.slots) nodes.insert(slot.node);
    sum_s += HeldSeconds(span, now) *
             speedup.At(static_cast<int>(nodes.size()), static_cast<int>(span.slots.size()));
  }
  return sum_s;
}

}  // namespace

double ShareDone(const Trial& trial, std::optional<double> epoch, std::int64_t last_step) {
  if (last_step <= 0) return 0;
  double done = epoch.value_or(0);
  if (!epoch && !trial.values.empty()) done = static_cast<double>(trial.values.back().step);
  return std::clamp(done / static_cast<double>(last_step), 0.0, 1.0);
}

double WorkLeft(const Trial& trial, const Job& job, double share_done, Time now) {
  if (share_done <= 0) return 0;
  return OneSlotSeconds(trial, job, now) * (1 - share_done) / share_done;
}

}  // namespace espalier
