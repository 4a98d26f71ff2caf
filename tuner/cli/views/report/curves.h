#pragma once

#include <string>

#include "tuner.pb.h"
#include "tuner/cli/views/report/colors.h"

namespace espalier::report {

inline constexpr std::size_t kMaxCurves = 200;  // drawn; the best ones
inline constexpr int kMaxPointsOfCurve = 400;   // longer curves are thinned

// The metric of each trial over its steps: best trial highlighted, pruned ones dashed.
std::string CurvesPicture(const v1::StudyDetails& details, const TrialColors& colors);

}  // namespace espalier::report
