#pragma once

#include <cstddef>
#include <string>

#include "tuner.pb.h"
#include "tuner/cli/report/sweep.h"

namespace espalier::report {

inline constexpr std::size_t kMaxTrialRows = 500;  // the best ones

// What a study has come to, as HTML without pictures: how it stands, its best trials with their
// parameters, state and value, the sweep, and how much was decided. Pure.
std::string Tables(const v1::StudyDetails& details, const Sweep& sweep, double now);

}  // namespace espalier::report
