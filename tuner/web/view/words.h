#pragma once

#include <string_view>

#include "tuner/core/state/study.h"

namespace espalier::view {

// How pages name states and kinds: in lower case.
std::string_view WordOf(TrialState state);
std::string_view WordOf(StudyState state);
std::string_view WordOf(StudyKind kind);

// In the order in which they are shown.
inline constexpr TrialState kTrialStates[] = {TrialState::kWaiting, TrialState::kRunning,
                                              TrialState::kPaused,  TrialState::kComplete,
                                              TrialState::kPruned,  TrialState::kFail};

}  // namespace espalier::view
