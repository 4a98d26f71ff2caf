#pragma once

#include "tuner/core/clients/client_trials.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/turn.h"
#include "tuner/core/trials/trials.h"

namespace espalier {

// Trials of the pool that clients enqueue or clone: how they come in and are cancelled, and what
// their programs tell through clients. What is refused is the reply's status. One owner.
class QueuedTrials {
 public:
  QueuedTrials(Turn& turn, const PoolState& pool, Trials& trials, ClientTrials& clients)
      : turn_(turn), pool_(pool), trials_(trials), clients_(clients) {}

  // Takes trials of any study: those that clients run go on to ClientTrials.
  void On(const EnqueueTrial& event);
  void On(const CancelTrial& event);
  void On(const CloneTrial& event);
  void On(const HoldTrial& event);
  void On(const SetTrialEnvironment& event);
  void On(const RecordReport& event);

 private:
  void EnqueueOnPool(const Study& study, const EnqueueTrial& event);
  // Null, with the reason in the reply: there is none, or its client runs it.
  const Trial* TrialOfPool(TrialId id);
  absl::Status MayBeCloned(const Trial& trial, const Study& study) const;

  Turn& turn_;
  const PoolState& pool_;
  Trials& trials_;
  ClientTrials& clients_;
};

}  // namespace espalier
