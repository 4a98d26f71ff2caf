#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "allocator/pool/slot_ledger.h"
#include "tuner/core/pool/contacts.h"
#include "tuner/core/pool/group.h"
#include "tuner/core/pool/replica_table.h"
#include "tuner/core/state/turn.h"

namespace espalier {

inline constexpr double kShareTurn_s = 10;  // that a trial runs before it gives way

// Whether the tuner creates and runs trials of the study at present.
inline bool UsesPool(const Study& study) {
  return study.state == StudyState::kRunning && !study.spec.by_clients();
}

// A slot on which nothing is started for a while, because of how a replica ended there.
struct HeldBackSlot {
  Time until;
  std::string why;
};

// A machine from the Hello of its agent until its lease ends.
struct Node {
  NodeId id;
  std::string name;
  int slots = 0;
  bool connected = false;
  std::optional<Time> lease_ends;  // set while not connected
  std::string gpu_type;
  bool spot = false;
  double price_per_hour = 0;
  bool leaving = false;            // so its agent says; else a user may have drained it
  Time leaves;                     // with `leaving`: when
  bool draining = false;           // for one of these reasons, or because no slot can be used
  bool drain_begins = false;       // since the last step
  std::optional<Time> ends;        // with `draining`: when it is gone or must be empty
  Time ends_known;                 // with `ends`: since when
  bool releasing = false;          // the pool shrinks by it
  std::optional<Time> released;    // when the engine was told, the last time
  bool keeps_checkpoints = false;  // others may fetch them there
  std::string shared_folder{};     // see AgentHello
  // Number of GPUs that the slots are spread over round-robin: slot i is on GPU i % gpus. 0: CPU
  // slots.
  int gpus = 0;
  bool spans_launches = false;                 // see AgentHello
  bool clones = false;                         // likewise
  std::map<int, std::string> told_unusable{};  // slots, and why: by its agent
  std::map<int, HeldBackSlot> held_back{};
  std::map<int, std::string> unusable{};  // all of these
};

// A trial that has not ended, with its study, where the state has them.
struct LiveTrial {
  const Trial* trial;
  const Study* study;
};

// The pool as it is at this moment: nodes, the replicas on them, the groups that these form, and
// which trial holds which slot. Not durable: after a restart agents and replicas report it again.
// The parts that share it are responsible for their own changes; queries that several of them make
// are answered here.
struct PoolState {
  explicit PoolState(Turn& turn) : turn_(turn) {}
  PoolState(const PoolState&) = delete;
  PoolState& operator=(const PoolState&) = delete;

  // A trial of the pool, and a study, of a loaded state.
  void TakeUp(const Trial& trial);
  void TakeUp(const Study& study);
  void Observe(const Change& change);

  // ---- changing what belongs together
  // The trial has slots that it had not, or has lost some.
  void SlotsChange(TrialId id);
  // Whether the node must be emptied, according to its agent, the users and the rule of the pool's
  // size. Where that changes, the studies' records say so, and `why`.
  void UpdateDrain(Node& node, const std::string& why);
  // Slots of the node on which nothing is to be started, as its agent says, and why; no others.
  void SetUnusable(Node& node, const std::map<int, std::string>& slots);
  // Nothing is started on these slots of the node until then.
  void HoldBack(NodeId id, const std::set<int>& slots, Time until, const std::string& why);
  // Makes slots that were held back until now usable again.
  void ReleaseHeldBack();
  std::optional<Time> NextRelease() const;
  // Trials that were to start on a node, and have not, are planned anew: it has changed.
  void ForgetPlansFor(NodeId id);

  // ---- nodes and their slots
  int SlotsTotal() const;
  std::string NodeName(NodeId id) const;
  bool Draining(NodeId id) const;
  // Held by replicas and clients.
  int SlotsHeldOn(NodeId id) const;
  int ClientSlotsOn(NodeId id) const;
  // Whether replicas may be started there.
  bool Usable(Slot slot) const;
  bool Usable(const Replica& replica) const;  // all that it holds
  // Leaves out the slots that clients hold: they keep them.
  int UnusableSlotsOn(const Node& node) const;
  // How many slots of the node have a GPU each that none of the others is on; all of them where the
  // slots are whole GPUs, or no GPUs.
  int GpusOn(const Node& node) const;
  // The lowest usable slot that is free: a slot on a GPU on which the trial has none comes before
  // one that shares the trial's own GPU, and of these one that is not slow before one that is.
  // None: there is no such slot, or the node is away.
  std::optional<int> FreeSlot(NodeId id, TrialId trial) const;
  // So many of them, as if taken one after the other. Empty: there are fewer.
  std::vector<int> FreeSlots(NodeId id, TrialId trial, int count) const;
  // The placement without slots that would share a GPU with another one of the same trial, as far
  // as `least` are left.
  Placement OnGpusOfItsOwn(Placement placement, int least) const;
  // Slots that are on record as held by trials about which it is not known yet what is left of
  // them. Until then no other trial gets them: a record never says of a slot that two trials hold
  // it.
  std::set<Slot> SlotsToRecover() const;
  // Whether a replica there was slow a short while ago.
  bool IsSlow(Slot slot) const;
  // Slots that a replica is leaving count as free.
  int FreeSlowSlots(NodeId node) const;

  // ---- replicas and groups
  // By replicas of the trial.
  int SlotsHeldBy(TrialId id) const;
  // By node, how many of these slots are there.
  Placement PlacementOf(TrialId id) const;
  // Where the study's curves end, as far as its file or its programs tell; 0: unknown.
  std::int64_t LastStepOf(const Study& study) const;
  // Likewise of this trial, whose program may have another number of steps than the others'.
  std::int64_t LastStepOf(const Trial& trial) const;
  // Whether it has told the last of its values; false also where nobody knows which that is.
  bool HasComeToTheEnd(const Trial& trial) const;
  std::vector<const Replica*> ReplicasOf(TrialId id) const;
  // "node-1 slot 2", "node-1 slots 2, 3".
  std::string PlaceOf(const Replica& replica) const;
  // The GPU type of the nodes that its members are on; none while they are on several types.
  std::optional<std::string> GpuTypeOf(const Group& group) const;
  // Whether the trial may be resized: not while a group forms, starts or takes its leave.
  bool Settled(TrialId id, const Group& group) const;
  // A node carries at most one trial that spans nodes, as policies place them.
  bool MaySpan(TrialId id, const Placement& placement) const;
  // So many slots an elastic trial could give on a node at most without pausing.
  int MayGiveOn(TrialId id, const Group& group, NodeId node) const;
  // So many slots elastic trials can give there at once.
  int SettledGiveOn(NodeId node) const;
  // Whether the trial keeps a checkpoint, and has run for long enough to give way to others.
  bool MayPauseForOthers(TrialId id, const Group& group) const;

  std::map<NodeId, Node> nodes;
  ReplicaTable replicas;
  std::map<TrialId, Group> groups;
  std::map<Slot, TrialId> held_by_clients;  // by slot, the trial that its client runs there
  std::set<StudyId> studies;                // those that use the pool
  std::map<TrialId, LiveTrial> live;        // trials of the pool that have not ended
  // In a pool of thousands of replicas most are at peace most of the time. These are not, or may
  // not be: nodes that are to be emptied, and trials that may not have what they should.
  std::set<NodeId> draining;
  std::set<TrialId> reconcile;
  std::set<TrialId> timed;          // trials with groups that may change by time alone
  std::set<TrialId> slots_touched;  // in this step
  // By clone that takes a member's place, that one and the slots that it had.
  struct Predecessor {
    TrialId member;
    Placement slots;
  };
  std::map<TrialId, Predecessor> successors;
  // Trials of a loaded state that run or hold slots while their agents have not reconnected yet;
  // and when the wait for them ends.
  std::set<TrialId> recovering;
  std::map<TrialId, std::set<NodeId>> nodes_at_load;  // of these, where they held slots then
  std::optional<Time> recovery_ends;
  std::map<Slot, Time> slow_slots;  // until when
  std::set<NodeId> holding_back;    // nodes with slots that are held back
  // How many slots replicas of a trial have found unusable, since one of it was last ready.
  std::map<TrialId, int> slots_blamed;
  NodeFaults faults;  // pairs of nodes that cannot talk

 private:
  void UpdateUnusable(Node& node);
  void Tell(const Node& node, const std::map<std::string, std::vector<int>>& news) const;
  void NoteStudy(StudyId id);
  void ForgetStudy(StudyId id);

  Turn& turn_;
};

}  // namespace espalier
