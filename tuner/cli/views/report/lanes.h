#pragma once

#include <string>

#include "tuner.pb.h"

namespace espalier::report {

// Who held which slot when: one lane a slot, bars in the trials' colours, resizes and ends marked.
std::string SlotsPicture(const v1::StudyDetails& details, double now);

}  // namespace espalier::report
