// How clones come to their parents' checkpoints.

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/core/checkpoints/checkpoints.h"
#include "tuner/core/groups/size_restarts.h"

namespace espalier {

namespace {

// The step at which the trial saved the folder that is its newest checkpoint: the last one that it
// had told by then. Agents count how often a folder was saved, not steps.
std::int64_t StepOfFolder(const Trial& trial) {
  std::int64_t step = 0;
  for (const IntermediateValue& value : trial.values) {
    const bool before =
        !trial.newest_checkpoint->known() || value.at <= trial.newest_checkpoint->at;
    if (before) step = value.step;
  }
  return step;
}

}  // namespace

const Trial& Checkpoints::ParentOf(const Trial& clone) const {
  const Study& study = turn_.StudyAt(clone.study);
  return turn_.TrialAt(study.trials.at(static_cast<std::size_t>(clone.lineage->parent)));
}

// A folder is of one moment when nobody writes there: of a plain program that runs it is copied
// once that has saved and ended, and before it is started again. True: that is not so yet.
bool Checkpoints::AwaitsFolder(const Trial& clone, const Trial& parent) {
  if (!NewestAsFile(parent).name.empty()) return false;
  const auto group = pool_.groups.find(parent.id);
  if (group != pool_.groups.end() && group->second.elastic) return false;
  if (parent.state != TrialState::kRunning && pool_.replicas.Of(parent.id).empty()) return false;
  keeping_.due.insert(clone.id);  // until then
  const double grace_s = turn_.StudyAt(parent.study).spec.stop_grace_s;
  if (parent.state == TrialState::kRunning && AskToSave(pool_, groups_, parent, grace_s)) {
    const int held = pool_.SlotsHeldBy(parent.id);
    turn_.Decide(parent, DecisionKind::kStudy, held, held,
                 absl::StrCat("saves, and is started again, so that trial ", clone.number,
                              " can begin with what it has saved"));
  }
  return true;
}

bool Checkpoints::GivesItsFolder(const Trial& parent) const {
  return keeping_.HasClonesThatWait(parent.id) && NewestAsFile(parent).name.empty();
}

// The copy is made on a node that has it: from there on the clone's checkpoint is kept as any
// other. A parent that trains writes newer ones and removes the old: the newest is what counts.
void Checkpoints::OrderParents(const Trial& clone) {
  if (keeping_.under_way.contains(clone.id)) return;
  const auto setback = keeping_.setbacks.find(clone.id);
  if (setback != keeping_.setbacks.end() && setback->second.again) return;
  const Trial& parent = ParentOf(clone);
  const CheckpointLabel newest = NewestAsFile(parent);
  if (AwaitsFolder(clone, parent)) return;
  if (newest.name.empty() && parent.state == TrialState::kComplete) {
    trials_.EndTrial(clone.id, TrialState::kPruned,
                     absl::StrCat("trial ", parent.number, ", from whose midst it was to go on, ",
                                  "has come to its end before it was asked to save"),
                     std::nullopt);
    return;
  }
  // A program saves what it has come to at a step after it has told of that step.
  if (pool_.HasComeToTheEnd(parent) && newest.at > parent.values.back().at) {
    trials_.EndTrial(clone.id, TrialState::kPruned,
                     absl::StrCat("nothing is left to train: trial ", parent.number,
                                  ", with whose checkpoint it was to begin, had come to its end, "
                                  "step ",
                                  parent.values.back().step, ", before that was copied"),
                     std::nullopt);
    return;
  }
  if (parent.checkpoint.empty()) {
    trials_.EndTrial(clone.id, TrialState::kFail,
                     absl::StrCat("trial ", parent.number,
                                  ", with whose checkpoint it was to begin, has none: a program ",
                                  "that is asked to save does so in ESPALIER_CHECKPOINT_DIR"),
                     std::nullopt);
    return;
  }
  for (const NodeId holder : copies_.HoldersOfFile(parent)) {
    const auto node = pool_.nodes.find(holder);
    if (node == pool_.nodes.end() || !node->second.connected || !node->second.clones) continue;
    keeping_.waits.erase(clone.id);
    keeping_.under_way[clone.id] = {holder, newest};
    CopyCheckpointCommand copy{holder, clone.id, newest, {}};
    copy.of = parent.number;
    turn_.Send(std::move(copy));
    return;
  }
  WaitForParents(clone);
}

void Checkpoints::WaitForParents(const Trial& clone) {
  const std::optional<double> waited_s = WaitedFor(clone.id);
  if (!waited_s) return;
  const Trial& parent = ParentOf(clone);
  const std::vector<NodeId> away = copies_.HoldersOfFile(parent);
  const double patience_s = options_.lease_s + (away.empty() ? 0 : kHolderPatience_s);
  if (*waited_s < patience_s) return LookAgain(clone.id, patience_s);
  keeping_.waits.erase(clone.id);
  const std::string whose =
      absl::StrCat("the checkpoint of trial ", parent.number, ", with which it was to begin, ");
  trials_.EndTrial(clone.id, TrialState::kFail,
                   away.empty()
                       ? absl::StrCat(whose, "is on no node any more")
                       : absl::StrCat(whose, "is on ", copies_.NamesOf(away),
                                      ", which did not come back, or has too old an agent"),
                   std::nullopt);
}

void Checkpoints::BeginWithParents(const Trial& clone, const CheckpointCopied& event) {
  CheckpointLabel label = event.what;
  label.at = turn_.now();
  const std::int64_t parent = clone.lineage->parent;
  const std::int64_t step = label.name.empty() ? StepOfFolder(ParentOf(clone)) : label.step;
  turn_.Emit(TrialCloned{clone.id, {parent, clone.lineage->founder, step, label.fingerprint}});
  const std::string what =
      label.name.empty() ? absl::StrCat("the checkpoint folder of step ", step) : TextOf(label);
  turn_.Decide(clone, DecisionKind::kStudy, 0, 0,
               absl::StrCat("begins with ", what, " of trial ", parent));
  if (!label.known()) label.name.clear();  // as in all that such agents tell of
  turn_.Emit(CheckpointRecorded{clone.id, event.path, label});
  if (label.known()) {
    turn_.Emit(CheckpointCopySet{
        clone.id, {event.node, label, false, pool_.nodes.at(event.node).shared_folder}});
  }
  turn_.Wake();
}

}  // namespace espalier
