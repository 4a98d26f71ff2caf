#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "tuner/messages/replica_messages.h"

namespace espalier {

class ReplicaTable;

// One process, from StartReplica to its exit. Its trial and its place never change. A trial's first
// one holds all the slots that its trial has on the node until it says Ready, because a program
// that never does may use them all.
struct Replica {
  Replica(ReplicaId replica_id, TrialId trial_id, NodeId node_id, int slot_index)
      : id(replica_id), trial(trial_id), node(node_id), slot(slot_index) {}

  ReplicaId id;
  TrialId trial;
  NodeId node;
  int slot;
  std::vector<int> more_slots{};  // those that it holds beside its own
  int slots() const { return 1 + static_cast<int>(more_slots.size()); }
  bool Holds(int index) const {
    return index == slot ||
           std::find(more_slots.begin(), more_slots.end(), index) != more_slots.end();
  }
  bool ready = false;     // has said Ready: belongs to an elastic program
  bool leaving = false;   // told to leave by a regroup or a pause
  bool stopping = false;  // StopReplica was sent
  std::string address;
  bool ranks_wait = false;   // its ranks wait to be told where they meet; `address`, if not empty
  std::string started_from;  // key of the checkpoint that it was given, or has written since
  std::vector<NodeId> sources;  // of that checkpoint, as its agent was told
  std::int64_t generation = 0;  // last one it reported
  ReplicaForming forming;       // how far it said it was on its way to a group, or out
  double grace_s = 0;

  // When a group with this replica has told its progress first.
  struct FirstProgress {
    Time at;
    std::int64_t step;
    double epoch;
  };
  bool untried = false;  // joins, or has joined, a group, which has not shown yet that this works
  std::optional<FirstProgress> first_progress{};  // while untried

  // When to (again) stop it. Set by the table, which finds those that are due.
  std::optional<Time> deadline() const { return deadline_; }

 private:
  friend class ReplicaTable;
  std::optional<Time> deadline_;
};

// All replicas by id, as a map, which of them belong to a trial or are on a node, and when the next
// one is due: a pool of thousands of slots is not searched for the few of one trial.
class ReplicaTable {
 public:
  using Map = std::map<ReplicaId, Replica>;
  using iterator = Map::iterator;
  using const_iterator = Map::const_iterator;

  std::pair<iterator, bool> emplace(ReplicaId id, Replica replica) {
    of_[replica.trial].insert(id);
    on_[replica.node].insert(id);
    SetDeadline(replica, std::nullopt);
    return all_.emplace(id, std::move(replica));
  }
  void erase(iterator at) {
    Forget(of_, at->second.trial, at->first);
    Forget(on_, at->second.node, at->first);
    SetDeadline(at->second, std::nullopt);
    all_.erase(at);
  }
  void erase(ReplicaId id) {
    if (const auto at = all_.find(id); at != all_.end()) erase(at);
  }

  // Sets the deadline of a replica of this table.
  void SetDeadline(Replica& replica, std::optional<Time> deadline) {
    if (replica.deadline_) deadlines_.erase({*replica.deadline_, replica.id});
    replica.deadline_ = deadline;
    if (deadline) deadlines_.insert({*deadline, replica.id});
  }
  std::optional<Time> NextDeadline() const {
    return deadlines_.empty() ? std::nullopt : std::optional<Time>(deadlines_.begin()->first);
  }
  // In ascending order of ids.
  std::set<ReplicaId> Due(Time now) const {
    std::set<ReplicaId> due;
    for (auto at = deadlines_.begin(); at != deadlines_.end() && at->first <= now; ++at) {
      due.insert(at->second);
    }
    return due;
  }

  const std::map<TrialId, std::set<ReplicaId>>& by_trial() const { return of_; }
  // In ascending order.
  const std::set<ReplicaId>& Of(TrialId trial) const { return At(of_, trial); }
  const std::set<ReplicaId>& On(NodeId node) const { return At(on_, node); }

  iterator begin() { return all_.begin(); }
  iterator end() { return all_.end(); }
  const_iterator begin() const { return all_.begin(); }
  const_iterator end() const { return all_.end(); }
  iterator find(ReplicaId id) { return all_.find(id); }
  const_iterator find(ReplicaId id) const { return all_.find(id); }
  Replica& at(ReplicaId id) { return all_.at(id); }
  const Replica& at(ReplicaId id) const { return all_.at(id); }
  bool contains(ReplicaId id) const { return all_.contains(id); }
  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }

 private:
  template <typename Id>
  using Index = std::map<Id, std::set<ReplicaId>>;

  template <typename Id>
  static void Forget(Index<Id>& index, Id id, ReplicaId replica) {
    const auto at = index.find(id);
    at->second.erase(replica);
    if (at->second.empty()) index.erase(at);
  }
  template <typename Id>
  static const std::set<ReplicaId>& At(const Index<Id>& index, Id id) {
    static const std::set<ReplicaId> kNone;
    const auto at = index.find(id);
    return at == index.end() ? kNone : at->second;
  }

  Map all_;
  Index<TrialId> of_;
  Index<NodeId> on_;
  std::set<std::pair<Time, ReplicaId>> deadlines_;
};

}  // namespace espalier
