#pragma once

#include <functional>
#include <string>
#include <vector>

#include "allocator/policies/policy.h"

namespace espalier {

// One step of scaling out: a trial's rate of progress on its slots now, and on more of them.
struct ScalingStep {
  int slots = 0;
  double rate = 0;
  int slots_then = 0;
  double rate_then = 0;
};

// What a step is worth; it is taken where that is positive, and taken back where it is not.
using StepWorth = std::function<double(const ScalingStep&)>;

// The autoscaling of Or et al. (MLSys 2020) for the trials of a pool: each grows by `step` slots as
// long as that is worth it, and gives the last step back once it is not. Waiting trials come first
// and get what others hold above their minimum; of several that could grow, the one to which a step
// is worth most does. Rates are those of the model, else of known step times, else linear in the
// slots, to be measured: a trial grows at most to twice what was.
std::vector<AllocationDecision> ScaleOut(const Pool& pool, int step, const StepWorth& worth,
                                         const std::string& measure);

// The option `step` of the policies that use this.
PluginOption StepOption();

}  // namespace espalier
