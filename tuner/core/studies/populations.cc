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
#include "tuner/core/state/study_facts.h"
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
  if (const auto ended = TrialEndedBy(change)) NoteEnd(turn_.TrialAt(*ended));
  if (const auto ended = StudyEndedBy(change)) {
    changed_.erase(*ended);
    unsure_.erase(*ended);
    told_of_plain_.erase(*ended);
  }
  if (std::holds_alternative<StudyDeleted>(change)) ForgetDeleted();
  const auto* of_study = std::get_if<StudyStateChanged>(&change);
  if (of_study != nullptr && of_study->state == StudyState::kRunning) unsure_.insert(of_study->id);
  if (!awaiting_.empty()) NoteThatMaySave(change);
  const auto* reported = std::get_if<ValueReported>(&change);
  if (reported == nullptr) return;
  const Trial& trial = turn_.TrialAt(reported->id);
  const bool is_newest = trial.values.back().step == reported->value.step;
  if (!is_newest || !turn_.StudyAt(trial.study).spec.population.on()) return;
  changed_.insert(trial.study);
  reported_.emplace(trial.id, trial.values.size() - 1);
}

// It has saved, or it is known by now that it will when it is asked to.
void Populations::NoteThatMaySave(const Change& change) {
  if (const auto* recorded = std::get_if<CheckpointRecorded>(&change)) {
    saved_.insert(turn_.TrialAt(recorded->id).study);
  } else if (const auto* agreed = std::get_if<VerdictAgreed>(&change)) {
    if (agreed->saving.asked()) saved_.insert(turn_.TrialAt(agreed->id).study);
  } else if (const auto* reported = std::get_if<ValueReported>(&change)) {
    const Study& study = turn_.StudyAt(turn_.TrialAt(reported->id).study);
    if (study.spec.resize_by_restart) saved_.insert(study.id);
  }
}

// Others may have waited for it alone to come. A clone comes in the place of one that is replaced.
void Populations::NoteEnd(const Trial& trial) {
  will_be_replaced_.erase(trial.id);
  noted_.erase(trial.id);
  awaiting_.erase(trial.id);
  if (!turn_.StudyAt(trial.study).spec.population.on() || is_replacing_) return;
  reported_.emplace(trial.id, trial.values.size());
}

void Populations::ForgetDeleted() {
  const auto is_gone = [this](const auto& entry) {
    return !turn_.state().trials.contains(entry.first);
  };
  std::erase_if(reported_, is_gone);
  std::erase_if(noted_, is_gone);
  std::erase_if(awaiting_, is_gone);
  std::erase_if(will_be_replaced_,
                [this](TrialId id) { return !turn_.state().trials.contains(id); });
  std::erase_if(saved_, [this](StudyId id) { return !turn_.state().studies.contains(id); });
}

void Populations::Compare() {
  std::map<StudyId, std::set<std::int64_t>> due;
  std::vector<std::pair<TrialId, std::int64_t>> come;
  for (const auto& [id, before] : std::exchange(reported_, {})) {
    const Trial& member = turn_.TrialAt(id);
    const Study& study = turn_.StudyAt(member.study);
    if (study.state != StudyState::kRunning) continue;
    std::set<std::int64_t>& steps = due[study.id];
    if (const auto step = TakeStepsCome(member, before, steps)) come.emplace_back(id, *step);
    if (Ended(member.state)) TakeStepsBeyond(study, StepOf(member), steps);
  }
  TakeUnsure(due);
  for (const auto& [id, steps] : due) {
    for (const std::int64_t step : steps) CompareAt(turn_.StudyAt(id), step);
  }
  for (const auto& [id, step] : come) {
    const auto waits = awaiting_.find(id);
    if (waits != awaiting_.end() && waits->second < step) awaiting_.erase(waits);
  }
  for (const StudyId id : std::exchange(saved_, {})) CompareAwaiting(turn_.StudyAt(id));
  for (const auto& [id, step] : come) LetOthersCome(turn_.TrialAt(id), step);
  if (!std::exchange(looked_, true)) changed_ = pool_.studies;
  for (const StudyId id : std::exchange(changed_, {})) {
    const Study& study = turn_.StudyAt(id);
    if (study.spec.population.on() && study.state == StudyState::kRunning) LookAhead(study);
  }
}

// It may have come to several since the last look: where the service was busy, say. At each of them
// others may have waited for it. The furthest; none: it has come to none.
std::optional<std::int64_t> Populations::TakeStepsCome(const Trial& member, std::size_t before,
                                                       std::set<std::int64_t>& steps) {
  const Study& study = turn_.StudyAt(member.study);
  const PopulationSpec& population = study.spec.population;
  const std::int64_t newest = ComparedAt(population, StepOf(member));
  const std::int64_t known = ComparedAt(population, curves_.StepWith(member, before));
  if (newest <= known) return std::nullopt;
  steps.insert(newest);
  awaiting_.erase(member.id);  // what was found there counts from now on
  const Curve& curve = curves_.Of(turn_.state(), study)[static_cast<std::size_t>(member.number)];
  for (auto point = curve.points.rbegin(); point != curve.points.rend(); ++point) {
    const std::int64_t next = ComparedAt(population, point->step + population.interval - 1);
    if (next <= known) break;
    if (next < newest) steps.insert(next);
  }
  return newest;
}

// Those that have come further than the multiple of the interval up to which `step` leads.
void Populations::TakeStepsBeyond(const Study& study, std::int64_t step,
                                  std::set<std::int64_t>& steps) {
  for (const auto& [id, live] : pool_.live) {
    if (live.study != &study) continue;
    const std::int64_t own = ComparedAt(study.spec.population, StepOf(*live.trial));
    if (own > ComparedAt(study.spec.population, step)) steps.insert(own);
  }
}

// Until trials have been recovered their ends are not known.
void Populations::TakeUnsure(std::map<StudyId, std::set<std::int64_t>>& due) {
  if (!looked_) unsure_.insert(pool_.studies.begin(), pool_.studies.end());
  if (unsure_.empty() || !pool_.recovering.empty()) return;
  std::erase_if(unsure_, [&](StudyId id) {
    const auto study = turn_.state().studies.find(id);
    if (study == turn_.state().studies.end() || !study->second.spec.population.on()) return true;
    if (study->second.state != StudyState::kRunning) return true;
    TakeStepsBeyond(study->second, 0, due[id]);
    return true;
  });
}

void Populations::CompareAt(const Study& study, std::int64_t step) {
  CarryOut(study, ExploitsAt(study, step));
}

// Those that were to take over from members that had saved nothing, as all stand by now.
void Populations::CompareAwaiting(const Study& study) {
  std::map<std::int64_t, std::set<TrialId>> losers;
  for (const auto& [id, step] : awaiting_) {
    if (turn_.TrialAt(id).study == study.id) losers[step].insert(id);
  }
  if (study.state != StudyState::kRunning) return;
  for (const auto& [step, of_step] : losers) {
    std::vector<Exploit> exploits = ExploitsAt(study, step);
    std::erase_if(exploits, [&waiting = of_step](const Exploit& exploit) {
      return !waiting.contains(exploit.loser);
    });
    for (const TrialId id : of_step) {
      if (std::ranges::find(exploits, id, &Exploit::loser) == exploits.end()) awaiting_.erase(id);
    }
    CarryOut(study, std::move(exploits));
  }
}

void Populations::CarryOut(const Study& study, std::vector<Exploit> exploits) {
  std::vector<PopulationMember> members;
  const bool any = std::ranges::any_of(exploits, &Exploit::has_saved);
  if (any && study.spec.population.explore == Explore::kPb2) {
    const std::span<const Curve> curves = curves_.Of(turn_.state(), study);
    members.reserve(curves.size() + exploits.size());
    turn_.state().ForEachTrial(study, [&](const Trial& trial) {
      members.push_back(MemberOf(trial, curves[members.size()]));
    });
  }
  for (Exploit& exploit : exploits) {
    exploit.has_saved ? Replace(exploit, members) : Await(exploit);
  }
}

// Who is among the worst is not among the best, so that none of them depends on another.
std::vector<Populations::Exploit> Populations::ExploitsAt(const Study& study, std::int64_t step) {
  const StudySpec& spec = study.spec;
  const Ranks ranks = RanksAt(study, step);
  std::vector<Exploit> exploits;
  for (const Ranking::Place& loser : ranks.losers) {
    const Trial& member = turn_.TrialAt(study.trials[loser.member]);
    if (pool_.HasComeToTheEnd(member)) continue;
    const std::uint64_t of_member =
        MixSeed(spec.seed ^ kSeedOfPopulations, static_cast<std::uint64_t>(member.number));
    Random random(MixSeed(of_member, static_cast<std::uint64_t>(step)));
    const Winners winners = WinnersFor(study, ranks, loser);
    const bool has_saved = !winners.saved.empty();
    const std::vector<TrialId>& of = has_saved ? winners.saved : winners.to_save;
    if (of.empty()) {
      if (winners.never_to_save) TellThatItNeverSaves(turn_.TrialAt(*winners.never_to_save));
      continue;
    }
    const TrialId winner = of[random.Below(of.size())];
    exploits.push_back({.loser = member.id,
                        .winner = winner,
                        .step = step,
                        .has_saved = has_saved,
                        .random = random});
  }
  return exploits;
}

Populations::Ranks Populations::RanksAt(const Study& study, std::int64_t step) {
  const bool all_have_come = !OthersMayCome(study, step);
  const std::span<const Curve> curves = curves_.Of(turn_.state(), study);
  Ranks ranks{
      .ranking = RankAt(study.spec.population, study.spec.direction(), curves, all_have_come, step),
      .losers = {}};
  ranks.losers = Losers(ranks.ranking, curves);
  return ranks;
}

Populations::Winners Populations::WinnersFor(const Study& study, const Ranks& ranks,
                                             const Ranking::Place& loser) {
  Winners winners;
  const std::span<const Curve> curves = curves_.Of(turn_.state(), study);
  for (const std::size_t each : WinnersOver(loser, ranks.ranking, study.spec.direction(), curves)) {
    const Trial& winner = turn_.TrialAt(study.trials[each]);
    if (pool_.HasComeToTheEnd(winner)) continue;  // nothing would be left to train
    if (!NewestAsFile(winner).name.empty() || CanGiveItsFolder(winner)) {
      winners.saved.push_back(winner.id);
    } else if (trials_.IsOfPlainProgram(winner.id) && GoesUnasked(winner)) {
      winners.never_to_save = winner.id;
    } else {
      winners.to_save.push_back(winner.id);
    }
  }
  return winners;
}

// One that saves in files of its own can, when it does not run or saves when it is asked to.
bool Populations::CanGiveItsFolder(const Trial& winner) const {
  return trials_.SavesWhenAsked(winner.id) ||
         (winner.state == TrialState::kPaused && IsFolder(winner));
}

void Populations::TellThatItNeverSaves(const Trial& winner) {
  if (!told_of_plain_.insert(winner.study).second) return;
  const int held = pool_.SlotsHeldBy(winner.id);
  turn_.Decide(winner, DecisionKind::kStudy, held, held,
               absl::StrCat("population: nothing is taken over from it: ", kSavesUnasked));
}

void Populations::Await(const Exploit& exploit) {
  const Trial& member = turn_.TrialAt(exploit.loser);
  if (std::exchange(awaiting_[member.id], exploit.step) == exploit.step) return;
  const int held = pool_.SlotsHeldBy(member.id);
  turn_.Decide(member, DecisionKind::kStudy, held, held,
               absl::StrCat("population: at step ", exploit.step, " it is among the worst, and ",
                            "trial ", turn_.TrialAt(exploit.winner).number,
                            " among the best, from which it takes over once that has saved a ",
                            "checkpoint"));
}

void Populations::Replace(Exploit& exploit, std::vector<PopulationMember>& members) {
  const Trial& member = turn_.TrialAt(exploit.loser);
  const Trial& winner = turn_.TrialAt(exploit.winner);
  const Study& study = turn_.StudyAt(member.study);
  Parameters parameters = Explored(exploit, members);
  const std::int64_t clone = std::ssize(study.trials);
  const double value = member.values.back().value;
  PoolState::Predecessor before{member.id, pool_.PlacementOf(member.id)};
  is_replacing_ = true;
  trials_.EndTrial(
      member.id, TrialState::kPruned,
      absl::StrCat(
          "population: at step ", exploit.step, " it is among the worst, and trial ", winner.number,
          " among the best: trial ", clone, " goes on from there in its place",
          study.spec.batch_mode == BatchMode::kAdaptive ? " (steps at equal progress)" : ""),
      value);
  is_replacing_ = false;
  const TrialId successor = EmitClone(turn_, winner, std::move(parameters));
  pool_.successors.emplace(successor, std::move(before));
  if (members.empty()) return;
  const std::span<const Curve> curves = curves_.Of(turn_.state(), study);
  members[static_cast<std::size_t>(member.number)].curve =
      curves[static_cast<std::size_t>(member.number)];
  members.push_back(MemberOf(turn_.TrialAt(successor), curves.back()));
}

// Where members wait that are behind it, and no slots are free for them.
void Populations::LetOthersCome(const Trial& member, std::int64_t step) {
  if (member.state != TrialState::kRunning || pool_.HasComeToTheEnd(member)) return;
  const bool goes_on_later = trials_.MayPause(member.id) || trials_.SavesWhenAsked(member.id);
  if (!goes_on_later || !OthersWaitBehind(turn_.StudyAt(member.study), step)) return;
  trials_.PauseTrial(member.id, absl::StrCat("population: has come to step ", step,
                                             ", and others that wait have not"));
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
  std::map<std::int64_t, Ranks> by_step;
  const std::int64_t last = pool_.LastStepOf(study);
  for (const Trial* member : members) {
    const std::int64_t step = std::min(common, newest(*member));
    if (step == 0) continue;
    // With an adaptive batch the steps that members have told are not those of equal progress.
    const std::int64_t next = std::max(NextComparison(spec.population, step),
                                       member->values.back().step + spec.population.interval);
    if (last > 0 && next >= last) continue;
    const auto [known, is_new] = by_step.try_emplace(step);
    if (is_new) known->second = RanksAt(study, step);
    const Ranks& ranks = known->second;
    const auto own = std::ranges::find(ranks.losers, static_cast<std::size_t>(member->number),
                                       &Ranking::Place::member);
    if (own == ranks.losers.end()) continue;
    const Winners winners = WinnersFor(study, ranks, *own);
    if (winners.saved.empty() && winners.to_save.empty()) continue;
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
  const StudySpec& spec = study.spec;
  std::int64_t free = client_slots_.SlotsToShare();
  for (const auto& [id, replica] : pool_.replicas) {
    const auto node = pool_.nodes.find(replica.node);
    if (node == pool_.nodes.end() || !node->second.connected) continue;  // not in what there is
    if (!replica.leaving && !replica.stopping) free -= replica.slots();
  }
  for (const auto& [id, group] : pool_.groups) {  // those that are about to start
    if (!group.pausing && pool_.replicas.Of(id).empty()) free -= TotalSlots(group.target);
  }
  if (spec.max_concurrent_trials > 0) {
    const auto running = std::ranges::count_if(pool_.groups, [&](const auto& entry) {
      return turn_.TrialAt(entry.first).study == study.id && !entry.second.pausing;
    });
    free = std::min(free, (spec.max_concurrent_trials - running) * spec.min_slots);
  }
  std::int64_t waiting = 0;
  for (const auto& [compared, members] :
       WaitingMembers(turn_.state(), curves_.Of(turn_.state(), study), pool_, study, plugins_)) {
    if (compared < step) waiting += members;
  }
  return waiting * spec.min_slots > std::max<std::int64_t>(0, free);
}

}  // namespace espalier
