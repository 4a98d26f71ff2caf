#include "tuner/core/trials/draws.h"

#include <utility>

#include "tuner/core/state/study_facts.h"

namespace espalier {

namespace {

// Some milliseconds at most (see Sampler::Work). What takes longer is made aside.
constexpr double kMostWorkHere = 100'000;

std::uint64_t SeedOf(const Study& study, std::int64_t trial_number) {
  return MixSeed(study.spec.seed, static_cast<std::uint64_t>(trial_number) + 1);
}

KeptTrial Kept(const Observation& observation) {
  const auto [values, constraints] = std::pair(observation.other_values, observation.constraints);
  return {*observation.parameters,
          {values.begin(), values.end()},
          {constraints.begin(), constraints.end()}};
}

}  // namespace

std::optional<Drawn> Draws::Suggest(const Study& study,
                                    const std::shared_ptr<const Sampler>& sampler,
                                    const SamplerInput& input) {
  const auto known = studies_.find(study.id);
  if (known != studies_.end()) {
    OfStudy& own = known->second;
    if (own.under_way != 0) return std::nullopt;
    const auto made = std::exchange(own.made, nullptr);
    if (made && own.trial_number == input.trial_number) return *made;
  }
  if (options_.plan_aside && sampler->Work(input) > kMostWorkHere) {
    Request(study, studies_[study.id], sampler, input);
    return std::nullopt;
  }
  Random random(SeedOf(study, input.trial_number));
  std::optional<Parameters> parameters = sampler->Suggest(input, random);
  return Drawn{std::move(parameters), random};
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
  request->seed = SeedOf(study, input.trial_number);
  request->study_seed = input.study_seed;
  request->ended.assign(input.ended.begin(), input.ended.end());
  for (Observation& observation : request->ended) {
    std::shared_ptr<const KeptTrial>& kept = own.kept[observation.trial_number];
    if (!kept) kept = std::make_shared<const KeptTrial>(Kept(observation));
    observation.parameters = &kept->parameters;
    observation.other_values = kept->other_values;
    observation.constraints = kept->constraints;
    request->kept_of_ended.push_back(kept);
  }
  for (const Parameters* parameters : input.running) {
    request->running.push_back(&request->kept_of_running.emplace_back(*parameters));
  }
  turn_.RequestDraw(std::move(request));
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
