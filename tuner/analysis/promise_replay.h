#pragma once

#include <vector>

#include "tuner/core/promise/reliability.h"
#include "tuner/core/state/study.h"

namespace espalier {

// What the promise model foretold at moments of a study that has ended, against what happened
// (tuner/core/promise/replay.h), with curves compared as the core compares them. Of the trials, all
// that is looked at is their ids, times, states and values. Count 0: no trial ran to its end. Pure.
Reliability PromiseReliability(const StudySpec& spec, const std::vector<Trial>& trials);

}  // namespace espalier
