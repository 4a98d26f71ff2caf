#pragma once

#include <limits>
#include <string>

#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/turn.h"

namespace espalier {

// Replicas that are to join the group of a trial: how many of them failed in a row, at whatever
// stage, how many more the trial may start, and when it tries again. A replica has joined well when
// the group has trained with it for a minute, and once through the data or for an hour. Until then
// the group may owe the loss of any of its members to it. Nodes that are lost, replicas that leave
// and slots that cannot be used are no failures. One owner.
class Joins {
 public:
  static constexpr int kNoLimit = std::numeric_limits<int>::max();

  Joins(Turn& turn, PoolState& pool) : turn_(turn), pool_(pool) {}

  // So many replicas that were to join the trial's group have failed, the last one as `how` says
  // ("exited with code 1"), and the present members go on without them. Their places are given up.
  // Requires a group.
  void Failed(TrialId id, const std::string& how, int failed = 1);
  // Where all that trained before are lost, those who came last are the trial.
  void RelyOnThoseLeft(const Group& group);
  // A group has told how far it is, which may show that its newest members do their part.
  void NoteProgress(TrialId id, const ReplicaProgress& progress);
  // Whether some member of the group has not shown yet that it does its part.
  bool SomeUntried(const Group& group) const;
  // The trial's service has begun anew, and these replicas were found: those that were joining, as
  // far as that can be told, are untried.
  void TakeUp(TrialId id);

  // How many replicas may be started now to join the trial's group.
  int MayStart(TrialId id) const;
  // With how many replicas the trial may train at the most, those that are starting included.
  int MostReplicas(TrialId id) const;

  // Something has changed, by which replicas that join may do better.
  void TryAgain(TrialId id, const std::string& what);
  void TryAgainAll(const std::string& what);
  // Trials with replicas on the node.
  void TryAgainOn(NodeId node, const std::string& what);
  void TryAgainOf(StudyId study, const std::string& what);

 private:
  int StayingReplicas(TrialId id) const;

  Turn& turn_;
  PoolState& pool_;
};

}  // namespace espalier
