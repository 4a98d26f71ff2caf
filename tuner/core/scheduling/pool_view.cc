#include "tuner/core/scheduling/pool_view.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/pool/job_check.h"
#include "allocator/pool/speedup.h"
#include "base/launchers.h"
#include "tuner/core/groups/launched_groups.h"
#include "tuner/core/groups/size_restarts.h"
#include "tuner/core/scheduling/work_left.h"
#include "tuner/core/state/slot_time.h"
#include "tuner/core/state/study_facts.h"

namespace espalier {

// What may be given out on each node.
std::vector<NodeCapacity> PoolView::Capacities() const {
  // A slot that made a replica slow is good enough for a trial that has none, and only for that.
  const bool some_wait =
      std::any_of(pool_.live.begin(), pool_.live.end(), [this](const auto& entry) {
        const auto& [id, live] = entry;
        return live.study->state == StudyState::kRunning && !pool_.groups.contains(id) &&
               !trials_.Held(id);
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
    if (group == pool_.groups.end() || group->second.pausing) {
      leftovers[replica.node] += replica.slots();
    }
  }
  for (const Slot& slot : pool_.SlotsToRecover()) ++leftovers[slot.node];
  std::vector<NodeCapacity> nodes;
  for (const auto& [id, node] : pool_.nodes) {
    const int most = node.slots - pool_.ClientSlotsOn(id);
    const int planned = planned_on[id];
    const int unusable = pool_.UnusableSlotsOn(node);
    int slots = most - leftovers[id];
    if (!some_wait) slots -= pool_.FreeSlowSlots(id);
    // A node that is to be emptied has room for nobody, whatever a policy makes of that.
    if (node.draining) slots = planned;
    int capacity = std::min(most, std::max(slots, planned));
    // What clients wait for, and what trials have to leave, is taken from trials only as far as
    // these can shrink.
    if (const int withheld = client_slots_.ReservedOn(id) + unusable; withheld > 0) {
      capacity = std::min(capacity, std::max(slots - withheld, planned - pool_.SettledGiveOn(id)));
    }
    nodes.push_back(
        {.id = id,
         .slots = capacity,
         .name = node.name,
         .gpu_type = node.gpu_type,
         .draining = node.draining,
         .spot = node.spot,
         .most_of_one_trial = pool_.GpusOn(node) < node.slots ? pool_.GpusOn(node) : 0});
  }
  return nodes;
}

Pool PoolView::MakePool() { return MakePool(std::max(1, pool_.SlotsTotal()), false); }

Pool PoolView::MakePoolToCome(int most_slots) { return MakePool(most_slots, true); }

Pool PoolView::MakePool(int most_slots, bool with_waiting) {
  Pool pool;
  pool.now_s = Seconds(turn_.now());
  pool.nodes = Capacities();
  const JobLimits limits{.most_slots = most_slots,
                         .most_on_gpus_of_its_own = MostOnGpusOfItsOwn(most_slots)};
  std::map<StudyId, double> time_left_s;
  std::map<StudyId, bool> starts;
  for (const auto& [id, live] : pool_.live) {
    const Trial& trial = *live.trial;
    const Study& study = *live.study;
    const bool has_group = pool_.groups.contains(id);
    if (has_group && pool_.groups.at(id).pausing) continue;
    if (pool_.recovering.contains(id) || trials_.Held(id)) continue;
    if (checkpoints_.Holds(id) && !(with_waiting && checkpoints_.WaitsForHolder(id))) continue;
    if (study.state != StudyState::kRunning && !has_group) continue;
    if (!has_group) {
      // A look at all nodes: once for all trials of the study.
      const auto [known, is_new] = starts.try_emplace(study.id, true);
      if (is_new) known->second = NodesTooOldFor(study.spec, pool_).empty();
      if (!known->second) continue;
    }
    pool.jobs.push_back(MakeJob(study, trial, limits));
    if (study.spec.time_limit_s <= 0 && study.spec.cost_limit <= 0) continue;
    // A look at all trials of the study: once for all of them.
    if (!time_left_s.contains(study.id))
      time_left_s[study.id] = std::max(1e-3, limits_.TimeLeft(study));
    pool.jobs.back().time_left_s = time_left_s[study.id];
  }
  for (const StudyId id : pool_.studies) pool.shares.emplace(id, turn_.StudyAt(id).spec.share);
  if (pool.shares.size() > 1) OrderByShare(pool);
  AssignIslands(pool, pool_.faults.Apart(turn_.now()));
  return pool;
}

Job PoolView::MakeJob(const Study& study, const Trial& trial, const JobLimits& limits) {
  Job job;
  job.id = trial.id;
  job.study = study.id;
  job.order = trial.id.value;
  job.name = absl::StrCat("trial ", trial.number);
  if (turn_.state().studies.size() > 1) absl::StrAppend(&job.name, " of ", study.spec.name);
  job.min_slots = study.spec.min_slots;
  job.max_slots = study.spec.min_slots;
  job.sizes = study.spec.slot_sizes;
  job.most_on_node = study.spec.slots_per_node;
  job.undivided = NeedsOneNode(study);
  job.pinned_slots = trial.pinned_slots;
  job.fixed_batch = study.spec.batch_mode == BatchMode::kFixed;
  job.promise = promises_.Of(trial.id);
  DescribeHistory(trial, job);
  const absl::Status good_numbers = speeds_.Describe(trial.id, job);
  if (!good_numbers.ok()) RecordRefusal(trial, std::string(good_numbers.message()));
  const auto it = pool_.groups.find(trial.id);
  job.work_left_s = WorkLeft(trial, job, ShareDoneBy(trial), turn_.now());
  if (it == pool_.groups.end()) {
    if (study.spec.resize_by_restart) {
      DescribeSizes(study, trial, limits, job);
    } else if (job.pinned_slots > 0) {
      // A pin waits until the program has shown that it can be resized.
      job.pinned_slots = study.spec.min_slots;
    }
    return job;
  }
  const Group& group = it->second;
  job.running = true;
  job.current = group.target;
  job.joining = !pool_.Settled(trial.id, group);
  const bool restarts = study.spec.resize_by_restart && MayRestartForSize(pool_, trial, group);
  if (!group.elastic && !restarts) {
    job.pinned_slots = 0;
    job.max_slots = std::max(job.min_slots, TotalSlots(group.target));
    return job;
  }
  if (restarts) job.joining = false;
  DescribeSizes(study, trial, limits, job);
  if (!good_numbers.ok()) job.joining = true;
  if (group.progress) job.global_batch = group.progress->global_batch_size;
  if (job.global_batch == 0 && group.elastic) job.global_batch = group.batch.initial;
  job.since_resize_s =
      group.last_resize == Time{} ? 1e9 : SecondsBetween(group.last_resize, turn_.now());
  if (const auto cost_s = speeds_.ResizeCost_s(trial)) {
    job.resize_cost_s = *cost_s;
  } else if (restarts && !trial.values.empty()) {
    // It takes about as long as its first start did, until its first value.
    job.resize_cost_s = std::max(0.0, SecondsBetween(trial.started, trial.values.front().at));
  }
  return job;
}

// The bounds of a trial that can be resized.
void PoolView::DescribeSizes(const Study& study, const Trial& trial, const JobLimits& limits,
                             Job& job) {
  job.max_slots = study.spec.max_slots > 0 ? study.spec.max_slots : limits.most_slots;
  const int most = joins_.MostReplicas(trial.id);
  job.max_slots = std::min(job.max_slots, most);
  job.pinned_slots = std::min(job.pinned_slots, most);
  if (const std::optional<int> own = limits.most_on_gpus_of_its_own) {
    job.max_slots = std::min(job.max_slots, std::max(*own, study.spec.min_slots));
  }
  if (populations_.WillBeReplaced(trial.id)) {
    job.max_slots = std::min(job.max_slots, TotalSlots(job.current));
  }
  job.max_slots = std::max(job.max_slots, job.min_slots);
  if (job.pinned_slots > 0 && !study.spec.HasSize(job.pinned_slots)) {
    // As many as join, and these are between two of its sizes.
    const int pinned = std::exchange(job.pinned_slots, 0);
    job.pinned_slots = std::max(LargestSize(job, pinned), job.min_slots);
  }
  const auto it = pool_.groups.find(trial.id);
  if (it == pool_.groups.end() || !it->second.elastic) {
    job.max_profiled_replicas =
        std::max({job.max_profiled_replicas, job.min_slots, TotalSlots(job.current)});
    return;
  }
  // A fixed global batch cannot be cut into more shares than it has samples.
  const std::int64_t batch = it->second.batch.initial;
  if (job.fixed_batch && batch > 0) {
    job.max_slots = static_cast<int>(std::min<std::int64_t>(job.max_slots, batch));
  }
}

// One process, which has only what is on its own machine, or the ranks of a launcher, which are
// best on one. Whether it is one process is seen by a launcher's command, or when trials of the
// study have trained.
bool PoolView::NeedsOneNode(const Study& study) const {
  if (study.spec.resize_by_restart || !study.spec.launch.empty()) return true;
  return study.spec.min_slots > 1 &&
         (LauncherOf(study.spec.command) != nullptr || HasProvenInelastic(turn_.state(), study));
}

// How many slots one trial can have without sharing a GPU with itself, in the pool as it would be
// with so many; none: all.
std::optional<int> PoolView::MostOnGpusOfItsOwn(int most_slots) const {
  // A pool that may come to have more slots may come to have more GPUs.
  int most = std::max(0, most_slots - pool_.SlotsTotal());
  bool shared = false;
  for (const auto& [id, node] : pool_.nodes) {
    most += pool_.GpusOn(node);
    shared = shared || pool_.GpusOn(node) < node.slots;
  }
  if (!shared) return std::nullopt;
  return most;
}

void PoolView::DescribeHistory(const Trial& trial, Job& job) const {
  job.age_s = SecondsBetween(trial.created, turn_.now());
  for (const SlotSpan& span : trial.spans) {
    const double held_s = HeldSeconds(span, turn_.now());
    job.held_s += held_s;
    job.attained_service += held_s * static_cast<double>(span.slots.size());
  }
  job.resizes = static_cast<int>(trial.resizes.size());
  const Direction direction = turn_.state().studies.at(trial.study).spec.direction();
  const std::optional<double> best = BestValue(trial, direction);
  if (best && Counts(direction, *best)) {
    job.cost = direction == Direction::kMinimize ? *best : -*best;
  }
}

double PoolView::ShareDoneBy(const Trial& trial) const {
  const auto group = pool_.groups.find(trial.id);
  if (group == pool_.groups.end()) {
    return ShareDone(trial, std::nullopt, pool_.LastStepOf(turn_.state().studies.at(trial.study)));
  }
  if (!group->second.progress) {
    const Study& study = turn_.state().studies.at(trial.study);
    if (group->second.elastic || !study.spec.resize_by_restart) return 0;
    return ShareDone(trial, std::nullopt, pool_.LastStepOf(study));
  }
  return ShareDone(trial, group->second.progress->epoch, group->second.total_steps);
}

// Once a trial.
void PoolView::RecordRefusal(const Trial& trial, const std::string& reason) {
  if (!speeds_.NoteRefused(trial.id)) return;
  const auto group = pool_.groups.find(trial.id);
  const int held = group == pool_.groups.end() ? 0 : TotalSlots(group->second.target);
  turn_.Decide(
      trial, DecisionKind::kStudy, held, held,
      absl::StrCat("keeps its slots, since the allocator cannot work with its numbers: ", reason));
}

// Puts first what is served first where studies compete: the first trial of each before the second
// of any, and two trials of a study with twice the share before another's one. In a study those
// that run come first, then the others in order of submission.
void PoolView::OrderByShare(Pool& pool) const {
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

// Configurations that the study may still draw, as far as is known.
StudyDemand PoolView::DemandOf(const Study& study, int most_slots) {
  StudyDemand demand{most_slots, study.spec.min_slots};
  if (!plugins_.MayDraw(study)) demand.configurations = 0;
  const auto at_most = [&demand](std::int64_t limit) {
    demand.configurations =
        static_cast<int>(std::clamp<std::int64_t>(limit, 0, demand.configurations));
  };
  if (study.spec.max_trials > 0) at_most(study.spec.max_trials - study.counted());
  if (study.spec.max_concurrent_trials > 0) {
    const auto alive = std::count_if(pool_.live.begin(), pool_.live.end(), [&](const auto& live) {
      return live.second.study == &study && !trials_.Held(live.first);
    });
    at_most(study.spec.max_concurrent_trials - alive);
  }
  return demand;
}

void PoolView::DescribeSharing(PlanRequest& request) {
  for (const StudyId id : pool_.studies) {
    request.demand.emplace(id, DemandOf(turn_.StudyAt(id), std::max(1, pool_.SlotsTotal())));
  }
  if (request.demand.size() < 2) return;
  request.shared = MakePool();
  // Slots that ended trials are about to leave are to be divided too.
  for (NodeCapacity& node : request.shared->nodes) {
    const Node& known = pool_.nodes.at(node.id);
    node.slots =
        std::max(0, known.slots - pool_.UnusableSlotsOn(known) - client_slots_.KeptOn(node.id));
  }
}

// Slots without which the study's live trials cannot run.
int PoolView::LeastSlotsOf(const Study& study) const {
  int slots = 0;
  for (const auto& [id, live] : pool_.live) {
    const Trial& trial = *live.trial;
    if (trial.study != study.id || trials_.Held(id)) continue;
    slots += trial.pinned_slots > 0 ? trial.pinned_slots : study.spec.min_slots;
  }
  return slots;
}

bool PoolView::SomeWait(const Study& study) const {
  return std::any_of(pool_.live.begin(), pool_.live.end(), [&](const auto& entry) {
    const auto& [id, live] = entry;
    return live.study == &study && !pool_.groups.contains(id) && !trials_.Held(id);
  });
}

// At the least of its trials that run.
int PoolView::RunningSlotsOf(const Study& study) const {
  int slots = 0;
  for (const auto& [id, group] : pool_.groups) {
    const Trial& trial = turn_.state().trials.at(id);
    if (trial.study != study.id || group.pausing) continue;
    slots += trial.pinned_slots > 0 ? trial.pinned_slots : study.spec.min_slots;
  }
  return slots;
}

std::map<StudyId, StudyUse> PoolView::UsesOfStudies() const {
  std::map<StudyId, StudyUse> uses;
  std::map<StudyId, std::int64_t> alive;
  for (const StudyId id : pool_.studies) {
    const StudySpec& spec = turn_.StudyAt(id).spec;
    uses.emplace(id, StudyUse{.share = spec.share,
                              .trial_slots = spec.min_slots,
                              .rigid = spec.max_slots == spec.min_slots});
  }
  for (const auto& [id, live] : pool_.live) {
    const auto use = uses.find(live.study->id);
    if (use == uses.end()) continue;
    const auto group = pool_.groups.find(id);
    const bool held = trials_.Held(id);
    alive[use->first] += held ? 0 : 1;
    if (group == pool_.groups.end()) {
      use->second.wants_more |= !held && !checkpoints_.Holds(id);
      use->second.held += pool_.SlotsHeldBy(id);
    } else {
      // Replicas start one after another.
      use->second.held += std::max(pool_.SlotsHeldBy(id), TotalSlots(group->second.target));
    }
  }
  // Processes of ended trials hold their slots until they are gone.
  for (const auto& [trial, replicas] : pool_.replicas.by_trial()) {
    if (pool_.live.contains(trial)) continue;
    const auto known = turn_.state().trials.find(trial);
    if (known == turn_.state().trials.end()) continue;
    const auto use = uses.find(known->second.study);
    if (use != uses.end()) use->second.held += pool_.SlotsHeldBy(trial);
  }
  for (auto& [id, use] : uses) {
    const Study& study = turn_.StudyAt(id);
    use.trial_s = TrialSeconds(study).value_or(use.trial_s);
    use.wants_more |= MayDrawMore(study, alive[id]);
  }
  return uses;
}

bool PoolView::MayDrawMore(const Study& study, std::int64_t alive) const {
  const StudySpec& spec = study.spec;
  return plugins_.MayDraw(study) && (spec.max_trials == 0 || study.counted() < spec.max_trials) &&
         (spec.max_concurrent_trials == 0 || alive < spec.max_concurrent_trials);
}

std::map<TrialId, int> PoolView::SlotsTaken() const {
  std::map<TrialId, int> taken;
  for (const auto& [trial, replicas] : pool_.replicas.by_trial()) {
    taken[trial] = pool_.SlotsHeldBy(trial);
  }
  // Replicas start one after another.
  for (const auto& [trial, group] : pool_.groups) {
    taken[trial] = std::max(taken[trial], TotalSlots(group.target));
  }
  return taken;
}

std::optional<double> PoolView::TrialSeconds(const Study& study) const {
  const TrialTally& tally = turn_.state().TallyOf(study);
  if (tally.ended() == 0 || tally.slot_seconds() <= 0) return std::nullopt;
  return tally.slot_seconds() / static_cast<double>(tally.ended()) / study.spec.min_slots;
}

int PoolView::PlannedSlotsOf(const Study& study) const {
  int slots = 0;
  for (const auto& [id, group] : pool_.groups) {
    if (turn_.state().trials.at(id).study != study.id) continue;
    slots += TotalSlots(group.target);
  }
  return slots;
}

}  // namespace espalier
