#include "tuner/core/trials/suggested_parameters.h"

#include <utility>

namespace espalier {

Parameters SuggestedParameters::Read(const Trial& trial, const Study& study) {
  while (distributions_.size() < study.suggestions.size()) {
    // One that cannot be read keeps its numbers: no sampler finds them in its space.
    auto parsed = ParseOptunaDistribution(study.suggestions[distributions_.size()].distribution);
    distributions_.push_back(parsed.ok() ? *std::move(parsed) : OptunaDistribution{});
  }
  Parameters parameters;
  parameters.reserve(trial.suggested.size());
  for (const SuggestedValue& suggested : trial.suggested) {
    const auto index = static_cast<std::size_t>(suggested.suggestion);
    parameters.push_back(
        {study.suggestions[index].name, OptunaValue(distributions_[index], suggested.value)});
  }
  return parameters;
}

const Parameters* SuggestedParameters::Of(const Trial& trial, const Study& study) {
  Known& known = of_trials_[trial.id];
  if (!known.ended) {
    known.parameters = Read(trial, study);
    known.ended = Ended(trial.state);
  }
  return &known.parameters;
}

}  // namespace espalier
