#pragma once

#include <map>
#include <memory>

#include "allocator/policies/policy.h"
#include "allocator/pool/speedup.h"
#include "tuner/core/scheduling/plan.h"

namespace espalier {

// Does what takes long about the slots of a pool: searches for an allocation, forecasts the ends of
// curves, fits models of speed. It remembers what policies remember, and nothing of the core: the
// same sequence of requests gives the same plans, on whichever thread. One owner, one thread at a
// time.
class Planner {
 public:
  // Requires a policy that is known, with options that it takes.
  Plan Make(const PlanRequest& request);

  // What each study may claim of the pool, as the request's policy wants them to share. Requires
  // `shared`.
  std::map<StudyId, StudyPart> Divide(const PlanRequest& request);

 private:
  Policy& PolicyFor(const PluginSpec& wanted);

  PluginSpec spec_;
  std::unique_ptr<Policy> policy_;
  SpeedupCache speedups_;  // for what is divided before a policy divides
};

// The promise of each trial of which the curve has not ended.
std::map<TrialId, double> PromiseOf(const StudyCurves& study);

}  // namespace espalier
