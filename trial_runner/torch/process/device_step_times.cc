#include "trial_runner/torch/process/device_step_times.h"

namespace espalier {

void DeviceStepTimes::BeginMicrobatch(bool last) {
  timer_->Begin(Part::kCompute);
  timer_->Begin(last ? Part::kLastMicrobatch : Part::kAccumulation);
}

void DeviceStepTimes::EndMicrobatch() {
  timer_->End(Part::kCompute);
  timer_->End(Part::kAccumulation);
}

void DeviceStepTimes::BeginSync() {
  timer_->End(Part::kCompute);
  timer_->Begin(Part::kSync);
}

void DeviceStepTimes::EndSync() {
  timer_->End(Part::kSync);
  timer_->Begin(Part::kCompute);
}

std::vector<DeviceStepTimes::Step> DeviceStepTimes::EndStep(const Step& step) {
  timer_->End(Part::kCompute);
  timer_->End(Part::kLastMicrobatch);
  ended_.push_back(step);
  std::vector<Step> passed;
  for (const StepTimer::Times& took : timer_->EndStep()) {
    Step& oldest = passed.emplace_back(ended_.front());
    ended_.pop_front();
    oldest.compute_s = took.compute_s;
    oldest.times.sync_time_s = took.sync_s;
    oldest.times.accumulation_time_s = took.accumulation_s;
    oldest.times.optimizer_time_s = took.last_microbatch_s;
  }
  return passed;
}

void DeviceStepTimes::Reset() {
  timer_->Reset();
  ended_.clear();
}

}  // namespace espalier
