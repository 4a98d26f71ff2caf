#include "tuner/core/core.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tuner/core/agents/failed_starts.h"
#include "tuner/core/agents/nodes.h"
#include "tuner/core/agents/replica_watch.h"
#include "tuner/core/checkpoints/checkpoints.h"
#include "tuner/core/client_slots/client_slot_desk.h"
#include "tuner/core/clients/client_trials.h"
#include "tuner/core/clients/queued_trials.h"
#include "tuner/core/estimates/compared_curves.h"
#include "tuner/core/estimates/promises.h"
#include "tuner/core/estimates/speeds.h"
#include "tuner/core/groups/groups.h"
#include "tuner/core/groups/joins.h"
#include "tuner/core/pool/checkpoint_copies.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/pool_size/pool_sizer.h"
#include "tuner/core/pool_size/pool_work.h"
#include "tuner/core/scheduling/pool_view.h"
#include "tuner/core/scheduling/reconciler.h"
#include "tuner/core/scheduling/scheduler.h"
#include "tuner/core/state/turn.h"
#include "tuner/core/studies/pool_policy.h"
#include "tuner/core/studies/populations.h"
#include "tuner/core/studies/studies.h"
#include "tuner/core/studies/terminations.h"
#include "tuner/core/tokens.h"
#include "tuner/core/trials/draws.h"
#include "tuner/core/trials/limits.h"
#include "tuner/core/trials/study_plugins.h"
#include "tuner/core/trials/trials.h"

namespace espalier {

namespace {

template <typename T>
void Append(std::vector<T>&& from, std::vector<T>& to) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

template <typename Part, typename E>
concept Takes = requires(Part& part, const E& event) {
  part.On(event);
};

template <typename E, typename Part>
void GiveIfTaken(const E& event, Part& part) {
  if constexpr (Takes<Part, E>) part.On(event);
}

template <typename E, typename... Parts>
void GiveToItsPart(const E& event, Parts&... parts) {
  static_assert((static_cast<int>(Takes<Parts, E>) + ...) == 1, "one part takes each event");
  (GiveIfTaken(event, parts), ...);
}

}  // namespace

void Append(StepResult&& from, StepResult& to) {
  Append(std::move(from.changes), to.changes);
  Append(std::move(from.commands), to.commands);
  Append(std::move(from.node_requests), to.node_requests);
  Append(std::move(from.nodes_joined), to.nodes_joined);
  Append(std::move(from.draws), to.draws);
  Append(std::move(from.questions), to.questions);
  if (from.plan) to.plan = std::move(from.plan);
  // What was answered before may hold no longer.
  for (auto& [wait, reply] : from.late) to.late.insert_or_assign(wait, std::move(reply));
}

// Leads the parts of the core from step to step: an event goes to the part that takes it, a change
// to all that keep something beside the state, and what follows is done by all in one order. Parts
// further down the list of members know those above them, and not the other way round.
class Core::Impl {
 public:
  Impl(TunerState state, CoreOptions options);

  StepResult Handle(Time now, const Event& event);
  StepResult Settle(Time now);
  std::optional<Time> NextDeadline() const;

  bool FreeDropped() {
    constexpr std::size_t kTrialsAtOnce = 1000;
    return turn_.FreeDropped(kTrialsAtOnce);
  }
  const TunerState& state() const { return turn_.state(); }
  PruneVerdict Verdict(TrialId id) const { return clients_.Verdict(id); }
  TrialActivity Activity(TrialId id) const;
  std::optional<StudyWait> WaitOf(StudyId id) const { return scheduler_.WaitOf(turn_.StudyAt(id)); }
  std::vector<NodeView> Nodes() const { return nodes_.Views(); }
  std::vector<std::string> AgentsTooOldFor(const StudySpec& spec) const {
    std::vector<std::string> names;
    for (const NodeId id : NodesTooOldFor(spec, pool_)) names.push_back(pool_.NodeName(id));
    return names;
  }
  std::vector<NodeFault> Faults() const { return pool_.faults.Present(turn_.now()); }
  std::optional<PluginSpec> OwnPolicy() const {
    return espalier::PoolPolicy(options_, turn_.state());
  }
  int SlotsTotal() const { return pool_.SlotsTotal(); }
  int SlotsHeld() const {
    int held = static_cast<int>(pool_.held_by_clients.size());
    for (const auto& [id, replica] : pool_.replicas) held += replica.slots();
    return held;
  }
  int SlotsAwaited() const {
    return client_slots_.SlotsWanted() - static_cast<int>(pool_.held_by_clients.size());
  }

  // Events that take two parts.
  void On(const AgentHello& event);
  void On(const AcquireSlots& event);
  void On(const RenewSlots& event);
  void On(const ReleaseSlots& event);
  void On(const DrawMade& event);
  void On(const CreateStudy& event);

 private:
  void Observe(const Change& change);
  void SizePool();
  void RecordSlots();

  Turn turn_;
  CoreOptions options_;
  PoolState pool_{turn_};
  PluginsOfStudies plugins_;
  Draws draws_{turn_, options_};
  CurvesOfStudies curves_;
  Speeds speeds_{turn_.state(), options_.plan_aside};
  Promises promises_{turn_};
  CheckpointCopies copies_{turn_, pool_};
  Joins joins_{turn_, pool_};
  Groups groups_{turn_, pool_, options_, copies_, speeds_};
  LaunchedGroups launched_{turn_, pool_, groups_};
  Limits limits_{turn_, pool_, plugins_};
  RankReports ranks_{turn_};
  Trials trials_{turn_, pool_, groups_, ranks_, plugins_, curves_, promises_};
  Checkpoints checkpoints_{turn_, pool_, options_, copies_, groups_, trials_};
  Studies studies_{turn_, pool_, options_, plugins_, joins_, limits_, trials_, checkpoints_};
  Terminations terminations_{turn_, options_, plugins_, trials_};
  ClientTrials clients_{turn_, options_, plugins_, draws_, ranks_, trials_};
  QueuedTrials queued_{turn_, pool_, trials_, clients_};
  ClientSlotDesk client_slots_{turn_, pool_, options_, promises_, trials_};
  Populations populations_{turn_, pool_, plugins_, curves_, trials_, client_slots_};
  FailedStarts failed_starts_{turn_, pool_};
  ReplicaWatch watch_{turn_,   pool_,        joins_,  groups_,   launched_,
                      trials_, checkpoints_, speeds_, promises_, failed_starts_};
  espalier::Nodes nodes_{turn_,     pool_,   options_,     copies_,       joins_, groups_,
                         launched_, trials_, checkpoints_, client_slots_, watch_};
  PoolView view_{turn_,   pool_,   joins_,       speeds_,      promises_,    plugins_,
                 limits_, trials_, checkpoints_, populations_, client_slots_};
  Reconciler reconciler_{turn_, pool_, copies_, joins_, groups_, launched_, checkpoints_, nodes_};
  Scheduler scheduler_{turn_,
                       {.options = options_,
                        .pool = pool_,
                        .plugins = plugins_,
                        .draws = draws_,
                        .curves = curves_,
                        .speeds = speeds_,
                        .promises = promises_,
                        .joins = joins_,
                        .limits = limits_,
                        .trials = trials_,
                        .studies = studies_,
                        .checkpoints = checkpoints_,
                        .copies = copies_,
                        .client_slots = client_slots_,
                        .view = view_,
                        .reconciler = reconciler_}};
  PoolWork pool_work_{turn_, pool_, plugins_, view_};
  std::optional<PoolSizer> pool_sizer_;  // of a pool whose nodes come from an engine
  Tokens tokens_{turn_};
  bool clocks_set_ = false;
};

// ---- the public face --------------------------------------------------------------------------

Core::Core(TunerState state, CoreOptions options)
    : impl_(std::make_unique<Impl>(std::move(state), std::move(options))) {}
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
std::optional<StudyWait> Core::WaitOf(StudyId study) const { return impl_->WaitOf(study); }
TrialActivity Core::Activity(TrialId trial) const { return impl_->Activity(trial); }
std::vector<NodeView> Core::Nodes() const { return impl_->Nodes(); }

std::vector<std::string> Core::AgentsTooOldFor(const StudySpec& spec) const {
  return impl_->AgentsTooOldFor(spec);
}
std::vector<NodeFault> Core::Faults() const { return impl_->Faults(); }
std::optional<PluginSpec> Core::PoolPolicy() const { return impl_->OwnPolicy(); }
int Core::SlotsTotal() const { return impl_->SlotsTotal(); }
int Core::SlotsHeld() const { return impl_->SlotsHeld(); }
int Core::SlotsAwaited() const { return impl_->SlotsAwaited(); }

// ---- stepping ---------------------------------------------------------------------------------

Core::Impl::Impl(TunerState state, CoreOptions options)
    : turn_(std::move(state), [this](const Change& change) { Observe(change); }),
      options_(std::move(options)) {
  if (options_.pool_size) {
    pool_sizer_.emplace(turn_, pool_, *options_.pool_size, options_.lease_s);
  }
  for (const auto& [id, trial] : turn_.state().trials) {
    clients_.TakeUp(trial);
    if (turn_.StudyAt(trial.study).spec.by_clients()) {
      client_slots_.TakeUp(trial);
      continue;
    }
    pool_.TakeUp(trial);
    checkpoints_.TakeUp(trial);
    promises_.TakeUp(trial.study);
    speeds_.TakeUp(trial);
  }
  for (const auto& [id, study] : turn_.state().studies) pool_.TakeUp(study);
}

StepResult Core::Impl::Handle(Time now, const Event& event) {
  turn_.Begin(now);
  if (!std::exchange(clocks_set_, true)) studies_.SetClocksAfterRestart();
  std::visit(
      [this](const auto& e) {
        GiveToItsPart(e, *this, studies_, terminations_, clients_, queued_, nodes_, watch_,
                      checkpoints_, scheduler_, tokens_);
      },
      event);
  return turn_.Finish();
}

StepResult Core::Impl::Settle(Time now) {
  turn_.Begin(now);
  nodes_.CheckLeases();
  watch_.CheckDeadlines();
  nodes_.CheckDrains();
  studies_.EndThoseOverLimits();
  terminations_.EndTerminated();
  populations_.Compare();
  clients_.CheckLeases();
  client_slots_.Check();
  checkpoints_.Keep();
  scheduler_.Settle();
  if (pool_sizer_) SizePool();
  client_slots_.Answer();
  RecordSlots();
  return turn_.Finish();
}

std::optional<Time> Core::Impl::NextDeadline() const {
  std::optional<Time> next;
  for (const std::optional<Time> due :
       {nodes_.Next(), watch_.Next(), checkpoints_.Next(), client_slots_.Next(),
        clients_.NextCheck(), limits_.Next(), scheduler_.Next()}) {
    next = Earlier(next, due);
  }
  if (!pool_sizer_) return next;
  return Earlier(next, pool_sizer_->Next(/*clients_ask=*/!client_slots_.empty()));
}

// What is kept beside the state, so that no step has to go through all of it.
void Core::Impl::Observe(const Change& change) {
  curves_.Observe(turn_.state(), change);
  pool_.Observe(change);
  speeds_.Observe(change);
  promises_.Observe(change);
  plugins_.Observe(change);
  draws_.Observe(change);
  limits_.Observe(change);
  trials_.Observe(change);
  terminations_.Observe(change);
  populations_.Observe(change);
  checkpoints_.Observe(change);
  clients_.Observe(change);
  client_slots_.Observe(change);
  failed_starts_.Observe(change);
}

void Core::Impl::SizePool() {
  if (!pool_sizer_->Due()) return;
  const int most_slots =
      std::max({1, pool_.SlotsTotal(), MostSlots(pool_, options_.pool_size->templates)});
  pool_sizer_->Resize(pool_work_.Describe(most_slots), client_slots_.SlotsWanted());
}

// Writes down who holds which slots where that has changed in this step.
void Core::Impl::RecordSlots() {
  for (const TrialId id : std::exchange(pool_.slots_touched, {})) {
    std::vector<Slot> slots;
    for (const Replica* replica : pool_.ReplicasOf(id)) {
      slots.push_back({replica->node, replica->slot});
      for (const int more : replica->more_slots) slots.push_back({replica->node, more});
    }
    const std::vector<Slot>& of_client = client_slots_.SlotsOf(id);
    slots.insert(slots.end(), of_client.begin(), of_client.end());
    std::sort(slots.begin(), slots.end());
    const Trial& trial = turn_.TrialAt(id);
    const bool open = !trial.spans.empty() && trial.spans.back().to == Time{};
    if (open ? trial.spans.back().slots == slots : slots.empty()) continue;
    turn_.Emit(SlotsHeldChanged{id, turn_.now(), std::move(slots)});
  }
}

void Core::Impl::On(const AgentHello& event) {
  nodes_.Join(event);
  if (pool_sizer_ && turn_.reply().status.ok()) pool_sizer_->NodeCame(event.node_name);
}

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

void Core::Impl::On(const CreateStudy& event) {
  studies_.Create(event);
  const auto* made = std::get_if<StudyReply>(&turn_.reply().content);
  if (made == nullptr || made->existed || !turn_.reply().status.ok()) return;
  const Study& study = turn_.StudyAt(made->study);
  if (study.spec.by_clients()) clients_.EnqueuePoints(study);
}

void Core::Impl::On(const DrawMade& event) {
  if (draws_.Take(event)) {
    turn_.Wake();
    if (!event.failure.empty()) studies_.StopFor(event.study, event.failure);
  }
  clients_.ServeAsks(event.study);
}

// ---- looking in -------------------------------------------------------------------------------

TrialActivity Core::Impl::Activity(TrialId id) const {
  TrialActivity activity;
  activity.slots = pool_.SlotsHeldBy(id) + static_cast<int>(client_slots_.SlotsOf(id).size());
  if (const auto promise = promises_.Find(id)) activity.promise = *promise;
  const auto trial = turn_.state().trials.find(id);
  if (trial != turn_.state().trials.end()) activity.figures = trial->second.figures;
  const auto it = pool_.groups.find(id);
  if (it == pool_.groups.end()) return activity;
  const Group& group = it->second;
  activity.replicas = static_cast<int>(group.members.size());
  activity.not_rehearsed = group.not_rehearsed;
  activity.forming = groups_.FormingOf(id, group);
  if (!group.progress) return activity;
  activity.epoch = group.progress->epoch;
  activity.training = true;
  activity.figures = groups_.FiguresOf(id, group);
  return activity;
}

}  // namespace espalier
