#include "tuner/core/scheduling/planner.h"

#include <utility>

#include "base/check.h"

namespace espalier {

std::map<TrialId, double> PromiseOf(const StudyCurves& study) {
  std::map<TrialId, double> promise;
  const std::vector<double> all = Promise(study.direction, study.curves, study.options);
  for (std::size_t i = 0; i < study.curves.size(); ++i) {
    if (!study.curves[i].ended) promise[study.trials[i]] = all[i];
  }
  return promise;
}

Plan Planner::Make(const PlanRequest& request) {
  Plan plan;
  plan.number = request.number;
  for (const StudyCurves& study : request.curves) plan.promise.merge(PromiseOf(study));
  for (const SpeedToFit& speed : request.speeds) {
    plan.speeds.push_back({speed.trial, speed.gpu_type, Fit(speed.profile, speed.warm_start)});
  }
  if (request.shared) plan.parts = Divide(request);
  Pool pool = request.pool;
  for (Job& job : pool.jobs) {
    if (const auto at = plan.promise.find(job.id); at != plan.promise.end()) {
      job.promise = at->second;
    }
  }
  if (request.shared && !request.shared->owed.empty()) WithholdBeyondParts(pool, plan.parts);
  plan.refusals = RefuseBadJobs(pool);
  plan.allocations = PolicyFor(request.policy).Allocate(pool);
  return plan;
}

std::map<StudyId, StudyPart> Planner::Divide(const PlanRequest& request) {
  speedups_.KeepOnly(*request.shared);
  return DivideAmongStudies(*request.shared, speedups_, request.demand,
                            PolicyFor(request.policy).study_fairness());
}

Policy& Planner::PolicyFor(const PluginSpec& wanted) {
  if (!policy_ || spec_ != wanted) {
    auto policy = MakePolicy(wanted.name, wanted.options);
    ESPALIER_CHECK(policy.ok(), "a policy is validated before it is asked for");
    policy_ = *std::move(policy);
    spec_ = wanted;
  }
  return *policy_;
}

}  // namespace espalier
