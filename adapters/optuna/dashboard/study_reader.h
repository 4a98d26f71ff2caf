#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tuner/api/tuner.h"

namespace espalier::optuna_dashboard {

inline constexpr std::size_t kTrialsInSlice = 2000;  // read between two commits, at most

// Copies of what the dashboard shows, so that making pages of them blocks no other work.

struct ShownTrial {
  TrialId id;
  StudyId study;
  std::int64_t number = 0;
  TrialState state = TrialState::kWaiting;
  Time started, ended;                    // zero: not yet
  std::vector<double> values;             // final, one a direction; empty: none
  Parameters parameters;                  // drawn by the tuner
  std::vector<SuggestedValue> suggested;  // drawn by clients
  Attributes attributes;
  bool reported = false;                                 // has intermediate values
  std::vector<std::pair<std::int64_t, double>> reports;  // by step
};

// The study without its trials and record.
using StudyHead = Study;

struct ShownStudy {
  StudyHead head;
  std::vector<ShownTrial> trials;  // by number; those below `full_from` without reports and the
                                   // attributes of programs
};

// For a list: without what only trials need.
absl::StatusOr<std::vector<StudyHead>> ReadStudies(Tuner& tuner);
absl::StatusOr<StudyHead> ReadHead(Tuner& tuner, StudyId id);
absl::StatusOr<ShownStudy> ReadStudy(Tuner& tuner, StudyId id, std::int64_t full_from);
absl::StatusOr<ShownTrial> ReadTrial(Tuner& tuner, TrialId id);

}  // namespace espalier::optuna_dashboard
