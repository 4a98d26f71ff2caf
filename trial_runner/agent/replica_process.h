#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "handover.pb.h"
#include "trial_runner/agent/file_watch.h"
#include "trial_runner/agent/output_watch.h"
#include "trial_runner/agent/processes/frames.h"
#include "trial_runner/agent/processes/launch.h"
#include "tuner.pb.h"

namespace espalier {

// Commands that wait for a replica that does not read; beyond it the oldest goes, which is harmless
// because a replica obeys the highest generation it has seen.
inline constexpr std::size_t kMaxWaitingCommands = 64;

// The identity of a replica that has not run yet.
v1::LiveReplica IdentityOf(const v1::StartReplica& start);

// Whether this agent understands a replica that greets like this.
absl::Status CheckReplicaProtocol(std::int64_t replica_id, const std::string& protocol);

// How often, at least, the agent listens to a replica within its lease.
inline constexpr int kTurnsPerLease = 4;

// One running replica: its process group, control socket and log. Never blocks. Belongs to the
// thread that launched it.
class ReplicaProcess {
 public:
  using Clock = std::chrono::steady_clock;

  struct Ending {
    int exit_code = -1;  // -1: ended by a signal
    int signal = 0;
    std::vector<v1::ReplicaMessage> messages;  // written before its death, not yet read
    std::string error;                         // why the agent killed it; usually empty
    std::string last_output;
    std::string rank;  // of several, which one all this tells of: "rank 1 of 2"

    bool well() const { return exit_code == 0 && signal == 0; }
  };

  // `files` are those in which its values are; null: there are none.
  ReplicaProcess(LaunchedProcess process, v1::StartReplica start, std::string log_path,
                 std::unique_ptr<FileWatch> files = nullptr);
  // Takes over a replica that the former agent in this process has started.
  explicit ReplicaProcess(const v1::HandedReplica& handed);
  ~ReplicaProcess();  // kills and reaps what is left

  ReplicaProcess(const ReplicaProcess&) = delete;
  ReplicaProcess& operator=(const ReplicaProcess&) = delete;

  const v1::LiveReplica& identity() const { return identity_; }
  // All that it has had: its own and what it started carry the first one in their environment.
  const std::set<std::int64_t>& ids() const { return ids_; }
  const v1::StartReplica& start() const { return start_; }
  const std::string& log_path() const { return log_path_; }
  int pidfd() const { return process_.pidfd.get(); }
  int control_fd() const { return process_.control.get(); }  // -1: it has closed its end
  bool has_greeted() const { return !protocol_.empty(); }    // a program of Espalier's
  // What its Greeting says of why it could not have been forked.
  const std::optional<std::string>& fork_obstacle() const { return fork_obstacle_; }
  bool has_waiting_commands() const { return !commands_.empty(); }

  // The messages that have arrived, without heartbeats. A replica that breaks the protocol is
  // killed, and Ending says why.
  std::vector<v1::ReplicaMessage> Read();
  // Null: its output is not read for values.
  OutputWatch* output() { return output_.get(); }
  // Null: it writes no files that are.
  FileWatch* files() { return files_.get(); }
  void Send(const v1::ReplicaCommand& command);
  // Goes on sending what the socket had no room for.
  void Flush();

  // A lease begins with the first heartbeat, and anything that is read renews it. `lease` is how
  // long the agent listens in vain before it kills the replica (0: for ever); time in which it did
  // not listen is not its replicas' silence.
  void ListenedInVain(Clock::duration time) { silence_ += time; }
  void KillIfSilent(Clock::duration lease);
  // The rest of the replica's lease; nullopt: it has none, or is being killed.
  std::optional<Clock::duration> LeaseLeft(Clock::duration lease) const;

  // Sends SIGTERM to the group now and SIGKILL at the deadline. If it is called twice, the earlier
  // deadline counts.
  void Terminate(double grace_s, Clock::time_point now);
  std::optional<Clock::time_point> kill_at() const { return kill_at_; }
  void KillIfDue(Clock::time_point now);
  // Whether it does nothing on SIGTERM but end, and others may do its work before it is gone: it
  // runs no more, and its trial saves in new files. One that saves by itself may be writing to what
  // it reads when it is started again.
  bool EndsAtOnce() const;

  // Makes a parked process the replica that `start` asks for.
  void Adopt(v1::StartReplica start);

  // What the next agent in this process needs to go on with it; all but parked_at_ns and ending.
  v1::HandedReplica HandOver() const;

  // To be called once its pidfd is readable: ends what is left of the group, and returns how the
  // replica ended.
  Ending Reap();

 private:
  std::vector<v1::ReplicaMessage> ReadUpTo(int chunks);
  void Parse(std::vector<v1::ReplicaMessage>& messages);
  void KillFor(std::string reason);
  void KillGroup();
  void BlameRank(Ending& ending) const;

  LaunchedProcess process_;
  v1::StartReplica start_;
  v1::LiveReplica identity_;
  std::set<std::int64_t> ids_;
  std::string log_path_;
  FrameReader reader_;
  std::deque<std::string> commands_;  // frames; the first may be partly sent
  std::size_t sent_of_first_ = 0;
  std::optional<Clock::time_point> kill_at_;
  bool leased_ = false;
  Clock::duration silence_{0};
  std::string error_;
  std::string protocol_;  // of its Greeting; empty: it has not said
  std::optional<std::string> fork_obstacle_;
  std::unique_ptr<OutputWatch> output_;
  std::unique_ptr<FileWatch> files_;
  bool reaped_ = false;
};

}  // namespace espalier
