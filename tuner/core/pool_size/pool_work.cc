#include "tuner/core/pool_size/pool_work.h"

#include <algorithm>
#include <limits>

#include "allocator/pool/job_check.h"
#include "tuner/core/state/slot_time.h"
#include "tuner/core/state/study_facts.h"

namespace espalier {

PoolSizeRequest PoolWork::Describe(int most_slots) {
  pool_shown_ = view_.MakePoolToCome(most_slots);
  for (NodeCapacity& known : pool_shown_.nodes) known.slots = pool_.nodes.at(known.id).slots;
  for (const JobRefusal& refusal : RefuseBadJobs(pool_shown_)) {
    view_.RecordRefusal(turn_.TrialAt(refusal.trial), refusal.reason);
  }
  PoolSizeRequest request{pool_shown_, {}, {}};
  for (const StudyId id : pool_.studies) {
    const Study& study = turn_.StudyAt(id);
    if (plugins_.Of(study).too_late) continue;
    const StudyDemand demand = view_.DemandOf(study, most_slots);
    if (demand.configurations > 0) request.demand.emplace(id, demand);
  }
  DescribeWork(pool_shown_, request);
  return request;
}

// Seconds on one slot that a trial of the study takes, about: the mean of those that have ended,
// pruned ones among them, since the next will be pruned as often. Until one has, what those that
// train now will have taken by their end. 0: nobody has told yet.
double PoolWork::SecondsOfATrial(const Study& study) const {
  double ended_s = 0;
  double training_s = 0;
  int ended = 0;
  int training = 0;
  const auto last_step = static_cast<double>(pool_.LastStepOf(study));
  for (const TrialId id : study.trials) {
    const Trial& trial = turn_.state().trials.at(id);
    const double held_s = SlotSeconds(trial, turn_.now());
    if (Ended(trial.state)) {
      ended_s += held_s;
      ++ended;
    } else if (last_step > 0 && !trial.values.empty() && trial.values.back().step > 0) {
      const double done = static_cast<double>(trial.values.back().step) / last_step;
      training_s += held_s / std::min(1.0, done);
      ++training;
    }
  }
  if (ended > 0) return ended_s / ended;
  return training > 0 ? training_s / training : 0;
}

// The nearest deadline counts, and the work of all studies before it: they share the pool.
void PoolWork::DescribeWork(Pool& pool, PoolSizeRequest& request) {
  std::map<StudyId, double> seconds_each;
  for (const StudyId id : pool_.studies) {
    const Study& study = turn_.StudyAt(id);
    const StudySpec& spec = study.spec;
    if (spec.time_limit_s > 0) {
      const double left_s = std::max(1e-3, spec.time_limit_s - ElapsedSeconds(study, turn_.now()));
      request.deadline_s = request.deadline_s > 0 ? std::min(request.deadline_s, left_s) : left_s;
    }
    const double each_s = SecondsOfATrial(study);
    seconds_each[id] = each_s;
    std::int64_t to_start = 0;
    if (plugins_.MayDraw(study) && !plugins_.Of(study).too_late) {
      if (spec.max_trials == 0) request.work_left_s = std::numeric_limits<double>::infinity();
      to_start = std::max<std::int64_t>(0, spec.max_trials - study.counted());
    }
    request.work_left_s += each_s * static_cast<double>(to_start);
  }
  for (Job& job : pool.jobs) {
    if (job.work_left_s > 0) continue;
    const auto each = seconds_each.find(job.study);
    if (each == seconds_each.end() || each->second <= 0) continue;
    job.work_left_s = std::max(1.0, each->second - job.attained_service);
  }
}

}  // namespace espalier
