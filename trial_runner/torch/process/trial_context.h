#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trial_runner/collectives/collectives.h"
#include "trial_runner/control/parameters.h"
#include "trial_runner/elastic/control_plane.h"
#include "trial_runner/kernels/gradient_kernel.h"
#include "trial_runner/torch/process/better_value.h"
#include "trial_runner/torch/process/device.h"
#include "trial_runner/torch/state.h"

namespace espalier {

// The exit code of a program that was given something wrong.
inline constexpr int kBadUseExitCode = 2;

// Prints the message and ends the process. On the thread that has called HostEndings: throws a
// ProgramError.
[[noreturn]] void EndProcess(const absl::Status& why, int exit_code);
// Flushes what is buffered and ends the process without running destructors: abandoned groups may
// still have threads in LibTorch.
[[noreturn]] void EndProcess(int exit_code);
// Ends a program that uses the library in an impossible way.
[[noreturn]] void BadUse(const std::string& message);

// What ends a program of the library's own is an error in a process that hosts it, such as a
// Python interpreter.
class ProgramError : public std::runtime_error {
 public:
  ProgramError(const std::string& message, int exit_code)
      : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};
// To be called once, on the thread that trains. `before_exit` is called where the process has to
// end all the same (its replica has left the group, or its agent is gone), on whatever thread that
// is found out, so that the host can write out what it has buffered.
void HostEndings(std::function<void()> before_exit);

class TrainingEngine;

// What the parts of the trial runner share within one process.
class TrialContext {
 public:
  static constexpr std::size_t kKeptReports = 16;

  // From the environment that the agent set and the program's arguments. Where the agent has
  // started the process to be forked into replicas, this returns in each of those.
  static absl::StatusOr<std::unique_ptr<TrialContext>> FromEnvironment(int argc, char** argv);

  Parameters parameters;
  std::unique_ptr<ControlPlane> control;
  ReplicaId replica{1};
  std::int64_t trial_number = 0;
  std::uint64_t seed = 0;
  bool adaptive_batch = false;
  int threads = 1;
  // The replicas of the group that this one is to join, with it; 0: it is one of the first.
  std::int64_t joins = 0;
  std::string checkpoint_dir;                // empty: no checkpoints
  std::string checkpoint;                    // to start from; empty: none
  c10::Device device = c10::kCPU;            // what it trains on
  bool bucket_operations = false;            // for tests: does on the CPU what it does on devices,
  GradientKernel gradient_kernel = nullptr;  // with this where it is not null
  // For tests: makes what measures steps as if they were a device's.
  std::function<std::unique_ptr<StepTimer>()> step_timer;
  CollectivesOptions collectives;
  BetterValue better_value = BetterValue::kUnknown;

  // The present group, as far as reports need it.
  std::int64_t generation = 0;
  int rank = 0;
  double progress = 0;

  // Comparisons that it has taken part in as rank 0, and has not told of yet.
  ReplicaChecks checks;

  // The engine that the trial's models and loader share.
  std::weak_ptr<TrainingEngine> engine;

  // States of the program, apart from its models, by name.
  std::map<std::string, State*> states;
  // Fails if there is a state of that name, or its name is not valid.
  absl::Status AddState(State& state);

  // Set by the group: brings the other members to the end as well.
  std::function<void(const ReplicaFinished&)> finish_group;

  // Sends the report if this is rank 0, and keeps it.
  void Report(ReplicaReport report);
  // Sends the kept reports again: this replica has become rank 0, and it is not known which of them
  // its predecessor sent.
  void ResendReports();
  // The last reported value, if nothing has been learnt since; it says nothing of a later state.
  std::optional<double> ValueOfPresentState() const;

 private:
  std::deque<ReplicaReport> reports_;
};

}  // namespace espalier
