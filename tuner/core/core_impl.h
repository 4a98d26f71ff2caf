#pragma once

// The inside of Core. Included by the sources of this folder only.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "allocator/pool/study_shares.h"
#include "tuner/core/checkpoints/checkpoints.h"
#include "tuner/core/client_slots/client_slot_desk.h"
#include "tuner/core/clients/client_trials.h"
#include "tuner/core/core.h"
#include "tuner/core/groups/pool_state.h"
#include "tuner/core/pool_size/pool_sizer.h"
#include "tuner/core/pruners/pruner.h"
#include "tuner/core/samplers/sampler.h"
#include "tuner/core/scheduling/compared_curves.h"
#include "tuner/core/scheduling/planner.h"
#include "tuner/core/scheduling/speeds.h"
#include "tuner/core/trials/study_plugins.h"
#include "tuner/core/turn.h"

namespace espalier {

inline constexpr double kPromiseInterval_s = 1.0;  // between promise computations of large studies
inline constexpr std::size_t kPromiseEveryReport = 24;  // trials up to which it is always fresh
inline constexpr double kLookAgain_s = 1.0;  // the allocator's pause when nothing happens; doubles
inline constexpr double kLookAgainMost_s = 5.0;      // up to this while it finds nothing to do
inline constexpr double kStallSteps = 4;             // that a group may take to come to a boundary
inline constexpr int kMaxFormTimeouts = 3;           // then who has not come is taken to hang
inline constexpr double kStuckGrace_s = 2;           // between the first word of Stuck and the last
inline constexpr double kContactGrace_s = 4;         // likewise, of who is out of reach
inline constexpr int kMaxStuckInARow = 3;            // generations that could not train at all
inline constexpr double kSlowSlot_s = 600;           // a slot that made a replica slow is avoided
inline constexpr int kMaxJoinerFailures = 3;         // then the trial stays at its size
inline constexpr std::size_t kMaxLastOutput = 4096;  // bytes
inline constexpr std::int64_t kReplicaIdBlock = 1000;

// Until then a cost limit cannot be reached, unless the pool has more slots by then.
struct CostCheck {
  Time at;
  int slots = 0;
};

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
  PruneVerdict Verdict(TrialId id) const;
  TrialActivity Activity(TrialId id) const;
  std::vector<NodeView> Nodes() const;
  std::vector<NodeFault> Faults() const { return pool_.faults.Present(turn_.now()); }
  int SlotsTotal() const { return pool_.SlotsTotal(); }
  std::optional<PluginSpec> PoolPolicy() const;
  int SlotsHeld() const {
    return static_cast<int>(pool_.replicas.size() + pool_.held_by_clients.size());
  }

 private:
  // ---- events (agents: nodes.cc, replicas: replicas.cc); others are for clients_
  // of clients, about studies (studies.cc)
  void On(const CreateStudy& event);
  void On(const StopStudy& event);
  void On(const ResumeStudy& event);
  void On(const DeleteStudy& event);
  void On(const RenameStudy& event);
  void On(const SetStudyAttribute& event);
  void On(const PinTrial& event);
  void On(const SetPoolPolicy& event);
  // about trials, whoever runs them (telling.cc)
  void On(const TellValue& event);
  void On(const ReportValue& event);
  void On(const TellEnd& event);
  // about trials that they enqueue for the pool (queue.cc)
  void On(const EnqueueTrial& event);
  void On(const CancelTrial& event);
  void On(const HoldTrial& event);
  void On(const SetTrialEnvironment& event);
  void On(const RecordReport& event);
  // and about the pool's slots and nodes
  void On(const AcquireSlots& event);
  void On(const RenewSlots& event);
  void On(const ReleaseSlots& event);
  void On(const DrainNode& event);  // drains.cc
  void On(const AgentHello& event);
  void On(const AgentLeaving& event);
  void On(const AgentGone& event);
  void On(const ReplicaStarted& event);
  void On(const FromReplica& event);
  void On(const ReplicaExited& event);
  void On(const CheckpointCopied& event);  // checkpoints.cc
  void On(const AddToken& event);          // tokens.cc
  void On(const RemoveToken& event);
  void On(const PlanMade& event);  // scheduling/planning.cc
  void On(const Tick& event);
  void Hear(Replica& from, const ReplicaReady& message);
  void Hear(Replica& from, const ReplicaRegrouped& message);
  void Hear(const Replica& from, const ReplicaReport& message);
  void Hear(const Replica& from, const ReplicaProgress& message);
  void Hear(Replica& from, const ReplicaCheckpoint& message);  // checkpoints.cc
  void Hear(const Replica& from, const ReplicaFinished& message);
  void Hear(const Replica& from, const ReplicaStuck& message);  // stuck_groups.cc
  void Hear(Replica& from, const ReplicaForming& message);

  // ---- every step
  void Observe(const Change& change);
  ReplicaId NewReplicaId();

  // ---- studies and trials (studies.cc, trials.cc)
  void EndStudy(StudyId id, StudyState state, const std::string& reason);
  void EndStudyIfDone(StudyId id);
  void SetClocksAfterRestart();
  // Ends a running, waiting or paused trial and sees its replicas off.
  void EndTrial(TrialId id, TrialState state, const std::string& reason,
                std::optional<double> value, const std::string& last_output = {},
                bool cancelled = false);
  // Of a program that came to its own end, perhaps with a value.
  void EndWell(TrialId id, std::optional<double> value, const std::string& last_output);
  void PauseTrial(TrialId id, const std::string& reason);
  void TakeValue(TrialId id, IntermediateValue value, std::map<std::string, double> extra = {});
  void RecordFigures(TrialId id);
  void JudgeTrial(TrialId id);
  bool MayPause(TrialId id) const;
  // Of its newest value; of the first that does not keep it, where that brought several points.
  PruneVerdict JudgeNewest(const Trial& trial);
  // Where the study's curves end, as far as its file or its programs tell; 0: unknown.
  std::int64_t LastStepOf(const Study& study) const;
  int ConsecutiveFailures(const Study& study) const;
  void UpdateHeld(const Study& study);
  void EndHeld(StudyId id);

  // ---- time and money (limits.cc)
  void CheckLimits();
  bool OverCost(const Study& study);
  int SlotsHeldByStudy(const Study& study) const;
  // Seconds until the time limit, or until the cost limit with the slots it holds now; infinity
  // without either.
  double TimeLeft(const Study& study) const;
  // What the fastest trial would need from its start to a result that counts; 0: unknown.
  double SecondsToBeOfUse(const Study& study) const;
  bool TooLateForNewTrials(const Study& study);

  // ---- trials that clients enqueue for the pool (queue.cc)
  void EnqueueOnPool(const Study& study, const EnqueueTrial& event);
  const Trial* TrialOfPool(TrialId id);
  void HoldBack(const Study& study);

  // ---- replica groups (groups.cc)
  void StartReplica(const Trial& trial, NodeId node, int slot);
  void StopReplica(Replica& replica, double grace_s);
  void Regroup(TrialId id, std::vector<ReplicaId> members, bool abandon, bool after_loss);
  void FinishForming(TrialId id);
  void ReplicaGone(const Replica& gone, const ReplicaExited& exit, bool node_lost);
  void GroupLost(TrialId id, const ReplicaExited& exit, bool node_lost);
  void TryRecover(TrialId id);
  void LoseNode(NodeId id);
  void CheckReplicaDeadlines();
  void ForgetUntimedGroups();
  int SlotsHeldBy(TrialId id) const;
  TrainingFigures FiguresOf(TrialId id, const Group& group) const;

  // ---- where checkpoints lie (checkpoints.cc)
  // Of its newest one; connected nodes first.
  std::vector<NodeId> HoldersOf(const Trial& trial) const;
  bool CheckpointInReach(const Trial& trial) const;
  std::string NamesOf(const std::vector<NodeId>& nodes) const;
  absl::Status CheckSharedFolder(const AgentHello& event) const;
  void TakeHeldCheckpoints(NodeId node, const AgentHello& event);
  void TakeUnknownFiles(NodeId node, const std::string& study_name, std::int64_t number,
                        const std::vector<const HeldCheckpoint*>& files);
  void LookAfterAllCheckpoints();
  void KeepCheckpoints();
  void OrderCopy(const Trial& trial);
  std::optional<NodeId> PlaceForCopy(const Trial& trial, const std::vector<NodeId>& sources) const;
  bool MayDrop(const Trial& trial, const CheckpointCopy& copy) const;
  void Drop(const Trial& trial, NodeId node);
  void DropOlderCopies(const Trial& trial);
  void DropCopiesOfEnded(const Trial& trial);
  void DropCopiesOfStudy(const Study& study);
  bool HasSource(TrialId id) const;
  bool StartAgainIfNobodyKnows(TrialId id, const std::string& what_happened, bool its_fault);
  void NoteUnfetched(const Replica& replica, const ReplicaExited& exit);
  bool CheckpointMissing(TrialId id, const ReplicaExited& exit);
  void LookForHolder(TrialId id);
  void GiveUpNewest(TrialId id);

  // ---- how far groups are between two steps (forming.cc)
  // Seconds without progress after which a group that forms is told again.
  double StallOf(TrialId id) const;
  bool Stalls(TrialId id, const Group& group) const;
  // Of whoever has most to do.
  ReplicaForming FormingOf(TrialId id, const Group& group) const;

  // ---- nodes that are to be emptied (drains.cc)
  void CheckDrains();
  void PlanNothingNewOn(NodeId id);
  void EmptyNode(const Node& node);
  void LeaveNode(TrialId id, const Node& node);
  // When the trial's replicas there are told to leave at the latest; none: no such moment is known.
  std::optional<Time> LeaveBy(NodeId id, TrialId trial) const;
  bool MustLeave(NodeId id, TrialId trial) const;

  // ---- what the rule of the pool's size is shown (pool_work.cc)
  void SizePool();
  // The rest of the request, and how long each of the pool's jobs will take.
  void DescribeWork(Pool& pool, PoolSizeRequest& request);
  double SecondsOfATrial(const Study& study) const;

  // ---- groups in which some or all hang (stuck_groups.cc)
  void CheckStuckGroups();
  void StopHung(TrialId id);
  void NobodyIsReached(TrialId id);
  bool StopThoseNotFormed(TrialId id);
  std::set<ReplicaPair> CutPairs(const Group& group) const;
  std::vector<std::string> NoteOutOfReach(const Group& group);
  void PartThoseOutOfReach(TrialId id);

  // ---- replicas that slow their group down (slow_replicas.cc)
  void JudgePace(TrialId id, const ReplicaProgress& message);
  void ReplaceStraggler(TrialId id, const Straggler& straggler);
  void GiveUpReplacement(Group& group);
  std::optional<Slot> SpareSlot(TrialId id, const Replica& slow) const;

  // ---- allocation (scheduling.cc)
  void Schedule();
  void LookAgain();
  void CarryOut();
  // Plans made beside the owner's thread (scheduling/planning.cc).
  void AskForPlan();
  void DescribeSharing(PlanRequest& request);
  bool TakePlan(const Plan& plan, const PlanRequest& request);
  bool StillMeant(const AllocationDecision& decision, const std::map<TrialId, const Job*>& shown);
  std::vector<AllocationDecision> ThatFit(std::vector<AllocationDecision> decisions) const;
  std::vector<AllocationDecision> HoldersFirst(std::vector<AllocationDecision> decisions) const;
  // Nodes that have the trial's newest checkpoint on a disk of their own, and are connected.
  std::set<NodeId> OwnCopiesOf(const Trial& trial) const;
  const std::map<StudyId, StudyPart>* KnownParts() const;
  StudyCurves CurvesToForecast(const Study& study);
  bool PromiseIsDue(const Study& study);
  void CreateTrials(const Study& study, int& room);
  // Studies that share the pool (shares.cc).
  void CreateTrialsWhereUseful(const std::map<StudyId, StudyPart>& parts);
  void GiveWayToStarving(const std::map<StudyId, StudyPart>& parts);
  void MakeRoomOn(NodeId node, int left);
  bool SomeWait(const Study& study) const;
  int RunningSlotsOf(const Study& study) const;
  int PlannedSlotsOf(const Study& study) const;
  int LeastSlotsOf(const Study& study);
  // Of a pool that has, or may come to have, so many slots.
  StudyDemand DemandOf(const Study& study, int most_slots);
  std::map<StudyId, StudyPart> PartsOfStudies();
  void OrderByShare(Pool& pool) const;
  Pool MakePool() { return MakePool(std::max(1, pool_.SlotsTotal())); }
  Pool MakePool(int most_slots);
  std::vector<NodeCapacity> Capacities() const;
  Job MakeJob(const Study& study, const Trial& trial, int most_slots);
  void RecordRefusal(const Trial& trial, const std::string& reason);
  void DescribeHistory(const Trial& trial, Job& job) const;
  double ShareDoneBy(const Trial& trial) const;
  bool WithinReach(const AllocationDecision& decision);
  void TakeAllocation(const AllocationDecision& decision);
  void ReconcileAll();
  void Reconcile(TrialId id);
  bool HasWhatItShould(TrialId id) const;
  std::set<ReplicaId> Surplus(const Group& group, const std::vector<Replica*>& live) const;
  void StartJoiners(const Trial& trial, const Group& group, const std::vector<Replica*>& live);
  std::vector<ReplicaId> WantedMembers(TrialId id, const std::vector<Replica*>& live,
                                       const std::set<ReplicaId>& surplus) const;
  void KeepASource(TrialId id, std::vector<ReplicaId>& wanted) const;
  PluginSpec CurrentPolicy() const;
  void UpdatePromise(const Study& study);
  void RecordSlots();

  TrialTimeouts TimeoutsOf(const Trial& trial) const;

  Turn turn_;
  CoreOptions options_;
  PoolState pool_{turn_};
  std::set<NodeId> away_;           // not connected
  std::set<TrialId> timed_groups_;  // about which time alone may change something
  PluginsOfStudies plugins_;
  ClientTrials clients_{turn_, options_, plugins_,
                        [this](StudyId study, const std::string& reason) {
                          EndStudy(study, StudyState::kComplete, reason);
                        }};
  ClientSlotDesk client_slots_{turn_, pool_, options_,
                               [this](NodeId node, int left) { MakeRoomOn(node, left); }};
  std::map<StudyId, Time> promise_at_;
  std::map<TrialId, double> promise_;
  std::set<StudyId> promise_stale_;  // studies whose curves changed since
  // Trials that their pruner has paused and does not let go on yet, or that their client holds
  // back. Follows from curves and attributes, so that it is the same after a restart.
  std::set<TrialId> held_;
  Speeds speeds_{turn_.state(), options_.plan_aside};
  std::map<StudyId, CostCheck> cost_check_;
  CurvesOfStudies curves_;
  CheckpointKeeping keeping_;
  std::set<NodeId> heard_;  // nodes that have said Hello to this core
  Planner planner_;         // of plans that are made within a step
  // And of others: the one under way, if there is one, and when the next may be asked for.
  std::shared_ptr<const PlanRequest> planning_;
  std::int64_t plans_asked_ = 0;
  Time plan_asked_at_;
  Time planner_rests_until_;
  bool look_ = false;                    // something has changed that a plan should see
  std::map<StudyId, StudyPart> parts_;   // by the newest plan
  std::optional<PoolSizer> pool_sizer_;  // of a pool whose nodes come from an engine
  std::int64_t next_replica_ = 1;
  bool clocks_set_ = false;
  Time scheduled_at_;  // when the allocator looked last
  Time reconciled_all_at_;
  double look_again_s_ = kLookAgain_s;
};

}  // namespace espalier
