#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tuner/core/state/change.h"

namespace espalier {

// Copies of what is shown and analysed of a study, so that the work on them blocks no other.

struct TrialCopy {
  TrialId id;
  StudyId study;
  std::int64_t number = 0;
  TrialState state = TrialState::kWaiting;
  Time started, ended;                    // zero: not yet
  std::vector<double> values;             // final, one a direction; empty: none
  Parameters parameters;                  // drawn by the tuner
  std::vector<SuggestedValue> suggested;  // drawn by clients
  std::vector<double> constraints;  // what it has to keep, as far as it has told
  Attributes attributes;
  bool reported = false;                                 // has intermediate values
  std::vector<std::pair<std::int64_t, double>> reports;  // by step
};

// In full: with its reports and the attributes of programs.
TrialCopy CopyOf(const Trial& trial, bool full);

// The study without its trials and record.
using StudyHead = Study;

struct StudyCopy {
  StudyHead head;
  std::vector<TrialCopy> trials;  // by number; those below `full_from` not in full
};

// Copies a study a slice of its trials at a time, each in a look at a state that may have gone on
// since the last one.
class StudyCopier {
 public:
  explicit StudyCopier(std::int64_t full_from) : full_from_(full_from) {}

  // At most so many trials more. True: the study, with the trials that it has by now, is copied;
  // but for its attributes.
  bool GoOn(const TunerState& state, const Study& study, std::size_t most_trials);
  StudyCopy Take() { return std::move(copy_); }

 private:
  const std::int64_t full_from_;
  StudyCopy copy_;
};

}  // namespace espalier
