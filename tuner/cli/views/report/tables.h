#pragma once

#include <string>

#include "tuner.pb.h"
#include "tuner/cli/views/report/colors.h"

namespace espalier::report {

inline constexpr std::size_t kMaxTrialRows = 500;
inline constexpr int kMaxDecisionRows = 300;

std::string TrialsTable(const v1::StudyDetails& details, double now, const TrialColors& colors);

// The newest decisions, newest last, with their reasons.
std::string DecisionsTable(const v1::StudyDetails& details);

}  // namespace espalier::report
