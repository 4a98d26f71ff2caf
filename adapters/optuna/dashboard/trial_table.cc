#include "adapters/optuna/dashboard/trial_table.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "adapters/optuna/dashboard/attributes.h"
#include "adapters/optuna/dashboard/python_text.h"

namespace espalier::optuna_dashboard {

namespace {

using Row = std::vector<std::string>;

void AddRow(const Row& row, std::string& csv) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0) csv += ',';
    if (row[i].find_first_of(",\"\r\n") == std::string::npos) {
      csv += row[i];
      continue;
    }
    csv += '"';
    for (const char c : row[i]) csv.append(c == '"' ? 2 : 1, c);
    csv += '"';
  }
  csv += "\r\n";
}

// None is an empty field.
std::string Field(const std::string& type, std::string text) {
  return type.find("NoneType") == std::string::npos ? std::move(text) : "";
}

Row ValueNames(const StudyHead& study) {
  Row names = ObjectiveNames(study.attributes.system);
  if (!names.empty()) return names;
  const std::size_t count = study.spec.directions.size();
  if (count == 1) return {"Value"};
  for (std::size_t i = 0; i < count; ++i) names.push_back(absl::StrCat("Objective ", i));
  return names;
}

std::string StateText(TrialState state) {
  return std::string(ToString(state == TrialState::kPaused ? TrialState::kRunning : state));
}

}  // namespace

absl::StatusOr<std::string> TrialTable(const StudyCopy& study,
                                       const std::vector<std::int64_t>& numbers,
                                       DrawnParameters& parameters) {
  std::vector<const TrialCopy*> trials;
  std::set<std::string> names;
  std::set<std::string> attributes;
  const std::set<std::int64_t> wanted(numbers.begin(), numbers.end());
  for (const TrialCopy& trial : study.trials) {
    if (!wanted.empty() && !wanted.contains(trial.number)) continue;
    trials.push_back(&trial);
    for (const DrawnParameter& parameter : parameters.Of(trial)) {
      names.insert(parameters.entry(parameter.distribution).name);
    }
    for (const auto& [key, value] : trial.attributes.user) attributes.insert(key);
  }
  if (!wanted.empty() && trials.empty()) {
    return absl::NotFoundError("all specified trial_ids is not found");
  }

  std::string csv;
  const Row value_names = ValueNames(study.head);
  Row header = {"Number", "State"};
  header.insert(header.end(), value_names.begin(), value_names.end());
  for (const std::string& name : names) header.push_back("Param " + name);
  for (const std::string& key : attributes) header.push_back("UserAttribute " + key);
  AddRow(header, csv);
  for (const TrialCopy* trial : trials) {
    Row row = {absl::StrCat(trial->number), StateText(trial->state)};
    for (const double value : trial->values) row.push_back(PythonFloat(value));
    if (trial->values.empty()) row.resize(2 + study.head.spec.directions.size());
    std::map<std::string, std::string> by_name;
    for (const DrawnParameter& parameter : parameters.Of(*trial)) {
      const DrawnParameters::Entry& entry = parameters.entry(parameter.distribution);
      ShownValue value = ValueShown(entry.distribution, parameter.stored);
      by_name[entry.name] = Field(value.type, std::move(value.text));
    }
    for (const std::string& name : names) row.push_back(by_name[name]);
    for (const std::string& key : attributes) {
      const std::string* json = FindText(trial->attributes.user, key);
      PythonValue value = json == nullptr ? PythonValue{} : ReadPython(*json);
      row.push_back(Field(value.type, std::move(value.text)));
    }
    AddRow(row, csv);
  }
  return csv;
}

std::string TrialTableName(const std::string& study_name) {
  std::string name;
  for (const char c : study_name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f ||
        std::string_view("\\/:*?\"<>|;,").find(c) != std::string_view::npos) {
      continue;
    }
    name += c == ' ' ? '-' : c;
  }
  return (name.empty() ? "study" : name) + ".csv";
}

}  // namespace espalier::optuna_dashboard
