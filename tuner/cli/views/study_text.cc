#include "tuner/cli/views/study_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json/parse_json.h"
#include "search_spaces/parameter.h"
#include "tuner/analysis/best_trials.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

std::string WithoutPrefix(const std::string& name, std::string_view prefix) {
  return name.rfind(prefix, 0) == 0 ? name.substr(prefix.size()) : name;
}

}  // namespace

std::string StateName(v1::TrialState state) {
  return WithoutPrefix(v1::TrialState_Name(state), "TRIAL_");
}

std::string StateName(v1::StudyState state) {
  return WithoutPrefix(v1::StudyState_Name(state), "STUDY_");
}

bool HasEnded(v1::TrialState state) {
  return state == v1::TRIAL_COMPLETE || state == v1::TRIAL_PRUNED || state == v1::TRIAL_FAIL;
}

bool HasEnded(v1::StudyState state) {
  return state == v1::STUDY_COMPLETE || state == v1::STUDY_FAILED;
}

std::string DisplayParameter(const v1::Parameter& parameter) {
  const absl::StatusOr<ParameterValue> value = ParameterValueFromJson(parameter.json());
  return value.ok() ? ToDisplay(*value) : parameter.json();
}

std::string ExactParameter(const v1::Parameter& parameter) {
  const nlohmann::json json = ParseJson(parameter.json(), kMaxRecordDepth);
  return json.is_string() ? json.get<std::string>() : parameter.json();
}

std::string DisplayParameters(const v1::Trial& trial) {
  std::string out;
  for (const v1::Parameter& parameter : trial.parameters()) {
    if (!out.empty()) out += ' ';
    out += parameter.name() + "=" + DisplayParameter(parameter);
  }
  return out;
}

const v1::Parameter* FindParameter(const v1::Trial& trial, std::string_view name) {
  for (const v1::Parameter& parameter : trial.parameters()) {
    if (parameter.name() == name) return &parameter;
  }
  return nullptr;
}

const v1::Trial* FindTrial(const v1::StudyDetails& details, std::int64_t number) {
  for (const v1::Trial& trial : details.trials()) {
    if (trial.number() == number) return &trial;
  }
  return nullptr;
}

absl::StatusOr<v1::Trial> NamedTrial(const v1::StudyDetails& details, std::int64_t number) {
  if (const v1::Trial* trial = FindTrial(details, number)) return *trial;
  return absl::NotFoundError(fmt::format("study \"{}\" has no trial {}; it has {}",
                                         details.study().name(), number,
                                         Count(details.trials_size(), "trial")));
}

std::string MetricName(const v1::Study& study) {
  return study.metric().empty() ? "value" : study.metric();
}

std::string MetricNames(const v1::Study& study) {
  if (study.metrics().empty()) return MetricName(study);
  return fmt::format("{}", fmt::join(study.metrics(), ", "));
}

std::string ValuesText(const v1::Trial& trial) {
  std::string text = trial.has_value() ? FormatValue(trial.value()) : "";
  for (const double value : trial.other_values()) text += ", " + FormatValue(value);
  return text;
}

std::vector<const v1::Trial*> ParetoFront(const v1::StudyDetails& details) {
  std::vector<Direction> directions;
  for (const std::string& word : details.study().directions()) {
    directions.push_back(DirectionOf(word).value_or(Direction::kMinimize));
  }
  std::vector<TrialCopy> copies;
  for (const v1::Trial& trial : details.trials()) {
    if (trial.state() != v1::TRIAL_COMPLETE || !trial.has_value() || trial.infeasible()) continue;
    TrialCopy& copy = copies.emplace_back();
    copy.number = trial.number();
    copy.state = TrialState::kComplete;
    copy.values = {trial.value()};
    copy.values.insert(copy.values.end(), trial.other_values().begin(), trial.other_values().end());
  }
  std::vector<const v1::Trial*> front;
  for (const std::int64_t number : BestTrials(copies, directions)) {
    front.push_back(FindTrial(details, number));
  }
  return front;
}

std::string_view WhyNoneIsBest(const v1::StudyDetails& details, std::string_view otherwise) {
  const bool breaks = std::ranges::any_of(details.trials(), [](const v1::Trial& trial) {
    return trial.state() == v1::TRIAL_COMPLETE && trial.infeasible();
  });
  return breaks ? "no trial keeps to its constraints" : otherwise;
}

std::string ConstraintsText(const v1::StudyDetails& details) {
  const auto& constraints = details.study().constraints();
  if (constraints.empty()) return "";
  const auto broken = std::ranges::count_if(details.trials(), &v1::Trial::infeasible);
  const std::string_view verb = broken == 1 ? "breaks" : "break";
  return fmt::format("{}: {} {} {}", fmt::join(constraints, ", "), Count(broken, "trial"), verb,
                     constraints.size() == 1 ? "it" : "one");
}

std::string_view BestIs(const v1::Study& study) { return study.maximize() ? "highest" : "lowest"; }

bool BetterFor(const v1::Study& study, double a, double b) {
  return Better(study.maximize() ? Direction::kMaximize : Direction::kMinimize, a, b);
}

std::vector<const v1::Trial*> BestFirst(const v1::StudyDetails& details) {
  std::vector<const v1::Trial*> trials;
  for (const v1::Trial& trial : details.trials()) trials.push_back(&trial);
  const v1::Study& study = details.study();
  // As the service finds the best trial.
  const auto place = [&](const v1::Trial& trial) {
    if (study.has_best_trial() && trial.number() == study.best_trial()) return 0;
    if (!trial.has_value()) return 5;
    if (!std::isfinite(trial.value())) return 4;
    if (trial.infeasible()) return 3;
    return trial.state() == v1::TRIAL_COMPLETE ? 1 : 2;
  };
  std::stable_sort(trials.begin(), trials.end(), [&](const v1::Trial* a, const v1::Trial* b) {
    if (place(*a) != place(*b)) return place(*a) < place(*b);
    if (a->has_value()) {
      if (BetterFor(study, a->value(), b->value())) return true;
      if (BetterFor(study, b->value(), a->value())) return false;
    }
    return a->number() < b->number();
  });
  return trials;
}

}  // namespace espalier
