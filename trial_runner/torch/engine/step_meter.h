#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "trial_runner/elastic/control_plane.h"
#include "trial_runner/elastic/step_profile.h"
#include "trial_runner/torch/process/device.h"
#include "trial_runner/torch/process/device_step_times.h"

namespace espalier {

// Measures what steps take on this replica, by the host's clock or by that of the device that does
// them, and keeps what the service is to be told of it about once a second.
class StepMeter {
 public:
  using Clock = std::chrono::steady_clock;

  // `device`: null where the host's clock sees what a step does.
  explicit StepMeter(std::unique_ptr<StepTimer> device);

  void BeginStep();
  void BeginMicrobatch(bool last);
  void EndMicrobatch();  // not the last
  // Around what waits for other replicas.
  void BeginSync();
  void EndSync();
  // `shape`: of the step in the profile; none: it does not count there. Returns how long the newest
  // step took of which that is known by now.
  std::optional<double> EndStep(const std::optional<ProfileKey>& shape, double samples);
  // The step under way is given up.
  void DropStep();

  // All of the step under way that was not spent waiting for others. What a device needed is known
  // a step later.
  double ComputeTime() const;
  // What the replica of that rank, of so many, needed in one more step.
  void AddComputeTime(int rank, int replicas, double compute_time_s);

  // The group has changed. `reported`: this replica is the one that reports its former steps.
  void StartGroup(bool reported, Clock::time_point now);

  bool ReportDue(Clock::time_point now) const;
  // Samples a second since the last report.
  double Throughput() const;
  // Moves what was measured since the last report there. The members are given by rank.
  void Report(const std::vector<ReplicaId>& members, ReplicaProgress& to);
  // Starts what the next report is about.
  void StartPeriod(Clock::time_point now);

 private:
  double Count(const DeviceStepTimes::Step& step);

  MeasuredStepTimes times_;    // of the step under way
  double compute_time_s_ = 0;  // the same, up to microbatch_start_
  Clock::time_point microbatch_start_;
  Clock::time_point sync_start_;
  // Only for devices: the host's clock does not see what they do.
  std::optional<DeviceStepTimes> device_times_;
  double device_compute_s_ = 0;  // of the newest step that the device is through with

  StepProfile profile_;
  std::vector<ReplicaTime> replica_times_;  // by rank, since they were last sent
  double samples_ = 0;                      // of the steps since the last report
  Clock::time_point period_start_ = Clock::now();
};

}  // namespace espalier
