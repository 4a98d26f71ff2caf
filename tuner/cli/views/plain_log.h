#pragma once

#include <string>
#include <vector>

#include "tuner.pb.h"

namespace espalier {

inline constexpr std::size_t kOutputLinesShown = 8;  // of a failed trial

// What happened to a study between two looks at it, one line for each event: trials started, ended,
// pruned and resized, each with its reason; a failed trial with its last lines of output. First its
// notice, if that is another one now. `before` may be empty. Pure.
std::vector<std::string> EventLines(const v1::StudyDetails& before, const v1::StudyDetails& after);

// Only the failures, for the live table, which shows the rest.
std::vector<std::string> FailureLines(const v1::StudyDetails& before,
                                      const v1::StudyDetails& after);

// One line on the state of the study as a whole.
std::string StatusLine(const v1::StudyDetails& details);

}  // namespace espalier
