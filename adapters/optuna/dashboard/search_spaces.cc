#include "adapters/optuna/dashboard/search_spaces.h"

#include <algorithm>
#include <map>
#include <set>

#include "adapters/optuna/dashboard/python_text.h"

namespace espalier::optuna_dashboard {

namespace {

bool CanMerge(const OptunaDistribution& a, const OptunaDistribution& b) {
  if (a.type != b.type) return false;
  if (a.type == OptunaDistribution::Type::kCategorical) return true;
  return a.log == b.log && a.step == b.step;
}

void Merge(const OptunaDistribution& from, OptunaDistribution& into) {
  into.low = std::min(into.low, from.low);
  into.high = std::max(into.high, from.high);
  for (const std::string& choice : from.choices) {
    if (std::find(into.choices.begin(), into.choices.end(), choice) == into.choices.end()) {
      into.choices.push_back(choice);
    }
  }
}

}  // namespace

StudyDigest Digest(const std::vector<TrialCopy>& trials, DrawnParameters& parameters) {
  StudyDigest digest;
  std::map<std::string, bool> user_attributes;
  std::map<std::string, std::int64_t> trials_with;
  std::set<int> seen;
  std::int64_t counted = 0;
  for (const TrialCopy& trial : trials) {
    for (const auto& [key, value] : trial.attributes.user) {
      const auto [it, is_new] = user_attributes.emplace(key, IsNumber(value));
      if (!is_new && it->second) it->second = IsNumber(value);
    }
    if (trial.state == TrialState::kFail) continue;
    ++counted;
    digest.has_reports = digest.has_reports || trial.reported;
    for (const DrawnParameter& parameter : parameters.Of(trial)) {
      seen.insert(parameter.distribution);
      ++trials_with[parameters.entry(parameter.distribution).name];
    }
  }
  digest.user_attributes.assign(user_attributes.begin(), user_attributes.end());

  std::map<std::string, std::vector<OptunaDistribution>> merged;
  for (const int index : seen) {
    const DrawnParameters::Entry& entry = parameters.entry(index);
    std::vector<OptunaDistribution>& of_name = merged[entry.name];
    const auto same = std::find_if(of_name.begin(), of_name.end(), [&](const auto& known) {
      return CanMerge(known, entry.distribution);
    });
    if (same == of_name.end()) {
      of_name.push_back(entry.distribution);
    } else {
      Merge(entry.distribution, *same);
    }
  }
  for (const auto& [name, distributions] : merged) {
    for (const OptunaDistribution& distribution : distributions) {
      digest.union_space.push_back({name, distribution});
    }
    if (distributions.size() == 1 && trials_with[name] == counted) {
      digest.intersection_space.push_back({name, distributions.front()});
    }
  }
  return digest;
}

}  // namespace espalier::optuna_dashboard
