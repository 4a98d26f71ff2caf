#pragma once

#include <string>
#include <vector>

#include "tuner.pb.h"

namespace espalier {

// One trial in full, line by line: parameters, what it does, its curve, slots, resizes and
// decisions. Pure.
std::vector<std::string> TrialText(const v1::StudyDetails& details, const v1::Trial& trial,
                                   double now);

}  // namespace espalier
