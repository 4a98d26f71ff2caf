#pragma once

#include <string>

#include "tuner.pb.h"
#include "tuner/cli/views/report/colors.h"

namespace espalier::report {

// Which trial held which slot when: one lane for each slot, with bars in the trials' colours, and
// resizes and ends marked.
std::string SlotsPicture(const v1::StudyDetails& details, double now, const TrialColors& colors);

}  // namespace espalier::report
