#pragma once

#include "tuner.pb.h"

namespace espalier {

inline constexpr double kSampleStart = 1'700'000'000;

// A study that has seen everything: trials complete, pruned, failed, running and waiting, one that
// grew and shrank, a NaN, names and reasons with quotes and markup. Times count from kSampleStart.
v1::StudyDetails SampleStudy();

}  // namespace espalier
