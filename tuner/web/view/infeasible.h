#pragma once

#include <optional>

#include "tuner/core/state/study.h"

namespace espalier::view {

// Whether the trial breaks a constraint (Breaks in tuner/core); nullopt: it has none, or has not
// told yet what all of them are on.
std::optional<bool> Infeasible(const StudySpec& spec, const Trial& trial);

}  // namespace espalier::view
