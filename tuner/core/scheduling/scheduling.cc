// Which trials exist, who gets which slots, and the steps from the present to that.

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/pool/job_check.h"
#include "tuner/base/check.h"
#include "tuner/core/core_impl.h"
#include "tuner/core/scheduling/work_left.h"
#include "tuner/core/state/slot_time.h"
#include "tuner/core/trials/sampler_history.h"

namespace espalier {

namespace {

DecisionKind KindOfChange(const Trial& trial, int from, int to) {
  if (to == 0) return DecisionKind::kPause;
  if (from == 0) return trial.started == Time{} ? DecisionKind::kStart : DecisionKind::kResume;
  if (to > from) return DecisionKind::kGrow;
  return to < from ? DecisionKind::kShrink : DecisionKind::kMove;
}

}  // namespace

void Core::Impl::Schedule() {
  turn_.Rest();
  for (const StudyId id : pool_.studies) {
    const Study& study = turn_.StudyAt(id);
    UpdateHeld(study);
    if (study.spec.queued()) HoldBack(study);
  }
  scheduled_at_ = turn_.now();
  client_slots_.Serve();
  if (options_.plan_aside) {
    if (const auto* parts = KnownParts()) CreateTrialsWhereUseful(*parts);
    AskForPlan();
  } else {
    const std::map<StudyId, StudyPart> parts = PartsOfStudies();
    CreateTrialsWhereUseful(parts);
    GiveWayToStarving(parts);
    for (const StudyId id : pool_.studies) UpdatePromise(turn_.StudyAt(id));
    PlanRequest request;
    request.policy = CurrentPolicy();
    request.pool = MakePool();
    const Plan plan = planner_.Make(request);
    for (const JobRefusal& refusal : plan.refusals) {
      RecordRefusal(turn_.TrialAt(refusal.trial), refusal.reason);
    }
    for (const AllocationDecision& decision : HoldersFirst(plan.allocations)) {
      TakeAllocation(decision);
    }
  }
  CarryOut();
}

// The steps from the present to what is planned.
void Core::Impl::CarryOut() {
  for (const TrialId id : std::vector<TrialId>(pool_.reconcile.begin(), pool_.reconcile.end())) {
    if (pool_.live.contains(id)) Reconcile(id);
    if (!pool_.live.contains(id) || HasWhatItShould(id)) pool_.reconcile.erase(id);
  }
  client_slots_.ServeFromUnused();
  for (const StudyId id : std::set<StudyId>(pool_.studies)) EndStudyIfDone(id);
}

// For what changes nothing by itself: a plan should see it, soon.
void Core::Impl::LookAgain() {
  if (options_.plan_aside) {
    look_ = true;
  } else {
    turn_.Wake();
  }
}

void Core::Impl::CreateTrials(const Study& study, int& room) {
  StudyPlugins& plugins = plugins_.Of(study);
  const StudySpec& spec = study.spec;
  if (!plugins.sampler->draws()) return;
  if (room >= spec.min_slots && TooLateForNewTrials(study)) return;
  std::int64_t alive = 0;
  for (const auto& [id, live] : pool_.live) {
    alive += live.study == &study && !held_.contains(id) ? 1 : 0;
  }
  const auto another = [&] {
    return room >= spec.min_slots && !plugins.exhausted &&
           (spec.max_trials == 0 || std::ssize(study.trials) < spec.max_trials) &&
           (spec.max_concurrent_trials == 0 || alive < spec.max_concurrent_trials);
  };
  if (!another()) return;
  SamplerHistory history =
      HistoryOf(turn_.state(), study, [](const Trial& trial) { return &trial.parameters; });
  while (another()) {
    const std::int64_t number = std::ssize(study.trials);
    Random random(MixSeed(spec.seed, static_cast<std::uint64_t>(number) + 1));
    std::optional<Parameters> parameters = plugins.sampler->Suggest(
        {spec.space, spec.direction, history.ended, history.running, number}, random);
    if (!parameters) {
      plugins.exhausted = true;
      return;
    }
    const TrialId id(turn_.state().last_trial.value + 1);
    turn_.Emit(TrialCreated{id, study.id, number, *std::move(parameters), turn_.now()});
    history.running.push_back(&turn_.TrialAt(id).parameters);
    promise_stale_.insert(study.id);
    room -= spec.min_slots;
    ++alive;
  }
}

// One policy a pool: what a client has said, or the service was started with; where a pool has none
// of its own, that of the oldest running study.
PluginSpec Core::Impl::CurrentPolicy() const {
  if (const std::optional<PluginSpec> own = PoolPolicy()) return *own;
  if (pool_.studies.empty()) return PluginSpec{"promise_goodput", {}};
  return turn_.state().studies.at(*pool_.studies.begin()).spec.policy;
}

std::optional<PluginSpec> Core::Impl::PoolPolicy() const {
  if (!options_.policy) return std::nullopt;
  return turn_.state().policy ? turn_.state().policy : options_.policy;
}

bool Core::Impl::PromiseIsDue(const Study& study) {
  if (!promise_stale_.contains(study.id)) return false;
  if (study.trials.size() > kPromiseEveryReport) {
    Time& last = promise_at_[study.id];
    if (last != Time{} && SecondsBetween(last, turn_.now()) < kPromiseInterval_s) return false;
    last = turn_.now();
  }
  promise_stale_.erase(study.id);
  return true;
}

void Core::Impl::UpdatePromise(const Study& study) {
  if (!PromiseIsDue(study)) return;
  for (const auto& [trial, promise] : PromiseOf(CurvesToForecast(study))) {
    promise_[trial] = promise;
  }
}

// Its points lie with the trials, until the study's next value.
StudyCurves Core::Impl::CurvesToForecast(const Study& study) {
  StudyCurves forecast;
  forecast.study = study.id;
  forecast.direction = study.spec.direction;
  forecast.options = {study.spec.best_k, LastStepOf(study)};
  forecast.trials = study.trials;
  const std::span<const Curve> curves = curves_.Of(turn_.state(), study);
  forecast.curves.assign(curves.begin(), curves.end());
  return forecast;
}

void Core::Impl::DescribeHistory(const Trial& trial, Job& job) const {
  job.age_s = SecondsBetween(trial.created, turn_.now());
  for (const SlotSpan& span : trial.spans) {
    const double held_s = HeldSeconds(span, turn_.now());
    job.held_s += held_s;
    job.attained_service += held_s * static_cast<double>(span.slots.size());
  }
  job.resizes = static_cast<int>(trial.resizes.size());
  const Direction direction = turn_.state().studies.at(trial.study).spec.direction;
  if (const std::optional<double> best = BestValue(trial, direction)) {
    job.cost = direction == Direction::kMinimize ? *best : -*best;
  }
}

// Once a trial.
void Core::Impl::RecordRefusal(const Trial& trial, const std::string& reason) {
  if (!speeds_.NoteRefused(trial.id)) return;
  const auto group = pool_.groups.find(trial.id);
  const int held = group == pool_.groups.end() ? 0 : Total(group->second.target);
  turn_.Decide(
      trial, DecisionKind::kStudy, held, held,
      absl::StrCat("keeps its slots, since the allocator cannot work with its numbers: ", reason));
}

double Core::Impl::ShareDoneBy(const Trial& trial) const {
  const auto group = pool_.groups.find(trial.id);
  if (group == pool_.groups.end()) {
    return ShareDone(trial, std::nullopt, LastStepOf(turn_.state().studies.at(trial.study)));
  }
  if (!group->second.progress) return 0;
  return ShareDone(trial, group->second.progress->epoch, group->second.total_steps);
}

Job Core::Impl::MakeJob(const Study& study, const Trial& trial, int most_slots) {
  Job job;
  job.id = trial.id;
  job.study = study.id;
  job.order = trial.id.value;
  job.name = absl::StrCat("trial ", trial.number);
  if (turn_.state().studies.size() > 1) absl::StrAppend(&job.name, " of ", study.spec.name);
  job.min_slots = study.spec.min_slots;
  job.max_slots = study.spec.min_slots;
  job.pinned_slots = trial.pinned_slots;
  job.fixed_batch = study.spec.batch_mode == BatchMode::kFixed;
  if (const auto p = promise_.find(trial.id); p != promise_.end()) job.promise = p->second;
  DescribeHistory(trial, job);
  const absl::Status good_numbers = speeds_.Describe(trial.id, job);
  if (!good_numbers.ok()) RecordRefusal(trial, std::string(good_numbers.message()));
  const auto it = pool_.groups.find(trial.id);
  job.work_left_s = WorkLeft(trial, job, ShareDoneBy(trial), turn_.now());
  if (it == pool_.groups.end()) {
    // A pin waits until the program has shown that it can be resized.
    if (job.pinned_slots > 0) job.pinned_slots = study.spec.min_slots;
    return job;
  }
  const Group& group = it->second;
  job.running = true;
  job.current = group.target;
  job.joining = !pool_.Settled(trial.id, group);
  if (!group.elastic) {
    job.pinned_slots = 0;
    job.max_slots = std::max(job.min_slots, Total(group.target));
    return job;
  }
  job.max_slots = study.spec.max_slots > 0 ? study.spec.max_slots : most_slots;
  if (group.joiner_failures >= kMaxJoinerFailures) {
    job.max_slots = std::max<int>(1, static_cast<int>(group.members.size()));
    job.pinned_slots = 0;
  }
  job.min_slots = std::min(job.min_slots, job.max_slots);
  // A fixed global batch cannot be cut into more shares than it has samples.
  if (job.fixed_batch && group.batch.initial > 0) {
    job.max_slots = static_cast<int>(std::min<std::int64_t>(job.max_slots, group.batch.initial));
  }
  if (!good_numbers.ok()) job.joining = true;
  if (group.progress) job.global_batch = group.progress->global_batch_size;
  if (job.global_batch == 0) job.global_batch = group.batch.initial;
  job.since_resize_s =
      group.last_resize == Time{} ? 1e9 : SecondsBetween(group.last_resize, turn_.now());
  if (const auto cost_s = speeds_.ResizeCost_s(trial)) job.resize_cost_s = *cost_s;
  return job;
}

// What may be given out on each node.
std::vector<NodeCapacity> Core::Impl::Capacities() const {
  // A slot that made a replica slow is good enough for a trial that has none, and only for that.
  const bool some_wait =
      std::any_of(pool_.live.begin(), pool_.live.end(), [this](const auto& entry) {
        const auto& [id, live] = entry;
        return live.study->state == StudyState::kRunning && !pool_.groups.contains(id) &&
               !held_.contains(id);
      });
  std::map<NodeId, int> planned_on;
  for (const auto& [trial, group] : pool_.groups) {
    for (const auto& [node, slots] : group.target) planned_on[node] += slots;
  }
  // Processes of ended and stopped trials hold their slots until they are gone: nothing new is
  // planned there, and what is planned stays.
  std::map<NodeId, int> leftovers;
  for (const auto& [id, replica] : pool_.replicas) {
    const auto group = pool_.groups.find(replica.trial);
    if (group == pool_.groups.end() || group->second.pausing) ++leftovers[replica.node];
  }
  for (const Slot& slot : pool_.SlotsToRecover()) ++leftovers[slot.node];
  std::vector<NodeCapacity> nodes;
  for (const auto& [id, node] : pool_.nodes) {
    const int most = node.slots - pool_.ClientSlotsOn(id);
    const int planned = planned_on[id];
    int slots = most - leftovers[id];
    if (!some_wait) slots -= pool_.FreeSlowSlots(id);
    // A node that is to be emptied has room for nobody, whatever a policy makes of that.
    if (node.draining) slots = planned;
    int capacity = std::min(most, std::max(slots, planned));
    // What clients wait for is taken from trials only as far as these can shrink.
    if (const int reserved = client_slots_.ReservedOn(id); reserved > 0) {
      capacity = std::min(capacity, std::max(slots - reserved, planned - pool_.SettledGiveOn(id)));
    }
    nodes.push_back({id, capacity, node.name, node.gpu_type, node.draining, node.spot});
  }
  return nodes;
}

Pool Core::Impl::MakePool(int most_slots) {
  Pool pool;
  pool.now_s = Seconds(turn_.now());
  pool.nodes = Capacities();
  std::map<StudyId, double> time_left_s;
  for (const auto& [id, live] : pool_.live) {
    const Trial& trial = *live.trial;
    const Study& study = *live.study;
    const bool has_group = pool_.groups.contains(id);
    if (has_group && pool_.groups.at(id).pausing) continue;
    if (pool_.recovering.contains(id) || held_.contains(id)) continue;
    if (keeping_.Holds(id)) continue;
    if (study.state != StudyState::kRunning && !has_group) continue;
    pool.jobs.push_back(MakeJob(study, trial, most_slots));
    if (study.spec.time_limit_s <= 0 && study.spec.cost_limit <= 0) continue;
    // A look at all trials of the study: once for all of them.
    if (!time_left_s.contains(study.id)) time_left_s[study.id] = std::max(1e-3, TimeLeft(study));
    pool.jobs.back().time_left_s = time_left_s[study.id];
  }
  for (const StudyId id : pool_.studies) pool.shares.emplace(id, turn_.StudyAt(id).spec.share);
  if (pool.shares.size() > 1) OrderByShare(pool);
  AssignIslands(pool, pool_.faults.Apart(turn_.now()));
  return pool;
}

// Whether the trial can get there within its group, or is seen to otherwise. A policy that keeps to
// the islands may move it as a whole, and then its state goes by way of its checkpoint. Of one that
// was asked before the nodes were known to be apart nothing is taken.
bool Core::Impl::WithinReach(const AllocationDecision& decision) {
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
  PauseTrial(decision.trial,
             absl::StrCat(decision.reason, ", by way of its checkpoint: the nodes that it is on ",
                          "and is to go to cannot talk"));
  return false;
}

void Core::Impl::TakeAllocation(const AllocationDecision& decision) {
  look_again_s_ = kLookAgain_s;
  if (keeping_.Holds(decision.trial) || !WithinReach(decision)) return;
  const Trial& trial = turn_.TrialAt(decision.trial);
  Group& group = pool_.groups[decision.trial];
  const int from = Total(group.target);
  const int to = Total(decision.placement);
  const DecisionKind kind = KindOfChange(trial, from, to);
  if (to == 0) {
    PauseTrial(trial.id, decision.reason);
    return;
  }
  group.target = decision.placement;
  pool_.reconcile.insert(trial.id);
  turn_.Decide(trial, kind, from, to, decision.reason);
}

// Replicas that the target has no place for: joiners before members, high ranks before low ones. A
// straggler that is being replaced is always among them.
std::set<ReplicaId> Core::Impl::Surplus(const Group& group,
                                        const std::vector<Replica*>& live) const {
  const auto rank = [&group](const Replica* r) {
    return std::find(group.members.begin(), group.members.end(), r->id) - group.members.begin();
  };
  std::set<ReplicaId> surplus;
  std::map<NodeId, std::vector<const Replica*>> by_node;
  for (const Replica* replica : live) {
    if (replica->id == group.replaced) {
      surplus.insert(replica->id);
    } else {
      by_node[replica->node].push_back(replica);
    }
  }
  for (auto& [node, here] : by_node) {
    const auto target = group.target.find(node);
    const std::size_t wanted =
        target == group.target.end() ? 0 : static_cast<std::size_t>(target->second);
    std::stable_sort(here.begin(), here.end(),
                     [&rank](const Replica* a, const Replica* b) { return rank(a) < rank(b); });
    for (std::size_t i = wanted; i < here.size(); ++i) surplus.insert(here[i]->id);
  }
  return surplus;
}

void Core::Impl::StartJoiners(const Trial& trial, const Group& group,
                              const std::vector<Replica*>& live) {
  for (const auto& [node, wanted] : group.target) {
    if (pool_.Draining(node)) continue;
    int here = 0;
    for (const Replica* replica : live) {
      here += replica->node == node && replica->id != group.replaced ? 1 : 0;
    }
    for (; here < wanted; ++here) {
      const std::optional<int> slot = pool_.FreeSlot(node);
      if (!slot) break;
      if (trial.state != TrialState::kRunning) {
        turn_.Emit(
            TrialStateChanged{trial.id, TrialState::kRunning, turn_.now(), "", std::nullopt, ""});
      }
      StartReplica(trial, node, *slot);
      // Whether a program can share its work is known when its first replica says Ready.
      if (!group.elastic) return;
    }
  }
}

// Who should train from the next generation on: the members that stay and the joiners that are
// ready. Joiners come in together; members that have no place any more go at once, but for those
// whose place is taken by a joiner that is still starting: a trial moves by growing first.
std::vector<ReplicaId> Core::Impl::WantedMembers(TrialId id, const std::vector<Replica*>& live,
                                                 const std::set<ReplicaId>& surplus) const {
  const Group& group = pool_.groups.at(id);
  std::size_t starting = 0;
  for (const Replica* replica : pool_.ReplicasOf(id)) {
    starting += !replica->ready && !replica->stopping ? 1 : 0;
  }
  std::vector<ReplicaId> wanted;
  bool shrinks = false;
  for (const ReplicaId member : group.members) {
    const bool leaves = surplus.contains(member);
    const bool stands_in = leaves && starting > 0 && !MustLeave(pool_.replicas.at(member).node, id);
    if (stands_in) --starting;
    if (!leaves || stands_in) {
      wanted.push_back(member);
    } else {
      shrinks = true;
    }
  }
  const std::vector<const Replica*> all = pool_.ReplicasOf(id);
  const bool all_ready = std::all_of(all.begin(), all.end(), [](const Replica* replica) {
    return replica->ready || replica->stopping;
  });
  if (!all_ready && !shrinks) return group.members;
  for (const Replica* replica : live) {
    const bool member =
        std::find(group.members.begin(), group.members.end(), replica->id) != group.members.end();
    if (replica->ready && !member) wanted.push_back(replica->id);
  }
  if (!wanted.empty() && !group.members.empty()) KeepASource(id, wanted);
  return wanted;
}

// A trial that moves as a whole keeps one of its members for one generation more, from which the
// others take what it has learnt.
void Core::Impl::KeepASource(TrialId id, std::vector<ReplicaId>& wanted) const {
  const Group& group = pool_.groups.at(id);
  const bool has_one = std::any_of(wanted.begin(), wanted.end(), [&group](ReplicaId w) {
    return std::find(group.members.begin(), group.members.end(), w) != group.members.end();
  });
  if (has_one) return;
  // It may be one too many for a global batch that cannot be cut into more shares.
  const bool fixed = turn_.state().studies.at(turn_.state().trials.at(id).study).spec.batch_mode ==
                     BatchMode::kFixed;
  if (fixed && group.batch.initial > 0 && wanted.size() > 1 &&
      static_cast<std::int64_t>(wanted.size()) >= group.batch.initial) {
    wanted.pop_back();
  }
  wanted.insert(wanted.begin(), group.members.front());
}

// Whether Reconcile would find nothing to do, until something about the trial changes.
bool Core::Impl::HasWhatItShould(TrialId id) const {
  const auto found = pool_.groups.find(id);
  if (found == pool_.groups.end()) return true;
  const Group& group = found->second;
  if (group.pausing || group.forming || group.ending || group.replaced) return false;
  if (turn_.state().studies.at(turn_.state().trials.at(id).study).state != StudyState::kRunning)
    return false;
  Placement held;
  for (const ReplicaId replica_id : pool_.replicas.Of(id)) {
    const Replica& replica = pool_.replicas.at(replica_id);
    if (replica.leaving || replica.stopping || replica.ready != group.elastic) return false;
    ++held[replica.node];
  }
  if (!group.elastic) {
    // Until its first replica is Ready, or ends, no more are started.
    return !held.empty() && std::all_of(held.begin(), held.end(), [&group](const auto& here) {
      const auto target = group.target.find(here.first);
      return target != group.target.end() && here.second <= target->second;
    });
  }
  const std::set<ReplicaId>& all = pool_.replicas.Of(id);
  return held == group.target && group.members.size() == all.size() &&
         std::all_of(group.members.begin(), group.members.end(),
                     [&all](ReplicaId member) { return all.contains(member); });
}

void Core::Impl::ReconcileAll() {
  for (const auto& [id, live] : pool_.live) pool_.reconcile.insert(id);
}

// One step from what a trial has to what it should have. Called after anything has changed.
void Core::Impl::Reconcile(TrialId id) {
  const auto it = pool_.groups.find(id);
  if (it == pool_.groups.end() || it->second.pausing) return;
  Group& group = it->second;
  const Trial& trial = turn_.TrialAt(id);
  if (turn_.StudyAt(trial.study).state != StudyState::kRunning) return;
  std::vector<Replica*> live;
  bool replaced_lives = false;
  for (const ReplicaId replica_id : pool_.replicas.Of(id)) {
    Replica& replica = pool_.replicas.at(replica_id);
    if (replica.leaving || replica.stopping) continue;
    live.push_back(&replica);
    replaced_lives = replaced_lives || replica_id == group.replaced;
  }
  if (!replaced_lives) group.replaced = {};
  const std::set<ReplicaId> surplus = Surplus(group, live);
  if (StartAgainIfNobodyKnows(id, "a newer checkpoint than it was started from came to light",
                              /*its_fault=*/false)) {
    return;
  }
  const bool first = !group.elastic && !pool_.replicas.Of(id).empty();
  const bool nowhere = pool_.replicas.Of(id).empty() && !CheckpointInReach(trial);
  if (!first && !nowhere && !group.ending) StartJoiners(trial, group, live);

  // Joiners that are no longer wanted have nothing to hand over.
  std::erase_if(live, [&](Replica* replica) {
    const bool member =
        std::find(group.members.begin(), group.members.end(), replica->id) != group.members.end();
    if (member || !surplus.contains(replica->id)) return false;
    StopReplica(*replica, 0);
    return true;
  });
  if (!group.elastic || group.forming || group.ending) return;
  std::vector<ReplicaId> wanted = WantedMembers(id, live, surplus);
  if (wanted.empty() || wanted == group.members) return;
  Regroup(id, std::move(wanted), /*abandon=*/false, /*after_loss=*/false);
}

}  // namespace espalier
