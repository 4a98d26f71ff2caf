#pragma once

#include <string>

#include "tuner.pb.h"

namespace espalier::report {

// Which trial held which slot when: one lane for each slot, with bars in the trials' colours, and
// resizes and ends marked.
std::string SlotsPicture(const v1::StudyDetails& details, double now);

}  // namespace espalier::report
