#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "trial_runner/elastic/control_plane.h"

namespace espalier {

// Plays the agent and the service for one trial: starts replicas of a program as real processes,
// each with a control socket, sends Regroups and collects what they say. For tests and benchmarks.
//
// One thread calls it. Waiting ends with the condition or, after kPatience, with a message on
// standard error and the process's abort: a test that hangs fails, and says on what.
class ReplicaHarness {
 public:
  // Several processes that import PyTorch at once take a minute on a busy machine.
  static constexpr std::chrono::seconds kPatience{180};
  static constexpr std::size_t kShownAtGivingUp = 8;

  struct Said {
    std::int64_t replica = 0;
    ReplicaMessage message;
    std::chrono::steady_clock::time_point at;
  };

  // `environment` is added to this process's own for every replica. Started and, in Python, forked
  // as an agent does it.
  ReplicaHarness(std::vector<std::string> command, std::map<std::string, std::string> environment);
  // Kills what still runs.
  ~ReplicaHarness();
  ReplicaHarness(const ReplicaHarness&) = delete;
  ReplicaHarness& operator=(const ReplicaHarness&) = delete;

  // Starts a replica and returns its id (1, 2, ...); `extra` is added to its environment.
  std::int64_t Start(const std::map<std::string, std::string>& extra = {});
  // Waits until the replica has said that it is ready.
  void AwaitReady(std::int64_t replica);

  // Tells the replicas in `tell`, or all living ones if empty, who the members are by rank from
  // now on. Returns the new generation.
  std::int64_t Regroup(const std::vector<std::int64_t>& members, bool abandon = false,
                       const std::vector<std::int64_t>& tell = {});
  // Waits until each member of the latest Regroup has said Regrouped, and returns the longest pause
  // among `training` (or all), in seconds.
  double AwaitRegrouped(const std::vector<std::int64_t>& training = {});

  // Waits until the replica has parked (start it with ESPALIER_SPARE=1).
  void AwaitParked(std::int64_t replica);
  // Has a parked replica go on as another, and returns that one's id.
  std::int64_t Adopt(std::int64_t parked, const std::string& checkpoint);

  pid_t Process(std::int64_t replica) const { return replicas_.at(replica).process; }
  void Signal(std::int64_t replica, int signal);
  // Kills and forgets the replica.
  void Kill(std::int64_t replica);
  // Closes its control socket, as the agent's death would.
  void HangUp(std::int64_t replica);
  // Waits for its end, and until all that it has said is heard: exit code, or 128 + signal.
  int AwaitExit(std::int64_t replica);

  // Waits until what was said satisfies the condition. It sees all that was ever said, in order.
  void Await(const std::string& what,
             const std::function<bool(const std::deque<Said>& said)>& condition);
  // Waits until the condition holds of any one message.
  void AwaitMessage(const std::string& what,
                    const std::function<bool(const Said& said)>& condition);
  std::deque<Said> EverythingSaid();

 private:
  // The replica that a process is, which changes when it is adopted.
  using Identity = std::shared_ptr<std::atomic<std::int64_t>>;

  struct Replica {
    pid_t process = -1;
    std::int64_t number = 0;  // of all that this process has started
    int socket = -1;
    Identity identity;
    std::thread reader;
    std::string address;
    std::optional<int> exit_code;
  };

  void Read(const Identity& identity, int socket);
  static int Reap(Replica& replica);

  const std::vector<std::string> command_;
  const std::map<std::string, std::string> environment_;
  std::map<std::int64_t, Replica> replicas_;
  std::int64_t next_replica_ = 1;
  std::int64_t generation_ = 0;
  std::vector<std::int64_t> members_;

  std::mutex mutex_;
  std::condition_variable heard_;
  std::deque<Said> said_;          // guarded by mutex_
  std::set<std::int64_t> parked_;  // guarded by mutex_
  std::set<int> silent_;           // sockets that nobody speaks to any more; guarded by mutex_
  // Of programs in C++; guarded by mutex_.
  std::map<std::int64_t, std::string> fork_obstacles_;
  std::deque<std::string> last_heard_;  // guarded by mutex_
};

}  // namespace espalier
