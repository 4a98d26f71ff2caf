#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "trial_runner/agent/processes/launch.h"
#include "trial_runner/agent/zygotes/python_command.h"
#include "tuner/base/file_descriptor.h"
#include "tuner/base/status.h"

namespace espalier {

// A Python process that has imported what replicas import and is forked into them, so that they
// start without importing it again (python/espalier/_zygote.py is its other half). It has one
// thread, and nothing of a replica runs in it. Its replicas are this process's children like those
// that Launch starts: each is forked twice, and while the one between ends this process adopts
// orphans. Belongs to the thread that starts it, and ends with that.
class Zygote {
 public:
  using Clock = std::chrono::steady_clock;

  enum class State { kImporting, kReady, kEnded };

  // Starts the interpreter of the order's command, to import the modules by and by. What it prints
  // goes to `log_path`.
  static absl::StatusOr<std::unique_ptr<Zygote>> Start(const LaunchOrder& order,
                                                       const PythonCommand& command,
                                                       const std::vector<std::string>& modules,
                                                       const std::string& log_path);
  explicit Zygote(LaunchedProcess process) : process_(std::move(process)) {}
  ~Zygote();  // kills and reaps it

  Zygote(const Zygote&) = delete;
  Zygote& operator=(const Zygote&) = delete;

  State state() const { return state_; }
  // Why it will never be ready, where it has said so itself.
  const std::string& refusal() const { return refusal_; }
  pid_t pid() const { return process_.pid; }
  // Becomes readable when the state may have changed.
  int fd() const { return process_.control.get(); }
  void Hear();

  // Starts a replica, as Launch does, and waits for it for so long at most. If that fails, nothing
  // of the replica has run or will, and the zygote is of no more use.
  absl::StatusOr<LaunchedProcess> Fork(const LaunchOrder& order, const PythonCommand& command,
                                       Clock::duration within);

 private:
  LaunchedProcess process_;
  State state_ = State::kImporting;
  std::string said_;
  std::string refusal_;
};

}  // namespace espalier
