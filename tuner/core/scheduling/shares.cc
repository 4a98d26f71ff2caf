// Which trials are drawn, and what each study gets where several compete for the pool.

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tuner/core/scheduling/scheduler.h"

namespace espalier {

namespace {

constexpr double kLeave_s = 2.0;  // what the processes of an ended trial may take
// For so long of its part of the pool a study waits before trials that run pause for its turn:
// otherwise they end first.
constexpr double kTurn_s = 60;
constexpr double kUsualTrial_s = 60;  // while none has ended
// Within which a trial is placed in slots that are free for it, or is set aside for so long, twice
// as long each time in a row.
constexpr double kPlace_s = 10;
constexpr double kAside_s = 60;
constexpr double kMostAside_s = 600;

}  // namespace

// One slot each for one more configuration is better than data parallelism while there are
// configurations to try: trials are drawn as long as slots are free or could be given back by
// trials above their minimum. Not earlier, so that the sampler knows as much as possible.
void Scheduler::CreateTrialsWhereUseful(const std::map<StudyId, StudyPart>& parts) {
  int room = client_slots_.SlotsToShare();
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
    if (!pool_.live.contains(trial)) room -= pool_.SlotsHeldBy(trial);
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
  DescribeSharing(request);
  return request.shared ? planner_.Divide(request) : std::map<StudyId, StudyPart>{};
}

bool Scheduler::TakesTurns() const {
  return account_.uneven() || std::any_of(misfits_.begin(), misfits_.end(), [](const auto& entry) {
           return entry.second.until != Time{};
         });
}

// At the end of a look, when all is given out.
void Scheduler::CountShares() {
  if (pool_.studies.size() < 2) {
    account_ = {};
    misfits_.clear();
    return;
  }
  std::map<StudyId, StudyUse> uses = view_.UsesOfStudies();
  const int slots = client_slots_.SlotsToShare();
  account_.Advance(Seconds(turn_.now()), slots, uses);
  if (SetMisfitsAside(uses)) account_.Advance(Seconds(turn_.now()), slots, std::move(uses));
}

// At the beginning of a look.
void Scheduler::CountTime() {
  const bool due = std::any_of(misfits_.begin(), misfits_.end(), [this](const auto& entry) {
    return entry.second.Due() <= turn_.now();
  });
  if (due) {
    CountShares();
  } else {
    account_.Advance(Seconds(turn_.now()));
  }
}

Time Scheduler::Misfit::Due() const { return until == Time{} ? After(since, kPlace_s) : until; }

// Slots that suffice may lie on nodes that cannot talk, with GPUs of different kinds, or where
// another trial spans nodes already. Others do not wait for a trial that no policy places.
// True: some want no more.
bool Scheduler::SetMisfitsAside(std::map<StudyId, StudyUse>& uses) {
  bool any = false;
  int free = client_slots_.SlotsToShare();
  for (const auto& [id, use] : uses) free -= use.held;
  for (auto& [id, use] : uses) {
    const auto part = parts_.find(id);
    const bool kept = TakesTurns() && use.wants_more && free >= use.trial_slots &&
                      part != parts_.end() && part->second.slots >= use.held + use.trial_slots;
    const auto found = misfits_.find(id);
    if (found == misfits_.end()) {
      if (kept) misfits_.emplace(id, Misfit{.since = turn_.now(), .until = {}, .aside_s = 0});
      continue;
    }
    Misfit& misfit = found->second;
    if (turn_.now() < misfit.until) {
      any = true;
      use.wants_more = false;
    } else if (misfit.until != Time{}) {
      misfit = {.since = turn_.now(), .until = {}, .aside_s = misfit.aside_s};
    } else if (!kept) {
      misfits_.erase(found);
    } else if (SecondsBetween(misfit.since, turn_.now()) >= kPlace_s) {
      misfit.aside_s = std::clamp(2 * misfit.aside_s, kAside_s, kMostAside_s);
      misfit.until = After(turn_.now(), misfit.aside_s);
      any = true;
      use.wants_more = false;
    }
  }
  std::erase_if(misfits_, [&uses](const auto& entry) { return !uses.contains(entry.first); });
  return any;
}

void Scheduler::DescribeSharing(PlanRequest& request) {
  view_.DescribeSharing(request);
  if (!request.shared || !TakesTurns()) return;
  std::optional<double> trial_s;
  for (const StudyId id : pool_.studies) {
    const std::optional<double> of_study = view_.TrialSeconds(turn_.StudyAt(id));
    if (of_study) trial_s = std::min(trial_s.value_or(*of_study), *of_study);
  }
  const double each_s = std::max(1.0, trial_s.value_or(kUsualTrial_s));
  for (const StudyId id : pool_.studies) {
    if (account_.WantsMore(id)) request.shared->owed.emplace(id, account_.Owed(id) / each_s);
  }
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

bool Scheduler::Starves(const Study& study, const StudyPart& part) const {
  const int held = view_.PlannedSlotsOf(study);
  if (held + held / 10 + study.spec.min_slots > part.slots) return false;
  return !TakesTurns() || (held == 0 && account_.OwedSeconds(study.id) >= kTurn_s);
}

std::optional<StudyWait> Scheduler::WaitOf(const Study& study) const {
  const auto part = parts_.find(study.id);
  if (part == parts_.end() || study.state != StudyState::kRunning || !TakesTurns() ||
      view_.RunningSlotsOf(study) > 0 || !view_.SomeWait(study)) {
    return std::nullopt;
  }
  StudyWait wait{.slots = study.spec.min_slots, .free = client_slots_.SlotsToShare()};
  std::vector<std::pair<double, int>> ends;  // in seconds, and slots that come free
  for (const auto& [trial, slots] : view_.SlotsTaken()) {
    wait.free -= slots;
    const auto other = turn_.state().trials.find(trial);
    if (other == turn_.state().trials.end() || other->second.spans.empty()) continue;
    const std::optional<double> takes_s = view_.TrialSeconds(turn_.StudyAt(other->second.study));
    if (!takes_s) continue;
    const double had_s = SecondsBetween(other->second.spans.back().from, turn_.now());
    ends.emplace_back(std::max(0.0, *takes_s - had_s), slots);
  }
  wait.free = std::clamp(wait.free, 0, wait.slots);
  wait.its_turn = part->second.slots >= wait.slots;
  std::sort(ends.begin(), ends.end());
  int missing = wait.slots - wait.free;
  for (std::size_t i = 0; i < ends.size() && missing > 0; ++i) {
    missing -= ends[i].second;
    if (missing <= 0) wait.about_s = ends[i].first;
  }
  return wait;
}

// A study that holds well more than its part gives one trial's slots to one that has less than its
// own and waits: the least promising of those that keep a checkpoint pauses. Otherwise long trials
// that came first would keep all others out.
void Scheduler::GiveWayToStarving(const std::map<StudyId, StudyPart>& parts) {
  const bool starving = std::any_of(parts.begin(), parts.end(), [this](const auto& entry) {
    return Starves(turn_.StudyAt(entry.first), entry.second);
  });
  if (!starving) return;
  for (const auto& [id, part] : parts) {
    const Study& study = turn_.StudyAt(id);
    if (view_.RunningSlotsOf(study) <= part.slots + part.slots / 10) continue;
    if (TakesTurns() && account_.Owed(id) >= 0) continue;
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
