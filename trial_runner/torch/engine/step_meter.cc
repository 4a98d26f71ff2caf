#include "trial_runner/torch/engine/step_meter.h"

#include <utility>

namespace espalier {
namespace {

constexpr double kReportPeriod_s = 1.0;

double SecondsBetween(StepMeter::Clock::time_point from, StepMeter::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

StepMeter::StepMeter(std::unique_ptr<StepTimer> device) {
  if (device) device_times_.emplace(std::move(device));
}

void StepMeter::BeginStep() {
  times_ = {};
  compute_time_s_ = 0;
  microbatch_start_ = Clock::now();
}

void StepMeter::BeginMicrobatch(bool last) {
  microbatch_start_ = Clock::now();
  if (device_times_) device_times_->BeginMicrobatch(last);
}

void StepMeter::EndMicrobatch() {
  ++times_.accumulation_count;
  if (device_times_) device_times_->EndMicrobatch();
  const double time_s = SecondsBetween(microbatch_start_, Clock::now());
  times_.accumulation_time_s += time_s;
  compute_time_s_ += time_s;
}

void StepMeter::BeginSync() {
  sync_start_ = Clock::now();
  if (device_times_) device_times_->BeginSync();
}

void StepMeter::EndSync() {
  if (device_times_) device_times_->EndSync();
  times_.sync_time_s += SecondsBetween(sync_start_, Clock::now());
}

std::optional<double> StepMeter::EndStep(const std::optional<ProfileKey>& shape, double samples) {
  samples_ += samples;
  times_.optimizer_time_s = SecondsBetween(microbatch_start_, Clock::now());
  const DeviceStepTimes::Step step{
      .shape = shape.value_or(ProfileKey{}), .times = times_, .usual = shape.has_value()};
  if (!device_times_) return Count(step);
  std::optional<double> newest_s;
  for (const DeviceStepTimes::Step& known : device_times_->EndStep(step)) {
    device_compute_s_ = known.compute_s;
    newest_s = Count(known);
  }
  return newest_s;
}

// Returns how long it took.
double StepMeter::Count(const DeviceStepTimes::Step& step) {
  if (step.usual) profile_.Add(step.shape, step.times);
  return step.times.accumulation_time_s + step.times.optimizer_time_s;
}

void StepMeter::DropStep() {
  if (device_times_) device_times_->Reset();
}

double StepMeter::ComputeTime() const {
  if (device_times_) return device_compute_s_;
  return compute_time_s_ + SecondsBetween(microbatch_start_, Clock::now()) - times_.sync_time_s;
}

void StepMeter::AddComputeTime(int rank, int replicas, double compute_time_s) {
  replica_times_.resize(static_cast<std::size_t>(replicas));
  ReplicaTime& time = replica_times_[static_cast<std::size_t>(rank)];
  ++time.steps;
  time.compute_time_s += compute_time_s;
}

void StepMeter::StartGroup(bool reported, Clock::time_point now) {
  profile_.StartGroup();
  replica_times_.clear();
  if (!reported) profile_.Take();  // another has reported these steps
  StartPeriod(now);
}

bool StepMeter::ReportDue(Clock::time_point now) const {
  return SecondsBetween(period_start_, now) >= kReportPeriod_s;
}

double StepMeter::Throughput() const {
  return samples_ / SecondsBetween(period_start_, Clock::now());
}

void StepMeter::Report(const std::vector<ReplicaId>& members, ReplicaProgress& to) {
  to.profile = profile_.Take();
  to.replica_times = std::exchange(replica_times_, {});
  for (std::size_t rank = 0; rank < to.replica_times.size(); ++rank) {
    to.replica_times[rank].replica = members[rank];
  }
}

void StepMeter::StartPeriod(Clock::time_point now) {
  period_start_ = now;
  samples_ = 0;
}

}  // namespace espalier
