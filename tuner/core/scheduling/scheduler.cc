#include "tuner/core/scheduling/scheduler.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/pool/job_check.h"
#include "base/check.h"
#include "tuner/core/scheduling/work_left.h"
#include "tuner/core/state/slot_time.h"
#include "tuner/core/studies/pool_policy.h"

namespace espalier {

namespace {

constexpr double kLookAgain_s = 1.0;      // between looks when nothing happens; doubles up to
constexpr double kLookAgainMost_s = 5.0;  // this while there is nothing to do

DecisionKind KindOfChange(const Trial& trial, int from, int to) {
  if (to == 0) return DecisionKind::kPause;
  if (from == 0) return trial.started == Time{} ? DecisionKind::kStart : DecisionKind::kResume;
  if (to > from) return DecisionKind::kGrow;
  return to < from ? DecisionKind::kShrink : DecisionKind::kMove;
}

}  // namespace

Scheduler::Scheduler(Turn& turn, const Parts& parts)
    : turn_(turn),
      options_(parts.options),
      pool_(parts.pool),
      plugins_(parts.plugins),
      draws_(parts.draws),
      curves_(parts.curves),
      speeds_(parts.speeds),
      promises_(parts.promises),
      joins_(parts.joins),
      limits_(parts.limits),
      trials_(parts.trials),
      studies_(parts.studies),
      checkpoints_(parts.checkpoints),
      copies_(parts.copies),
      client_slots_(parts.client_slots),
      view_(parts.view),
      reconciler_(parts.reconciler),
      look_again_s_(kLookAgain_s) {}

void Scheduler::On(const Tick&) {
  turn_.Wake();
  // Should one have been overlooked, it waits no longer than this.
  if (SecondsBetween(reconciled_all_at_, turn_.now()) >= look_again_s_) {
    reconciled_all_at_ = turn_.now();
    for (const auto& [id, live] : pool_.live) pool_.reconcile.insert(id);
  }
  look_again_s_ = std::min(2 * look_again_s_, kLookAgainMost_s);
}

void Scheduler::Settle() {
  // Without a planner beside this thread a plan is made within this step.
  if (turn_.TakeLookAgain()) options_.plan_aside ? void(look_ = true) : turn_.Wake();
  if (look_ && !planning_ && turn_.now() >= planner_rests_until_) turn_.Wake();
  if (turn_.awake()) Schedule();
}

std::optional<Time> Scheduler::Next() const {
  std::optional<Time> next;
  if (!pool_.studies.empty() && !pool_.replicas.empty()) {
    next = std::max(turn_.now(), After(scheduled_at_, look_again_s_));
  }
  if (look_ && !planning_) next = Earlier(next, planner_rests_until_);
  for (const auto& [study, misfit] : misfits_) {
    next = Earlier(next, std::max(turn_.now(), misfit.Due()));
  }
  return next;
}

void Scheduler::On(const SetPoolPolicy& event) {
  if (!options_.policy) {
    turn_.reply().status = absl::FailedPreconditionError(
        "this pool has no policy of its own: it follows that of its oldest running study");
    return;
  }
  const auto policy = MakePolicy(event.policy.name, event.policy.options);
  if (!policy.ok()) {
    turn_.reply().status = policy.status();
    return;
  }
  if (CurrentPolicy() != event.policy) {
    const std::string reason = absl::StrCat("the pool's policy is ", TextOf(event.policy),
                                            " from now on; it was ", TextOf(CurrentPolicy()));
    for (const StudyId id : pool_.studies) turn_.Decide(id, -1, DecisionKind::kStudy, 0, 0, reason);
  }
  turn_.Emit(PoolPolicySet{event.policy});
  turn_.Wake();
}

void Scheduler::Schedule() {
  turn_.Rest();
  for (const StudyId id : pool_.studies) {
    trials_.UpdateHeld(turn_.StudyAt(id));
  }
  scheduled_at_ = turn_.now();
  StartAgainWhoCannotFillUp();
  client_slots_.Serve();
  CountTime();
  StartSuccessors();
  if (EndedTrialsAreLeaving()) return CarryOut();
  if (options_.plan_aside) {
    if (const auto* parts = KnownParts()) CreateTrialsWhereUseful(*parts);
    AskForPlan();
  } else {
    parts_ = PartsOfStudies();
    CreateTrialsWhereUseful(parts_);
    GiveWayToStarving(parts_);
    for (const StudyId id : pool_.studies) UpdatePromise(turn_.StudyAt(id));
    PlanRequest request;
    request.policy = CurrentPolicy();
    request.pool = view_.MakePool();
    if (TakesTurns()) WithholdBeyondParts(request.pool, parts_);
    const Plan plan = planner_.Make(request);
    for (const JobRefusal& refusal : plan.refusals) {
      view_.RecordRefusal(turn_.TrialAt(refusal.trial), refusal.reason);
    }
    for (const AllocationDecision& decision : HoldersFirst(WithoutVainMoves(plan.allocations))) {
      TakeAllocation(decision);
    }
  }
  CarryOut();
}

// A group that has fewer replicas than its study's minimum, and may start no more, does not train
// on: its trial waits for as many slots again, and starts with new replicas.
void Scheduler::StartAgainWhoCannotFillUp() {
  for (const TrialId id : std::set<TrialId>(pool_.reconcile)) {
    const auto found = pool_.groups.find(id);
    if (found == pool_.groups.end() || !pool_.live.contains(id)) continue;
    const Group& group = found->second;
    if (!group.elastic || group.pausing || group.ending || group.members.empty()) continue;
    const Trial& trial = turn_.TrialAt(id);
    const Study& study = turn_.StudyAt(trial.study);
    const int least = trial.pinned_slots > 0 ? std::min(trial.pinned_slots, study.spec.min_slots)
                                             : study.spec.min_slots;
    if (study.state != StudyState::kRunning || joins_.MostReplicas(id) >= least) continue;
    const std::string why = absl::StrCat(
        "has fewer than its minimum of ", least, ": ", trial.failed_joins->in_a_row,
        " in a row that were to join failed, the last one ", trial.failed_joins->reason);
    turn_.Emit(JoinsFailed{id, {}});  // the new ones' failures are counted anew
    trials_.StartAgain(id, why);
  }
}

// A clone that takes a member's place goes on in the slots that this one leaves, as soon as it has
// its checkpoint and they are free. They are as many, and of the same study, so that there is
// nothing to plan; if others have them by then, or studies share the pool, it waits for a plan as
// any trial. While members that are behind wait for slots it is held back, and these are theirs.
void Scheduler::StartSuccessors() {
  for (auto next = pool_.successors.begin(); next != pool_.successors.end();) {
    const auto at = next++;
    const TrialId id = at->first;
    const bool live = pool_.live.contains(id);
    const bool leaves = !pool_.replicas.Of(at->second.member).empty();
    if (live && !pool_.groups.contains(id) && (leaves || checkpoints_.AwaitsParents(id))) continue;
    const Placement slots = std::move(at->second.slots);
    pool_.successors.erase(at);
    if (!live || pool_.studies.size() > 1 || slots.empty() || trials_.Held(id) ||
        pool_.groups.contains(id) || !UsesPool(*pool_.live.at(id).study)) {
      continue;
    }
    // The member may have lost a replica, or been in the midst of a resize.
    const StudySpec& spec = pool_.live.at(id).study->spec;
    if (TotalSlots(slots) < spec.min_slots || !spec.HasSize(TotalSlots(slots))) continue;
    const std::string reason = "takes the slots of the member whose place it takes";
    for (const AllocationDecision& decision :
         ThatFit({{.trial = id, .placement = slots, .reason = reason}})) {
      TakeAllocation(decision);
    }
  }
}

// The steps from the present to what is planned.
void Scheduler::CarryOut() {
  reconciler_.ReconcileAll();
  client_slots_.ServeFromUnused();
  for (const StudyId id : std::set<StudyId>(pool_.studies)) studies_.EndStudyIfDone(id);
  CountShares();
}

void Scheduler::CreateTrials(const Study& study, int& room) {
  StudyPlugins& plugins = plugins_.Of(study);
  const StudySpec& spec = study.spec;
  if (!plugins.sampler->draws()) return;
  if (room >= spec.min_slots && limits_.TooLateForNewTrials(study)) return;
  std::int64_t alive = 0;
  for (const auto& [id, live] : pool_.live) {
    alive += live.study == &study && !trials_.Held(id) ? 1 : 0;
  }
  const auto another = [&] {
    return room >= spec.min_slots && !plugins.exhausted &&
           (spec.max_trials == 0 || study.counted() < spec.max_trials) &&
           (spec.max_concurrent_trials == 0 || alive < spec.max_concurrent_trials);
  };
  if (!another()) return;
  static const Parameters kNone;
  const SamplerHistory::KnownTrials trials{
      .parameters_of = [](const Trial& trial) { return &trial.parameters; },
      .held_by_pruner = [this](const Trial& trial) { return trials_.HeldByPruner(trial.id); }};
  while (another()) {
    const std::int64_t number = std::ssize(study.trials);
    const std::int64_t counted = study.counted();
    const bool is_point = counted < std::ssize(spec.points);
    const Parameters& given = is_point ? spec.points[static_cast<std::size_t>(counted)] : kNone;
    std::optional<DrawnTrial> drawn =
        draws_.Draw(study, plugins.sampler, {.number = number, .given = given}, trials);
    if (!drawn) return;  // it comes with DrawMade, which wakes the scheduler
    if (!drawn->parameters) {
      plugins.exhausted = true;
      return;
    }
    const TrialId id(turn_.state().last_trial.value + 1);
    turn_.Emit(TrialCreated{.id = id,
                            .study = study.id,
                            .number = number,
                            .parameters = *std::move(drawn->parameters),
                            .at = turn_.now()});
    draws_.EmitOf(id, *drawn);
    room -= spec.min_slots;
    ++alive;
  }
}

// One policy a pool: what a client has said, or the service was started with; where a pool has none
// of its own, that of the oldest running study.
PluginSpec Scheduler::CurrentPolicy() const {
  if (const std::optional<PluginSpec> own = PoolPolicy(options_, turn_.state())) return *own;
  if (pool_.studies.empty()) return PluginSpec{"promise_goodput", {}};
  return turn_.state().studies.at(*pool_.studies.begin()).spec.policy;
}

void Scheduler::UpdatePromise(const Study& study) {
  if (!promises_.TakeDue(study)) return;
  for (const auto& [trial, promise] : PromiseOf(CurvesToForecast(study))) {
    promises_.Set(trial, promise);
  }
}

// Its points lie with the trials, until the study's next value or the end of one of its trials.
StudyCurves Scheduler::CurvesToForecast(const Study& study) {
  StudyCurves forecast;
  forecast.study = study.id;
  forecast.direction = study.spec.direction();
  const std::span<const Direction> others = study.spec.other_directions();
  forecast.options = {.best_k = study.spec.best_k,
                      .max_step = pool_.LastStepOf(study),
                      .other_directions = {others.begin(), others.end()}};
  forecast.trials = study.trials;
  const std::span<const Curve> curves = curves_.Of(turn_.state(), study);
  forecast.curves.assign(curves.begin(), curves.end());
  return forecast;
}

// Whether the trial can get there within its group, or is seen to otherwise. A policy that keeps to
// the islands may move it as a whole, and then its state goes by way of its checkpoint. Of one that
// was asked before the nodes were known to be apart nothing is taken.
bool Scheduler::WithinReach(const AllocationDecision& decision) {
  const std::set<NodePair> apart = pool_.faults.Apart(turn_.now());
  if (apart.empty()) return true;
  if (SpansAny(decision.placement, apart)) return false;
  const auto group = pool_.groups.find(decision.trial);
  if (group == pool_.groups.end()) return true;
  Placement joined = decision.placement;
  for (const ReplicaId member : group->second.members) {
    if (const auto r = pool_.replicas.find(member); r != pool_.replicas.end())
      ++joined[r->second.node];
  }
  if (!SpansAny(joined, apart)) return true;
  trials_.PauseTrial(
      decision.trial,
      absl::StrCat(decision.reason, ", by way of its checkpoint: the nodes that it is on ",
                   "and is to go to cannot talk"));
  return false;
}

void Scheduler::TakeAllocation(const AllocationDecision& decision) {
  look_again_s_ = kLookAgain_s;
  if (checkpoints_.Holds(decision.trial) || !WithinReach(decision)) return;
  const Trial& trial = turn_.TrialAt(decision.trial);
  Group& group = pool_.groups[decision.trial];
  const int from = TotalSlots(group.target);
  // Not all policies know which slots share a GPU.
  const StudySpec& spec = turn_.StudyAt(trial.study).spec;
  int least = trial.pinned_slots > 0 ? trial.pinned_slots : spec.min_slots;
  Placement placement = pool_.OnGpusOfItsOwn(decision.placement, least);
  if (!spec.slot_sizes.empty() && spec.HasSize(TotalSlots(decision.placement))) {
    for (least = TotalSlots(placement); !spec.HasSize(least);) ++least;
    placement = pool_.OnGpusOfItsOwn(decision.placement, least);
  }
  const int to = TotalSlots(placement);
  const bool cut = to < TotalSlots(decision.placement);
  if (cut && (placement == group.target || (to < from && TotalSlots(decision.placement) >= from))) {
    return;
  }
  const DecisionKind kind = KindOfChange(trial, from, to);
  if (to == 0) {
    trials_.PauseTrial(trial.id, decision.reason, decision.figures);
    return;
  }
  group.target = placement;
  pool_.reconcile.insert(trial.id);
  if (cut) {
    turn_.Decide(trial, kind, from, to, absl::StrCat(decision.reason, "; no two of one GPU"));
  } else {
    turn_.Decide(trial, kind, from, to, decision.reason, decision.figures);
  }
}

}  // namespace espalier
