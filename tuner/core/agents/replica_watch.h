#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tuner/core/agents/failed_starts.h"
#include "tuner/core/checkpoints/checkpoints.h"
#include "tuner/core/estimates/promises.h"
#include "tuner/core/estimates/speeds.h"
#include "tuner/core/groups/groups.h"
#include "tuner/core/groups/joins.h"
#include "tuner/core/groups/launched_groups.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/turn.h"
#include "tuner/core/trials/trials.h"

namespace espalier {

inline constexpr char kLostWithAgent[] = "its replicas were lost with their agent";

// What replicas say, what their loss means for their group and trial, and what is done about those
// that hang, cannot reach one another or slow the others down. One owner.
//
// Messages of replicas that the core does not know are stale: their node was lost, their trial has
// ended, or they are repeated. They change nothing; that is the fence around every group.
class ReplicaWatch {
 public:
  ReplicaWatch(Turn& turn, PoolState& pool, Joins& joins, Groups& groups, LaunchedGroups& launched,
               Trials& trials, Checkpoints& checkpoints, Speeds& speeds, Promises& promises,
               FailedStarts& failed_starts)
      : turn_(turn),
        pool_(pool),
        joins_(joins),
        groups_(groups),
        launched_(launched),
        trials_(trials),
        checkpoints_(checkpoints),
        speeds_(speeds),
        promises_(promises),
        failed_starts_(failed_starts) {}

  void On(const ReplicaStarted& event);
  void On(const FromReplica& event);
  void On(const ReplicaExited& event);
  void Hear(Replica& from, const ReplicaReady& message);
  void Hear(Replica& from, const RanksWait& message) { launched_.Hear(from, message); }

  // The replica is gone from the pool, by its exit or with its node.
  void ReplicaGone(const Replica& gone, const ReplicaExited& exit, bool node_lost);
  // No member is left, though others were to join.
  void AllMembersFailed(const Replica& gone, const ReplicaExited& exit, const std::string& excuse);
  // The trial has no replica any more, though it was running. With an excuse that is not the
  // program's fault, and costs the trial none of its restarts.
  void GroupLost(TrialId id, const ReplicaExited& exit, const std::string& excuse);

  // ---- phases of a step
  // Stops replicas that are late, and sees to groups that wait in vain.
  void CheckDeadlines();
  std::optional<Time> Next() const;

 private:
  void Hear(Replica& from, const ReplicaRegrouped& message);
  void NoteRehearsal(Group& group, const Trial& trial, const std::string& why_not);
  void Hear(Replica& from, const ReplicaForming& message);
  void Hear(Replica& from, const ReplicaCheckpoint& message) { checkpoints_.Hear(from, message); }
  void Hear(const Replica& from, const ReplicaReport& message);
  void Hear(const Replica& from, const ReplicaProgress& message);
  void Hear(const Replica& from, const ReplicaFinished& message);
  void Hear(const Replica& from, const RanksFailed& message) { launched_.Hear(from, message); }
  void Hear(const Replica& from, const RanksLeft& message) { launched_.Hear(from, message); }
  void ForgetUntimedGroups();

  // ---- groups in which some or all hang (stuck_groups.cc)
  void Hear(const Replica& from, const ReplicaStuck& message);
  void CheckStuckGroups();
  void StopHung(TrialId id);
  void NobodyIsReached(TrialId id);
  bool LeaveUntriedOut(TrialId id, const std::string& what);
  bool StopThoseNotFormed(TrialId id);
  std::set<ReplicaPair> CutPairs(const Group& group) const;
  std::vector<std::string> NoteOutOfReach(const Group& group);
  void PartThoseOutOfReach(TrialId id);

  // ---- replicas that slow their group down (slow_replicas.cc)
  void JudgePace(TrialId id, const ReplicaProgress& message);
  std::string ExcuseFor(const Replica& gone, const ReplicaExited& exit, bool wanted,
                        bool node_lost) const;
  struct HowGone {
    bool node_lost = false;
    bool own_end = false;  // it was to save, had not been told so yet, and has come to its end
  };
  void RanksGone(const Replica& gone, const ReplicaExited& exit, HowGone how);
  void MemberLost(const Replica& gone, const ReplicaExited& exit, bool node_lost,
                  const std::string& excuse);
  void JoinFailed(const Replica& gone, const ReplicaExited& exit);
  void ReplaceStraggler(TrialId id, const Straggler& straggler);
  void GiveUpReplacement(Group& group);
  std::optional<Slot> SpareSlot(TrialId id, const Replica& slow) const;

  Turn& turn_;
  PoolState& pool_;
  Joins& joins_;
  Groups& groups_;
  LaunchedGroups& launched_;
  Trials& trials_;
  Checkpoints& checkpoints_;
  Speeds& speeds_;
  Promises& promises_;
  FailedStarts& failed_starts_;
};

}  // namespace espalier
