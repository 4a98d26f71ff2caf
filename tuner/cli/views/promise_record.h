#pragma once

#include <string>

#include "tuner.pb.h"
#include "tuner/core/promise/reliability.h"

namespace espalier {

// What the promise model foretold at moments of a study that has ended, against what happened
// (tuner/core/promise/replay.h). Count 0: the study has not ended, no trial ran to its end, or its
// study file is not one that this version reads. Pure.
Reliability PromiseReliability(const v1::StudyDetails& details);

// Says it in a line: "promise, replayed: 640 predictions, ...".
std::string PromiseLine(const Reliability& promise);

}  // namespace espalier
