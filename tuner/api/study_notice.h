#pragma once

#include <string>
#include <vector>

#include "tuner/api/tuner.h"

namespace espalier {

// What keeps the study from running as its file asks, each with what to do about it; empty:
// nothing.
std::vector<std::string> StudyNotices(const Study& study, const View& view);
// In one line.
std::string StudyNotice(const Study& study, const View& view);

}  // namespace espalier
