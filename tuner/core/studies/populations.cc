#include "tuner/core/studies/populations.h"

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "tuner/core/pool/checkpoint_copies.h"
#include "tuner/core/population/perturbation.h"
#include "tuner/core/population/truncation.h"
#include "tuner/core/trials/clone.h"
#include "tuner/core/trials/population_turns.h"

namespace espalier {

namespace {

constexpr std::uint64_t kSeedOfPopulations = 0x706f70756c617465;  // unlike those of draws

}  // namespace

void Populations::Observe(const Change& change) {
  if (const auto ended = TrialEndedBy(change)) reported_.erase(*ended);
  if (std::holds_alternative<StudyDeleted>(change)) {
    std::erase_if(reported_, [this](const auto& entry) {
      return !turn_.state().trials.contains(entry.first);
    });
  }
  const auto* reported = std::get_if<ValueReported>(&change);
  if (reported == nullptr) return;
  const Trial& trial = turn_.TrialAt(reported->id);
  const PopulationSpec& population = turn_.StudyAt(trial.study).spec.population;
  if (!population.on() || trial.values.back().step != reported->value.step) return;
  const std::int64_t before = trial.values.size() > 1 ? trial.values.rbegin()[1].step : 0;
  reported_.emplace(trial.id, ComparedAt(population, before));
}

void Populations::Compare() {
  for (const auto& [id, before] : std::exchange(reported_, {})) {
    const Trial& member = turn_.TrialAt(id);
    const Study& study = turn_.StudyAt(member.study);
    if (member.state != TrialState::kRunning || study.state != StudyState::kRunning) continue;
    // Who has come to the end has nothing to gain from another.
    const std::int64_t last = pool_.LastStepOf(study);
    if (last > 0 && member.values.back().step >= last) continue;
    const std::int64_t step = ComparedAt(study.spec.population, member.values.back().step);
    if (step > before) CompareMember(member, step);
  }
}

void Populations::CompareMember(const Trial& member, std::int64_t step) {
  const Study& study = turn_.StudyAt(member.study);
  const StudySpec& spec = study.spec;
  const std::uint64_t of_member =
      MixSeed(spec.seed ^ kSeedOfPopulations, static_cast<std::uint64_t>(member.number));
  Random random(MixSeed(of_member, static_cast<std::uint64_t>(step)));
  const std::span<const Curve> curves = curves_.Of(turn_.state(), study);
  const std::optional<Exploit> exploit =
      Select(spec.population, spec.direction(), curves, static_cast<std::size_t>(member.number),
             step, random);
  const Trial* winner = exploit ? &turn_.TrialAt(study.trials[exploit->winner]) : nullptr;
  // Nothing can be taken over from one that saves in files of its own while it runs.
  if (winner != nullptr && !NewestAsFile(*winner).name.empty()) {
    Parameters parameters = Perturb(spec.population, spec.space, winner->parameters, random);
    const std::int64_t clone = std::ssize(study.trials);
    const double value = member.values.back().value;
    trials_.EndTrial(
        member.id, TrialState::kPruned,
        absl::StrCat("population: at step ", step, " it is among the worst, and trial ",
                     winner->number, " among the best: trial ", clone,
                     " goes on from there in its place"),
        value);
    EmitClone(turn_, *winner, std::move(parameters));
  } else if (OthersWaitBehind(study, step)) {
    trials_.PauseTrial(member.id, absl::StrCat("population: has come to step ", step,
                                               ", and others that wait have not"));
  }
}

bool Populations::OthersWaitBehind(const Study& study, std::int64_t step) const {
  int free = pool_.SlotsTotal();
  for (const auto& [id, replica] : pool_.replicas) {
    if (!replica.leaving && !replica.stopping) free -= replica.slots();
  }
  const std::int64_t waiting = WaitingBehind(turn_.state(), pool_, study, step);
  return waiting * study.spec.min_slots > free;
}

}  // namespace espalier
