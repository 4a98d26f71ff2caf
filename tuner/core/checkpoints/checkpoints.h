#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/core/checkpoints/checkpoint_keeping.h"
#include "tuner/core/groups/groups.h"
#include "tuner/core/pool/checkpoint_copies.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/turn.h"
#include "tuner/core/trials/trials.h"

namespace espalier {

// Checkpoints belong to the pool: which nodes have them, and that one lost node does not lose them.
//
// The newest checkpoint of each trial that has not ended is on two nodes as soon as there are two
// that can keep it: where the trial wrote it, and a copy. When the copy of a newer one is there,
// older copies go. A trial that starts where its newest checkpoint is not is told which nodes have
// it. One that joins a group that trains needs none; should those that train be lost before it has
// taken over, it is stopped, and the trial goes on from its checkpoint.
//
// Where no node that has the newest checkpoint is connected the trial waits (see
// kHolderPatience_s). Then it goes on from an older one if a connected node has it, and the study's
// record says so; else it ends as FAIL, with the reason. What lies in a shared folder is there when
// no node sees it, too: the trial waits for one that does. Time without a single node does not
// count, since it says nothing about whether those that have the checkpoint come back.
//
// A clone begins with a copy of its parent's newest checkpoint, which is made where that lies, and
// from then on it is a trial as any other. Until it has it, it waits; where no node that has the
// checkpoint comes back, or it cannot be copied, it ends as FAIL. Where the parent has come to its
// end by then, so that nothing is left to train, it ends as PRUNED.
// The folder of a plain program is copied while that does not run: it is asked to save and to end,
// and is started again when the clone has its copy.
//
// One owner.
class Checkpoints {
 public:
  Checkpoints(Turn& turn, PoolState& pool, const CoreOptions& options,
              const CheckpointCopies& copies, Groups& groups, Trials& trials)
      : turn_(turn),
        pool_(pool),
        options_(options),
        copies_(copies),
        groups_(groups),
        trials_(trials) {}

  // A trial of the pool, of a loaded state.
  void TakeUp(const Trial& trial);
  void Observe(const Change& change);

  // ---- what is said
  void On(const CheckpointCopied& event);
  void Hear(Replica& from, const ReplicaCheckpoint& message);
  // Nodes that share a folder for checkpoints share the same one.
  absl::Status CheckSharedFolder(const AgentHello& event) const;
  // An agent has said which checkpoints it has: what is on record of its node is compared with
  // them.
  void TakeHeldCheckpoints(NodeId node, const AgentHello& event);
  void NodeGone();  // it may come back
  void NodeLost(NodeId node);
  // A replica of the trial has been started, and so has what it starts from.
  void NoteStarted(TrialId id) { keeping_.unfetched.erase(id); }
  // A replica could not be started, since no node provided the checkpoint. Nodes that turned out
  // not to have it, or to have it damaged, are no longer counted on.
  void NoteUnfetched(const Replica& replica, const ReplicaExited& exit);

  // ---- phases of a step
  // The trial is looked at in this step.
  void LookAfter(TrialId id) { keeping_.due.insert(id); }
  // Orders copies, drops those that are not needed, and gives up waiting for lost ones.
  void Keep();
  std::optional<Time> Next() const { return keeping_.Next(); }

  // ---- starts
  // Whether the trial must not be started for now.
  bool Holds(TrialId id) const { return keeping_.Holds(id); }
  // Whether the trial is a clone that has not been given its parent's checkpoint.
  bool AwaitsParents(TrialId id) const { return keeping_.clones.contains(id); }
  // Whether that is because no node that has its checkpoint is connected.
  bool WaitsForHolder(TrialId id) const { return keeping_.waits.contains(id); }
  // Whether clones wait for a copy of its folder, which its program, a plain one, must not write
  // into before: it is not started again until they have it.
  bool GivesItsFolder(const Trial& parent) const;
  // Starts the trial again from its checkpoint where those that are left of its group have been
  // started to take over from others, which are gone: they have nothing. True: it does, or the
  // trial has failed, being at fault, after as many restarts as it may have.
  bool StartAgainIfNobodyKnows(TrialId id, const std::string& what_happened, bool its_fault,
                               const std::string& last_output = {});
  // True: the trial's start failed because no node with its checkpoint could provide it, which is
  // not its program's fault, and this has been handled.
  bool CheckpointMissing(TrialId id, const ReplicaExited& exit);
  // Before the study is deleted.
  void DropCopiesOfStudy(const Study& study);

 private:
  void TakeUnknownFiles(NodeId node, const std::string& study_name, std::int64_t number,
                        const std::vector<const HeldCheckpoint*>& files);
  bool TakeFolderAsLeft(NodeId node, const AgentHello& event, const HeldCheckpoint& file);
  void LookAfterAllCheckpoints();
  // ---- what clones begin with (parents.cc)
  const Trial& ParentOf(const Trial& clone) const;
  bool AwaitsFolder(const Trial& clone, const Trial& parent);
  void OrderParents(const Trial& clone);
  void WaitForParents(const Trial& clone);
  void BeginWithParents(const Trial& clone, const CheckpointCopied& event);
  void OrderCopy(const Trial& trial);
  std::optional<NodeId> PlaceForCopy(const Trial& trial, const std::vector<NodeId>& sources) const;
  bool MayDrop(const Trial& trial, const CheckpointCopy& copy) const;
  void Drop(const Trial& trial, NodeId node);
  void DropOlderCopies(const Trial& trial);
  void DropCopiesOfEnded(const Trial& trial);
  void LookForHolder(TrialId id);
  // How long the trial has waited for a checkpoint, from now on if it did not: time without a
  // connected node does not count. nullopt: there is none now.
  std::optional<double> WaitedFor(TrialId id);
  // After so much of that time, at the latest.
  void LookAgain(TrialId id, double after_s);
  void GiveUpNewest(TrialId id);

  Turn& turn_;
  PoolState& pool_;
  const CoreOptions& options_;
  const CheckpointCopies& copies_;
  Groups& groups_;
  Trials& trials_;
  CheckpointKeeping keeping_;
};

}  // namespace espalier
