#include "tuner/core/estimates/speeds.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <variant>

#include "allocator/pool/job_check.h"

namespace espalier {

namespace {

constexpr double kSameTime = 0.01;  // step times nearer to those of the last fit

// Of a plain program it is not known on how many samples a step is. It is taken to be as many on
// any number of slots, which divide them.
constexpr BatchBounds kOfPlainPrograms{.initial = 4096, .max_global = 4096, .max_atomic = 4096};

// Whether a fit to these would be the one there is.
bool SameTimes(const std::vector<ProfileObservation>& a, const std::vector<ProfileObservation>& b) {
  const auto near = [](double x, double y) { return std::abs(x - y) <= kSameTime * y; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&near](const ProfileObservation& x, const ProfileObservation& y) {
                      return x.key == y.key && near(x.grad_time_s, y.grad_time_s) &&
                             near(x.optim_time_s, y.optim_time_s);
                    });
}

}  // namespace

void Speeds::TakeUp(const Trial& trial) {
  for (const Resize& resize : trial.resizes) pauses_[trial.study].Add(resize.pause_s);
}

void Speeds::Observe(const Change& change) {
  if (const auto* measured = std::get_if<ResizeMeasured>(&change)) {
    pauses_[state_.trials.at(measured->id).study].Add(measured->resize.pause_s);
  }
  if (const auto* told = std::get_if<ValueReported>(&change)) LearnFromValue(*told);
  if (const auto trial = TrialEndedBy(change)) Forget(*trial);
  if (const auto* deleted = std::get_if<StudyDeleted>(&change)) ForgetStudy(deleted->id);
}

void Speeds::Forget(TrialId id) {
  speeds_.erase(id);
  refused_.erase(id);
  std::erase_if(fit_due_, [id](const auto& due) { return due.first == id; });
}

// Its trials are gone already.
void Speeds::ForgetStudy(StudyId id) {
  pauses_.erase(id);
  const auto gone = [this](TrialId trial) { return !state_.trials.contains(trial); };
  std::erase_if(speeds_, [&gone](const auto& speed) { return gone(speed.first); });
  std::erase_if(refused_, gone);
  std::erase_if(fit_due_, [&gone](const auto& due) { return gone(due.first); });
}

// The time from a value to the next one on the same slots.
void Speeds::LearnFromValue(const ValueReported& told) {
  const Trial& trial = state_.trials.at(told.id);
  if (!state_.studies.at(trial.study).spec.resize_by_restart) return;
  if (trial.generation > 0 || trial.spans.empty() || trial.spans.back().slots.empty()) return;
  const SlotSpan& held = trial.spans.back();
  const auto slots = static_cast<int>(held.slots.size());
  const auto at = std::lower_bound(
      trial.values.begin(), trial.values.end(), told.value.step,
      [](const IntermediateValue& value, std::int64_t step) { return value.step < step; });
  if (at == trial.values.begin() || std::prev(at)->at < held.from) return;
  Speed& speed = speeds_[told.id];
  speed.batch = kOfPlainPrograms;
  OnType& on_type = speed.by_gpu_type[speed.gpu_type];
  on_type.profile.Add({.key = {1, slots, std::max<std::int64_t>(1, speed.batch.initial / slots)},
                       .optimizer_count = told.value.step - std::prev(at)->step,
                       .optimizer_time_s = SecondsBetween(std::prev(at)->at, told.value.at)});
  on_type.max_profiled = std::max(on_type.max_profiled, slots);
  FitIfNew(told.id, speed.gpu_type, on_type);
}

bool Speeds::Learn(TrialId id, const std::string& gpu_type, const Group& group,
                   const ReplicaProgress& progress) {
  Speed& speed = speeds_[id];
  speed.gpu_type = gpu_type;
  speed.noise = group.noise;
  speed.batch = group.batch;
  OnType& on_type = speed.by_gpu_type[gpu_type];
  for (const ProfileEntry& entry : progress.profile) {
    // A step that waits for a straggler says nothing about steps of so many replicas.
    if (!group.stragglers.suspects()) on_type.profile.Add(entry);
    on_type.max_profiled = std::max(on_type.max_profiled, entry.key.replicas);
  }
  return FitIfNew(id, gpu_type, on_type);
}

bool Speeds::FitIfNew(TrialId id, const std::string& gpu_type, OnType& on_type) {
  std::vector<ProfileObservation> observations = on_type.profile.Observations();
  if (observations.empty() || SameTimes(observations, on_type.fitted_to)) return false;
  if (fit_aside_) {
    fit_due_.insert({id, gpu_type});
  } else {
    on_type.fitted = Fit(on_type.profile, on_type.fitted);
  }
  on_type.fitted_to = std::move(observations);
  return true;
}

std::vector<SpeedToFit> Speeds::TakeDue() {
  std::vector<SpeedToFit> due;
  for (const auto& [trial, gpu_type] : std::exchange(fit_due_, {})) {
    const OnType& on_type = speeds_.at(trial).by_gpu_type.at(gpu_type);
    due.push_back({trial, gpu_type, on_type.profile, on_type.fitted});
  }
  return due;
}

void Speeds::TakeFitted(const FittedSpeed& fitted) {
  const auto speed = speeds_.find(fitted.trial);
  if (speed != speeds_.end()) speed->second.by_gpu_type[fitted.gpu_type].fitted = fitted.params;
}

std::optional<ThroughputParams> Speeds::FittedFor(TrialId id, const std::string& gpu_type) const {
  const auto speed = speeds_.find(id);
  if (speed == speeds_.end()) return std::nullopt;
  const auto on_type = speed->second.by_gpu_type.find(gpu_type);
  return on_type == speed->second.by_gpu_type.end() ? std::nullopt : on_type->second.fitted;
}

absl::Status Speeds::Describe(TrialId id, Job& job) const {
  absl::Status all_good;
  const auto found = speeds_.find(id);
  if (found == speeds_.end()) return all_good;
  const Speed& speed = found->second;
  for (const auto& [gpu_type, on_type] : speed.by_gpu_type) {
    if (!on_type.fitted) continue;
    const absl::Status good = CheckModel(job.name, *on_type.fitted, speed.noise, speed.batch);
    if (!good.ok()) {
      all_good.Update(good);
      continue;
    }
    const GoodputModel model(*on_type.fitted, speed.noise, speed.batch);
    if (gpu_type == speed.gpu_type) {
      job.goodput = model;
      job.max_profiled_replicas = on_type.max_profiled;
    } else {
      job.goodput_by_gpu_type.emplace(gpu_type, model);
    }
  }
  return all_good;
}

std::optional<double> Speeds::ResizeCost_s(const Trial& trial) const {
  Pauses pauses;
  for (const Resize& resize : trial.resizes) pauses.Add(resize.pause_s);
  if (pauses.count == 0) {
    const auto of_study = pauses_.find(trial.study);
    if (of_study == pauses_.end()) return std::nullopt;
    pauses = of_study->second;
  }
  return pauses.sum_s / pauses.count;
}

}  // namespace espalier
