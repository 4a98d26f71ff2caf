#include "tuner/core/core.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "allocator/pool/job_check.h"
#include "tuner/base/check.h"
#include "tuner/core/core_impl.h"

namespace espalier {

namespace {

template <typename T>
void Append(std::vector<T>&& from, std::vector<T>& to) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

void Append(StepResult&& from, StepResult& to) {
  Append(std::move(from.changes), to.changes);
  Append(std::move(from.commands), to.commands);
  Append(std::move(from.node_requests), to.node_requests);
  if (from.plan) to.plan = std::move(from.plan);
  to.late.merge(from.late);
}

// ---- The public face -------------------------------------------------------------------------

Core::Core(TunerState state, CoreOptions options)
    : impl_(std::make_unique<Impl>(std::move(state), options)) {}
Core::~Core() = default;

StepResult Core::Handle(Time now, const Event& event) { return impl_->Handle(now, event); }
StepResult Core::Settle(Time now) { return impl_->Settle(now); }
StepResult Core::Step(Time now, const Event& event) {
  StepResult result = impl_->Handle(now, event);
  Append(impl_->Settle(now), result);
  return result;
}
std::optional<Time> Core::NextDeadline() const { return impl_->NextDeadline(); }
bool Core::FreeDropped() { return impl_->FreeDropped(); }
const TunerState& Core::state() const { return impl_->state(); }
PruneVerdict Core::Verdict(TrialId trial) const { return impl_->Verdict(trial); }
TrialActivity Core::Activity(TrialId trial) const { return impl_->Activity(trial); }
std::vector<NodeView> Core::Nodes() const { return impl_->Nodes(); }
std::vector<NodeFault> Core::Faults() const { return impl_->Faults(); }
std::optional<PluginSpec> Core::PoolPolicy() const { return impl_->PoolPolicy(); }
int Core::SlotsTotal() const { return impl_->SlotsTotal(); }
int Core::SlotsHeld() const { return impl_->SlotsHeld(); }

// ---- Stepping --------------------------------------------------------------------------------

Core::Impl::Impl(TunerState state, CoreOptions options)
    : turn_(std::move(state), [this](const Change& change) { Observe(change); }),
      options_(options),
      next_replica_(turn_.state().replica_ids_below) {
  if (options_.pool_size) {
    pool_sizer_.emplace(turn_, pool_, *options_.pool_size, options_.lease_s);
  }
  for (const auto& [id, trial] : turn_.state().trials) {
    clients_.TakeUp(trial);
    if (turn_.StudyAt(trial.study).spec.ask_and_tell) {
      client_slots_.TakeUp(trial);
      continue;
    }
    pool_.TakeUp(trial);
    if (!Ended(trial.state) && trial.newest_checkpoint.known()) keeping_.due.insert(id);
    promise_stale_.insert(trial.study);
    speeds_.TakeUp(trial);
  }
  for (const auto& [id, study] : turn_.state().studies) pool_.TakeUp(study);
}

StepResult Core::Impl::Handle(Time now, const Event& event) {
  turn_.Begin(now);
  if (!clocks_set_) SetClocksAfterRestart();
  std::visit(
      [this](const auto& e) {
        if constexpr (requires { On(e); }) {
          On(e);
        } else {
          clients_.On(e);
        }
      },
      event);
  return turn_.Finish();
}

StepResult Core::Impl::Settle(Time now) {
  turn_.Begin(now);
  CheckReplicaDeadlines();
  CheckDrains();
  CheckLimits();
  clients_.CheckLeases();
  client_slots_.Check();
  KeepCheckpoints();
  if (look_ && !planning_ && turn_.now() >= planner_rests_until_) turn_.Wake();
  if (turn_.awake()) Schedule();
  if (pool_sizer_) SizePool();
  client_slots_.Answer();
  RecordSlots();
  return turn_.Finish();
}

void Core::Impl::On(const Tick&) {
  turn_.Wake();
  // Should one have been overlooked, it waits no longer than this.
  if (SecondsBetween(reconciled_all_at_, turn_.now()) >= look_again_s_) {
    reconciled_all_at_ = turn_.now();
    ReconcileAll();
  }
  look_again_s_ = std::min(2 * look_again_s_, kLookAgainMost_s);
}

std::optional<Time> Core::Impl::NextDeadline() const {
  std::optional<Time> next;
  const auto consider = [&next](std::optional<Time> t) {
    if (t && (!next || *t < *next)) next = t;
  };
  for (const NodeId id : away_) consider(pool_.nodes.at(id).lease_ends);
  consider(pool_.replicas.NextDeadline());
  for (const NodeId node : pool_.draining) {
    for (const ReplicaId replica : pool_.replicas.On(node)) {
      const std::optional<Time> leaves = LeaveBy(node, pool_.replicas.at(replica).trial);
      if (leaves && *leaves > turn_.now()) consider(leaves);
    }
  }
  for (const TrialId id : timed_groups_) {
    const auto found = pool_.groups.find(id);
    if (found == pool_.groups.end()) continue;
    const Group& group = found->second;
    consider(group.ending);
    consider(group.stuck_ends);
    if (group.forming) consider(After(group.moved_at, StallOf(id)));
    consider(group.contacts_end);
  }
  if (!pool_.recovering.empty()) consider(pool_.recovery_ends);
  consider(keeping_.Next());
  if (pool_sizer_) consider(pool_sizer_->Next(/*clients_ask=*/!client_slots_.empty()));
  consider(client_slots_.Next());
  consider(clients_.NextCheck());
  for (const StudyId id : pool_.studies) {
    const Study& study = turn_.state().studies.at(id);
    if (const auto check = cost_check_.find(id); check != cost_check_.end()) {
      consider(check->second.at);
    }
    if (study.spec.time_limit_s > 0) {
      consider(After(study.running_since, study.spec.time_limit_s - study.active_s));
    }
  }
  // The allocator looks again when nothing happens: a resize may have become worth its cost.
  if (!pool_.studies.empty() && !pool_.replicas.empty()) {
    consider(std::max(turn_.now(), After(scheduled_at_, look_again_s_)));
  }
  if (look_ && !planning_) consider(planner_rests_until_);
  return next;
}

// What is kept beside the state so that no step has to go through all of it.
void Core::Impl::Observe(const Change& change) {
  curves_.Observe(turn_.state(), change);
  pool_.Observe(change);
  speeds_.Observe(change);
  plugins_.Observe(change);
  clients_.Observe(change);
  client_slots_.Observe(change);
  if (std::holds_alternative<StudyStateChanged>(change)) ReconcileAll();
  if (const auto trial = TrialEndedBy(change)) {
    promise_.erase(*trial);
    held_.erase(*trial);
  }
  if (const auto study = StudyEndedBy(change)) {
    promise_at_.erase(*study);
    cost_check_.erase(*study);
  }
  if (const auto* deleted = std::get_if<StudyDeleted>(&change)) {
    const auto gone = [this](TrialId id) { return !turn_.state().trials.contains(id); };
    std::erase_if(promise_, [&gone](const auto& promise) { return gone(promise.first); });
    std::erase_if(held_, gone);
    promise_stale_.erase(deleted->id);
  }
}

ReplicaId Core::Impl::NewReplicaId() {
  if (next_replica_ >= turn_.state().replica_ids_below) {
    turn_.Emit(ReplicaIdsReserved{next_replica_ + kReplicaIdBlock});
  }
  return ReplicaId(next_replica_++);
}

TrialTimeouts Core::Impl::TimeoutsOf(const Trial& trial) const {
  return Merge(turn_.state().studies.at(trial.study).spec.timeouts, options_.timeouts);
}

int Core::Impl::SlotsHeldBy(TrialId id) const {
  return static_cast<int>(pool_.replicas.Of(id).size() + client_slots_.SlotsOf(id).size());
}

// Writes down who holds which slots where that has changed in this step.
void Core::Impl::RecordSlots() {
  for (const TrialId id : std::exchange(pool_.slots_touched, {})) {
    std::vector<Slot> slots;
    for (const Replica* replica : pool_.ReplicasOf(id))
      slots.push_back({replica->node, replica->slot});
    const std::vector<Slot>& of_client = client_slots_.SlotsOf(id);
    slots.insert(slots.end(), of_client.begin(), of_client.end());
    std::sort(slots.begin(), slots.end());
    const Trial& trial = turn_.TrialAt(id);
    const bool open = !trial.spans.empty() && trial.spans.back().to == Time{};
    if (open ? trial.spans.back().slots == slots : slots.empty()) continue;
    turn_.Emit(SlotsHeldChanged{id, turn_.now(), std::move(slots)});
  }
}

// ---- Slots of clients -------------------------------------------------------------------------

void Core::Impl::On(const AcquireSlots& event) {
  if (const Trial* trial = clients_.TrialToTell(event.trial)) client_slots_.Acquire(*trial, event);
}

void Core::Impl::On(const RenewSlots& event) {
  if (const Trial* trial = clients_.TrialToTell(event.trial)) client_slots_.Renew(*trial);
}

void Core::Impl::On(const ReleaseSlots& event) {
  const auto it = turn_.state().trials.find(event.trial);
  // With the trial its slots have been given back.
  if (it != turn_.state().trials.end() && Ended(it->second.state)) return;
  if (clients_.TrialToTell(event.trial) == nullptr) return;
  client_slots_.GiveBack(event.trial, "given back by its client");
}

// ---- Looking in ------------------------------------------------------------------------------

TrialActivity Core::Impl::Activity(TrialId id) const {
  TrialActivity activity;
  activity.slots = SlotsHeldBy(id);
  if (const auto promise = promise_.find(id); promise != promise_.end()) {
    activity.promise = promise->second;
  }
  const auto trial = turn_.state().trials.find(id);
  if (trial != turn_.state().trials.end()) activity.figures = trial->second.figures;
  const auto it = pool_.groups.find(id);
  if (it == pool_.groups.end()) return activity;
  const Group& group = it->second;
  activity.replicas = static_cast<int>(group.members.size());
  activity.forming = FormingOf(id, group);
  if (!group.progress) return activity;
  activity.epoch = group.progress->epoch;
  activity.training = true;
  activity.figures = FiguresOf(id, group);
  return activity;
}

// Requires that the group has told its progress.
TrainingFigures Core::Impl::FiguresOf(TrialId id, const Group& group) const {
  const ReplicaProgress& progress = *group.progress;
  TrainingFigures figures = progress.figures;
  figures[Figure::kStepTime] = group.step_time_s;
  figures[Figure::kSyncShare] = group.sync_share;
  figures[Figure::kBatchSize] = static_cast<double>(progress.global_batch_size);
  if (group.noise.sqr > 0) {
    figures[Figure::kNoiseScale] =
        static_cast<double>(group.batch.initial) * group.noise.var / group.noise.sqr;
  }
  double modelled_goodput = 0;
  const int replicas = static_cast<int>(group.members.size());
  const std::optional<std::string> gpu_type = pool_.GpuTypeOf(group);
  const auto fitted = gpu_type ? speeds_.FittedFor(id, *gpu_type) : std::nullopt;
  if (fitted && replicas > 0 && CheckModel("", *fitted, group.noise, group.batch).ok()) {
    const GoodputModel model(*fitted, group.noise, group.batch);
    std::set<NodeId> nodes;
    for (const ReplicaId member : group.members) {
      if (const auto r = pool_.replicas.find(member); r != pool_.replicas.end())
        nodes.insert(r->second.node);
    }
    const BatchChoice choice = model.AtFixedGlobalBatch(std::max(1, static_cast<int>(nodes.size())),
                                                        replicas, progress.global_batch_size);
    modelled_goodput = choice.goodput;
    figures[Figure::kThroughput] = choice.throughput;
  }
  // What the trial itself works with is nearer to the truth than our model of it.
  if (!(figures[Figure::kGoodput] > 0)) figures[Figure::kGoodput] = modelled_goodput;
  return figures;
}

std::vector<NodeView> Core::Impl::Nodes() const {
  std::vector<NodeView> views;
  for (const auto& [id, node] : pool_.nodes) {
    NodeView view{id,
                  node.name,
                  node.slots,
                  node.connected,
                  {},
                  node.gpu_type,
                  node.spot,
                  node.price_per_hour,
                  node.draining,
                  node.ends.value_or(Time{})};
    for (const ReplicaId held : pool_.replicas.On(id)) {
      const Replica& replica = pool_.replicas.at(held);
      view.replicas.push_back({held, replica.trial, replica.slot});
    }
    for (const auto& [slot, trial] : pool_.held_by_clients) {
      if (slot.node == id) view.replicas.push_back({ReplicaId{}, trial, slot.index});
    }
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace espalier
