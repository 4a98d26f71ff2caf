#pragma once

#include <optional>

#include "tuner/core/state/study.h"

namespace espalier {

// What the trial has told last of what a constraint of its study is on; nullopt: nothing yet.
std::optional<double> NewestFigure(const StudySpec& spec, const Constraint& constraint,
                                   const Trial& trial);

}  // namespace espalier
