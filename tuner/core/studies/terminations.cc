#include "tuner/core/studies/terminations.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "tuner/core/terminators/question.h"
#include "tuner/core/trials/sampler_history.h"

namespace espalier {

namespace {

constexpr std::uint64_t kSeedOfTerminators = 0x7465726d696e6174;  // unlike those of draws

}  // namespace

void Terminations::Observe(const Change& change) {
  if (const auto trial = TrialEndedBy(change)) moved_.insert(turn_.TrialAt(*trial).study);
  if (const auto study = StudyEndedBy(change)) {
    moved_.erase(*study);
    under_way_.erase(*study);
  }
}

void Terminations::EndTerminated() {
  for (const StudyId id : std::set<StudyId>(moved_)) {
    if (under_way_.contains(id)) continue;
    moved_.erase(id);
    const Study& study = turn_.StudyAt(id);
    if (study.state != StudyState::kRunning || study.spec.terminator.name == "none") continue;
    if (const auto reason = Ask(study, plugins_.Of(study).terminator)) End(study, *reason);
  }
}

std::optional<std::string> Terminations::Ask(const Study& study,
                                             const std::shared_ptr<const Terminator>& terminator) {
  std::vector<Observation> ended;
  turn_.state().ForEachTrial(study, [&ended](const Trial& trial) {
    if (Ended(trial.state)) ended.push_back(ObservationOf(trial, &trial.parameters, false));
  });
  const TerminatorInput input = {
      .space = study.spec.space,
      .direction = study.spec.direction(),
      .ended = ended,
      .seed = MixSeed(study.spec.seed ^ kSeedOfTerminators, ended.size())};
  if (!options_.plan_aside || terminator->Work(input) <= kMostWorkHere) {
    return terminator->Judge(input);
  }
  auto question = std::make_shared<TerminatorQuestion>();
  question->number = under_way_[study.id] = ++asked_;
  question->study = study.id;
  question->study_name = study.spec.name;
  question->terminator = terminator;
  question->space = input.space;
  question->direction = input.direction;
  question->seed = input.seed;
  question->ended = std::move(ended);
  for (Observation& trial : question->ended) {
    trial.parameters = &question->kept.emplace_back(*trial.parameters);
    trial.other_values = {};
    trial.constraints = {};
  }
  turn_.Ask(std::move(question));
  return std::nullopt;
}

void Terminations::On(const TerminatorAnswered& event) {
  const auto asked = under_way_.find(event.study);
  if (asked == under_way_.end() || asked->second != event.number) return;
  under_way_.erase(asked);
  const Study& study = turn_.StudyAt(event.study);
  if (event.reason && study.state == StudyState::kRunning) End(study, *event.reason);
}

void Terminations::End(const Study& study, const std::string& reason) {
  trials_.ConcludeStudy(study.id, absl::StrCat(study.spec.terminator.name, ": ", reason));
}

}  // namespace espalier
