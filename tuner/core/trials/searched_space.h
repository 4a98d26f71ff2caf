#pragma once

#include "tuner/core/state/study.h"

namespace espalier {

// The space that a study's sampler searches: that of the study, in which a fixed parameter has one
// value, and is a choice of that. Parameters that come with other options of a fixed choice are not
// in it.
SearchSpace SearchedSpace(const StudySpec& spec);

}  // namespace espalier
