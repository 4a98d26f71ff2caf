#include "tuner/core/pool/checkpoint_copies.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace espalier {

CheckpointLabel NewestAsFile(const Trial& trial) {
  CheckpointLabel label = *trial.newest_checkpoint;
  if (label.known() || trial.checkpoint.empty()) return label;
  const std::string name = trial.checkpoint.substr(trial.checkpoint.rfind('/') + 1);
  if (name.starts_with("step-") && name.ends_with(".pt")) label.name = name;
  return label;
}

bool IsFolder(const Trial& trial) {
  if (trial.newest_checkpoint->known()) return trial.newest_checkpoint->name.empty();
  return trial.checkpoint.ends_with('/');
}

std::vector<NodeId> CheckpointCopies::HoldersOfFile(const Trial& trial) const {
  if (trial.newest_checkpoint->known()) return HoldersOf(trial);
  if (trial.checkpoint.empty() || trial.spans.empty()) return {};
  const std::vector<Slot>& slots = trial.spans.back().slots;
  if (slots.empty()) return {};
  return {slots.front().node};
}

std::vector<NodeId> CheckpointCopies::HoldersOf(const Trial& trial) const {
  std::vector<NodeId> connected;
  std::vector<NodeId> away;
  for (const CheckpointCopy& copy : trial.copies) {
    if (!copy.what.Is(*trial.newest_checkpoint)) continue;
    if (copy.folder.empty()) {
      const auto node = pool_.nodes.find(copy.node);
      const bool there = node != pool_.nodes.end() && node->second.connected;
      (there ? connected : away).push_back(copy.node);
      continue;
    }
    // All nodes that share the folder are as good.
    const std::size_t before = connected.size();
    for (const auto& [id, node] : pool_.nodes) {
      if (node.connected && node.shared_folder == copy.folder) connected.push_back(id);
    }
    if (connected.size() == before) away.push_back(copy.node);
  }
  connected.insert(connected.end(), away.begin(), away.end());
  return connected;
}

std::set<NodeId> CheckpointCopies::OwnCopiesOf(const Trial& trial) const {
  std::set<NodeId> nodes;
  for (const CheckpointCopy& copy : trial.copies) {
    const auto node = pool_.nodes.find(copy.node);
    if (!copy.folder.empty() || node == pool_.nodes.end() || !node->second.connected) continue;
    if (copy.what.Is(*trial.newest_checkpoint)) nodes.insert(copy.node);
  }
  return nodes;
}

bool CheckpointCopies::CheckpointInReach(const Trial& trial) const {
  if (!trial.newest_checkpoint->known()) return true;  // by its path, as far as anybody knows
  const std::vector<NodeId> holders = HoldersOf(trial);
  return std::any_of(holders.begin(), holders.end(), [this](NodeId id) {
    const auto node = pool_.nodes.find(id);
    return node != pool_.nodes.end() && node->second.connected;
  });
}

// ---- starts -------------------------------------------------------------------------------------

// Whether somebody in the group, or on its way to it, has what the trial has learnt.
bool CheckpointCopies::HasSource(TrialId id) const {
  const std::string key = CheckpointKey(turn_.state().trials.at(id));
  const std::int64_t generation = turn_.state().trials.at(id).newest_checkpoint->generation;
  const std::set<ReplicaId>& all = pool_.replicas.Of(id);
  return std::any_of(all.begin(), all.end(), [&](ReplicaId replica_id) {
    const Replica& replica = pool_.replicas.at(replica_id);
    if (replica.leaving || replica.stopping) return false;
    return (replica.generation > 0 && replica.generation >= generation) ||
           replica.started_from == key;
  });
}

std::string CheckpointCopies::WhereNewestLies(const Trial& trial) const {
  std::vector<std::string> places;
  for (const CheckpointCopy& copy : trial.copies) {
    if (!copy.what.Is(*trial.newest_checkpoint) || copy.folder.empty()) continue;
    places.push_back(absl::StrCat("a node that sees the --shared-dir of ", NamesOf({copy.node})));
  }
  return places.empty() ? NamesOf(HoldersOf(trial)) : absl::StrJoin(places, ", or ");
}

std::string CheckpointCopies::NamesOf(const std::vector<NodeId>& nodes) const {
  std::vector<std::string> names;
  for (const NodeId node : nodes) {
    const auto known = turn_.state().nodes.find(node);
    names.push_back(known == turn_.state().nodes.end() ? absl::StrCat(node.value) : known->second);
  }
  return absl::StrCat(names.size() == 1 ? "node " : "nodes ", absl::StrJoin(names, ", "));
}

std::string CheckpointKey(const Trial& trial) {
  return trial.newest_checkpoint->known() ? trial.newest_checkpoint->fingerprint : trial.checkpoint;
}

std::string TextOf(const CheckpointLabel& label) {
  return label.name.empty() ? absl::StrCat("checkpoint folder (save ", label.step, ")")
                            : absl::StrCat("checkpoint ", label.name);
}

}  // namespace espalier
