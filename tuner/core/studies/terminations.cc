#include "tuner/core/studies/terminations.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "tuner/core/terminators/question.h"
#include "tuner/core/trials/searched_space.h"

namespace espalier {

namespace {

constexpr std::uint64_t kSeedOfTerminators = 0x7465726d696e6174;  // unlike those of draws

}  // namespace

void Terminations::Observe(const Change& change) {
  if (const auto trial = TrialEndedBy(change)) moved_.insert(turn_.TrialAt(*trial).study);
  if (const auto study = StudyEndedBy(change)) {
    moved_.erase(*study);
    studies_.erase(*study);
  }
}

void Terminations::EndTerminated() {
  for (const StudyId id : std::set<StudyId>(moved_)) {
    const auto known = studies_.find(id);
    if (known != studies_.end() && known->second.under_way != 0) continue;
    moved_.erase(id);
    const Study& study = turn_.StudyAt(id);
    if (study.state != StudyState::kRunning || study.spec.terminator.name == "none") continue;
    if (const auto verdict = Ask(study, plugins_.Of(study).terminator)) Take(study, *verdict);
  }
}

// Trials that are held back have not ended: to terminators they are under way.
void Terminations::UpdateHistory(const Study& study, OfStudy& own) {
  own.history.Update(turn_.state(), study,
                     {.parameters_of = [&](const Trial& trial) -> const Parameters* {
                        if (!study.spec.by_clients()) return &trial.parameters;
                        return own.suggested.Of(trial, study);
                      },
                      .held_by_pruner = [](const Trial&) { return false; }});
}

std::optional<TerminatorVerdict> Terminations::Ask(
    const Study& study, const std::shared_ptr<const Terminator>& terminator) {
  OfStudy& own = studies_[study.id];
  if (!own.searched) own.searched = SearchedSpace(study.spec);
  UpdateHistory(study, own);
  const TerminatorInput input = {
      .space = *own.searched,
      .direction = study.spec.direction(),
      .ended = own.history.ended(),
      .seed = MixSeed(study.spec.seed ^ kSeedOfTerminators, own.history.ended().size())};
  if (!options_.plan_aside || terminator->Work(input) <= kMostWorkHere) {
    return terminator->Judge(input);
  }
  auto question = std::make_shared<TerminatorQuestion>();
  question->number = own.under_way = ++asked_;
  question->study = study.id;
  question->study_name = study.spec.name;
  question->terminator = terminator;
  question->space = input.space;
  question->direction = input.direction;
  question->seed = input.seed;
  question->ended.assign(input.ended.begin(), input.ended.end());
  question->kept_of_ended = own.history.kept();
  turn_.Ask(std::move(question));
  return std::nullopt;
}

void Terminations::On(const TerminatorAnswered& event) {
  const auto asked = studies_.find(event.study);
  if (asked == studies_.end() || asked->second.under_way != event.number) return;
  asked->second.under_way = 0;
  const Study& study = turn_.StudyAt(event.study);
  if (study.state == StudyState::kRunning) Take(study, event.verdict);
}

void Terminations::Take(const Study& study, const TerminatorVerdict& verdict) {
  if (verdict.reason.empty()) return;
  const std::string told = absl::StrCat(study.spec.terminator.name, ": ", verdict.reason);
  if (verdict.ends) return trials_.ConcludeStudy(study.id, told);
  bool& recorded = studies_[study.id].has_recorded_lack;
  if (std::exchange(recorded, true)) return;
  for (const Decision& decision : study.decisions) {
    if (decision.reason == told) return;  // before a restart
  }
  turn_.Decide(study.id, -1, DecisionKind::kStudy, 0, 0, told);
}

}  // namespace espalier
