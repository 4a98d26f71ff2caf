// Which trials are drawn, and what each study gets where several compete for the pool.

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/core/scheduling/scheduler.h"

namespace espalier {

namespace {

constexpr double kLeave_s = 2.0;  // what the processes of an ended trial may take

}  // namespace

// One slot each for one more configuration is better than data parallelism while there are
// configurations to try: trials are drawn as long as slots are free or could be given back by
// trials above their minimum. Not earlier, so that the sampler knows as much as possible.
void Scheduler::CreateTrialsWhereUseful(const std::map<StudyId, StudyPart>& parts) {
  int room = 0;
  for (const auto& [id, node] : pool_.nodes) {
    if (node.connected && !node.draining)
      room += node.slots - pool_.UnusableSlotsOn(node) - client_slots_.KeptOn(id);
  }
  for (const auto& [id, live] : pool_.live) {
    const Trial& trial = *live.trial;
    const Study& study = *live.study;
    if (study.state != StudyState::kRunning || trials_.Held(id)) {
      room -= pool_.SlotsHeldBy(id);
      continue;
    }
    room -= trial.pinned_slots > 0 ? trial.pinned_slots : study.spec.min_slots;
  }
  // Processes of ended trials still hold their slots for a moment.
  for (const auto& [trial, replicas] : pool_.replicas.by_trial()) {
    if (!pool_.live.contains(trial)) room -= static_cast<int>(replicas.size());
  }
  // Where studies compete, each draws what its share has room for, and no more.
  for (const StudyId id : std::set<StudyId>(pool_.studies)) {
    const Study& study = turn_.StudyAt(id);
    const auto part = parts.find(id);
    int own = room;
    if (part != parts.end()) {
      const int claim = part->second.slots - view_.LeastSlotsOf(study);
      own = std::min(room, claim);
      // A study with less than its part shows what it would run next, also where nothing is free.
      if (claim >= study.spec.min_slots && !view_.SomeWait(study)) {
        own = std::max(own, study.spec.min_slots);
      }
    }
    const int before = own;
    CreateTrials(study, own);
    room -= before - own;
  }
}

// The processes of an ended trial leave one after the other. Where a trial needs several slots,
// those that are free before the last has left are too few for the next one: growth would take
// them, and give them back a moment later.
bool Scheduler::EndedTrialsAreLeaving() const {
  const auto leaves = [this](const auto& entry) {
    const auto trial = turn_.state().trials.find(entry.first);
    if (entry.second.empty() || trial == turn_.state().trials.end()) return false;
    const Study& study = turn_.StudyAt(trial->second.study);
    return Ended(trial->second.state) && study.state == StudyState::kRunning &&
           study.spec.min_slots > 1 && SecondsBetween(trial->second.ended, turn_.now()) < kLeave_s;
  };
  const auto& holders = pool_.replicas.by_trial();
  return std::any_of(holders.begin(), holders.end(), leaves);
}

// Empty with fewer than two running studies: nothing is to be divided then.
std::map<StudyId, StudyPart> Scheduler::PartsOfStudies() {
  PlanRequest request;
  request.policy = CurrentPolicy();
  view_.DescribeSharing(request);
  return request.shared ? planner_.Divide(request) : std::map<StudyId, StudyPart>{};
}

// By the newest plan; null while it does not know all of the studies that there are now. A new one
// draws nothing before: it would take what is another's.
const std::map<StudyId, StudyPart>* Scheduler::KnownParts() const {
  static const std::map<StudyId, StudyPart> kNothingToDivide;
  if (pool_.studies.size() < 2) return &kNothingToDivide;
  const bool all = std::all_of(pool_.studies.begin(), pool_.studies.end(),
                               [this](StudyId id) { return parts_.contains(id); });
  return all ? &parts_ : nullptr;
}

// A study that holds well more than its part gives one trial's slots to one that has less than its
// own and waits: the least promising of those that keep a checkpoint pauses. Otherwise long trials
// that came first would keep all others out.
void Scheduler::GiveWayToStarving(const std::map<StudyId, StudyPart>& parts) {
  const bool starving = std::any_of(parts.begin(), parts.end(), [this](const auto& entry) {
    const Study& study = turn_.StudyAt(entry.first);
    const int held = view_.PlannedSlotsOf(study);
    return held + held / 10 + study.spec.min_slots <= entry.second.slots;
  });
  if (!starving) return;
  for (const auto& [id, part] : parts) {
    const Study& study = turn_.StudyAt(id);
    if (view_.RunningSlotsOf(study) <= part.slots + part.slots / 10) continue;
    std::optional<TrialId> least;
    for (const auto& [trial, group] : pool_.groups) {
      if (turn_.TrialAt(trial).study != id) continue;
      if (group.pausing) return;  // one at a time: its slots are not free yet
      if (!pool_.MayPauseForOthers(trial, group)) continue;
      if (!least || promises_.Of(trial) < promises_.Of(*least)) least = trial;
    }
    if (!least) continue;
    trials_.PauseTrial(*least, absl::StrCat("its study holds more than its share, ",
                                            SlotsText(part.slots), ", and another has less"));
    return;
  }
}

}  // namespace espalier
