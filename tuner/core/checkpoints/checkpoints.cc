#include "tuner/core/checkpoints/checkpoints.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace espalier {

namespace {

// The furthest of the older copies whose nodes are connected; null: there is none.
const CheckpointCopy* FurthestOlder(const Trial& trial, const std::map<NodeId, Node>& nodes) {
  const CheckpointCopy* furthest = nullptr;
  for (const CheckpointCopy& copy : trial.copies) {
    const auto node = nodes.find(copy.node);
    if (copy.what.Is(*trial.newest_checkpoint) || node == nodes.end()) continue;
    if (!node->second.connected || !copy.what.known()) continue;
    if (furthest == nullptr || furthest->what.step < copy.what.step) furthest = &copy;
  }
  return furthest;
}

using HeldByTrial =
    std::map<std::pair<std::string, std::int64_t>, std::vector<const HeldCheckpoint*>>;

bool Among(const std::vector<const HeldCheckpoint*>& files, const CheckpointLabel& label) {
  return label.known() && std::any_of(files.begin(), files.end(), [&label](const auto* file) {
           return file->fingerprint == label.fingerprint && file->name == label.name;
         });
}

std::string PathBeside(const std::string& path, const std::string& name) {
  const std::size_t slash = path.rfind('/');
  if (name.empty() || slash == std::string::npos) return name.empty() ? path : name;
  return absl::StrCat(path.substr(0, slash + 1), name);
}

}  // namespace

// ---- what nodes say -----------------------------------------------------------------------------

void Checkpoints::TakeUp(const Trial& trial) {
  if (Ended(trial.state)) return;
  if (trial.newest_checkpoint->known()) keeping_.due.insert(trial.id);
  if (!trial.lineage->awaited()) return;
  keeping_.clones.emplace(trial.id, ParentOf(trial).id);
  keeping_.due.insert(trial.id);
}

void Checkpoints::Observe(const Change& change) {
  const auto* changed = std::get_if<TrialStateChanged>(&change);
  if (changed != nullptr && Ended(changed->state)) keeping_.due.insert(changed->id);
  if (const auto* cloned = std::get_if<TrialCloned>(&change)) {
    keeping_.clones.erase(cloned->id);
    TakeUp(turn_.TrialAt(cloned->id));
  }
  if (const auto* recorded = std::get_if<CheckpointRecorded>(&change)) {
    keeping_.LookAfterClonesOf(recorded->id);
  }
  if (const auto* copy = std::get_if<CheckpointCopySet>(&change)) {
    keeping_.LookAfterClonesOf(copy->id);
  }
}

void Checkpoints::Hear(Replica& from, const ReplicaCheckpoint& message) {
  const Trial& trial = turn_.TrialAt(from.trial);
  // One that was long in the writing must not take the place of a newer one. There is one folder,
  // and an agent that has taken over from another counts anew how often it was saved.
  const bool folder = message.name.empty() && !message.fingerprint.empty();
  if (!folder && message.step < trial.newest_checkpoint->step) return;
  const CheckpointLabel label{.step = std::max(message.step, trial.newest_checkpoint->step),
                              .name = message.name,
                              .fingerprint = message.fingerprint,
                              .at = turn_.now(),
                              .generation = from.generation};
  if (trial.checkpoint == message.path && trial.newest_checkpoint->Is(label)) return;
  if (trial.checkpoint != message.path || label.known()) {
    turn_.Emit(CheckpointRecorded{trial.id, message.path, label});
  }
  from.started_from = CheckpointKey(trial);
  if (!label.known()) return;
  const auto node = pool_.nodes.find(from.node);
  turn_.Emit(CheckpointCopySet{
      trial.id,
      {from.node, label, false, node == pool_.nodes.end() ? "" : node->second.shared_folder}});
  keeping_.due.insert(trial.id);
}

void Checkpoints::On(const CheckpointCopied& event) {
  const auto found = turn_.state().trials.find(event.trial);
  const auto order = keeping_.under_way.find(event.trial);
  if (order != keeping_.under_way.end() && order->second.to == event.node) {
    keeping_.under_way.erase(order);
  }
  if (found == turn_.state().trials.end() || !pool_.nodes.contains(event.node)) return;
  const Trial& trial = found->second;
  keeping_.due.insert(trial.id);
  if (!event.error.empty()) {
    keeping_.FailedOnce(trial.id, turn_.now());
    if (trial.lineage->awaited() && keeping_.setbacks.at(trial.id).times >= kMostCloneTries) {
      trials_.EndTrial(
          trial.id, TrialState::kFail,
          absl::StrCat("the checkpoint with which it was to begin could not be copied, ",
                       kMostCloneTries, " times; the last: ", event.error),
          std::nullopt);
    }
    return;
  }
  keeping_.setbacks.erase(trial.id);
  if (trial.lineage->awaited()) return BeginWithParents(trial, event);
  CheckpointCopy copy{event.node, event.what, true, pool_.nodes.at(event.node).shared_folder};
  copy.what.at = turn_.now();
  for (const CheckpointCopy& known : trial.copies) {
    if (known.what.Is(event.what)) copy.what = known.what;
    // The trial has run there meanwhile, and was further.
    if (known.node == event.node && !known.fetched && known.what.step > event.what.step) return;
  }
  // What is brought to where the trial starts is the trial's own from then on.
  for (const ReplicaId replica : pool_.replicas.Of(trial.id)) {
    if (pool_.replicas.at(replica).node != event.node) continue;
    copy.fetched = false;
    keeping_.unfetched.erase(trial.id);
  }
  turn_.Emit(CheckpointCopySet{trial.id, std::move(copy)});
}

absl::Status Checkpoints::CheckSharedFolder(const AgentHello& event) const {
  if (event.shared_folder.empty()) return absl::OkStatus();
  for (const auto& [id, node] : pool_.nodes) {
    if (node.name == event.node_name || node.shared_folder.empty()) continue;
    if (node.shared_folder == event.shared_folder) continue;
    return absl::AbortedError(absl::StrCat(
        "the --shared-dir of node ", event.node_name, " is not the folder of node ", node.name,
        ": what one writes there the other does not see; mount the same folder on both machines"));
  }
  return absl::OkStatus();
}

// What is on record of the node is held against what it has.
void Checkpoints::TakeHeldCheckpoints(NodeId node, const AgentHello& event) {
  NodeLost(node);
  if (!event.checkpoints || !event.shared_folder.empty()) return;
  HeldByTrial held;
  for (const HeldCheckpoint& one : event.checkpoints->files) {
    held[{one.study, one.number}].push_back(&one);
  }
  std::vector<TrialId> gone;
  for (const auto& [id, trial] : turn_.state().trials) {
    for (const CheckpointCopy& copy : trial.copies) {
      if (copy.node != node || !copy.folder.empty()) continue;
      const auto there = held.find({turn_.state().studies.at(trial.study).spec.name, trial.number});
      if (there == held.end() ? event.checkpoints->more : Among(there->second, copy.what)) {
        if (there != held.end()) held.erase(there);
      } else {
        gone.push_back(id);
      }
    }
  }
  for (const TrialId id : gone) turn_.Emit(CheckpointCopyGone{id, node});
  for (const auto& [of, files] : held) {
    if (!TakeFolderAsLeft(node, event, *files.front())) {
      TakeUnknownFiles(node, of.first, of.second, files);
    }
  }
}

// What a plain program had in its folder when it ended with its agent, which could not tell of it.
bool Checkpoints::TakeFolderAsLeft(NodeId node, const AgentHello& event,
                                   const HeldCheckpoint& file) {
  const Study* study = turn_.state().FindStudy(file.study);
  if (study == nullptr || file.number < 0 || file.number >= std::ssize(study->trials)) return false;
  const Trial& trial = turn_.TrialAt(study->trials[static_cast<std::size_t>(file.number)]);
  const CheckpointLabel newest = *trial.newest_checkpoint;
  if (Ended(trial.state) || !newest.known() || !newest.name.empty() || !file.name.empty() ||
      file.fetched || file.fingerprint == newest.fingerprint) {
    return false;
  }
  const bool ran_there = !trial.spans.empty() && !trial.spans.back().slots.empty() &&
                         trial.spans.back().slots.front().node == node;
  const bool runs = std::ranges::any_of(
      event.replicas, [&trial](const LiveReplica& live) { return live.trial == trial.id; });
  if (!ran_there || runs) return false;
  const CheckpointLabel label{.step = newest.step + 1,
                              .name = "",
                              .fingerprint = file.fingerprint,
                              .at = turn_.now(),
                              .generation = newest.generation};
  turn_.Emit(CheckpointRecorded{trial.id, trial.checkpoint, label});
  turn_.Emit(CheckpointCopySet{trial.id, {node, label, false}});
  keeping_.due.insert(trial.id);
  return true;
}

// Takes files of a trial that the node is not on record for, most often because the message
// about them was lost.
void Checkpoints::TakeUnknownFiles(NodeId node, const std::string& study_name, std::int64_t number,
                                   const std::vector<const HeldCheckpoint*>& files) {
  const bool fetched =
      std::any_of(files.begin(), files.end(), [](const auto* file) { return file->fetched; });
  const Study* study = turn_.state().FindStudy(study_name);
  const bool known = study != nullptr && number >= 0 && number < std::ssize(study->trials);
  if (known) {
    const Trial& trial = turn_.TrialAt(study->trials[static_cast<std::size_t>(number)]);
    if (Among(files, *trial.newest_checkpoint)) {
      turn_.Emit(CheckpointCopySet{trial.id, {node, *trial.newest_checkpoint, fetched}});
      keeping_.due.insert(trial.id);
      return;
    }
  }
  if (fetched) turn_.Send(DropCheckpointsCommand{node, study_name, number});
}

void Checkpoints::NodeGone() { LookAfterAllCheckpoints(); }

void Checkpoints::NodeLost(NodeId node) {
  keeping_.ForgetOrdersTo(node);
  LookAfterAllCheckpoints();
}

void Checkpoints::LookAfterAllCheckpoints() {
  for (const auto& [id, live] : pool_.live) {
    if (live.trial->newest_checkpoint->known()) keeping_.due.insert(id);
  }
  for (const auto& [clone, parent] : keeping_.clones) keeping_.due.insert(clone);
}

// ---- what follows -------------------------------------------------------------------------------

void Checkpoints::Keep() {
  if (keeping_.FindDue(turn_.now())) turn_.Wake();
  for (const TrialId id : std::exchange(keeping_.due, {})) {
    if (!turn_.state().trials.contains(id)) continue;
    const Trial& trial = turn_.TrialAt(id);
    if (trial.lineage->awaited() && !Ended(trial.state)) OrderParents(trial);
    if (!trial.newest_checkpoint->known()) {
      if (Ended(trial.state)) keeping_.Forget(id);
      continue;
    }
    if (!Ended(trial.state)) LookForHolder(id);
    if (Ended(trial.state)) {
      keeping_.Forget(id);
      DropCopiesOfEnded(trial);
    } else {
      OrderCopy(trial);
    }
  }
}

void Checkpoints::OrderCopy(const Trial& trial) {
  int places = 0;
  for (const CheckpointCopy& copy : trial.copies) {
    if (!copy.what.Is(*trial.newest_checkpoint)) continue;
    places += copy.folder.empty() ? (pool_.nodes.contains(copy.node) ? 1 : 0) : kCopiesWanted;
  }
  if (places >= kCopiesWanted) return DropOlderCopies(trial);
  if (keeping_.under_way.contains(trial.id)) return;
  const auto setback = keeping_.setbacks.find(trial.id);
  if (setback != keeping_.setbacks.end() && setback->second.again) return;
  const std::vector<NodeId> sources = copies_.HoldersOf(trial);
  if (sources.empty() || !copies_.CheckpointInReach(trial)) return;
  const std::optional<NodeId> to = PlaceForCopy(trial, sources);
  if (!to) return;
  keeping_.under_way[trial.id] = {*to, *trial.newest_checkpoint};
  turn_.Send(CopyCheckpointCommand{*to, trial.id, *trial.newest_checkpoint, sources});
}

// A node that reaches those that have it; rather one with an older copy, or with little to do.
std::optional<NodeId> Checkpoints::PlaceForCopy(const Trial& trial,
                                                const std::vector<NodeId>& sources) const {
  const std::set<NodePair> apart = pool_.faults.Apart(turn_.now());
  std::map<NodeId, int> busy;
  for (const auto& [id, order] : keeping_.under_way) ++busy[order.to];
  std::optional<NodeId> best;
  std::pair<int, std::size_t> best_rank;
  std::size_t index = 0;
  for (const auto& [id, node] : pool_.nodes) {
    // Trials begin their turn round the nodes at different ones.
    const std::size_t turn = (index++ + pool_.nodes.size() -
                              static_cast<std::size_t>(trial.id.value) % pool_.nodes.size()) %
                             pool_.nodes.size();
    const bool can = node.connected && node.keeps_checkpoints && !node.draining && !node.leaving &&
                     !node.releasing;
    if (!can || std::find(sources.begin(), sources.end(), id) != sources.end()) continue;
    const bool reaches = std::any_of(sources.begin(), sources.end(), [&, id = id](NodeId source) {
      return !apart.contains(NodePair{std::min(source, id), std::max(source, id)});
    });
    if (!reaches) continue;
    const bool has_older = std::any_of(
        trial.copies.begin(), trial.copies.end(),
        [node_id = id](const CheckpointCopy& c) { return c.node == node_id && c.fetched; });
    const std::pair<int, std::size_t> rank{has_older ? -1 : busy[id], turn};
    if (best && best_rank <= rank) continue;
    best = id;
    best_rank = rank;
  }
  return best;
}

// A copy that is needed no more; the node is connected and the trial does not run there.
bool Checkpoints::MayDrop(const Trial& trial, const CheckpointCopy& copy) const {
  const auto node = pool_.nodes.find(copy.node);
  if (!copy.fetched || !copy.folder.empty() || node == pool_.nodes.end() ||
      !node->second.connected) {
    return false;
  }
  const auto order = keeping_.under_way.find(trial.id);
  if (order != keeping_.under_way.end() && order->second.to == copy.node) return false;
  const std::set<ReplicaId>& replicas = pool_.replicas.Of(trial.id);
  return std::none_of(replicas.begin(), replicas.end(), [&](ReplicaId replica) {
    return pool_.replicas.at(replica).node == copy.node;
  });
}

void Checkpoints::Drop(const Trial& trial, NodeId node) {
  turn_.Send(DropCheckpointsCommand{node, turn_.StudyAt(trial.study).spec.name, trial.number});
  turn_.Emit(CheckpointCopyGone{trial.id, node});
}

void Checkpoints::DropOlderCopies(const Trial& trial) {
  std::vector<NodeId> older;
  for (const CheckpointCopy& copy : trial.copies) {
    if (!copy.what.Is(*trial.newest_checkpoint) && MayDrop(trial, copy)) older.push_back(copy.node);
  }
  for (const NodeId node : older) Drop(trial, node);
}

// One place is enough for an ended trial: rather the one where the trial wrote it, with its best.
void Checkpoints::DropCopiesOfEnded(const Trial& trial) {
  const CheckpointCopy* kept = nullptr;
  for (const CheckpointCopy& copy : trial.copies) {
    if (!copy.what.Is(*trial.newest_checkpoint) || !pool_.nodes.contains(copy.node)) continue;
    if (kept == nullptr || (kept->fetched && !copy.fetched)) kept = &copy;
  }
  if (kept == nullptr) return;  // what there is may be all that is left
  std::vector<NodeId> dropped;
  for (const CheckpointCopy& copy : trial.copies) {
    if (&copy != kept && MayDrop(trial, copy)) dropped.push_back(copy.node);
  }
  for (const NodeId node : dropped) Drop(trial, node);
}

void Checkpoints::DropCopiesOfStudy(const Study& study) {
  for (const TrialId id : study.trials) {
    const Trial& trial = turn_.TrialAt(id);
    keeping_.Forget(id);
    for (const CheckpointCopy& copy : trial.copies) {
      if (!MayDrop(trial, copy)) continue;
      turn_.Send(DropCheckpointsCommand{copy.node, study.spec.name, trial.number});
    }
  }
}

// Those who are left have been started to take over from others, who are gone: they have nothing.
bool Checkpoints::StartAgainIfNobodyKnows(TrialId id, const std::string& what_happened,
                                          bool its_fault, const std::string& last_output) {
  const Trial& trial = turn_.TrialAt(id);
  const auto found = pool_.groups.find(id);
  if (trial.checkpoint.empty() || found == pool_.groups.end() || !found->second.elastic ||
      found->second.pausing || found->second.ending || pool_.replicas.Of(id).empty() ||
      copies_.HasSource(id)) {
    return false;
  }
  Group& group = found->second;
  const std::string why =
      absl::StrCat(what_happened, ", and the replicas that are left had not taken over yet");
  const int most = turn_.StudyAt(trial.study).spec.max_restarts;
  if (its_fault && trial.restarts >= most) {
    trials_.EndTrial(id, TrialState::kFail, absl::StrCat(why, ", again after ", most, " restarts"),
                     std::nullopt, last_output);
    return true;
  }
  if (its_fault) turn_.Emit(TrialRestarted{id, trial.restarts + 1});
  group.pausing = true;
  group.pause_reason = absl::StrCat(why, "; goes on from its checkpoint");
  turn_.Decide(trial, DecisionKind::kRestart, pool_.SlotsHeldBy(id), 0, group.pause_reason);
  group.target.clear();
  group.members.clear();
  group.forming = false;
  for (const ReplicaId replica : pool_.replicas.Of(id))
    groups_.StopReplica(pool_.replicas.at(replica), 0);
  return true;
}

// Nodes that turned out not to have it, or to have it damaged, are not counted on any more.
void Checkpoints::NoteUnfetched(const Replica& replica, const ReplicaExited& exit) {
  const Trial& trial = turn_.TrialAt(replica.trial);
  if (!copies_.CheckpointInReach(trial)) return;  // LookForHolder waits for nodes that are away
  keeping_.NotFetched(trial.id, turn_.now(),
                      absl::StrCat(copies_.NamesOf({replica.node}), ": ", exit.error));
  if (exit.checkpoint != CheckpointFailure::kGone) return;
  if (replica.started_from != CheckpointKey(trial)) return;
  for (const NodeId source : replica.sources) {
    const auto node = pool_.nodes.find(source);
    if (node == pool_.nodes.end() || !node->second.connected) continue;
    const bool has = std::any_of(trial.copies.begin(), trial.copies.end(), [&](const auto& copy) {
      return copy.node == source && copy.what.Is(*trial.newest_checkpoint);
    });
    if (has) turn_.Emit(CheckpointCopyGone{trial.id, source});
  }
}

// True: seen to. Its start failed because nobody who has its checkpoint could give it, which is no
// fault of its program.
bool Checkpoints::CheckpointMissing(TrialId id, const ReplicaExited& exit) {
  if (exit.checkpoint == CheckpointFailure::kNone) return false;
  std::string reason = exit.error;
  if (const auto failed = keeping_.unfetched.find(id); failed != keeping_.unfetched.end()) {
    const double tried_s = SecondsBetween(failed->second.since, turn_.now());
    if (copies_.CheckpointInReach(turn_.TrialAt(id)) && tried_s >= kHolderPatience_s) {
      trials_.EndTrial(id, TrialState::kFail,
                       absl::StrCat(failed->second.why, "; tried ", failed->second.times,
                                    " times in ", std::llround(tried_s), " s"),
                       std::nullopt);
      return true;
    }
    reason = failed->second.why;
  }
  turn_.Decide(turn_.TrialAt(id), DecisionKind::kRestart, 1, 0, reason);
  trials_.BecomePaused(id, reason);
  keeping_.due.insert(id);
  return true;
}

// Looks whether the checkpoint of a trial that could start can be had.
void Checkpoints::LookForHolder(TrialId id) {
  const Trial& trial = turn_.TrialAt(id);
  const bool starts = pool_.replicas.Of(id).empty() && !pool_.recovering.contains(id);
  if (!starts || copies_.CheckpointInReach(trial)) {
    if (keeping_.waits.erase(id) > 0) turn_.Wake();
    return;
  }
  pool_.groups.erase(id);  // it was only planned to start
  const std::optional<double> waited_s = WaitedFor(id);
  if (!waited_s) return;
  // A short absence, or a service that has just started, is not worth a word.
  if (*waited_s < options_.lease_s) return LookAgain(id, options_.lease_s);
  const CheckpointCopy* older = FurthestOlder(trial, pool_.nodes);
  const double redone_s = older == nullptr
                              ? kHolderPatience_s
                              : SecondsBetween(older->what.at, trial.newest_checkpoint->at);
  const std::vector<NodeId> away = copies_.HoldersOf(trial);
  const double patience_s =
      away.empty() ? 0 : std::clamp(redone_s, kHolderPatienceLeast_s, kHolderPatience_s);
  if (*waited_s >= options_.lease_s + patience_s) return GiveUpNewest(id);
  LookAgain(id, options_.lease_s + patience_s);
  if (std::exchange(keeping_.waits.at(id).said, true)) return;
  turn_.Decide(trial, DecisionKind::kPause, 0, 0,
               absl::StrCat("waits for ", copies_.WhereNewestLies(trial), ", where its ",
                            TextOf(*trial.newest_checkpoint), " lies"));
}

std::optional<double> Checkpoints::WaitedFor(TrialId id) {
  const auto [at, fresh] = keeping_.waits.try_emplace(id);
  CheckpointKeeping::Wait& wait = at->second;
  if (fresh) wait.since = turn_.now();
  const bool some = std::any_of(pool_.nodes.begin(), pool_.nodes.end(),
                                [](const auto& entry) { return entry.second.connected; });
  if (!some) {
    if (!wait.alone) wait.alone = turn_.now();
    wait.look.reset();
    return std::nullopt;
  }
  if (const auto alone = std::exchange(wait.alone, std::nullopt)) {
    wait.since = After(wait.since, SecondsBetween(*alone, turn_.now()));
  }
  return SecondsBetween(wait.since, turn_.now());
}

void Checkpoints::LookAgain(TrialId id, double after_s) {
  CheckpointKeeping::Wait& wait = keeping_.waits.at(id);
  wait.look = After(wait.since, after_s);
}

void Checkpoints::GiveUpNewest(TrialId id) {
  const Trial& trial = turn_.TrialAt(id);
  keeping_.waits.erase(id);
  const std::vector<NodeId> lost = copies_.HoldersOf(trial);
  std::string where =
      lost.empty() ? absl::StrCat("no node has its ", TextOf(*trial.newest_checkpoint), " any more")
                   : absl::StrCat("its ", TextOf(*trial.newest_checkpoint), " was lost with ",
                                  copies_.NamesOf(lost));
  if (const auto failed = keeping_.unfetched.extract(id)) {
    absl::StrAppend(&where, " (", failed.mapped().why, ")");
  }
  const CheckpointCopy* older = FurthestOlder(trial, pool_.nodes);
  if (older == nullptr) {
    trials_.EndTrial(id, TrialState::kFail, absl::StrCat(where, ", and no other node has one"),
                     std::nullopt);
    return;
  }
  const CheckpointLabel label = older->what;
  turn_.Decide(trial, DecisionKind::kRestart, 0, 0,
               absl::StrCat(where, ": goes on from the older ", TextOf(label), " of ",
                            copies_.NamesOf({older->node})));
  for (const NodeId node : lost) turn_.Emit(CheckpointCopyGone{id, node});
  turn_.Emit(CheckpointRecorded{id, PathBeside(trial.checkpoint, label.name), label});
  keeping_.due.insert(id);
  turn_.Wake();
}

}  // namespace espalier
