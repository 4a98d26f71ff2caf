#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tuner/core/state/study.h"

namespace espalier::view {

// The value that a trial is ranked by (BestValue in tuner/core), and the step of its best value. Of
// several metrics the newest values count, and their step, so that those of one trial belong
// together.
struct BestSoFar {
  std::optional<double> value;
  std::optional<double> step;
};
BestSoFar BestOf(const Trial& trial, const StudySpec& spec);

// What the trial has told of the metric of that place, from 0, ascending by step.
const std::vector<IntermediateValue>& CurveOf(const Trial& trial, std::size_t objective);

// Of the metric of that place, from 0: final, or what ranks the trial so far.
std::optional<double> ValueOf(const Trial& trial, const StudySpec& spec, std::size_t objective);

// Names of a study's metrics where there are several, one a direction; none where clients run its
// trials.
std::vector<std::string> MetricsOf(const StudySpec& spec);

}  // namespace espalier::view
