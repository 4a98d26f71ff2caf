#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "allocator/goodput/fit.h"
#include "allocator/goodput/profile.h"
#include "allocator/pool/job_check.h"
#include "allocator/pool/pool.h"
#include "allocator/pool/study_shares.h"
#include "tuner/core/estimates/speeds.h"
#include "tuner/core/promise/promise.h"
#include "tuner/core/state/curve.h"
#include "tuner/core/state/study.h"

namespace espalier {

// A study's curves, of which some are still to be forecast. Not copied: `curves` look into
// `points`.
struct StudyCurves {
  StudyCurves() = default;
  StudyCurves(StudyCurves&&) = default;
  StudyCurves& operator=(StudyCurves&&) = default;

  StudyId study;
  Direction direction = Direction::kMinimize;
  PromiseOptions options;
  std::vector<TrialId> trials;
  std::vector<Curve> curves;
  std::vector<IntermediateValue> points{};  // of all curves; empty: they lie elsewhere
  std::deque<std::vector<std::vector<IntermediateValue>>> other_points{};  // likewise, by curve
};

// All that a plan is made of: the pool as it is at this moment. A value of its own, so that it can
// be worked on while the pool goes on.
struct PlanRequest {
  std::int64_t number = 0;
  PluginSpec policy;
  Pool pool;  // promises of the studies in `curves` are older than these
  std::vector<StudyCurves> curves;
  std::vector<SpeedToFit> speeds;
  // Where studies compete: what is divided among them, and what else they would run.
  std::optional<Pool> shared;
  std::map<StudyId, StudyDemand> demand;
};

// What came of it. The pool may have changed since: see Scheduler::TakePlan.
struct Plan {
  std::int64_t number = 0;
  std::vector<JobRefusal> refusals;
  std::vector<AllocationDecision> allocations;
  std::map<TrialId, double> promise;
  std::vector<FittedSpeed> speeds;  // for the next plan
  std::map<StudyId, StudyPart> parts;
};

}  // namespace espalier
