// Which trials are drawn, and what each study gets where several compete for the pool.

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/core/core_impl.h"

namespace espalier {

// One slot each for one more configuration is better than data parallelism while there are
// configurations to try: trials are drawn as long as slots are free or could be given back by
// trials above their minimum. Not earlier, so that the sampler knows as much as possible.
void Core::Impl::CreateTrialsWhereUseful(const std::map<StudyId, StudyPart>& parts) {
  int room = 0;
  for (const auto& [id, node] : pool_.nodes) {
    if (node.connected && !node.draining) room += node.slots - client_slots_.KeptOn(id);
  }
  for (const auto& [id, live] : pool_.live) {
    const Trial& trial = *live.trial;
    const Study& study = *live.study;
    if (study.state != StudyState::kRunning || held_.contains(id)) {
      room -= SlotsHeldBy(id);
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
      const int claim = part->second.slots - LeastSlotsOf(study);
      own = std::min(room, claim);
      // Who has less than its part shows what it would run next, also where nothing is free.
      if (claim >= study.spec.min_slots && !SomeWait(study)) {
        own = std::max(own, study.spec.min_slots);
      }
    }
    const int before = own;
    CreateTrials(study, own);
    room -= before - own;
  }
}

// Slots without which the study's live trials cannot run.
int Core::Impl::LeastSlotsOf(const Study& study) {
  int slots = 0;
  for (const auto& [id, live] : pool_.live) {
    const Trial& trial = *live.trial;
    if (trial.study != study.id || held_.contains(id)) continue;
    slots += trial.pinned_slots > 0 ? trial.pinned_slots : study.spec.min_slots;
  }
  return slots;
}

// Configurations that the study may still draw, as far as is known.
StudyDemand Core::Impl::DemandOf(const Study& study, int most_slots) {
  StudyDemand demand{most_slots, study.spec.min_slots};
  if (!plugins_.MayDraw(study)) demand.configurations = 0;
  const auto at_most = [&demand](std::int64_t limit) {
    demand.configurations =
        static_cast<int>(std::clamp<std::int64_t>(limit, 0, demand.configurations));
  };
  if (study.spec.max_trials > 0) at_most(study.spec.max_trials - std::ssize(study.trials));
  if (study.spec.max_concurrent_trials > 0) {
    const auto alive = std::count_if(pool_.live.begin(), pool_.live.end(), [&](const auto& live) {
      return live.second.study == &study && !held_.contains(live.first);
    });
    at_most(study.spec.max_concurrent_trials - alive);
  }
  return demand;
}

// Empty with fewer than two running studies: nothing is to be divided then.
std::map<StudyId, StudyPart> Core::Impl::PartsOfStudies() {
  PlanRequest request;
  DescribeSharing(request);
  return request.shared ? planner_.Divide(*request.shared, request.demand)
                        : std::map<StudyId, StudyPart>{};
}

void Core::Impl::DescribeSharing(PlanRequest& request) {
  for (const StudyId id : pool_.studies) {
    request.demand.emplace(id, DemandOf(turn_.StudyAt(id), std::max(1, pool_.SlotsTotal())));
  }
  if (request.demand.size() < 2) return;
  request.shared = MakePool();
  // Slots that ended trials are about to leave are to be divided too.
  for (NodeCapacity& node : request.shared->nodes) {
    node.slots = std::max(0, pool_.nodes.at(node.id).slots - client_slots_.KeptOn(node.id));
  }
}

// By the newest plan; null while it does not know all of the studies that there are now. A new one
// draws nothing before: it would take what is another's.
const std::map<StudyId, StudyPart>* Core::Impl::KnownParts() const {
  static const std::map<StudyId, StudyPart> kNothingToDivide;
  if (pool_.studies.size() < 2) return &kNothingToDivide;
  const bool all = std::all_of(pool_.studies.begin(), pool_.studies.end(),
                               [this](StudyId id) { return parts_.contains(id); });
  return all ? &parts_ : nullptr;
}

// Where elastic trials cannot leave the node all but so many slots by shrinking, the least
// promising one that may pause does so.
void Core::Impl::MakeRoomOn(NodeId node, int left) {
  int planned = 0;
  int gives = 0;
  std::optional<TrialId> least;
  for (const auto& [trial, group] : pool_.groups) {
    const auto here = group.target.find(node);
    if (here == group.target.end()) continue;
    planned += here->second;
    gives += pool_.MayGiveOn(trial, group, node);
    if (!pool_.MayPauseForOthers(trial, group)) continue;
    if (!least || promise_[trial] < promise_[*least]) least = trial;
  }
  if (!least || planned - gives <= left) return;
  PauseTrial(*least, "makes room for slots that a client waits for");
}

bool Core::Impl::SomeWait(const Study& study) const {
  return std::any_of(pool_.live.begin(), pool_.live.end(), [&](const auto& entry) {
    const auto& [id, live] = entry;
    return live.study == &study && !pool_.groups.contains(id) && !held_.contains(id);
  });
}

// A study that holds well more than its part gives one trial's slots to one that has less than its
// own and waits: the least promising of those that keep a checkpoint pauses. Otherwise long trials
// that came first would keep all others out.
void Core::Impl::GiveWayToStarving(const std::map<StudyId, StudyPart>& parts) {
  const bool starving = std::any_of(parts.begin(), parts.end(), [this](const auto& entry) {
    const Study& study = turn_.StudyAt(entry.first);
    const int held = PlannedSlotsOf(study);
    return held + held / 10 + study.spec.min_slots <= entry.second.slots;
  });
  if (!starving) return;
  for (const auto& [id, part] : parts) {
    const Study& study = turn_.StudyAt(id);
    if (RunningSlotsOf(study) <= part.slots + part.slots / 10) continue;
    std::optional<TrialId> least;
    for (const auto& [trial, group] : pool_.groups) {
      if (turn_.TrialAt(trial).study != id) continue;
      if (group.pausing) return;  // one at a time: its slots are not free yet
      if (!pool_.MayPauseForOthers(trial, group)) continue;
      if (!least || promise_[trial] < promise_[*least]) least = trial;
    }
    if (!least) continue;
    PauseTrial(*least,
               absl::StrCat("its study holds more than its share, ", part.slots,
                            part.slots == 1 ? " slot" : " slots", ", and another has less"));
    return;
  }
}

// At the least of its trials that run.
int Core::Impl::RunningSlotsOf(const Study& study) const {
  int slots = 0;
  for (const auto& [id, group] : pool_.groups) {
    const Trial& trial = turn_.state().trials.at(id);
    if (trial.study != study.id || group.pausing) continue;
    slots += trial.pinned_slots > 0 ? trial.pinned_slots : study.spec.min_slots;
  }
  return slots;
}

int Core::Impl::PlannedSlotsOf(const Study& study) const {
  int slots = 0;
  for (const auto& [id, group] : pool_.groups) {
    if (turn_.state().trials.at(id).study != study.id) continue;
    for (const auto& [node, planned] : group.target) slots += planned;
  }
  return slots;
}

// Who is served first where studies compete: the first trial of each before the second of any, and
// of a study with twice the share two before another's one. In a study those that run come
// first, then the others in order of submission.
void Core::Impl::OrderByShare(Pool& pool) const {
  std::map<StudyId, std::int64_t> served;
  std::vector<std::tuple<double, TrialId, Job*>> turns;
  for (const bool running : {true, false}) {
    for (Job& job : pool.jobs) {  // ascending by id
      if (job.running != running) continue;
      const auto share = pool.shares.find(job.study);
      const auto nth = static_cast<double>(++served[job.study]);
      turns.emplace_back(share == pool.shares.end() ? 0 : nth / share->second, job.id, &job);
    }
  }
  std::sort(turns.begin(), turns.end());
  std::int64_t order = 0;
  for (const auto& [turn, id, job] : turns) job->order = ++order;
}

}  // namespace espalier
