#include "search_spaces/formats/optuna/trial_parameters.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "search_spaces/formats/optuna/distribution.h"

namespace espalier {

void ObservedValues::Add(const ParameterValue& value) {
  const std::optional<double> number = NumberOf(value);
  if (number) {
    low_ = std::min(low_, *number);
    high_ = std::max(high_, *number);
  }
  numbers_ = numbers_ && number.has_value();
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    least_ = std::min(least_, *integer);
    most_ = std::max(most_, *integer);
  } else {
    integers_ = false;
  }
  if (choices_.size() > kMaxObservedChoices) return;
  const bool known = std::any_of(choices_.begin(), choices_.end(),
                                 [&](const ParameterValue& c) { return SameValue(c, value); });
  if (!known) choices_.push_back(value);
}

Distribution ObservedValues::DistributionOf(const ParameterValue& value) const {
  // The end of a RandInt is exclusive.
  const bool has_end = most_ < std::numeric_limits<std::int64_t>::max();
  if (integers_ && has_end) return RandInt{least_, most_ + 1};
  if (numbers_) return Uniform{low_, high_};
  if (choices_.size() <= kMaxObservedChoices) return Choice{choices_};
  return Choice{{value}};
}

void OptunaParameters::Observe(const Parameters& parameters) {
  for (const Parameter& parameter : parameters) {
    if (!space_.Find(parameter.name)) observed_[parameter.name].Add(parameter.value);
  }
}

std::vector<OptunaParameter> OptunaParameters::Of(const Parameters& parameters) const {
  std::vector<OptunaParameter> all;
  const auto add = [&](const Parameter& parameter, const Distribution& distribution) {
    all.push_back({parameter.name, ToOptunaJson(distribution, parameter.value),
                   ToOptunaStored(distribution, parameter.value)});
  };
  for (const Parameter& parameter : parameters) {
    if (const std::optional<std::size_t> i = space_.Find(parameter.name)) {
      add(parameter, space_.dimensions()[*i].distribution);
    } else if (const auto it = observed_.find(parameter.name); it != observed_.end()) {
      add(parameter, it->second.DistributionOf(parameter.value));
    } else {
      ObservedValues alone;
      alone.Add(parameter.value);
      add(parameter, alone.DistributionOf(parameter.value));
    }
  }
  return all;
}

}  // namespace espalier
