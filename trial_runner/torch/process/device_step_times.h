#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "trial_runner/elastic/step_profile.h"
#include "trial_runner/torch/process/device.h"

namespace espalier {

// The times of steps on a device, of which the host's clock only sees how long it took to ask for
// them: what a step took is known a step or two later, and told with the shape that the step had.
class DeviceStepTimes {
 public:
  struct Step {
    ProfileKey shape{};
    MeasuredStepTimes times{};
    double compute_s = 0;  // all but waiting for others
    bool usual = false;    // it counts in the profile
  };

  explicit DeviceStepTimes(std::unique_ptr<StepTimer> timer) : timer_(std::move(timer)) {}

  void BeginMicrobatch(bool last);
  void EndMicrobatch();  // not the last
  void BeginSync();
  void EndSync();
  // Ends the step, whose `times` lack all but its count of microbatches. Returns the steps that the
  // device is through with since the last call, in their order.
  std::vector<Step> EndStep(const Step& step);
  // Drops the step under way, which was abandoned, and the times of those before it.
  void Reset();

 private:
  using Part = StepTimer::Part;

  const std::unique_ptr<StepTimer> timer_;
  std::deque<Step> ended_;  // those that the device may not be through with
};

}  // namespace espalier
