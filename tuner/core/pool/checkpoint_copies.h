#pragma once

#include <set>
#include <string>
#include <vector>

#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/turn.h"

namespace espalier {

// By what a start from the trial's newest checkpoint is told from others: "" if it has none.
std::string CheckpointKey(const Trial& trial);

// "checkpoint step-120.pt"; of a folder, how often it had been saved: "checkpoint folder (save 3)".
std::string TextOf(const CheckpointLabel& label);

// The trial's newest checkpoint as its agent finds it, step 0 and no name if it has none. Agents
// that give none away, as that of `tuner run`, tell its path alone: then its name is that of the
// file, if it is one of the library's, and it has no fingerprint.
CheckpointLabel NewestAsFile(const Trial& trial);

// Whether it is the folder of a program that keeps files of its own. Of one that is known by its
// path alone, this ends with '/'.
bool IsFolder(const Trial& trial);

// Where the newest checkpoint of a trial is, and which nodes could pass on a checkpoint, according
// to the present state and pool.
class CheckpointCopies {
 public:
  CheckpointCopies(const Turn& turn, const PoolState& pool) : turn_(turn), pool_(pool) {}

  // Nodes that have it, connected ones first. For a shared folder that no connected node sees, the
  // node that wrote there: the folder has not gone with it.
  std::vector<NodeId> HoldersOf(const Trial& trial) const;
  // Of one that is known by its path alone: the node on which the trial has run last.
  std::vector<NodeId> HoldersOfFile(const Trial& trial) const;
  // Nodes that have it on a disk of their own, and are connected.
  std::set<NodeId> OwnCopiesOf(const Trial& trial) const;
  // Whether a node that has it is connected; true also of a trial that has none.
  bool CheckpointInReach(const Trial& trial) const;
  // Whether a replica in the trial's group, or on its way to it, has what the trial has learnt.
  bool HasSource(TrialId id) const;
  // "nodes a, b", or "a node that sees the --shared-dir of node a".
  std::string WhereNewestLies(const Trial& trial) const;
  // "nodes a, b".
  std::string NamesOf(const std::vector<NodeId>& nodes) const;

 private:
  const Turn& turn_;
  const PoolState& pool_;
};

}  // namespace espalier
