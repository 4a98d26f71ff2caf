#include "tuner/core/trials/draws.h"

#include <utility>

#include "tuner/core/state/private_attributes.h"
#include "tuner/core/state/study_facts.h"
#include "tuner/core/trials/searched_space.h"

namespace espalier {

namespace {

// What is fixed for all trials, as far as this one's own parameters leave a place for it.
Parameters GivenTo(const StudySpec& spec, const Parameters& own) {
  if (spec.fixed.empty()) return own;
  Parameters given;
  for (std::size_t i = 0; i < spec.space.dimensions().size(); ++i) {
    if (!spec.space.IsActive(i, given)) continue;
    const std::string& name = spec.space.dimensions()[i].name;
    const ParameterValue* value = Find(own, name);
    if (value == nullptr) value = Find(spec.fixed, name);
    if (value != nullptr) given.push_back({name, *value});
  }
  return given;
}

}  // namespace

std::uint64_t DrawSeed(const StudySpec& spec, std::int64_t trial_number) {
  return MixSeed(spec.seed, static_cast<std::uint64_t>(trial_number) + 1);
}

Parameters Complete(const SearchSpace& space, const Parameters& given, Drawn drawn,
                    TrialDraw& names) {
  Parameters parameters;
  for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
    if (!space.IsActive(i, parameters)) continue;
    const auto& [name, distribution, _] = space.dimensions()[i];
    const ParameterValue* value = Find(given, name);
    if (value != nullptr) {
      names.given.push_back(static_cast<int>(i));
    } else if (drawn.parameters) {
      value = Find(*drawn.parameters, name);
    }
    // A given choice may bring in parameters that the sampler, choosing otherwise, did not draw.
    parameters.push_back({name, value ? *value : Draw(distribution, drawn.random)});
  }
  return parameters;
}

std::optional<DrawnTrial> Draws::Draw(const Study& study,
                                      const std::shared_ptr<const Sampler>& sampler,
                                      const TrialToDraw& trial,
                                      const SamplerHistory::KnownTrials& trials) {
  const StudySpec& spec = study.spec;
  TrialDraw names;
  const Parameters given = GivenTo(spec, trial.given);
  // The pool runs one trial where there is no parameter; clients may ask for any number of them.
  const bool asks_sampler = given.empty() && !spec.by_clients();
  if (!asks_sampler && spec.space.Validate(given).ok()) {
    Parameters all = Complete(spec.space, given, {.parameters = {}, .random = Random(0)}, names);
    return DrawnTrial{std::move(all), std::nullopt};
  }
  OfStudy& own = studies_[study.id];
  if (own.under_way != 0) return std::nullopt;
  std::shared_ptr<const Drawn> made = std::exchange(own.made, nullptr);
  if (made && own.trial_number == trial.number) {
    names = own.names;
  } else {
    if (!own.searched) own.searched = SearchedSpace(spec);
    if (sampler->learns() || sampler->avoids_tried(*own.searched)) {
      own.history.Update(turn_.state(), study, trials);
    }
    const SamplerInput input{.space = *own.searched,
                             .direction = spec.direction(),
                             .ended = own.history.ended(),
                             .running = own.history.running(),
                             .trial_number = trial.number,
                             .other_directions = spec.other_directions(),
                             .study_seed = spec.seed,
                             .before = spec.like.trials,
                             .tells_of_constraints = own.history.tells_of_constraints()};
    names = own.history.names();
    names.by = sampler->Chooses(input);
    const bool outside = sampler->outside() != nullptr;
    if (outside) UpdateStored(study, own);
    if (outside || (options_.plan_aside && sampler->Work(input) > kMostWorkHere)) {
      own.names = names;
      Request(study, own, sampler, input);
      return std::nullopt;
    }
    Random random(DrawSeed(spec, trial.number));
    std::optional<Parameters> parameters = sampler->Suggest(input, random);
    made =
        std::make_shared<const Drawn>(Drawn{.parameters = std::move(parameters), .random = random});
  }
  if (!made->parameters) return DrawnTrial{};
  Parameters all = Complete(spec.space, given, *made, names);
  return DrawnTrial{std::move(all), std::move(names), std::move(made)};
}

void Draws::Request(const Study& study, OfStudy& own, const std::shared_ptr<const Sampler>& sampler,
                    const SamplerInput& input) {
  auto request = std::make_shared<DrawRequest>();
  request->number = own.under_way = ++asked_;
  request->trial_number = own.trial_number = input.trial_number;
  request->study = study.id;
  request->study_name = study.spec.name;
  request->sampler = sampler;
  request->space = input.space;
  request->direction = input.direction;
  request->other_directions.assign(input.other_directions.begin(), input.other_directions.end());
  request->seed = DrawSeed(study.spec, input.trial_number);
  request->study_seed = input.study_seed;
  request->before.assign(input.before.begin(), input.before.end());
  request->tells_of_constraints = input.tells_of_constraints;
  request->ended.assign(input.ended.begin(), input.ended.end());
  request->kept_of_ended = own.history.kept();
  for (const Parameters* parameters : input.running) {
    request->running.push_back(&request->kept_of_running.emplace_back(*parameters));
  }
  if (sampler->outside() != nullptr) {
    for (const auto& [first, last] : own.names.running) {
      for (std::int64_t n = first; n <= last; ++n) request->running_numbers.push_back(n);
    }
    for (const auto& [number, step] : own.names.held_back) request->held_numbers.push_back(number);
    request->stored = own.stored;
  }
  turn_.RequestDraw(std::move(request));
}

void Draws::UpdateStored(const Study& study, OfStudy& own) const {
  const auto of_study = study.attributes.system.find(kSamplerState);
  if (of_study != study.attributes.system.end()) own.stored.study = of_study->second;
  for (; own.seen < std::ssize(study.trials); ++own.seen) own.open.push_back(own.seen);
  std::erase_if(own.open, [&](std::int64_t number) {
    const Trial& trial = turn_.state().trials.at(study.trials[static_cast<std::size_t>(number)]);
    const auto stored = trial.attributes.system.find(kSamplerState);
    if (stored == trial.attributes.system.end()) return Ended(trial.state);
    own.stored.trials[number] = std::make_shared<const std::string>(stored->second);
    return true;
  });
}

void Draws::EmitOf(TrialId trial, const DrawnTrial& drawn) {
  if (!drawn.draw) return;
  turn_.Emit(TrialDrawn{trial, *drawn.draw});
  if (!drawn.made->stored_of_trial.empty()) {
    turn_.Emit(TrialAttributeSet{trial, true, kSamplerState, drawn.made->stored_of_trial});
  }
  if (!drawn.made->stored_of_study.empty()) {
    const StudyId study = turn_.TrialAt(trial).study;
    turn_.Emit(StudyAttributeSet{study, true, kSamplerState, drawn.made->stored_of_study});
  }
}

bool Draws::Take(const DrawMade& event) {
  const auto known = studies_.find(event.study);
  if (known == studies_.end() || known->second.under_way != event.number) return false;
  known->second.under_way = 0;
  known->second.made = event.drawn;
  return true;
}

void Draws::Observe(const Change& change) {
  if (const auto study = StudyEndedBy(change)) studies_.erase(*study);
}

}  // namespace espalier
