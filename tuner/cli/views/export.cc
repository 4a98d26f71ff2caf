#include "tuner/cli/views/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "tuner/cli/views/csv.h"
#include "tuner/cli/views/record.h"
#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

// Parameters of all trials in the order in which they are first met.
std::vector<std::string> ParameterNames(const v1::StudyDetails& details) {
  std::vector<std::string> names;
  for (const v1::Trial& trial : details.trials()) {
    for (const v1::Parameter& parameter : trial.parameters()) {
      if (std::find(names.begin(), names.end(), parameter.name()) == names.end()) {
        names.push_back(parameter.name());
      }
    }
  }
  return names;
}

double Paid(const v1::Trial& trial) {
  double sum = 0;
  for (const v1::Payment& payment : trial.payments()) sum += payment.cost();
  return sum;
}

int SlotsAt(const v1::Trial& trial, double at) {
  for (const v1::SlotSpan& span : trial.spans()) {
    if (at >= span.from() && (span.to() == 0 || at <= span.to())) return span.slots_size();
  }
  return 0;
}

std::string SinceCreation(const v1::StudyDetails& details, double at) {
  return at > 0 ? fmt::format("{:.6f}", at - details.study().created_at()) : "";
}

// Those of our own columns that a step fills. Figures that programs told beside the metric follow.
constexpr int kColumnsOfAStep = 5;

// A parameter that is named like one of our own columns is told apart by a prefix; figures always
// have theirs.
std::vector<std::string> Heading(const std::vector<std::string>& parameters,
                                 const std::set<std::string>& figures, int further_values,
                                 bool constrained, bool paid) {
  std::vector<std::string> heading = {"trial", "state"};
  std::vector<std::string> own = {"step",         "value",       "at_s",      "global_batch_size",
                                  "slots",        "final_value", "started_s", "ended_s",
                                  "slot_seconds", "restarts",    "reason"};
  if (constrained) own.emplace_back("infeasible");
  if (paid) own.emplace_back("paid");
  auto after_final = std::next(std::find(own.begin(), own.end(), "final_value"));
  for (int i = 0; i < further_values; ++i) {
    after_final = std::next(own.insert(after_final, fmt::format("final_value_{}", i + 2)));
  }
  for (const std::string& name : parameters) {
    const bool taken =
        name == "trial" || name == "state" || std::find(own.begin(), own.end(), name) != own.end();
    heading.push_back(taken ? "parameter." + name : name);
  }
  auto after_step = own.begin() + kColumnsOfAStep;
  for (const std::string& name : figures) {
    after_step = std::next(own.insert(after_step, "extra." + name));
  }
  heading.insert(heading.end(), own.begin(), own.end());
  return heading;
}

}  // namespace

std::string ExportCsv(const v1::StudyDetails& details) {
  const std::vector<std::string> names = ParameterNames(details);
  std::set<std::string> figures;
  int further_values = 0;  // of the second direction and those after it
  for (const v1::Trial& trial : details.trials()) {
    figures.merge(FigureNames(trial));
    further_values = std::max(further_values, trial.other_values_size());
  }
  const double now = LastMoment(details);
  const bool constrained = details.study().constraints_size() > 0;
  const bool paid = details.study().payments_size() > 0;
  std::string csv = CsvRow(Heading(names, figures, further_values, constrained, paid));
  for (const v1::Trial& trial : details.trials()) {
    std::vector<std::string> first = {std::to_string(trial.number()), StateName(trial.state())};
    for (const std::string& name : names) {
      const v1::Parameter* parameter = FindParameter(trial, name);
      first.push_back(parameter == nullptr ? "" : ExactParameter(*parameter));
    }
    const bool is_final = HasEnded(trial.state()) && trial.has_value();
    std::vector<std::string> last = {is_final ? FormatExactly(trial.value()) : "",
                                     SinceCreation(details, trial.started_at()),
                                     SinceCreation(details, trial.ended_at()),
                                     fmt::format("{:.3f}", SlotSeconds(trial, now)),
                                     std::to_string(trial.restarts()),
                                     trial.reason()};
    for (int i = further_values; i-- > 0;) {
      const bool known = is_final && i < trial.other_values_size();
      last.insert(std::next(last.begin()), known ? FormatExactly(trial.other_values(i)) : "");
    }
    if (constrained) last.emplace_back(trial.infeasible() ? "true" : "false");
    if (paid) last.push_back(FormatExactly(Paid(trial)));
    const auto append = [&](const std::vector<std::string>& middle) {
      std::vector<std::string> row = first;
      row.insert(row.end(), middle.begin(), middle.end());
      row.insert(row.end(), last.begin(), last.end());
      csv += CsvRow(row);
    };
    if (trial.values().empty()) {
      append(std::vector<std::string>(kColumnsOfAStep + figures.size()));
    }
    for (const v1::IntermediateValue& value : trial.values()) {
      std::vector<std::string> step = {
          std::to_string(value.step()), FormatExactly(value.value()),
          SinceCreation(details, value.at()),
          value.batch_size() > 0 ? std::to_string(value.batch_size()) : "",
          std::to_string(SlotsAt(trial, value.at()))};
      for (const std::string& name : figures) {
        const auto figure = value.extra().find(name);
        step.push_back(figure == value.extra().end() ? "" : FormatExactly(figure->second));
      }
      append(step);
    }
  }
  return csv;
}

}  // namespace espalier
