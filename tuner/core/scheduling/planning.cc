// Plans that are made beside the owner's thread: what they are shown, and what is left of them when
// they come.

#include <algorithm>
#include <set>
#include <utility>

#include "tuner/core/scheduling/scheduler.h"

namespace espalier {

namespace {

// After a plan the next one is not asked for until so many times as long has passed as it took.
// What a plan is shown of a thousand trials costs the owner's thread milliseconds each time. One
// that took very long has most often waited for a commit, on a disk that was slow: whoever has
// waited that long for slots does not wait for longer than this again.
constexpr double kRestPerPlan = 3;
constexpr double kMostRest_s = 10;

int At(const Placement& placement, NodeId node) {
  const auto at = placement.find(node);
  return at == placement.end() ? 0 : at->second;
}

// For the trials go on while they are forecast.
void KeepPoints(StudyCurves& study) {
  std::size_t all = 0;
  for (const Curve& curve : study.curves) all += curve.points.size();
  study.points.reserve(all);
  for (Curve& curve : study.curves) {
    const auto from =
        study.points.insert(study.points.end(), curve.points.begin(), curve.points.end());
    curve.points = {from, curve.points.size()};
    if (curve.others.empty()) continue;
    curve.others = study.other_points.emplace_back(curve.others.begin(), curve.others.end());
  }
}

}  // namespace

// One at a time, and the planner rests for longer than it has worked: whatever happens meanwhile, a
// thousand reports for instance, is one look.
void Scheduler::AskForPlan() {
  look_ = planning_ != nullptr || turn_.now() < planner_rests_until_;
  if (look_) return;
  auto request = std::make_shared<PlanRequest>();
  request->number = ++plans_asked_;
  request->policy = CurrentPolicy();
  std::set<StudyId> with_live_trials;
  for (const auto& [id, live] : pool_.live) with_live_trials.insert(live.study->id);
  for (const StudyId id : pool_.studies) {
    const Study& study = turn_.StudyAt(id);
    if (study.trials.size() <= Promises::kEveryReport) {
      UpdatePromise(study);
    } else if (with_live_trials.contains(id) && promises_.TakeDue(study)) {
      KeepPoints(request->curves.emplace_back(CurvesToForecast(study)));
    }
  }
  request->speeds = speeds_.TakeDue();
  DescribeSharing(*request);
  request->pool = view_.MakePool();
  plan_asked_at_ = turn_.now();
  planning_ = request;
  turn_.RequestPlan(std::move(request));
}

void Scheduler::On(const PlanMade& event) {
  if (!event.plan || !planning_ || event.plan->number != planning_->number) return;
  const std::shared_ptr<const PlanRequest> shown = std::exchange(planning_, nullptr);
  const double took_s = SecondsBetween(plan_asked_at_, turn_.now());
  planner_rests_until_ = After(turn_.now(), std::min(kRestPerPlan * took_s, kMostRest_s));
  CountTime();
  const bool all_taken = TakePlan(*event.plan, *shown);
  parts_ = event.plan->parts;
  std::erase_if(parts_, [this](const auto& part) { return !pool_.studies.contains(part.first); });
  const std::size_t before = pool_.live.size();
  if (const auto* parts = KnownParts()) {
    CreateTrialsWhereUseful(*parts);
    GiveWayToStarving(*parts);
  } else {
    look_ = true;
  }
  look_ = look_ || pool_.live.size() != before;
  look_ = look_ || !all_taken || !event.plan->speeds.empty();
  CarryOut();
}

// The pool has gone on since it was shown. What no longer holds is dropped, trial by trial, and the
// next plan sees why. False: some was.
bool Scheduler::TakePlan(const Plan& plan, const PlanRequest& request) {
  for (const auto& [trial, promise] : plan.promise) {
    if (pool_.live.contains(trial)) promises_.Set(trial, promise);
  }
  for (const FittedSpeed& fitted : plan.speeds) speeds_.TakeFitted(fitted);
  for (const JobRefusal& refusal : plan.refusals) {
    if (pool_.live.contains(refusal.trial))
      view_.RecordRefusal(turn_.TrialAt(refusal.trial), refusal.reason);
  }
  std::map<TrialId, const Job*> shown;
  for (const Job& job : request.pool.jobs) shown.emplace(job.id, &job);
  std::vector<AllocationDecision> meant;
  for (const AllocationDecision& decision : plan.allocations) {
    if (StillMeant(decision, shown)) meant.push_back(decision);
  }
  meant = ThatFit(std::move(meant));
  const bool all = meant.size() == plan.allocations.size();
  meant = HoldersFirst(WithoutVainMoves(std::move(meant)));
  for (const AllocationDecision& decision : meant) {
    // A trial that was to leave a node which others span may not have left it.
    if (!all && !pool_.MaySpan(decision.trial, decision.placement)) continue;
    TakeAllocation(decision);
  }
  return all;
}

// Whether the trial is as it was shown: it waits, or has the slots that it was planned to have.
bool Scheduler::StillMeant(const AllocationDecision& decision,
                           const std::map<TrialId, const Job*>& shown) {
  const TrialId id = decision.trial;
  if (!pool_.live.contains(id) || trials_.Held(id) || pool_.recovering.contains(id)) return false;
  if (checkpoints_.Holds(id)) return false;
  const Trial& trial = turn_.TrialAt(id);
  if (turn_.StudyAt(trial.study).state != StudyState::kRunning) return false;
  const Job& job = *shown.at(id);
  const auto group = pool_.groups.find(id);
  if ((group != pool_.groups.end()) != job.running) return false;
  if (group == pool_.groups.end()) return true;
  if (group->second.pausing || group->second.target != job.current) return false;
  const int slots = TotalSlots(decision.placement);
  const int most = group->second.elastic ? joins_.MostReplicas(id) : Joins::kNoLimit;
  if (slots > TotalSlots(job.current) && slots > most) return false;
  const bool pinned = group->second.elastic && trial.pinned_slots > 0 && most == Joins::kNoLimit;
  return !pinned || slots == 0 || slots == trial.pinned_slots;
}

// A trial whose replicas fail when they join cannot move by growing first: of its new placement it
// gets what it has already, if that is enough. Policies do not know of it, so that no plan is made
// anew because of what is left out here.
std::vector<AllocationDecision> Scheduler::WithoutVainMoves(
    std::vector<AllocationDecision> decisions) const {
  bool changed = false;
  std::erase_if(decisions, [&](AllocationDecision& decision) {
    const auto group = pool_.groups.find(decision.trial);
    if (group == pool_.groups.end() || !group->second.elastic) return false;
    const int may_start = joins_.MayStart(decision.trial);
    if (may_start == Joins::kNoLimit) return false;
    Placement kept;
    int joining = 0;
    for (const auto& [node, slots] : decision.placement) {
      const int here = At(group->second.target, node);
      joining += std::max(0, slots - here);
      if (const int stay = std::min(slots, here); stay > 0) kept[node] = stay;
    }
    if (joining <= may_start) return false;
    changed = true;
    const Trial& trial = turn_.TrialAt(decision.trial);
    decision.placement = std::move(kept);
    decision.figures.reset();  // they are of another placement
    return decision.placement == group->second.target ||
           TotalSlots(decision.placement) < turn_.StudyAt(trial.study).spec.min_slots;
  });
  return changed ? ThatFit(std::move(decisions)) : decisions;
}

// Those that leave no node with more than it has, if all of them are taken.
std::vector<AllocationDecision> Scheduler::ThatFit(
    std::vector<AllocationDecision> decisions) const {
  static const Placement kNone;
  const auto current = [this](TrialId id) -> const Placement& {
    const auto group = pool_.groups.find(id);
    return group == pool_.groups.end() ? kNone : group->second.target;
  };
  std::map<NodeId, int> left;
  for (const NodeCapacity& node : view_.Capacities()) left[node.id] = node.slots;
  for (const auto& [id, group] : pool_.groups) {
    for (const auto& [node, slots] : group.target) left[node] -= slots;
  }
  const auto take = [&](const AllocationDecision& decision, int sign) {
    for (const auto& [node, slots] : current(decision.trial)) left[node] += sign * slots;
    for (const auto& [node, slots] : decision.placement) left[node] -= sign * slots;
  };
  for (const AllocationDecision& decision : decisions) take(decision, 1);
  const auto too_much = [&](const AllocationDecision& decision) {
    return std::any_of(decision.placement.begin(), decision.placement.end(), [&](const auto& at) {
      return left[at.first] < 0 && at.second > At(current(decision.trial), at.first);
    });
  };
  // What is dropped may leave too little to another that was to have its slots.
  while (true) {
    const auto last = std::find_if(decisions.rbegin(), decisions.rend(), too_much);
    if (last == decisions.rend()) return decisions;
    take(*last, -1);
    decisions.erase(std::prev(last.base()));
  }
}

}  // namespace espalier
