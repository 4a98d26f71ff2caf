#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "search_spaces/formats/optuna/distribution.h"
#include "search_spaces/formats/optuna/trial_parameters.h"
#include "tuner/analysis/study_copy.h"

namespace espalier {

// A parameter of a trial, as Optuna keeps it.
struct DrawnParameter {
  int distribution = 0;  // index in DrawnParameters
  double stored = 0;     // of a choice: its index
};

// The parameters of one study's trials, drawn by the tuner or by clients. Equal distributions of
// one name are one. Values that no search space describes share one of all that the study's trials
// have.
class DrawnParameters {
 public:
  // The study must outlive it.
  explicit DrawnParameters(const StudyCopy& study);

  struct Entry {
    std::string name;
    OptunaDistribution distribution;
  };

  // In the order in which they were drawn.
  std::vector<DrawnParameter> Of(const TrialCopy& trial);
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

}  // namespace espalier
