#include "tuner/core/studies/populations.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "tuner/core/pool/checkpoint_copies.h"
#include "tuner/core/population/bandit.h"
#include "tuner/core/population/perturbation.h"
#include "tuner/core/population/truncation.h"
#include "tuner/core/trials/clone.h"
#include "tuner/core/trials/population_turns.h"

namespace espalier {

namespace {

constexpr std::uint64_t kSeedOfPopulations = 0x706f70756c617465;  // unlike those of draws
constexpr int kMostPerturbations = 20;  // of one takeover, until they are not trained already

std::int64_t NextComparison(const PopulationSpec& population, std::int64_t step) {
  return ComparedAt(population, step) + population.interval;
}

}  // namespace

void Populations::Observe(const Change& change) {
  if (const auto ended = TrialEndedBy(change)) {
    reported_.erase(*ended);
    will_be_replaced_.erase(*ended);
    noted_.erase(*ended);
  }
  if (const auto ended = StudyEndedBy(change)) changed_.erase(*ended);
  if (std::holds_alternative<StudyDeleted>(change)) {
    const auto is_gone = [this](TrialId id) { return !turn_.state().trials.contains(id); };
    std::erase_if(reported_, [&](const auto& entry) { return is_gone(entry.first); });
    std::erase_if(will_be_replaced_, is_gone);
    std::erase_if(noted_, [&](const auto& entry) { return is_gone(entry.first); });
  }
  const auto* reported = std::get_if<ValueReported>(&change);
  if (reported == nullptr) return;
  const Trial& trial = turn_.TrialAt(reported->id);
  const bool is_newest = trial.values.back().step == reported->value.step;
  if (!is_newest || !turn_.StudyAt(trial.study).spec.population.on()) return;
  changed_.insert(trial.study);
  reported_.emplace(trial.id, trial.values.size() - 1);
}

void Populations::Compare() {
  for (const auto& [id, before] : std::exchange(reported_, {})) {
    const Trial& member = turn_.TrialAt(id);
    const Study& study = turn_.StudyAt(member.study);
    if (member.state != TrialState::kRunning || study.state != StudyState::kRunning) continue;
    const std::int64_t step = ComparedAt(study.spec.population, StepOf(member));
    if (step <= ComparedAt(study.spec.population, curves_.StepWith(member, before))) continue;
    CompareAt(study, step);
    if (member.state != TrialState::kRunning || HasComeToTheEnd(member)) continue;
    if (trials_.MayPause(id) && OthersWaitBehind(study, step)) {
      trials_.PauseTrial(id, absl::StrCat("population: has come to step ", step,
                                          ", and others that wait have not"));
    }
  }
  if (!std::exchange(looked_, true)) changed_ = pool_.studies;
  for (const StudyId id : std::exchange(changed_, {})) {
    const Study& study = turn_.StudyAt(id);
    if (study.spec.population.on() && study.state == StudyState::kRunning) LookAhead(study);
  }
}

void Populations::CompareAt(const Study& study, std::int64_t step) {
  std::vector<Exploit> exploits = ExploitsAt(study, step);
  std::vector<PopulationMember> members;
  if (!exploits.empty() && study.spec.population.explore == Explore::kPb2) {
    const std::span<const Curve> curves = curves_.Of(turn_.state(), study);
    members.reserve(curves.size() + exploits.size());
    turn_.state().ForEachTrial(study, [&](const Trial& trial) {
      members.push_back(MemberOf(trial, curves[members.size()]));
    });
  }
  for (Exploit& exploit : exploits) Replace(exploit, members);
}

// Who is among the worst is not among the best, so that none of them depends on another.
std::vector<Populations::Exploit> Populations::ExploitsAt(const Study& study, std::int64_t step) {
  const StudySpec& spec = study.spec;
  const std::span<const Curve> curves = curves_.Of(turn_.state(), study);
  const Ranking ranking =
      RankAt(spec.population, spec.direction(), curves, !OthersMayCome(study, step), step);
  std::vector<Exploit> exploits;
  for (const Ranking::Place& loser : Losers(ranking, curves)) {
    const Trial& member = turn_.TrialAt(study.trials[loser.member]);
    if (HasComeToTheEnd(member)) continue;
    const std::uint64_t of_member =
        MixSeed(spec.seed ^ kSeedOfPopulations, static_cast<std::uint64_t>(member.number));
    Random random(MixSeed(of_member, static_cast<std::uint64_t>(step)));
    const std::optional<std::size_t> winner =
        WinnerOver(loser, ranking, spec.direction(), curves, random);
    if (winner) exploits.push_back({member.id, study.trials[*winner], step, random});
  }
  return exploits;
}

void Populations::Replace(Exploit& exploit, std::vector<PopulationMember>& members) {
  const Trial& member = turn_.TrialAt(exploit.loser);
  const Trial& winner = turn_.TrialAt(exploit.winner);
  // Nothing can be taken over from one that saves in files of its own while it runs.
  if (NewestAsFile(winner).name.empty()) return;
  const Study& study = turn_.StudyAt(member.study);
  Parameters parameters = Explored(exploit, members);
  const std::int64_t clone = std::ssize(study.trials);
  const double value = member.values.back().value;
  PoolState::Predecessor before{member.id, pool_.PlacementOf(member.id)};
  trials_.EndTrial(
      member.id, TrialState::kPruned,
      absl::StrCat(
          "population: at step ", exploit.step, " it is among the worst, and trial ", winner.number,
          " among the best: trial ", clone, " goes on from there in its place",
          study.spec.batch_mode == BatchMode::kAdaptive ? " (steps at equal progress)" : ""),
      value);
  const TrialId successor = EmitClone(turn_, winner, std::move(parameters));
  pool_.successors.emplace(successor, std::move(before));
  if (members.empty()) return;
  const std::span<const Curve> curves = curves_.Of(turn_.state(), study);
  members[static_cast<std::size_t>(member.number)].curve =
      curves[static_cast<std::size_t>(member.number)];
  members.push_back(MemberOf(turn_.TrialAt(successor), curves.back()));
}

Parameters Populations::Explored(Exploit& exploit, std::span<const PopulationMember> members) {
  const Trial& winner = turn_.TrialAt(exploit.winner);
  const StudySpec& spec = turn_.StudyAt(winner.study).spec;
  if (spec.population.explore == Explore::kPerturb) {
    Parameters parameters;
    for (int draw = 0; draw < kMostPerturbations; ++draw) {
      parameters = Perturb(spec.population, spec.space, winner.parameters, exploit.random);
      if (!IsTrained(winner, parameters)) break;
    }
    return parameters;
  }
  const Takeover takeover{.loser = static_cast<std::size_t>(turn_.TrialAt(exploit.loser).number),
                          .winner = static_cast<std::size_t>(winner.number),
                          .step = exploit.step};
  return ExploreByBandit(
      spec.population, spec.space, spec.direction(), members, takeover,
      [&](const Parameters& chosen) { return IsTrained(winner, chosen); }, exploit.random);
}

PopulationMember Populations::MemberOf(const Trial& trial, const Curve& curve) {
  PopulationMember member{.curve = curve, .parameters = &trial.parameters};
  if (trial.lineage->cloned()) member.parent = static_cast<std::size_t>(trial.lineage->parent);
  if (!curve.ended) member.step = StepOf(trial);
  return member;
}

// Clones have their parent's seed: one of the same parameters trains the same once more.
bool Populations::IsTrained(const Trial& parent, const Parameters& parameters) const {
  if (parent.parameters == parameters) return true;
  return std::ranges::any_of(pool_.live, [&](const auto& entry) {
    const Trial& trial = *entry.second.trial;
    return trial.study == parent.study && trial.lineage->parent == parent.number &&
           trial.parameters == parameters;
  });
}

// By the step to which half of the members have come, for those that are behind it by their own:
// fewer would say little of who is among the worst.
void Populations::LookAhead(const Study& study) {
  const StudySpec& spec = study.spec;
  if (spec.max_slots == spec.min_slots) return;  // none can grow
  const std::span<const Curve> curves = curves_.Of(turn_.state(), study);
  const auto newest = [&](const Trial& member) -> std::int64_t {
    const Curve& curve = curves[static_cast<std::size_t>(member.number)];
    return curve.points.empty() ? 0 : curve.points.back().step;
  };
  std::vector<const Trial*> members;
  std::vector<std::int64_t> steps;
  for (const auto& [id, live] : pool_.live) {
    if (live.study != &study) continue;
    will_be_replaced_.erase(id);
    members.push_back(live.trial);
    steps.push_back(newest(*live.trial));
  }
  std::ranges::sort(steps);
  const std::int64_t common = steps.empty() ? 0 : steps[steps.size() / 2];
  std::map<std::int64_t, Ranking> rankings;
  const std::int64_t last = pool_.LastStepOf(study);
  for (const Trial* member : members) {
    const std::int64_t step = std::min(common, newest(*member));
    if (step == 0) continue;
    // With an adaptive batch the steps that members have told are not those of equal progress.
    const std::int64_t next = std::max(NextComparison(spec.population, step),
                                       member->values.back().step + spec.population.interval);
    if (last > 0 && next >= last) continue;
    const auto [known, is_new] = rankings.try_emplace(step);
    if (is_new) {
      known->second =
          RankAt(spec.population, spec.direction(), curves, !OthersMayCome(study, step), step);
    }
    const std::vector<Ranking::Place> losers = Losers(known->second, curves);
    const auto own = std::ranges::find(losers, static_cast<std::size_t>(member->number),
                                       &Ranking::Place::member);
    Random any(0);  // somebody is enough
    if (own == losers.end() || !WinnerOver(*own, known->second, spec.direction(), curves, any)) {
      continue;
    }
    will_be_replaced_.insert(member->id);
    NoteThatWillBeReplaced(*member, step);
  }
}

// Once from one comparison to the next.
void Populations::NoteThatWillBeReplaced(const Trial& member, std::int64_t step) {
  const StudySpec& spec = turn_.StudyAt(member.study).spec;
  const bool may_grow = spec.resize_by_restart || !trials_.IsOfPlainProgram(member.id);
  if (member.state != TrialState::kRunning || !may_grow) return;
  const std::int64_t next = NextComparison(spec.population, step);
  if (std::exchange(noted_[member.id], next) == next) return;
  const int held = pool_.SlotsHeldBy(member.id);
  turn_.Decide(
      member, DecisionKind::kStudy, held, held,
      absl::StrCat("population: at step ", step, " it is among the worst, so that it gets ",
                   "no more slots until members are compared at step ", next));
}

// Who has come to the end has nothing to gain from another.
bool Populations::HasComeToTheEnd(const Trial& member) const {
  const std::int64_t last = pool_.LastStepOf(turn_.StudyAt(member.study));
  return last > 0 && member.values.back().step >= last;
}

std::int64_t Populations::StepOf(const Trial& member) {
  const std::span<const Curve> curves = curves_.Of(turn_.state(), turn_.StudyAt(member.study));
  return StepOfMember(turn_.state(), curves, member);
}

bool Populations::OthersMayCome(const Study& study, std::int64_t step) {
  if (YetToBeDrawn(study, plugins_) > 0) return true;
  return std::ranges::any_of(pool_.live, [&](const auto& entry) {
    const Trial& trial = *entry.second.trial;
    return trial.study == study.id && StepOf(trial) < step;
  });
}

bool Populations::OthersWaitBehind(const Study& study, std::int64_t step) {
  int free = pool_.SlotsTotal();
  for (const auto& [id, replica] : pool_.replicas) {
    if (!replica.leaving && !replica.stopping) free -= replica.slots();
  }
  std::int64_t waiting = 0;
  for (const auto& [compared, members] :
       WaitingMembers(turn_.state(), curves_.Of(turn_.state(), study), pool_, study, plugins_)) {
    if (compared < step) waiting += members;
  }
  return waiting * study.spec.min_slots > free;
}

}  // namespace espalier
