#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "trial_runner/agent/processes/launch.h"
#include "trial_runner/agent/zygotes/forkable_command.h"

namespace espalier {

inline constexpr const char* kOwnZygoteVariable = "ESPALIER_OWN_ZYGOTE";

// A process that has done what replicas do before they train, and is forked into them, so that they
// start without doing it again. In Python it has imported modules (python/espalier/_zygote.py is
// its other half); a program in C++ has come to where it makes its Trial (control/fork_point.h). It
// has one thread, and nothing of a replica runs in it. Its replicas are this process's children
// like those that Launch starts: each is forked twice, and while the one between ends this process
// adopts orphans. Belongs to the thread that starts it, and ends with that.
//
// It says "ready\n" on its control socket, or "no ...\n" with the reason. From then on each byte
// 'f' brings it four descriptors: the order (fields that each end with a zero byte: this process's
// number, the folder, what is run, its place, the number of words, the words, the variables), the
// log, the control socket, and one on which the replica says its number and waits for leave to
// begin.
//
// A replica that is executed ("ranks") is forked once more before that, and its fork is its own
// zygote: kOwnZygoteVariable has its number and the descriptor of its control socket.
class Zygote {
 public:
  using Clock = std::chrono::steady_clock;

  enum class State { kPreparing, kReady, kEnded };

  // What a program has printed in its zygote, each replica's log begins with. So much, at most.
  static constexpr std::int64_t kMaxPrinted_bytes = std::int64_t{64} << 10;

  // What one in Python prints goes to `log_path`.
  static absl::StatusOr<std::unique_ptr<Zygote>> Start(const ForkableCommand& command,
                                                       const std::string& log_path);
  // That of this process, which was forked as one with "ranks" (forkable_command.h): a child that
  // has imported what its parent had. nullptr: it has none, or another call has got it.
  static std::unique_ptr<Zygote> Own();
  Zygote(LaunchedProcess process, FileDescriptor output)
      : process_(std::move(process)), output_(std::move(output)) {}
  ~Zygote();  // kills and reaps it

  Zygote(const Zygote&) = delete;
  Zygote& operator=(const Zygote&) = delete;

  State state() const { return state_; }
  bool was_ready() const { return was_ready_; }
  bool native() const { return output_.open(); }
  // Why it will never be ready, where it has said so itself.
  const std::string& refusal() const { return refusal_; }
  pid_t pid() const { return process_.pid; }
  // Becomes readable when the state may have changed.
  int fd() const { return process_.control.get(); }
  void Hear();

  // Starts a replica, as Launch does, and waits for it for so long at most. If that fails, nothing
  // of the replica has run or will, and the zygote is of no more use.
  absl::StatusOr<LaunchedProcess> Fork(const LaunchOrder& order, const ForkableCommand& command,
                                       Clock::duration within);

 private:
  void BeReady();

  LaunchedProcess process_;
  FileDescriptor output_;  // of a program in C++
  std::string printed_;    // there
  State state_ = State::kPreparing;
  bool was_ready_ = false;
  std::string said_;
  std::string refusal_;
};

// Forks from a zygote, which is ended where that fails; without one, starts an interpreter.
absl::StatusOr<LaunchedProcess> ForkOrLaunch(std::unique_ptr<Zygote>& zygote,
                                             const LaunchOrder& order,
                                             const ForkableCommand& command);

}  // namespace espalier
