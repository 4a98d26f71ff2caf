#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tuner/core/pool/contacts.h"
#include "tuner/core/pool/node_view.h"
#include "tuner/core/pruners/pruner.h"
#include "tuner/core/scheduling/study_wait.h"
#include "tuner/core/state/change.h"
#include "tuner/core/state/event.h"
#include "tuner/core/state/step.h"
#include "tuner/core/state/study_facts.h"
#include "tuner/core/studies/validate.h"
#include "tuner/messages/replica_messages.h"

namespace espalier {

// What a running trial does at the moment. Not durable: it is rebuilt from what replicas say.
struct TrialActivity {
  int slots = 0;     // held, by living processes or the client that runs the trial
  int replicas = 0;  // in the group
  double epoch = 0;
  double promise = 0;
  bool training = false;  // a group trains, and `figures` is what it says now
  // Why the first step of the replica that joined last was not rehearsed; empty: it was.
  std::string not_rehearsed;
  ReplicaForming forming;  // how far its group is between two steps, by the member with most to do
  TrainingFigures figures;
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
  // The nodes for whose sake trials of the study do not begin: groups/launched_groups.h.
  std::vector<std::string> AgentsTooOldFor(const StudySpec& spec) const;
  std::vector<NodeFault> Faults() const;  // pairs of nodes that cannot talk
  // Why no trial of the study runs though one waits, where studies take turns. Requires a study of
  // the state.
  std::optional<StudyWait> WaitOf(StudyId study) const;
  // The pool's own policy, if it has one: then no study's is followed.
  std::optional<PluginSpec> PoolPolicy() const;
  int SlotsTotal() const;  // of connected nodes
  int SlotsHeld() const;
  int SlotsAwaited() const;  // that clients have asked for and do not have yet

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace espalier
