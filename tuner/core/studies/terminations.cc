#include "tuner/core/studies/terminations.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "search_spaces/formats/optuna/constraints.h"
#include "tuner/core/terminators/question.h"
#include "tuner/core/trials/searched_space.h"

namespace espalier {

namespace {

constexpr std::uint64_t kSeedOfTerminators = 0x7465726d696e6174;  // unlike those of draws

// A trial that breaks a constraint is none that could be the best: terminators see no value of it.
// Empty: there is none.
std::vector<Observation> WithoutThoseThatBreak(std::span<const Observation> ended) {
  const auto breaks = [](const Observation& seen) {
    return !KeepsTo({seen.constraints.begin(), seen.constraints.end()});
  };
  if (std::ranges::none_of(ended, breaks)) return {};
  std::vector<Observation> judged(ended.begin(), ended.end());
  for (Observation& seen : judged) {
    if (breaks(seen)) seen.value = std::nan("");
  }
  return judged;
}

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
  const std::vector<Observation> judged = WithoutThoseThatBreak(own.history.ended());
  const std::span<const Observation> ended = judged.empty() ? own.history.ended() : judged;
  const TerminatorInput input = {
      .space = *own.searched,
      .direction = study.spec.direction(),
      .ended = ended,
      .seed = MixSeed(study.spec.seed ^ kSeedOfTerminators, ended.size())};
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
