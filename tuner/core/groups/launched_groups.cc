#include "tuner/core/groups/launched_groups.h"

#include <algorithm>
#include <csignal>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/pool/slot_ledger.h"

namespace espalier {

namespace {

std::int64_t Ns(Time at) { return at.us * 1000; }

bool EndedWell(const ReplicaExited& exit) {
  return exit.exit_code == 0 && exit.signal == 0 && exit.error.empty();
}

// "ranks 2 and 3 of 4 on oak": those of the node with this place.
std::string RanksOn(const std::vector<int>& ranks_of_nodes, std::size_t node_rank,
                    const std::string& node) {
  int first = 0;
  int all = 0;
  for (std::size_t i = 0; i < ranks_of_nodes.size(); ++i) {
    if (i < node_rank) first += ranks_of_nodes[i];
    all += ranks_of_nodes[i];
  }
  const int last = first + ranks_of_nodes[node_rank] - 1;
  const std::string which = last == first       ? absl::StrCat("rank ", first)
                            : last == first + 1 ? absl::StrCat("ranks ", first, " and ", last)
                                                : absl::StrCat("ranks ", first, " to ", last);
  return absl::StrCat(which, " of ", all, " on ", node);
}

// The rank that had left before that end, of the node of that replica.
std::optional<int> LeftBefore(const Group::OverNodes& over, ReplicaId replica,
                              const RankEnd& failed) {
  std::vector<RankEnd> ends = {failed};
  std::vector<int> ranks;
  for (const auto& [of, left] : over.left) {
    ends.push_back(left.end);
    ranks.push_back(left.rank);
    // The moments of two nodes are reckoned from when their messages came, and either may be late.
    if (of != replica) ends.back().at_ns -= kEndSeenWithin_ns;
  }
  const int first = RankThatHadLeft(ends, 0);
  return first > 0 ? std::optional(ranks[static_cast<std::size_t>(first) - 1]) : std::nullopt;
}

}  // namespace

Placement FirstPlacesOf(const PoolState& pool, const Study& study, const Group& group) {
  if (!study.spec.launch.empty()) {
    const bool all = std::none_of(group.target.begin(), group.target.end(),
                                  [&pool](const auto& here) { return pool.Draining(here.first); });
    return all ? group.target : Placement{};
  }
  std::pair<NodeId, int> most;
  for (const auto& [node, slots] : group.target) {
    if (slots > most.second && !pool.Draining(node)) most = {node, slots};
  }
  return most.second > 0 ? Placement{most} : Placement{};
}

std::vector<NodeId> NodesTooOldFor(const StudySpec& spec, const PoolState& pool) {
  std::vector<NodeId> old;
  if (spec.launch.empty()) return old;
  const bool is_spread = spec.slots_per_node > 0 && spec.slots_per_node < spec.min_slots;
  for (const auto& [id, node] : pool.nodes) {
    if (node.draining) continue;
    if (node.slots >= spec.min_slots && !is_spread) return {};
    if (!node.spans_launches) old.push_back(id);
  }
  return old;
}

bool LaunchedGroups::Start(const Trial& trial, const Placement& places) {
  std::map<NodeId, std::vector<int>> free;
  NodeOfRanks place;
  for (const auto& [node, slots] : places) {
    const auto known = pool_.nodes.find(node);
    if (known == pool_.nodes.end() || !known->second.spans_launches) return false;
    free[node] = pool_.FreeSlots(node, trial.id, slots);
    if (free[node].empty()) return false;
    place.ranks_of_nodes.push_back(slots);
  }
  Group::OverNodes over;
  for (auto& [node, slots] : free) {
    const int own = slots.front();
    slots.erase(slots.begin());
    over.replicas.push_back(groups_.StartReplica(trial, node, own, std::move(slots), place));
    ++place.node_rank;
  }
  pool_.groups.at(trial.id).over_nodes = std::move(over);
  return true;
}

void LaunchedGroups::TakeUp(TrialId id, std::set<NodeId> nodes) {
  const std::vector<const Replica*> replicas = pool_.ReplicasOf(id);
  for (const Replica* replica : replicas) nodes.insert(replica->node);
  if (turn_.StudyAt(turn_.TrialAt(id).study).spec.launch.empty() || nodes.size() < 2) return;
  Group& group = pool_.groups.at(id);
  group.over_nodes = Group::OverNodes();
  Group::OverNodes& over = *group.over_nodes;
  // They were started in the order of their ranks.
  for (const Replica* replica : replicas) {
    over.replicas.push_back(replica->id);
    nodes.erase(replica->node);
  }
  if (nodes.empty()) return TellWhereToMeet(group);
  over.lost_with = turn_.state().nodes.at(*nodes.begin());
  StopOthers(id);
}

void LaunchedGroups::Hear(Replica& from, const RanksWait& message) {
  from.ranks_wait = true;
  from.address = message.address;
  const auto group = pool_.groups.find(from.trial);
  if (group != pool_.groups.end()) TellWhereToMeet(group->second);
}

// Also those that know it already, who take no notice.
void LaunchedGroups::TellWhereToMeet(const Group& group) {
  if (!group.over_nodes) return;
  std::string address;
  for (const ReplicaId id : group.over_nodes->replicas) {
    const auto replica = pool_.replicas.find(id);
    if (replica == pool_.replicas.end() || !replica->second.ranks_wait) return;
    if (!replica->second.address.empty()) address = replica->second.address;
  }
  for (const ReplicaId id : group.over_nodes->replicas) {
    turn_.Send(RanksMeetCommand{pool_.replicas.at(id).node, id, address});
  }
}

void LaunchedGroups::Hear(const Replica& from, const RanksFailed& message) {
  const auto found = pool_.groups.find(from.trial);
  if (found == pool_.groups.end() || !found->second.over_nodes) return;
  const double ago_s = std::max(0.0, message.ago_s);
  found->second.over_nodes->failures.try_emplace(from.id,
                                                 RankEnd{.exit_code = message.exit_code,
                                                         .signal = message.signal,
                                                         .at_ns = Ns(After(turn_.now(), -ago_s)),
                                                         .noted = message.noted});
  StopOthers(from.trial);
}

void LaunchedGroups::Hear(const Replica& from, const RanksLeft& message) {
  const auto found = pool_.groups.find(from.trial);
  if (found == pool_.groups.end() || !found->second.over_nodes) return;
  const RankEnd end{.exit_code = 0, .at_ns = Ns(After(turn_.now(), -std::max(0.0, message.ago_s)))};
  found->second.over_nodes->left.try_emplace(from.id, Group::OverNodes::Left{message.rank, end});
}

void LaunchedGroups::StopOthers(TrialId id) {
  const Group::OverNodes& over = *pool_.groups.at(id).over_nodes;
  const double grace_s = turn_.StudyAt(turn_.TrialAt(id).study).spec.stop_grace_s;
  for (const ReplicaId other : std::set<ReplicaId>(pool_.replicas.Of(id))) {
    Replica& replica = pool_.replicas.at(other);
    // Where a rank has failed, the others of its node are told there.
    if (!replica.stopping && !over.failures.contains(other)) {
      groups_.StopReplica(replica, grace_s);
    }
  }
}

double LaunchedGroups::Apart_s(const Trial& trial) const {
  const double own_s = turn_.StudyAt(trial.study).spec.timeouts.exit_s;
  return own_s > 0 ? own_s : kDefaultRanksApart_s;
}

void LaunchedGroups::EndThoseLate(TrialId id) {
  Group::OverNodes& over = *pool_.groups.at(id).over_nodes;
  for (const ReplicaId replica : over.replicas) {
    if (over.ends.contains(replica) && !over.early) over.early = replica;
  }
  StopOthers(id);
}

std::optional<LaunchedGroups::TrialEnd> LaunchedGroups::Gone(const Replica& gone,
                                                             const ReplicaExited& exit,
                                                             bool node_lost) {
  const TrialId id = gone.trial;
  Group& group = pool_.groups.at(id);
  Group::OverNodes& over = *group.over_nodes;
  const bool well = EndedWell(exit) && !node_lost;
  if (node_lost && over.lost_with.empty()) over.lost_with = turn_.state().nodes.at(gone.node);
  if (!well && !node_lost && !gone.stopping) {
    // What was never started has no code.
    over.failures.try_emplace(gone.id,
                              RankEnd{.exit_code = exit.exit_code == 0 ? -1 : exit.exit_code,
                                      .signal = exit.signal,
                                      .at_ns = Ns(turn_.now())});
  }
  over.ends.insert_or_assign(gone.id, Group::OverNodes::End{gone, exit});
  if (!pool_.replicas.Of(id).empty()) {
    if (!well) {
      StopOthers(id);
    } else if (!gone.stopping && !group.ending) {
      group.ending = After(turn_.now(), Apart_s(turn_.TrialAt(id)));
      pool_.timed.insert(id);
    }
    return std::nullopt;
  }
  group.ending.reset();
  if (!over.lost_with.empty()) return TrialEnd{gone, exit, over.lost_with};
  std::vector<RankEnd> ends;
  std::vector<ReplicaId> of;
  for (const auto& [replica, end] : over.failures) {
    ends.push_back(end);
    of.push_back(replica);
  }
  const int blamed = RankToBlame(ends, std::numeric_limits<std::int64_t>::max());
  ReplicaId told = blamed >= 0 ? of[static_cast<std::size_t>(blamed)] : over.early;
  if (!told) told = over.replicas.front();  // all have ended well, and its output is the trial's
  const auto end = over.ends.find(told);
  if (end == over.ends.end()) return TrialEnd{gone, exit, ""};
  TrialEnd result{end->second.replica, end->second.exit, ""};
  if (blamed >= 0) {
    // Whatever has become of the process that started it.
    const RankEnd& failed = ends[static_cast<std::size_t>(blamed)];
    result.exit.exit_code = failed.exit_code;
    result.exit.signal = failed.signal;
    const std::optional<int> left = LeftBefore(over, told, failed);
    if (left && !result.exit.rank.empty()) result.exit.error = HowEndedAfter(failed, *left);
  }
  if (blamed < 0 && over.early) {
    std::vector<int> ranks_of_nodes;
    std::size_t node_rank = 0;
    for (const ReplicaId replica : over.replicas) {
      const auto other = over.ends.find(replica);
      if (replica == told) node_rank = ranks_of_nodes.size();
      ranks_of_nodes.push_back(other == over.ends.end() ? 1 : other->second.replica.slots());
    }
    result.exit.exit_code = -1;
    result.exit.signal = SIGKILL;
    result.exit.rank = RanksOn(ranks_of_nodes, node_rank, pool_.NodeName(result.replica.node));
    result.exit.error = absl::StrCat("ended with 0, and others ran on for ",
                                     Apart_s(turn_.TrialAt(id)), " s (exit_timeout_s)");
  }
  return result;
}

}  // namespace espalier
