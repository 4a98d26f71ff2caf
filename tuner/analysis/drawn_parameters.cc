#include "tuner/analysis/drawn_parameters.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace espalier {

namespace {

// What makes two distributions equal to Optuna, whatever the order of keys and their age.
std::string Content(const OptunaDistribution& distribution) {
  return absl::StrCat(static_cast<int>(distribution.type), " ", distribution.log ? "log " : "",
                      absl::StrFormat("%a %a %a ", distribution.low, distribution.high,
                                      distribution.step.value_or(0)),
                      absl::StrJoin(distribution.choices, ","));
}

std::string_view ClassName(OptunaDistribution::Type type) {
  switch (type) {
    case OptunaDistribution::Type::kFloat:
      return "FloatDistribution";
    case OptunaDistribution::Type::kInt:
      return "IntDistribution";
    case OptunaDistribution::Type::kCategorical:
      return "CategoricalDistribution";
  }
  return "?";
}

}  // namespace

DrawnParameters::DrawnParameters(const StudyCopy& study)
    : study_(study.head),
      of_pool_(study.head.spec.space),
      of_suggestion_(study.head.suggestions.size(), -1) {
  for (const TrialCopy& trial : study.trials) of_pool_.Observe(trial.parameters);
}

std::vector<DrawnParameter> DrawnParameters::Of(const TrialCopy& trial) {
  std::vector<DrawnParameter> parameters;
  for (const OptunaParameter& parameter : of_pool_.Of(trial.parameters)) {
    const int index = IndexOf(parameter.name, parameter.distribution);
    if (index >= 0) parameters.push_back({index, parameter.stored});
  }
  for (const SuggestedValue& suggested : trial.suggested) {
    const auto at = static_cast<std::size_t>(suggested.suggestion);
    // One that came while the trials were read, and belongs to none that was.
    if (at >= of_suggestion_.size()) continue;
    if (of_suggestion_[at] < 0) {
      const Suggestion& suggestion = study_.suggestions[at];
      of_suggestion_[at] = IndexOf(suggestion.name, suggestion.distribution);
    }
    if (of_suggestion_[at] >= 0) parameters.push_back({of_suggestion_[at], suggested.value});
  }
  return parameters;
}

int DrawnParameters::IndexOf(const std::string& name, const std::string& json) {
  absl::StatusOr<OptunaDistribution> distribution = ParseOptunaDistribution(json);
  if (!distribution.ok()) return -1;
  const auto [it, is_new] = known_.emplace(std::pair(name, Content(*distribution)), size());
  if (is_new) {
    distribution->name = ClassName(distribution->type);
    entries_.push_back({name, *std::move(distribution)});
  }
  return it->second;
}

}  // namespace espalier
