#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "trial_runner/agent/processes/launch.h"

namespace espalier {

// A small process that outlives the agent: when the agent has ended, whatever ended it, it kills
// what the trials of this run have left, and ends. It has a session of its own and ignores all
// signals that can be ignored, so that what is sent to the agent's group or job does not end it
// first. It knows the agent by its process, which an exec does not change, and so also watches the
// program that replaces the agent. If it is killed itself, the agent starts another.
//
// Used by the agent's owner thread alone.
class AgentWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // `mark`: of this run of the agent (left_processes.h). `environment`: that of the agent, which
  // does not carry the mark. What it says goes to `log_path`. Not `wanted`: there never is one.
  AgentWatch(bool wanted, std::string mark, std::map<std::string, std::string> environment,
             std::string log_path);
  ~AgentWatch();  // ends it
  AgentWatch(const AgentWatch&) = delete;
  AgentWatch& operator=(const AgentWatch&) = delete;

  // Of the agent that ran in this process before.
  void TakeOver(pid_t pid);
  // Starts one if there is none: to be called before anything is started, and in each turn.
  void Keep(Clock::time_point now);
  // The agent ends, and nothing is left.
  void End();

  std::optional<pid_t> pid() const;
  int pidfd() const { return process_.pidfd.get(); }  // -1: there is none
  // When Keep has to be called; max: when the process ends.
  Clock::time_point NextTime() const;

 private:
  void Start();
  void Reap();

  const bool wanted_;
  const std::string mark_;
  const std::map<std::string, std::string> environment_;
  const std::string log_path_;
  LaunchedProcess process_;
  Clock::time_point start_at_{};  // not before, so that what always fails is not tried all the time
  bool told_ = false;             // that it could not be started
};

// To be called first in the main function of a program with watched agents (AgentOptions). The exit
// code, if this process was started as an AgentWatch, once all is done; nothing otherwise.
std::optional<int> RunAgentWatch(int argc, const char* const* argv);

}  // namespace espalier
