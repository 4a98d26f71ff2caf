#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tuner/core/state/study.h"
#include "tuner/web/view/views.h"

namespace espalier::view {

// The values that a trial has told, and when it held how many slots, copied.
struct CopiedCurve {
  TrialId id;
  std::int64_t number = 0;
  TrialState state = TrialState::kWaiting;
  std::optional<bool> infeasible;         // none: it has told nothing of what it has to keep
  std::vector<IntermediateValue> values;  // ascending by step
  struct Held {
    Time from;
    Time to;  // zero: still
    double slots = 0;
  };
  std::vector<Held> held;  // in the order of time
};

// A trial without its values, which are up to the caller.
CopiedCurve HeadOfCurve(const Trial& trial, const StudySpec& spec);

// Where each value is on the axis. kUnknown: nowhere, as where no progress was told, or where the
// axis is a logarithm and the number has none.
std::vector<double> PlacesOn(CurvesWanted::Axis axis, bool log, const CopiedCurve& curve);

}  // namespace espalier::view
