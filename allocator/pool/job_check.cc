#include "allocator/pool/job_check.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/pool/speedup.h"
#include "base/status.h"

namespace espalier {

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr double kLargestOverlap = 10;

absl::Status Refused(const std::string& trial, std::string_view field, const std::string& needed,
                     double value) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: %s needs %s, got %g", trial, std::string(field), needed, value));
}

bool Within(double value, double least, double most) {
  return std::isfinite(value) && value >= least && value <= most;
}

// Must be finite and within [0, most].
struct NumberOf {
  std::string_view field;
  double Job::*value;
  double most;
};
constexpr NumberOf kNumbers[] = {
    {"promise", &Job::promise, 1},
    {"work left", &Job::work_left_s, kNoLimit},
    {"time left", &Job::time_left_s, kNoLimit},
    {"cost of a resize", &Job::resize_cost_s, kNoLimit},
    {"time since the last resize", &Job::since_resize_s, kNoLimit},
    {"age", &Job::age_s, kNoLimit},
    {"time with slots", &Job::held_s, kNoLimit},
    {"attained service", &Job::attained_service, kNoLimit},
    {"steps left", &Job::steps_left, kNoLimit},
};

struct CountOf {
  std::string_view field;
  int Job::*value;
  int least;
};
constexpr CountOf kCounts[] = {
    {"min slots", &Job::min_slots, 1},
    {"max slots", &Job::max_slots, 1},
    {"pinned slots", &Job::pinned_slots, 0},
    {"max profiled replicas", &Job::max_profiled_replicas, 0},
    {"resizes", &Job::resizes, 0},
    {"requested slots", &Job::requested_slots, 0},
    {"most slots on a node", &Job::most_on_node, 0},
};

absl::Status CheckThroughput(const std::string& trial, const ThroughputParams& params) {
  const std::pair<std::string_view, double> positive[] = {
      {"alpha_c", params.alpha_c}, {"beta_c", params.beta_c},   {"alpha_n", params.alpha_n},
      {"beta_n", params.beta_n},   {"alpha_r", params.alpha_r}, {"beta_r", params.beta_r}};
  for (const auto& [field, value] : positive) {
    if (std::isfinite(value) && value > 0) continue;
    return Refused(trial, std::string("throughput parameter ").append(field), "a number > 0",
                   value);
  }
  if (!Within(params.gamma, 1, kLargestOverlap)) {
    return Refused(trial, "throughput parameter gamma", "a number between 1 and 10", params.gamma);
  }
  return absl::OkStatus();
}

absl::Status CheckModelOf(const std::string& trial, const GoodputModel& model) {
  return CheckModel(trial, model.params(), model.noise(), model.bounds());
}

// Each once, ascending, and one of them within its bounds: a job that can have no size waits for
// ever.
bool SizesAreGood(const Job& job) {
  if (job.sizes.empty()) return true;
  const bool ascend = std::adjacent_find(job.sizes.begin(), job.sizes.end(),
                                         std::greater_equal<>()) == job.sizes.end();
  return ascend && LargestSize(job, MaxSlots(job)) > 0;
}

void Repair(Job& job) {
  const Job defaults;
  job.goodput.reset();
  job.goodput_by_gpu_type.clear();
  job.known_step_s = nullptr;
  job.global_batch = std::max<std::int64_t>(0, job.global_batch);
  for (const auto& number : kNumbers) {
    if (!Within(job.*number.value, 0, number.most)) job.*number.value = defaults.*number.value;
  }
  for (const CountOf& count : kCounts) job.*count.value = std::max(job.*count.value, count.least);
  if (job.cost && std::isnan(*job.cost)) job.cost.reset();
  job.max_slots = std::max(job.max_slots, job.min_slots);
  if (!SizesAreGood(job)) job.sizes.clear();
  if (job.current.empty()) {
    job.max_slots = job.min_slots;
  } else {
    job.joining = true;
  }
}

}  // namespace

absl::Status CheckModel(const std::string& trial, const ThroughputParams& params,
                        const GradientNoise& noise, const BatchBounds& bounds) {
  ESPALIER_RETURN_IF_ERROR(CheckThroughput(trial, params));
  if (!Within(noise.sqr, 0, kNoLimit)) {
    return Refused(trial, "squared gradient", "a number >= 0", noise.sqr);
  }
  if (!Within(noise.var, 0, kNoLimit)) {
    return Refused(trial, "gradient noise", "a number >= 0", noise.var);
  }
  const auto count = [](std::int64_t n) { return static_cast<double>(n); };
  if (bounds.initial < 1) {
    return Refused(trial, "initial batch", "at least one sample", count(bounds.initial));
  }
  if (bounds.min_atomic < 1) {
    return Refused(trial, "smallest microbatch", "at least one sample", count(bounds.min_atomic));
  }
  if (bounds.max_atomic < bounds.min_atomic) {
    return Refused(trial, "largest microbatch",
                   absl::StrFormat("at least the smallest, %d", bounds.min_atomic),
                   count(bounds.max_atomic));
  }
  return absl::OkStatus();
}

absl::Status CheckJob(const Job& job) {
  const std::string trial = NameOf(job);
  for (const auto& number : kNumbers) {
    const double value = job.*number.value;
    if (Within(value, 0, number.most)) continue;
    const bool limited = std::isfinite(number.most);
    return Refused(trial, number.field,
                   limited ? absl::StrFormat("a number between 0 and %g", number.most)
                           : std::string("a number >= 0"),
                   value);
  }
  for (const CountOf& count : kCounts) {
    if (job.*count.value >= count.least) continue;
    return Refused(trial, count.field, absl::StrFormat("at least %d", count.least),
                   job.*count.value);
  }
  if (job.max_slots < job.min_slots) {
    return Refused(trial, "max slots", absl::StrFormat("at least min slots, %d", job.min_slots),
                   job.max_slots);
  }
  if (!SizesAreGood(job)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: sizes need to ascend, with one of them between %d and %d, got %s",
                        trial, MinSlots(job), MaxSlots(job), absl::StrJoin(job.sizes, ", ")));
  }
  if (job.global_batch < 0) {
    return Refused(trial, "global batch", "at least 0 samples",
                   static_cast<double>(job.global_batch));
  }
  if (job.cost && std::isnan(*job.cost)) return Refused(trial, "cost", "a number", *job.cost);
  if (job.goodput) ESPALIER_RETURN_IF_ERROR(CheckModelOf(trial, *job.goodput));
  for (const auto& [type, model] : job.goodput_by_gpu_type) {
    ESPALIER_RETURN_IF_ERROR(CheckModelOf(absl::StrCat(trial, " on ", type), model));
  }
  if (job.known_step_s) {
    for (const double step_s : *job.known_step_s) {
      if (std::isfinite(step_s) && step_s > 0) continue;
      return Refused(trial, "known step time", "a number > 0", step_s);
    }
  }
  return absl::OkStatus();
}

std::vector<JobRefusal> RefuseBadJobs(Pool& pool) {
  std::vector<JobRefusal> refusals;
  for (Job& job : pool.jobs) {
    const absl::Status status = CheckJob(job);
    if (status.ok()) continue;
    refusals.push_back({job.id, std::string(status.message())});
    Repair(job);
  }
  return refusals;
}

}  // namespace espalier
