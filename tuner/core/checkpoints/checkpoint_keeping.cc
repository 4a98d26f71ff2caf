#include "tuner/core/checkpoints/checkpoint_keeping.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace espalier {

namespace {

// After so many failures one after another.
double Pause_s(int times, double first_s, double most_s) {
  return std::min(most_s, first_s * std::exp2(std::min(times, 30) - 1));
}

}  // namespace

void CheckpointKeeping::Forget(TrialId trial) {
  under_way.erase(trial);
  setbacks.erase(trial);
  waits.erase(trial);
  unfetched.erase(trial);
  clones.erase(trial);
  due.erase(trial);
}

void CheckpointKeeping::LookAfterClonesOf(TrialId parent) {
  for (const auto& [clone, of] : clones) {
    if (of == parent) due.insert(clone);
  }
}

void CheckpointKeeping::ForgetOrdersTo(NodeId node) {
  std::erase_if(under_way, [node](const auto& entry) { return entry.second.to == node; });
}

void CheckpointKeeping::FailedOnce(TrialId trial, Time now) {
  Setback& setback = setbacks[trial];
  ++setback.times;
  setback.again = After(now, Pause_s(setback.times, kCopyAgain_s, kCopyAgainMost_s));
}

void CheckpointKeeping::NotFetched(TrialId trial, Time now, std::string why) {
  Unfetched& failed = unfetched.try_emplace(trial, Unfetched{now, 0, {}, ""}).first->second;
  ++failed.times;
  failed.again = After(now, Pause_s(failed.times, kStartAgain_s, kStartAgainMost_s));
  failed.why = std::move(why);
}

bool CheckpointKeeping::HasClonesThatWait(TrialId parent) const {
  return std::ranges::any_of(clones, [parent](const auto& each) { return each.second == parent; });
}

bool CheckpointKeeping::Holds(TrialId trial) const {
  const auto failed = unfetched.find(trial);
  return waits.contains(trial) || clones.contains(trial) ||
         (failed != unfetched.end() && failed->second.again);
}

bool CheckpointKeeping::FindDue(Time now) {
  bool may_start = false;
  for (auto& [trial, failed] : unfetched) {
    if (!failed.again || *failed.again > now) continue;
    failed.again.reset();
    may_start = true;
  }
  for (auto& [trial, setback] : setbacks) {
    if (!setback.again || *setback.again > now) continue;
    setback.again.reset();
    due.insert(trial);
  }
  for (const auto& [trial, wait] : waits) {
    if (wait.look && *wait.look <= now) due.insert(trial);
  }
  return may_start;
}

std::optional<Time> CheckpointKeeping::Next() const {
  std::optional<Time> next;
  const auto consider = [&next](Time t) { next = next ? std::min(*next, t) : t; };
  for (const auto& [trial, setback] : setbacks) {
    if (setback.again) consider(*setback.again);
  }
  for (const auto& [trial, wait] : waits) {
    if (wait.look) consider(*wait.look);
  }
  for (const auto& [trial, failed] : unfetched) {
    if (failed.again) consider(*failed.again);
  }
  return next;
}

}  // namespace espalier
