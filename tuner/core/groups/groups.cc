// Replica groups: how they are started, regrouped, and what a loss means.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/base/check.h"
#include "tuner/core/core_impl.h"

namespace espalier {

namespace {

std::string DescribeExit(const ReplicaExited& exit, bool node_lost) {
  if (node_lost) return "its agent was lost";
  if (!exit.error.empty()) return exit.error;
  if (exit.signal != 0) return absl::StrCat("was killed by signal ", exit.signal);
  return absl::StrCat("exited with code ", exit.exit_code);
}

// What could not be started will not start the next time. (What the agent had to kill, because it
// hung say, has a signal along with its error.)
bool NeverStarted(const ReplicaExited& exit) { return !exit.error.empty() && exit.signal == 0; }

}  // namespace

void Core::Impl::StartReplica(const Trial& trial, NodeId node, int slot) {
  const ReplicaId id = NewReplicaId();
  Replica& replica = pool_.replicas.emplace(id, Replica(id, trial.id, node, slot)).first->second;
  pool_.SlotsChange(trial.id);
  const Group& group = pool_.groups.at(trial.id);
  // Only an elastic program says Ready; whether this one is, its first replica will show.
  if (group.elastic)
    pool_.replicas.SetDeadline(replica, After(turn_.now(), TimeoutsOf(trial).start_s));
  // Who joins others is handed their state.
  StartReplicaCommand start{node, id, trial.id, slot};
  start.joins = group.elastic && HasSource(trial.id);
  if (!start.joins) {
    replica.started_from = CheckpointKey(trial);
    if (trial.newest_checkpoint.known()) {
      start.from = trial.newest_checkpoint;
      start.sources = HoldersOf(trial);
      replica.sources = start.sources;
    }
  }
  turn_.Send(std::move(start));
}

void Core::Impl::StopReplica(Replica& replica, double grace_s) {
  replica.stopping = true;
  replica.grace_s = grace_s;
  // Said again until the exit is seen: the command may be lost with the agent's stream.
  pool_.replicas.SetDeadline(replica, After(turn_.now(), grace_s + options_.lease_s));
  pool_.reconcile.insert(replica.trial);
  turn_.Send(StopReplicaCommand{replica.node, replica.id, grace_s});
}

void Core::Impl::Regroup(TrialId id, std::vector<ReplicaId> members, bool abandon,
                         bool after_loss) {
  ESPALIER_CHECK(!members.empty(), "a regroup to nobody is a pause");
  Group& group = pool_.groups.at(id);
  const Trial& trial = turn_.TrialAt(id);
  const double stall_s = StallOf(id);
  turn_.Emit(GenerationAdvanced{id, trial.generation + 1});
  Membership membership{trial.generation, {}, abandon};
  for (const ReplicaId member : members) {
    const Replica& replica = pool_.replicas.at(member);
    membership.members.push_back({member, replica.node, replica.address});
  }
  std::set<ReplicaId> told(members.begin(), members.end());
  for (const ReplicaId old : group.members) {
    const auto it = pool_.replicas.find(old);
    if (it == pool_.replicas.end() || told.contains(old)) continue;
    it->second.leaving = true;
    pool_.replicas.SetDeadline(it->second, After(turn_.now(), stall_s));
    it->second.grace_s = turn_.StudyAt(trial.study).spec.stop_grace_s;
    told.insert(old);
  }
  for (const ReplicaId to : told) {
    turn_.Send(RegroupCommand{pool_.replicas.at(to).node, to, membership});
  }
  // A regroup that overtakes another counts from the group that last trained.
  if (!group.forming) group.replicas_before = static_cast<int>(group.members.size());
  group.after_loss = after_loss || (group.forming && group.after_loss);
  group.members = std::move(members);
  group.forming = true;
  group.moved_at = turn_.now();
  timed_groups_.insert(id);
  pool_.reconcile.insert(id);
  group.awaited = {group.members.begin(), group.members.end()};
  group.longest_pause = {};
  group.stuck.clear();
  group.stuck_ends.reset();
  group.contacts.clear();
  group.contacts_end.reset();
}

void Core::Impl::FinishForming(TrialId id) {
  Group& group = pool_.groups.at(id);
  group.forming = false;
  pool_.reconcile.insert(id);
  std::set<NodeId> nodes;
  for (const ReplicaId member : group.members) {
    if (const auto r = pool_.replicas.find(member); r != pool_.replicas.end())
      nodes.insert(r->second.node);
  }
  pool_.faults.WorkTogether(nodes);
  const int replicas = static_cast<int>(group.members.size());
  if (group.replicas_before > 0) {
    const ReplicaRegrouped& longest = group.longest_pause;
    turn_.Emit(
        ResizeMeasured{id,
                       {turn_.now(), turn_.TrialAt(id).generation, group.replicas_before, replicas,
                        longest.pause_s, group.after_loss, longest.form_s, longest.broadcast_s}});
  }
  if (replicas > group.replicas_before) group.joiner_failures = 0;
  group.after_loss = false;
  group.last_resize = turn_.now();
  group.form_timeouts = 0;
  group.stragglers.Reset(turn_.now());
  turn_.Wake();
}

void Core::Impl::ReplicaGone(const Replica& gone, const ReplicaExited& exit, bool node_lost) {
  const Trial& trial = turn_.TrialAt(gone.trial);
  const auto found = pool_.groups.find(gone.trial);
  // A trial that is only planned to start again has nothing to lose by a leftover of its past.
  if (trial.state != TrialState::kRunning || found == pool_.groups.end()) return;
  Group& group = found->second;
  group.awaited.erase(gone.id);
  const bool expected = gone.leaving || gone.stopping;
  if (exit.checkpoint_missing) NoteUnfetched(gone, exit);
  const auto member = std::find(group.members.begin(), group.members.end(), gone.id);
  const bool was_member = member != group.members.end();
  if (was_member) group.members.erase(member);
  group.stuck.erase(gone.id);
  group.contacts.erase(gone.id);
  if (group.replaced && !was_member) GiveUpReplacement(group);
  // Only joiners are left: Reconcile makes them the group.
  if (group.members.empty()) group.forming = false;

  if (pool_.ReplicasOf(gone.trial).empty()) {
    GroupLost(gone.trial, exit, node_lost || expected);
    return;
  }
  const bool ended_well =
      was_member && !expected && !node_lost && exit.exit_code == 0 && exit.error.empty();
  if (!ended_well &&
      StartAgainIfNobodyKnows(
          gone.trial, absl::StrCat("a replica ", expected ? "left" : DescribeExit(exit, node_lost)),
          !expected && !node_lost && !exit.checkpoint_missing)) {
    return;
  }
  if (expected) {
    // A member that was stopped because it had not left for the new generation in time, or a
    // joiner that is no longer wanted.
    if (group.forming && group.awaited.empty() && !group.members.empty()) {
      FinishForming(gone.trial);
    }
    return;
  }
  if (!was_member) {
    ++group.joiner_failures;
    turn_.Decide(trial, DecisionKind::kShrink, SlotsHeldBy(trial.id) + 1, SlotsHeldBy(trial.id),
                 absl::StrCat("a replica that was to join ", DescribeExit(exit, node_lost)));
    return;
  }
  if (ended_well) {
    // It came to its end before the others: Finished, or their own ends, should follow.
    if (!group.ending) group.ending = After(turn_.now(), TimeoutsOf(trial).exit_s);
    timed_groups_.insert(gone.trial);
    return;
  }
  turn_.Decide(trial, DecisionKind::kShrink, SlotsHeldBy(trial.id) + 1, SlotsHeldBy(trial.id),
               absl::StrCat("a replica ", DescribeExit(exit, node_lost), "; ", group.members.size(),
                            " go on without it"));
  if (group.pausing) return;
  if (group.members.empty()) return;
  ++group.joiner_failures;
  Regroup(gone.trial, group.members, /*abandon=*/true, /*after_loss=*/true);
  group.replicas_before =
      std::max(group.replicas_before, static_cast<int>(group.members.size()) + 1);
}

void Core::Impl::GroupLost(TrialId id, const ReplicaExited& exit, bool not_its_fault) {
  const Trial& trial = turn_.TrialAt(id);
  const Study& study = turn_.StudyAt(trial.study);
  Group& group = pool_.groups.at(id);
  keeping_.due.insert(id);
  const bool clean = exit.exit_code == 0 && exit.signal == 0 && exit.error.empty();
  if (group.pausing || not_its_fault || study.state != StudyState::kRunning) {
    const std::string reason =
        group.pausing ? group.pause_reason : "its replicas were lost with their agent";
    if (!group.pausing) turn_.Decide(trial, DecisionKind::kPause, 0, 0, reason);
    turn_.Emit(TrialStateChanged{id, TrialState::kPaused, turn_.now(), reason, std::nullopt, ""});
    pool_.groups.erase(id);
    turn_.Wake();
    return;
  }
  if (clean) {
    EndWell(id, std::nullopt, exit.last_output);
    return;
  }
  if (CheckpointMissing(id, exit)) return;
  const std::string what = DescribeExit(exit, false);
  // A program that knows nothing of us is started again only where it was lost with its node.
  const bool own_checkpoint =
      !trial.newest_checkpoint.known() || !trial.newest_checkpoint.name.empty();
  if (!trial.checkpoint.empty() && own_checkpoint && !NeverStarted(exit) &&
      trial.restarts < study.spec.max_restarts) {
    turn_.Emit(TrialRestarted{id, trial.restarts + 1});
    const std::string reason =
        absl::StrCat("the last replica ", what, "; goes on from its checkpoint (restart ",
                     trial.restarts, " of ", study.spec.max_restarts, ")");
    turn_.Decide(trial, DecisionKind::kRestart, 1, 0, reason);
    turn_.Emit(TrialStateChanged{id, TrialState::kPaused, turn_.now(), reason, std::nullopt, ""});
    pool_.groups.erase(id);
    turn_.Wake();
    return;
  }
  EndTrial(id, TrialState::kFail, what, std::nullopt, exit.last_output);
}

void Core::Impl::ForgetUntimedGroups() {
  std::erase_if(timed_groups_, [this](TrialId id) {
    const auto group = pool_.groups.find(id);
    return group == pool_.groups.end() || !group->second.timed();
  });
}

void Core::Impl::CheckReplicaDeadlines() {
  std::vector<NodeId> lost;
  for (const NodeId id : away_) {
    if (*pool_.nodes.at(id).lease_ends <= turn_.now()) lost.push_back(id);
  }
  for (const NodeId id : lost) LoseNode(id);

  if (pool_.recovery_ends && *pool_.recovery_ends <= turn_.now()) {
    pool_.recovery_ends.reset();
    for (const TrialId id : std::set<TrialId>(pool_.recovering)) TryRecover(id);
  }
  for (const ReplicaId id : pool_.replicas.Due(turn_.now())) {
    Replica& replica = pool_.replicas.at(id);
    const auto group = pool_.groups.find(replica.trial);
    if (!replica.ready && !replica.stopping && group != pool_.groups.end()) {
      ++group->second.joiner_failures;  // it never came to say Ready
    }
    StopReplica(replica, replica.grace_s);
  }
  CheckStuckGroups();
  // The other members of a group one of which has come to its end did not follow.
  std::vector<TrialId> stuck;
  ForgetUntimedGroups();
  for (const TrialId id : timed_groups_) {
    Group& group = pool_.groups.at(id);
    if (group.ending && *group.ending <= turn_.now()) {
      group.ending.reset();
      if (!group.members.empty() && !group.pausing) stuck.push_back(id);
    } else if (Stalls(id, group)) {
      // Members were told and have not all come: whoever lives is told again.
      stuck.push_back(id);
    }
  }
  for (const TrialId id : stuck) {
    if (!StopThoseNotFormed(id)) continue;
    Regroup(id, std::vector<ReplicaId>(pool_.groups.at(id).members), /*abandon=*/true,
            /*after_loss=*/true);
  }
}

}  // namespace espalier
