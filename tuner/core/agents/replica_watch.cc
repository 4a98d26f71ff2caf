#include "tuner/core/agents/replica_watch.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/protocol.h"
#include "base/rank_blame.h"
#include "base/shortened.h"
#include "tuner/core/groups/size_restarts.h"
#include "tuner/core/state/refusals.h"
#include "tuner/core/state/study_facts.h"

namespace espalier {

namespace {

constexpr char kHasSaved[] = "it has saved and ended as it was told, and goes on from there";
constexpr double kHeldBack_s = 300;  // a slot that a replica could not use
constexpr int kMaxSlotsBlamed = 3;   // by a trial, before one of its replicas is ready

// Whether a replica has got on since it said `before`.
bool IsFurther(const ReplicaForming& now, const ReplicaForming& before) {
  return std::tuple(now.generation, now.phase, now.bytes) >
         std::tuple(before.generation, before.phase, before.bytes);
}

bool SpeaksFor(NodeId node, const Replica& replica) { return !node || node == replica.node; }

// Whether a plain program has come to its own end: it was to save, and had not been told so yet.
// One whose study was stopped may have been told that by the answer to a value.
bool EndsUntold(const Replica& gone, const Trial& trial, bool study_runs) {
  const bool leaves = gone.leaving && !gone.stopping && !gone.ready && study_runs;
  return leaves && trial.ranks->saving.stop < 0;
}

std::string DescribeExit(const ReplicaExited& exit, bool node_lost) {
  if (node_lost) return "was lost with its agent";
  const std::string rank = exit.rank.empty() ? "" : absl::StrCat(exit.rank, " ");
  if (!exit.error.empty()) return absl::StrCat(rank, exit.error);
  return absl::StrCat(rank, HowEnded({.exit_code = exit.exit_code, .signal = exit.signal}));
}

// The last words of its output, which are an exception's own in most languages.
std::string LastLine(const std::string& output) {
  constexpr std::size_t kMostBytes = 300;
  std::string_view text = output;
  constexpr char kSpace[] = " \t\r\n";
  const std::size_t end = text.find_last_not_of(kSpace);
  if (end == std::string_view::npos) return "";
  text = text.substr(0, end + 1);
  text.remove_prefix(text.find_last_of('\n') + 1);
  text.remove_prefix(text.find_first_not_of(kSpace));
  return Shortened(text, kMostBytes);
}

// It cannot use the GPU of its slot, and says so before it is ready.
bool BlamesSlot(const Replica& gone, const ReplicaExited& exit) {
  return exit.exit_code == kSlotAtFaultExitCode && !gone.ready;
}

// What could not be started will not start the next time. (What the agent had to kill, because it
// hung say, has a signal along with its error; and of a rank the error may say what came before.)
bool NeverStarted(const ReplicaExited& exit) {
  return !exit.error.empty() && exit.signal == 0 && exit.rank.empty();
}

// Without a checkpoint: a folder is none of an elastic program's.
bool StartsAnew(const Trial& trial, const Group& group) {
  return trial.checkpoint.empty() || (group.elastic && IsFolder(trial));
}

// Whether a program that ended badly may do better when it starts again. One that knows nothing of
// us is started again only where it was lost with its node; one that had trained and was killed
// before its first checkpoint, as by the system for want of memory, starts from the beginning.
bool MayStartAgain(const Trial& trial, const Group& group, const ReplicaExited& exit) {
  if (StartsAnew(trial, group)) {
    const bool trained = group.progress.has_value() || (group.elastic && !trial.values.empty());
    return trained && exit.signal != 0;
  }
  return !IsFolder(trial) && !NeverStarted(exit);
}

// What ends a trial before its first checkpoint each time would do so for ever.
constexpr int kMostFromTheBeginning = 2;

}  // namespace

void ReplicaWatch::On(const ReplicaStarted& event) {
  const auto started = pool_.replicas.find(event.replica);
  if (started == pool_.replicas.end() || !SpeaksFor(event.node, started->second)) return;
  checkpoints_.NoteStarted(started->second.trial);
  failed_starts_.Started(started->second);
}

void ReplicaWatch::On(const FromReplica& event) {
  const auto from = pool_.replicas.find(event.replica);
  if (from == pool_.replicas.end() || !SpeaksFor(event.node, from->second)) return;
  // These two are the many, and change nothing about who is in the group.
  if (!std::holds_alternative<ReplicaReport>(event.message) &&
      !std::holds_alternative<ReplicaProgress>(event.message)) {
    pool_.reconcile.insert(from->second.trial);
  }
  std::visit([&](const auto& message) { Hear(from->second, message); }, event.message);
}

void ReplicaWatch::Hear(Replica& from, const ReplicaReady& message) {
  if (from.ready || from.stopping) return;
  from.ready = true;
  from.address = message.address;
  pool_.slots_blamed.erase(from.trial);
  const auto group = pool_.groups.find(from.trial);
  if (group == pool_.groups.end()) return;  // the trial has ended meanwhile; its deadline stands
  pool_.replicas.SetDeadline(from, std::nullopt);
  group->second.elastic = true;
  // Its program uses its own slot alone, and more replicas take the others.
  from.more_slots.clear();
  pool_.SlotsChange(from.trial);
  group->second.batch = message.batch;
  group->second.total_steps = message.total_steps;
  if (from.untried) NoteRehearsal(group->second, turn_.TrialAt(from.trial), message.not_rehearsed);
  promises_.NoteStale(turn_.TrialAt(from.trial).study);
  turn_.Wake();
}

void ReplicaWatch::NoteRehearsal(Group& group, const Trial& trial, const std::string& why_not) {
  if (why_not == std::exchange(group.not_rehearsed, why_not) || why_not.empty()) return;
  const int replicas = static_cast<int>(group.members.size());
  turn_.Decide(trial, DecisionKind::kStudy, replicas, replicas,
               absl::StrCat("the first step of replicas that join is not rehearsed: ", why_not));
}

void ReplicaWatch::Hear(Replica& from, const ReplicaRegrouped& message) {
  from.generation = std::max(from.generation, message.generation);
  const auto found = pool_.groups.find(from.trial);
  if (found == pool_.groups.end()) return;
  Group& group = found->second;
  if (!group.forming || message.generation != turn_.TrialAt(from.trial).generation) return;
  group.awaited.erase(from.id);
  group.moved_at = turn_.now();
  if (message.pause_s > group.longest_pause.pause_s) group.longest_pause = message;
  group.longest_pause.transport = message.transport;  // they agree
  if (group.awaited.empty()) groups_.FinishForming(from.trial);
}

void ReplicaWatch::Hear(Replica& from, const ReplicaForming& message) {
  if (!IsFurther(message, from.forming)) return;
  from.forming = message;
  if (from.leaving) {
    // It saves a checkpoint. One that is being stopped has had its time.
    if (from.deadline() && !from.stopping) {
      pool_.replicas.SetDeadline(
          from, std::max(*from.deadline(), After(turn_.now(), groups_.StallOf(from.trial))));
    }
    return;
  }
  const auto group = pool_.groups.find(from.trial);
  if (group == pool_.groups.end() || message.generation != turn_.TrialAt(from.trial).generation)
    return;
  group->second.moved_at = turn_.now();
}

void ReplicaWatch::Hear(const Replica& from, const ReplicaReport& message) {
  const Trial& trial = turn_.TrialAt(from.trial);
  if (trial.state != TrialState::kRunning) return;
  trials_.TakeValue(trial.id,
                    {.step = message.step,
                     .value = message.value,
                     .progress = message.progress,
                     .at = turn_.now()},
                    message.extra);
}

void ReplicaWatch::Hear(const Replica& from, const ReplicaProgress& message) {
  const auto found = pool_.groups.find(from.trial);
  if (found == pool_.groups.end()) return;
  Group& group = found->second;
  JudgePace(from.trial, message);
  joins_.NoteProgress(from.trial, message);
  double step_time_s = 0;
  double sync_time_s = 0;
  std::int64_t steps = 0;
  for (const ProfileEntry& entry : message.profile) {
    step_time_s += entry.optimizer_time_s + entry.accumulation_time_s;
    sync_time_s += entry.sync_time_s;
    steps += entry.optimizer_count;
  }
  if (step_time_s > 0) group.sync_share = sync_time_s / step_time_s;
  if (steps > 0) group.step_time_s = step_time_s / static_cast<double>(steps);
  if (group.progress && message.step > group.progress->step) group.stuck_in_a_row = 0;
  group.noise = message.noise;
  group.progress = message;
  group.progress->profile.clear();
  group.progress->replica_times.clear();
  // Steps on GPUs of two types, for the moment of a move, say nothing about either.
  const std::optional<std::string> gpu_type = pool_.GpuTypeOf(group);
  // The allocator looks at what is new about speeds at once, and at how far trials are once in a
  // while: progress of thousands of trials must not mean as many allocations.
  if (gpu_type && speeds_.Learn(from.trial, *gpu_type, group, message)) turn_.LookAgain();
}

void ReplicaWatch::Hear(const Replica& from, const ReplicaFinished& message) {
  const Trial& trial = turn_.TrialAt(from.trial);
  if (trial.state != TrialState::kRunning) return;
  // One that comes to its end before it has joined cannot speak for those that train.
  const auto group = pool_.groups.find(from.trial);
  if (from.untried && group != pool_.groups.end() && !group->second.members.empty() &&
      std::find(group->second.members.begin(), group->second.members.end(), from.id) ==
          group->second.members.end()) {
    return;
  }
  if (!message.failure.empty()) {
    trials_.EndTrial(trial.id, TrialState::kFail, message.failure, std::nullopt);
    return;
  }
  if (message.value && !std::isfinite(*message.value)) {
    trials_.EndTrial(trial.id, TrialState::kFail, NoFiniteEnd(*message.value), std::nullopt);
    return;
  }
  for (const std::string& name : message.unread) {
    const auto given = std::find_if(trial.parameters.begin(), trial.parameters.end(),
                                    [&name](const Parameter& each) { return each.name == name; });
    if (given == trial.parameters.end()) continue;
    turn_.Emit(TrialAttributeSet{trial.id, true, UnreadAttribute(name), "true"});
  }
  trials_.EndWell(trial.id, message.value, "");
}

void ReplicaWatch::On(const ReplicaExited& event) {
  const auto it = pool_.replicas.find(event.replica);
  if (it == pool_.replicas.end() || !SpeaksFor(event.node, it->second)) return;
  const Replica gone = it->second;
  // A program that blames one slot after the other is itself at fault.
  if (NeverStarted(event) && event.checkpoint == CheckpointFailure::kNone && !event.agent_stops) {
    failed_starts_.Failed(gone, event);
  }
  if (BlamesSlot(gone, event) && ++pool_.slots_blamed[gone.trial] <= kMaxSlotsBlamed) {
    pool_.HoldBack(gone.node, {gone.slot}, After(turn_.now(), kHeldBack_s),
                   "CUDA could not be used there; it is tried again after 5 minutes");
  }
  pool_.replicas.erase(it);
  pool_.SlotsChange(gone.trial);
  checkpoints_.LookAfter(gone.trial);
  turn_.Wake();
  ReplicaGone(gone, event, /*node_lost=*/event.agent_stops);
}

void ReplicaWatch::ReplicaGone(const Replica& gone, const ReplicaExited& exit, bool node_lost) {
  const Trial& trial = turn_.TrialAt(gone.trial);
  const auto found = pool_.groups.find(gone.trial);
  // A trial that is only planned to start again has nothing to lose by a leftover of its past.
  if (trial.state != TrialState::kRunning || found == pool_.groups.end()) return;
  Group& group = found->second;
  group.awaited.erase(gone.id);
  const bool told = trial.ranks->saving.stop >= 0;
  const bool study_runs = turn_.StudyAt(trial.study).state == StudyState::kRunning;
  const bool own_end = !node_lost && EndsUntold(gone, trial, study_runs);
  if (own_end) group.restart.reset();
  const bool expected = !own_end && (gone.leaving || gone.stopping || told);
  if (exit.checkpoint != CheckpointFailure::kNone) checkpoints_.NoteUnfetched(gone, exit);
  if (group.over_nodes) return RanksGone(gone, exit, {node_lost, own_end});
  const auto member = std::find(group.members.begin(), group.members.end(), gone.id);
  const bool was_member = member != group.members.end();
  if (was_member) group.members.erase(member);
  group.stuck.erase(gone.id);
  group.contacts.erase(gone.id);
  if (group.replaced && !was_member) GiveUpReplacement(group);
  // Only joiners are left: Reconcile makes them the group.
  if (group.members.empty()) group.forming = false;

  const bool at_fault = !expected && !node_lost && pool_.Usable(gone);
  const bool clean = exit.exit_code == 0 && exit.error.empty();
  std::string excuse = ExcuseFor(gone, exit, expected, node_lost);
  // Those that trained before have left to it, and would have gone on.
  const bool move_failed =
      at_fault && !clean && was_member && gone.untried && group.moved && group.members.empty();
  if (move_failed) {
    excuse = absl::StrCat("the replica that it had moved to ", DescribeExit(exit, false));
    JoinFailed(gone, exit);
  }
  if (pool_.ReplicasOf(gone.trial).empty()) {
    if (own_end && clean) return trials_.EndWell(gone.trial, std::nullopt, exit.last_output);
    GroupLost(gone.trial, exit, excuse);
    return;
  }
  const bool ended_well = was_member && !expected && !node_lost && clean;
  if (!ended_well &&
      checkpoints_.StartAgainIfNobodyKnows(
          gone.trial, absl::StrCat("a replica ", expected ? "left" : DescribeExit(exit, node_lost)),
          !expected && !node_lost && !move_failed && exit.checkpoint == CheckpointFailure::kNone,
          exit.last_output)) {
    return;
  }
  if (expected) {
    // A member that was stopped because it had not left for the new generation in time, or a
    // joiner that is no longer wanted.
    if (group.forming && group.awaited.empty() && !group.members.empty()) {
      groups_.FinishForming(gone.trial);
    }
    return;
  }
  if (!was_member) {
    turn_.Decide(trial, DecisionKind::kShrink, pool_.SlotsHeldBy(trial.id) + 1,
                 pool_.SlotsHeldBy(trial.id),
                 absl::StrCat("a replica that was to join ", DescribeExit(exit, node_lost)));
    if (at_fault) JoinFailed(gone, exit);
    return;
  }
  if (ended_well) {
    // It came to its end before the others: Finished, or their own ends, should follow.
    if (!group.ending) group.ending = After(turn_.now(), groups_.TimeoutsOf(trial).exit_s);
    group.untried_ended = group.untried_ended || gone.untried;
    pool_.timed.insert(gone.trial);
    return;
  }
  MemberLost(gone, exit, node_lost, excuse);
}

// Those of a launcher on one of several nodes.
void ReplicaWatch::RanksGone(const Replica& gone, const ReplicaExited& exit, HowGone how) {
  const auto end = launched_.Gone(gone, exit, how.node_lost);
  if (!end) return;
  const bool clean = end->exit.exit_code == 0 && end->exit.signal == 0 && end->exit.error.empty();
  if (how.own_end && clean && end->lost_with.empty()) {
    return trials_.EndWell(gone.trial, std::nullopt, end->exit.last_output);
  }
  const std::string excuse =
      end->lost_with.empty()
          ? ExcuseFor(end->replica, end->exit, /*wanted=*/false, /*node_lost=*/false)
          : absl::StrCat("its ranks on ", end->lost_with, " were lost with their agent");
  GroupLost(gone.trial, end->exit, excuse);
}

// The replica has failed, or is lost with its node, and others of its trial are there.
void ReplicaWatch::MemberLost(const Replica& gone, const ReplicaExited& exit, bool node_lost,
                              const std::string& excuse) {
  const Trial& trial = turn_.TrialAt(gone.trial);
  Group& group = pool_.groups.at(gone.trial);
  // The pool knows a lost node no more.
  const auto node = turn_.state().nodes.find(gone.node);
  const bool named = node_lost && node != turn_.state().nodes.end();
  turn_.Decide(trial, DecisionKind::kShrink, pool_.SlotsHeldBy(trial.id) + 1,
               pool_.SlotsHeldBy(trial.id),
               absl::StrCat("a replica ", DescribeExit(exit, node_lost),
                            named ? " on " + node->second : "", "; ", group.members.size(),
                            group.members.size() == 1 ? " goes" : " go", " on without it"));
  if (group.pausing) return;
  if (group.members.empty()) {
    if (!node_lost) AllMembersFailed(gone, exit, excuse);
    return;
  }
  // Whoever of them is lost, the replicas that have come last may be why.
  const bool join_failed =
      !node_lost && pool_.Usable(gone) && (gone.untried || joins_.SomeUntried(group));
  groups_.Regroup(gone.trial, group.members, /*abandon=*/true, /*after_loss=*/true);
  group.replicas_before =
      std::max(group.replicas_before, static_cast<int>(group.members.size()) + 1);
  if (!join_failed) return;
  JoinFailed(gone, exit);
  joins_.RelyOnThoseLeft(group);
}

void ReplicaWatch::JoinFailed(const Replica& gone, const ReplicaExited& exit) {
  std::string how = DescribeExit(exit, false);
  const std::string words = exit.exit_code == 0 ? "" : LastLine(exit.last_output);
  if (!words.empty()) absl::StrAppend(&how, ": ", words);
  joins_.Failed(gone.trial, how);
}

// Where they fail together, as by an error of the program, those that are to replace them would
// only do so as well.
void ReplicaWatch::AllMembersFailed(const Replica& gone, const ReplicaExited& exit,
                                    const std::string& excuse) {
  if (!pool_.Usable(gone)) return;
  const TrialId trial = gone.trial;
  GroupLost(trial, exit, excuse);
  for (const ReplicaId joiner : pool_.replicas.Of(trial)) {
    Replica& replica = pool_.replicas.at(joiner);
    if (!replica.stopping) groups_.StopReplica(replica, replica.grace_s);
  }
}

// Why it is not the program's fault that its last replica is gone; empty: it may be.
std::string ReplicaWatch::ExcuseFor(const Replica& gone, const ReplicaExited& exit, bool wanted,
                                    bool node_lost) const {
  // The service was restarted since the program was told to save.
  const bool told = turn_.TrialAt(gone.trial).ranks->saving.stop >= 0;
  if (told && !gone.leaving && !gone.stopping && !node_lost) return kHasSaved;
  if (wanted || node_lost) return kLostWithAgent;
  if (exit.exit_code == 0 || pool_.Usable(gone)) return "";
  if (NeverStarted(exit)) return absl::StrCat(exit.error, " on ", pool_.NodeName(gone.node));
  return absl::StrCat(
      "its last replica ", DescribeExit(exit, false), " on ", pool_.PlaceOf(gone),
      gone.slots() == 1 ? ", which cannot be used" : ", not all of which can be used");
}

void ReplicaWatch::GroupLost(TrialId id, const ReplicaExited& exit, const std::string& excuse) {
  const Trial& trial = turn_.TrialAt(id);
  const Study& study = turn_.StudyAt(trial.study);
  Group& group = pool_.groups.at(id);
  checkpoints_.LookAfter(id);
  const bool clean = exit.exit_code == 0 && exit.signal == 0 && exit.error.empty();
  if (group.restart && group.restart->last_at == Time{} && !group.pausing &&
      study.state == StudyState::kRunning) {
    return StartOnNewSlots(turn_, pool_, id);
  }
  if (group.pausing || !excuse.empty() || study.state != StudyState::kRunning) {
    const std::string reason = group.pausing    ? group.pause_reason
                               : excuse.empty() ? kLostWithAgent
                                                : excuse;
    if (!group.pausing) turn_.Decide(trial, DecisionKind::kPause, 0, 0, reason);
    trials_.BecomePaused(id, reason);
    return;
  }
  if (clean) {
    trials_.EndWell(id, std::nullopt, exit.last_output);
    return;
  }
  if (checkpoints_.CheckpointMissing(id, exit)) return;
  const std::string what = DescribeExit(exit, false);
  const int most = StartsAnew(trial, group)
                       ? std::min(study.spec.max_restarts, kMostFromTheBeginning)
                       : study.spec.max_restarts;
  if (MayStartAgain(trial, group, exit) && trial.restarts < most) {
    turn_.Emit(TrialRestarted{id, trial.restarts + 1});
    const std::string reason = absl::StrCat(
        "the last replica ", what, "; ",
        StartsAnew(trial, group) ? "starts from the beginning, for want of a checkpoint"
                                 : "goes on from its checkpoint",
        " (restart ", trial.restarts, " of ", most, ")");
    turn_.Decide(trial, DecisionKind::kRestart, 1, 0, reason);
    trials_.BecomePaused(id, reason);
    return;
  }
  trials_.EndTrial(id, TrialState::kFail, what, std::nullopt, exit.last_output);
}

void ReplicaWatch::ForgetUntimedGroups() {
  std::erase_if(pool_.timed, [this](TrialId id) {
    const auto group = pool_.groups.find(id);
    return group == pool_.groups.end() || !group->second.timed();
  });
}

void ReplicaWatch::CheckDeadlines() {
  for (const ReplicaId id : pool_.replicas.Due(turn_.now())) {
    Replica& replica = pool_.replicas.at(id);
    const bool starts = !replica.ready && !replica.stopping && !replica.leaving;
    const bool late = starts && pool_.groups.contains(replica.trial);
    groups_.StopReplica(replica, replica.grace_s);
    if (!late) continue;
    const double start_s = groups_.TimeoutsOf(turn_.TrialAt(replica.trial)).start_s;
    joins_.Failed(replica.trial, absl::StrCat("was not ready after ", start_s, " s"));
  }
  CheckStuckGroups();
  // The other members of a group one of which has come to its end did not follow.
  std::vector<TrialId> stuck;
  ForgetUntimedGroups();
  for (const TrialId id : pool_.timed) {
    Group& group = pool_.groups.at(id);
    if (group.ending && *group.ending <= turn_.now()) {
      group.ending.reset();
      if (group.over_nodes) {
        launched_.EndThoseLate(id);
        continue;
      }
      const bool untried_ended = std::exchange(group.untried_ended, false);
      if (group.members.empty() || group.pausing) continue;
      if (untried_ended) joins_.Failed(id, "came to its end before the others");
      stuck.push_back(id);
    } else if (groups_.Stalls(id, group)) {
      // Members were told and have not all come: whoever lives is told again.
      stuck.push_back(id);
    }
  }
  for (const TrialId id : stuck) {
    if (!StopThoseNotFormed(id)) continue;
    groups_.Regroup(id, std::vector<ReplicaId>(pool_.groups.at(id).members), /*abandon=*/true,
                    /*after_loss=*/true);
  }
}

std::optional<Time> ReplicaWatch::Next() const {
  std::optional<Time> next = pool_.replicas.NextDeadline();
  for (const TrialId id : pool_.timed) {
    const auto found = pool_.groups.find(id);
    if (found == pool_.groups.end()) continue;
    const Group& group = found->second;
    next = Earlier(next, group.ending);
    next = Earlier(next, group.stuck_ends);
    if (group.forming) next = Earlier(next, After(group.moved_at, groups_.StallOf(id)));
    next = Earlier(next, group.contacts_end);
  }
  return next;
}

}  // namespace espalier
