// Groups whose members wait for one another in vain.
//
// A replica that has waited for the others for longer than any of them should take tries each
// one's address. One that finds others out of reach says so, Stuck with its contacts, also while
// it waits for a group to form. kContactGrace_s after the first such word, or when all have spoken,
// those go on who reach one another, the furthest first (see WhoGoesOn): a joiner that cannot be
// reached leaves, and who trains is never stopped for waiting. The nodes are kept apart for a
// while.
//
// Where all contacts answer, somebody hangs or is slow. In a group that trains, those of its
// generation that do not say Stuck within kStuckGrace_s after the first one hang: they are stopped,
// and the others go on without them, as after any loss. In one that forms nobody is blamed for
// being late but by CheckReplicaDeadlines. When all say so, nobody hangs: a new generation may mend
// that; if it does not for kMaxStuckInARow times, those on rank 0's node go on alone; and if not
// even they can, the trial starts again from its checkpoint.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tuner/core/agents/replica_watch.h"

namespace espalier {

namespace {

constexpr int kMaxFormTimeouts = 3;    // then a member that has not come is taken to hang
constexpr double kStuckGrace_s = 2;    // between the first member's Stuck and the last one's
constexpr double kContactGrace_s = 4;  // likewise, of those that are out of reach
constexpr int kMaxStuckInARow = 3;     // generations that could not train at all

}  // namespace

void ReplicaWatch::Hear(const Replica& from, const ReplicaStuck& message) {
  if (from.stopping) return;
  const auto found = pool_.groups.find(from.trial);
  if (found == pool_.groups.end()) return;
  const Trial& trial = turn_.TrialAt(from.trial);
  Group& group = found->second;
  if (trial.state != TrialState::kRunning || group.pausing || group.ending) return;
  // What an earlier generation waited for is settled by the present one.
  if (message.generation != trial.generation) return;
  if (std::find(group.members.begin(), group.members.end(), from.id) == group.members.end()) {
    return;
  }
  group.stuck.insert(from.id);
  const bool cut = std::any_of(
      message.contacts.begin(), message.contacts.end(), [&group](const ReplicaContact& contact) {
        return OutOfReach(contact.contact) && std::find(group.members.begin(), group.members.end(),
                                                        contact.replica) != group.members.end();
      });
  if (cut) {
    group.contacts[from.id] = message.contacts;
    if (!group.contacts_end) group.contacts_end = After(turn_.now(), kContactGrace_s);
    pool_.timed.insert(trial.id);
  }
  const bool all = group.stuck.size() == group.members.size();
  if (!group.contacts.empty()) {
    if (all) PartThoseOutOfReach(trial.id);
    return;
  }
  if (all) {
    NobodyIsReached(trial.id);
  } else if (!group.forming && !group.stuck_ends) {
    group.stuck_ends = After(turn_.now(), kStuckGrace_s);
    pool_.timed.insert(trial.id);
  }
}

void ReplicaWatch::CheckStuckGroups() {
  std::vector<TrialId> due;
  ForgetUntimedGroups();
  for (const TrialId id : pool_.timed) {
    const Group& group = pool_.groups.at(id);
    const bool hung = group.stuck_ends && *group.stuck_ends <= turn_.now();
    const bool cut = group.contacts_end && *group.contacts_end <= turn_.now();
    if (hung || cut) due.push_back(id);
  }
  for (const TrialId id : due) {
    if (pool_.groups.at(id).contacts_end) {
      PartThoseOutOfReach(id);
    } else {
      StopHung(id);
    }
  }
}

// Pairs of present members one of which found the other out of reach.
std::set<ReplicaPair> ReplicaWatch::CutPairs(const Group& group) const {
  std::set<ReplicaPair> cut;
  const auto member = [&group](ReplicaId id) {
    return std::find(group.members.begin(), group.members.end(), id) != group.members.end();
  };
  for (const auto& [from, contacts] : group.contacts) {
    if (!member(from)) continue;
    for (const ReplicaContact& contact : contacts) {
      if (OutOfReach(contact.contact) && member(contact.replica)) {
        cut.insert(PairOf(from, contact.replica));
      }
    }
  }
  return cut;
}

// Notes the nodes, and returns the words of one member for each pair of places.
std::vector<std::string> ReplicaWatch::NoteOutOfReach(const Group& group) {
  std::map<NodePair, std::string> words;
  for (const auto& [from, contacts] : group.contacts) {
    const auto speaker = pool_.replicas.find(from);
    if (speaker == pool_.replicas.end()) continue;
    for (const ReplicaContact& contact : contacts) {
      const auto other = pool_.replicas.find(contact.replica);
      if (!OutOfReach(contact.contact) || other == pool_.replicas.end()) continue;
      const NodeId here = speaker->second.node;
      const NodeId there = other->second.node;
      words.emplace(PairOf(here, there), absl::StrCat(pool_.NodeName(here), " cannot reach ",
                                                      pool_.PlaceOf(other->second), " at ",
                                                      contact.address, " (", contact.error, ")"));
      if (here == there) continue;
      pool_.faults.Note(turn_.now(), {.from = here,
                                      .to = there,
                                      .address = contact.address,
                                      .contact = contact.contact,
                                      .error = contact.error,
                                      .at = {},
                                      .until = {},
                                      .times = 0});
    }
  }
  std::vector<std::string> all;
  for (const auto& [pair, text] : words) all.push_back(text);
  return all;
}

// Those go on who reach one another; the others leave, and may be started again elsewhere.
void ReplicaWatch::PartThoseOutOfReach(TrialId id) {
  Group& group = pool_.groups.at(id);
  const std::set<ReplicaPair> cut = CutPairs(group);
  const std::vector<std::string> words = NoteOutOfReach(group);
  group.contacts.clear();
  group.contacts_end.reset();
  // What could not be reached is gone meanwhile, and a newer generation is under way.
  if (cut.empty() || group.pausing || group.ending) return;
  std::vector<GroupMember> members;
  for (const ReplicaId member : group.members) {
    members.push_back({member, pool_.replicas.at(member).generation});
  }
  std::vector<ReplicaId> staying = WhoGoesOn(members, cut);
  const int before = static_cast<int>(members.size());
  const int left = static_cast<int>(staying.size());
  std::vector<std::string> leaving;
  std::set<NodeId> home;
  int failed = 0;
  for (const ReplicaId member : staying) home.insert(pool_.replicas.at(member).node);
  for (const ReplicaId member : group.members) {
    if (std::find(staying.begin(), staying.end(), member) != staying.end()) continue;
    const Replica& replica = pool_.replicas.at(member);
    leaving.push_back(pool_.PlaceOf(replica));
    if (--group.target[replica.node] <= 0) group.target.erase(replica.node);
    // Nothing is learnt of nodes by which the next attempt could do better.
    failed += home.contains(replica.node) ? 1 : 0;
  }
  turn_.Decide(turn_.TrialAt(id), DecisionKind::kShrink, before, left,
               absl::StrCat(absl::StrJoin(words, "; "), ": ", absl::StrJoin(leaving, ", "),
                            leaving.size() == 1 ? " leaves, " : " leave, ", left,
                            left == 1 ? " goes on" : " go on"));
  groups_.Regroup(id, std::move(staying), /*abandon=*/true, /*after_loss=*/true);
  if (failed > 0) joins_.Failed(id, "could not reach the others on its own node", failed);
  turn_.Wake();
}

// Stops the members that have not said that they wait.
void ReplicaWatch::StopHung(TrialId id) {
  Group& group = pool_.groups.at(id);
  const std::set<ReplicaId>& waiting = group.stuck;
  group.stuck_ends.reset();
  if (group.pausing || group.ending) return;
  std::vector<ReplicaId> alive;
  std::vector<ReplicaId> hung;
  for (const ReplicaId member : group.members) {
    (waiting.contains(member) ? alive : hung).push_back(member);
  }
  if (alive.empty()) return;  // who waited is gone meanwhile, and a newer generation under way
  if (hung.empty()) return NobodyIsReached(id);
  std::vector<std::string> places;
  for (const ReplicaId replica : hung) places.push_back(pool_.PlaceOf(pool_.replicas.at(replica)));
  const int before = pool_.SlotsHeldBy(id);
  turn_.Decide(turn_.TrialAt(id), DecisionKind::kShrink, before,
               before - static_cast<int>(hung.size()),
               absl::StrCat(hung.size() == 1 ? "a replica hangs (" : "replicas hang (",
                            absl::StrJoin(places, ", "), "): the others wait for it in vain; ",
                            alive.size(), alive.size() == 1 ? " goes" : " go",
                            hung.size() == 1 ? " on without it" : " on without them"));
  const bool join_failed = joins_.SomeUntried(group);
  groups_.Regroup(id, std::move(alive), /*abandon=*/true, /*after_loss=*/true);
  for (const ReplicaId replica : hung) groups_.StopReplica(pool_.replicas.at(replica), 0);
  if (join_failed) joins_.Failed(id, "hung");
}

// All members of the newest generation wait for one another.
void ReplicaWatch::NobodyIsReached(TrialId id) {
  Group& group = pool_.groups.at(id);
  const Trial& trial = turn_.TrialAt(id);
  ++group.stuck_in_a_row;
  if (group.stuck_in_a_row < kMaxStuckInARow) {
    groups_.Regroup(id, std::vector<ReplicaId>(group.members), /*abandon=*/true,
                    /*after_loss=*/true);
    return;
  }
  const NodeId home = pool_.replicas.at(group.members.front()).node;
  std::vector<ReplicaId> near;
  for (const ReplicaId member : group.members) {
    if (pool_.replicas.at(member).node == home) near.push_back(member);
  }
  const std::string what =
      absl::StrCat("the replicas could not reach one another ", group.stuck_in_a_row, " times");
  const int least = turn_.StudyAt(trial.study).spec.min_slots;
  if (near.size() < group.members.size() && std::ssize(near) >= least) {
    const int left = static_cast<int>(near.size());
    turn_.Decide(trial, DecisionKind::kShrink, static_cast<int>(group.members.size()), left,
                 absl::StrCat(what, ": those of one node go on alone"));
    groups_.Regroup(id, std::move(near), /*abandon=*/true, /*after_loss=*/true);
    joins_.Failed(id, "could not reach the others", kMaxFailedJoins);
    return;
  }
  if (LeaveUntriedOut(id, what)) return;
  trials_.StartAgain(id, what);
}

// The group goes on as it was before those came who have not shown yet that they do their part.
// False: all or none of its members are such.
bool ReplicaWatch::LeaveUntriedOut(TrialId id, const std::string& what) {
  Group& group = pool_.groups.at(id);
  std::vector<ReplicaId> tried;
  for (const ReplicaId member : group.members) {
    if (!pool_.replicas.at(member).untried) tried.push_back(member);
  }
  const int before = static_cast<int>(group.members.size());
  const int left = static_cast<int>(tried.size());
  if (left == 0 || left == before) return false;
  group.stuck_in_a_row = 0;
  turn_.Decide(turn_.TrialAt(id), DecisionKind::kShrink, before, left,
               absl::StrCat(what, ": those that trained before go on alone"));
  groups_.Regroup(id, std::move(tried), /*abandon=*/true, /*after_loss=*/true);
  joins_.Failed(id, "could not reach the others", before - left);
  return true;
}

// A group was told several times to form, and some members never came: their main threads hang.
// False if there is nobody left to tell it again.
bool ReplicaWatch::StopThoseNotFormed(TrialId id) {
  Group& group = pool_.groups.at(id);
  if (!group.forming || ++group.form_timeouts < kMaxFormTimeouts) return true;
  group.form_timeouts = 0;
  if (group.awaited.size() == group.members.size()) {
    trials_.PauseTrial(id, "none of its replicas comes to form a group");
    return false;
  }
  const bool join_failed = joins_.SomeUntried(group);
  const std::set<ReplicaId> hung = std::exchange(group.awaited, {});
  for (const ReplicaId member : hung) {
    groups_.StopReplica(pool_.replicas.at(member), 0);
    std::erase(group.members, member);
  }
  if (join_failed) {
    joins_.Failed(id, "never came to form the group", static_cast<int>(hung.size()));
  }
  return true;
}

}  // namespace espalier
