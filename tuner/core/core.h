#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "allocator/pool_size/pool_size.h"
#include "tuner/core/groups/contacts.h"
#include "tuner/core/pruners/pruner.h"
#include "tuner/core/state/change.h"
#include "tuner/core/state/event.h"
#include "tuner/messages/replica_messages.h"

namespace espalier {

inline constexpr int kMaxEngineNodes = 256;

struct PlanRequest;  // scheduling/plan.h

// A pool whose nodes come from an engine: what the nodes are, and which rule says how many.
struct PoolSizeOptions {
  PluginSpec rule{"utility_price", {}};
  NodeTemplate node;
};

// What becomes of a trial whose client, which runs the trial itself, has fallen silent.
struct ClientLease {
  double seconds = 0;  // without a write; 0: clients may be silent forever
  // How often a trial is queued again, as Optuna's retry callback does: WAITING, with the same
  // parameters, and the system attributes failed_trial and retry_history.
  int max_retries = 0;
};

struct CoreOptions {
  double lease_s = 10;                         // a silent agent's replicas are lost after this
  TrialTimeouts timeouts{};                    // of studies that say nothing else
  std::optional<PoolSizeOptions> pool_size{};  // none: nodes come and go as they like
  ClientLease client_lease{};
  double slot_lease_s = 60;  // a client that holds slots and is silent for so long loses them
  // The policy by which the pool is divided until a client says otherwise (SetPoolPolicy); none:
  // the policy of the pool's oldest running study.
  std::optional<PluginSpec> policy{};
  // Whether what takes long (a policy's search, promise, fits) is left to the caller: see
  // StepResult::plan. Else it is done within the step.
  bool plan_aside = false;
};

// What the engine is to do. A request may come twice.
struct NodeRequest {
  bool start = false;  // else release
  std::string name;
};

struct StepResult {
  std::vector<Change> changes;    // commit these before anything else is done
  std::vector<Command> commands;  // then send these
  std::vector<NodeRequest> node_requests{};
  // The plan to be made by a Planner, on any thread, and brought back as PlanMade. There is never
  // more than one under way: the next one sees what happens meanwhile.
  std::shared_ptr<const PlanRequest> plan{};
  Reply reply;  // then answer
  // and answer those calls of AcquireSlots that had no answer so far: all that asked for the trial.
  std::map<TrialId, Reply> late{};
};

// Adds what came later to what came first, whose reply stays.
void Append(StepResult&& from, StepResult& to);

// What a running trial does at the moment. Not durable: it is rebuilt from what replicas say.
struct TrialActivity {
  int slots = 0;     // held, by living processes or the client that runs the trial
  int replicas = 0;  // in the group
  double epoch = 0;
  double promise = 0;
  bool training = false;   // a group trains, and `figures` is what it says now
  ReplicaForming forming;  // how far its group is between two steps, by the member with most to do
  TrainingFigures figures;
};

struct ReplicaView {
  ReplicaId replica;  // none: the client that runs the trial holds the slot
  TrialId trial;
  int slot = 0;
};
struct NodeView {
  NodeId id;
  std::string name;
  int slots = 0;
  bool connected = false;
  std::vector<ReplicaView> replicas;
  std::string gpu_type{};  // empty: CPU slots
  bool spot = false;
  double price_per_hour = 0;  // 0: not told
  bool draining = false;
  Time drain_ends{};  // when it goes away; zero: not known
};

// The tuner: studies, trials, replica groups and their slots, as a pure state machine. No I/O, no
// clock, no thread, no randomness but the studies' seeds: the same state and events give the same
// changes and commands. Not thread safe; one owner calls it.
//
// Events that come together may be handled one after another and settled once: Settle does what
// follows from an event, from several of them or from time, so that under load each event costs
// less. Handle and Settle apply their changes to state() at once. The caller commits them, and only
// then sends the commands and the replies; if it cannot commit it must throw the core away.
class Core {
 public:
  // Takes up a state that storage loaded (or an empty one). The first event should follow soon,
  // since its time sets the studies' clocks.
  Core(TunerState state, CoreOptions options);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // What the event itself changes, and its reply.
  StepResult Handle(Time now, const Event& event);
  // After one or more events, and before NextDeadline: deadlines, the allocator, what groups do
  // next, and late replies.
  StepResult Settle(Time now);
  // Handle and Settle in one.
  StepResult Step(Time now, const Event& event);

  // When to send Tick at the latest; nullopt: nothing is waiting for time to pass.
  std::optional<Time> NextDeadline() const;

  // Frees memory of deleted studies, a little at each call. Returns whether there is more.
  bool FreeDropped();

  const TunerState& state() const;
  // Whether the trial should end now, and why, for its client. Never says that it should pause.
  // Requires a trial of the state.
  PruneVerdict Verdict(TrialId trial) const;
  TrialActivity Activity(TrialId trial) const;
  std::vector<NodeView> Nodes() const;
  std::vector<NodeFault> Faults() const;  // pairs of nodes that cannot talk
  // The pool's own policy, if it has one: then no study's is followed.
  std::optional<PluginSpec> PoolPolicy() const;
  int SlotsTotal() const;  // of connected nodes
  int SlotsHeld() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Checks what can be checked without running anything: known plug-ins and options, limits that
// make sense, a command. The message names the key.
absl::Status Validate(const StudySpec& spec);

// Checks whether such a pool makes sense: the rule and its options, bounds, slots, seconds. The
// message names the value.
absl::Status CheckPoolSize(const PoolSizeOptions& options);

// Seconds the study has run, without the time it was stopped.
double ElapsedSeconds(const Study& study, Time now);
// How many slots the study's trials have held, times how long; and what that cost at the study's
// price, 0 where it has none.
double SlotSeconds(const TunerState& state, const Study& study, Time now);
double SpentOn(const TunerState& state, const Study& study, Time now);

// Number of the study's best trial so far (completed ones first; pruned ones count by their last
// value only when nothing completed), or nullopt.
std::optional<std::int64_t> BestTrial(const TunerState& state, const Study& study);

// The value by which a trial is ranked: its final value if it has one, else its best intermediate
// one.
std::optional<double> BestValue(const Trial& trial, Direction direction);

}  // namespace espalier
