#pragma once

#include <map>
#include <string>
#include <vector>

#include "adapters/optuna/dashboard/study_reader.h"
#include "search_spaces/formats/optuna/distribution.h"
#include "search_spaces/formats/optuna/trial_parameters.h"

namespace espalier::optuna_dashboard {

// A parameter of a trial, as Optuna keeps it.
struct ShownParameter {
  int distribution = 0;  // index in ShownParameters
  double stored = 0;     // of a choice: its index
};

// The parameters of one study's trials, drawn by the tuner or by clients. Equal distributions of
// one name are one. Values that no search space describes share one of all that the study's trials
// have.
class ShownParameters {
 public:
  // The study must outlive it.
  explicit ShownParameters(const ShownStudy& study);

  struct Entry {
    std::string name;
    OptunaDistribution distribution;
  };

  // In the order in which they were drawn.
  std::vector<ShownParameter> Of(const ShownTrial& trial);
  const Entry& entry(int index) const { return entries_[static_cast<std::size_t>(index)]; }
  int size() const { return static_cast<int>(entries_.size()); }

 private:
  int IndexOf(const std::string& name, const std::string& json);

  const StudyHead& study_;
  OptunaParameters of_pool_;
  std::vector<int> of_suggestion_;  // index by suggestion, -1: not yet looked at
  std::map<std::pair<std::string, std::string>, int> known_;  // by name and what it says
  std::vector<Entry> entries_;
};

// Python's class and text of the parameter's value.
struct ShownValue {
  std::string type;  // "<class 'float'>"
  std::string text;
};
ShownValue ValueShown(const OptunaDistribution& distribution, double stored);

}  // namespace espalier::optuna_dashboard
