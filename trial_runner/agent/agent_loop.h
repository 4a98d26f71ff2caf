#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/trial_folder.h"
#include "handover.pb.h"
#include "trial_runner/agent/agent.h"
#include "trial_runner/agent/agent_home.h"
#include "trial_runner/agent/checkpoint_keeper.h"
#include "trial_runner/agent/cut_off_ranks.h"
#include "trial_runner/agent/gpus/gpu_watch.h"
#include "trial_runner/agent/held_exits.h"
#include "trial_runner/agent/host_address.h"
#include "trial_runner/agent/outbox.h"
#include "trial_runner/agent/processes/agent_watch.h"
#include "trial_runner/agent/processes/leftovers.h"
#include "trial_runner/agent/processes/out_of_memory.h"
#include "trial_runner/agent/replacement.h"
#include "trial_runner/agent/replica_process.h"
#include "trial_runner/agent/service_stream.h"
#include "trial_runner/agent/spare_pool.h"
#include "trial_runner/agent/trial_proxy.h"
#include "trial_runner/agent/zygotes/zygotes.h"

namespace espalier {

// The agent's owner thread: everything but the stream's blocking calls happens here, in turns of
// one poll() over the stream's eventfd, the control sockets and the pidfds. It is also the only
// thread that forks, because a replica's life hangs on the thread that forked it, and the one that
// execs the agent's successor, because the others end then.
class AgentLoop : public Agent {
 public:
  // `mark` is that of this run (left_processes.h), `folder_mark` that of the shared folder.
  AgentLoop(AgentOptions options, AgentHome home, TrialProxy proxy, std::string mark,
            std::string folder_mark, FileDescriptor wake);
  ~AgentLoop() override;

  // Goes on as the agent that handed this over; before Run.
  void TakeOver(const v1::AgentHandover& handover);

  absl::Status Run() override;
  void RunOnOwnThread();
  void Replace(const std::string& executable, std::vector<std::string> arguments) override;
  void LeaveWithin(double within_s) override;
  bool empty() const override;
  void Stop(double grace_s) override;
  bool connected() const override;
  bool WaitConnected(double timeout_s) override;

 private:
  using Clock = ReplicaProcess::Clock;

  // Replicas whose ids are remembered after their end, to refuse a start that arrives twice.
  static constexpr std::size_t kMaxRememberedReplicas = 4096;

  // Its processes are gone but for what these have left, which is killed before the service is
  // told.
  struct LeavingReplica {
    EndedReplica ended;
    v1::ReplicaExited exited;
    bool of_itself = false;
    bool may_be_gpu = false;
    Clock::time_point until;  // then it is told all the same
  };

  struct ReplaceOrder {
    std::string executable;
    std::vector<std::string> arguments;
  };

  void WatchGpus();
  void NoteGpu(const Gpu& gpu);  // from the watch's thread
  // Tells the service which slots cannot be used, if that has changed.
  void TellUnusableSlots();
  // Reports how a replica ended by itself. If its GPU may be at fault, the service must know that
  // first, or it would blame the trial and start the next replica on the same GPU. If the agent is
  // being ended as well, the program has not failed.
  void TellExit(v1::ReplicaExited exited, bool may_be_gpu);
  // Reports the exits for which this is known now, or which have waited long enough; or all.
  void TellHeldExits(bool all = false);
  v1::UnusableSlots UnusableSlots() const;
  // False: the agent has ended.
  bool Turn();
  bool Finished(Clock::time_point now);
  void ObeyStop(Clock::time_point now);
  void ObeyLeave(Clock::time_point now);
  void TellLeaving(double within_s);
  void NoteWhetherEmpty();
  // Obeys an order to replace the program: tries the new one, and does not return if that can take
  // over.
  void ObeyReplace(Clock::time_point now);
  absl::StatusOr<Replacement> TryReplacement() const;
  absl::Status GiveWay() const;
  v1::AgentHandover HandOver() const;
  // Polls all descriptors and handles those that are ready.
  void Wait(Clock::time_point now);
  int WaitMs(Clock::time_point now) const;
  void KeepTime(Clock::time_point now);
  // Counts the time since the last call as silence of the replicas. To be called before they are
  // read.
  void ListenedSince(bool listening);
  void Wake();

  void TakeArrivals();
  void SendHello(std::int64_t stream);
  void Obey(const v1::ServiceMessage& message);
  // As Obey. What throws is in the log, and a replica that it keeps from being started has failed.
  void ObeyOrRefuse(const v1::ServiceMessage& message);
  void SendOutput(const v1::ReadOutput& request);
  // Keeps the logs of what runs within their limit.
  void LimitLogs(Clock::time_point now);
  LogCut LimitLog(const ReplicaProcess& replica);
  // Reads what has values of the metric.
  void LookAtOutputs(Clock::time_point now);
  void Welcomed(const v1::Welcome& welcome);
  // Called for each new stream, because the machine may have moved to another network.
  void LearnHostAddress(const std::string& service_peer);
  void Broken(const absl::Status& status);
  void Acknowledged(std::int64_t sequence);
  void SendEvents();
  void SetConnected(bool connected);

  // Makes the folders of the trial's files its own, wherever this agent keeps them: before anything
  // of the trial is put there.
  absl::Status ClaimFolders(const TrialName& trial) const;
  void CopyCheckpoint(const v1::CopyCheckpoint& copy);
  void StartReplica(v1::StartReplica start);
  // Whether the disk has room for what starts, besides the reserve.
  absl::Status CheckDisk() const;
  // Starts the replica, whose checkpoint is here. It may have to wait for its zygote, if it may.
  void BeginReplica(const v1::StartReplica& start, bool may_wait = true);
  void BeginWaiting(bool may_wait);
  enum class CheckpointFailure { kNone, kMissing, kGone };
  void NotStarted(const v1::StartReplica& start, const absl::Status& why,
                  CheckpointFailure checkpoint);
  // Takes up the results of transfers.
  void TakeCheckpoints();
  void StopReplica(const v1::StopReplica& stop);
  // Kills the replica, and tells its exit before its process is gone.
  void LeaveToEnd(std::int64_t replica_id);
  void LookAtFolders(Clock::time_point now);
  void TellSaved(std::int64_t replica_id, std::int64_t trial_id, v1::CheckpointSaved saved);
  // nullptr: it is to wait for its zygote.
  absl::StatusOr<std::unique_ptr<ReplicaProcess>> LaunchReplica(const v1::StartReplica& start,
                                                                bool may_wait);
  // True: one of the trial's spares is that replica now.
  bool AdoptSpare(const v1::StartReplica& start);
  void Running(std::unique_ptr<ReplicaProcess> replica);
  // Takes what a replica says. It is ended where that throws.
  void Hear(std::int64_t replica_id);
  void Forward(std::int64_t replica_id, std::vector<v1::ReplicaMessage> messages);
  // The replica has left its group and waits to be adopted.
  void Park(std::int64_t replica_id, std::int64_t device_bytes);
  // Ends the spares on the slot's GPU, because its memory is needed for another process.
  void EndSparesBeside(int slot);
  void ReplicaEnded(std::int64_t replica_id);
  // What the agent has started and waits for.
  std::set<pid_t> OwnProcesses() const;
  // Tells of replicas that have ended once nothing of them is left.
  void EndLeftovers(Clock::time_point now);
  void AddExit(v1::ReplicaExited exited);

  const AgentOptions options_;
  const std::map<std::string, std::string> inherited_environment_;
  const AgentHome home_;
  const TrialProxy proxy_;
  const std::string incarnation_;  // the run's mark
  const FileDescriptor wake_;
  const Clock::duration replica_lease_;  // 0: none

  // What other threads ask for.
  mutable std::mutex mutex_;
  std::condition_variable connection_changed_;
  bool connected_ = false;
  std::optional<double> stop_grace_s_;
  std::optional<double> leave_within_s_;
  std::map<std::string, std::string> gpu_trouble_;  // by UUID, what there is to say of it
  bool gpu_news_ = false;                           // since the service was told
  std::int64_t gpu_looks_ = 0;                      // the last one that was asked for and is over
  std::optional<ReplaceOrder> replace_order_;
  bool empty_ = false;
  std::mutex join_mutex_;  // a second Stop may hurry the first one up, and waits with it

  // Used by the owner thread alone.
  std::map<std::int64_t, std::unique_ptr<ReplicaProcess>> running_;
  SparePool spares_;
  Zygotes zygotes_;
  CheckpointKeeper keeper_;
  std::map<std::int64_t, v1::StartReplica> fetching_;  // their checkpoints are on their way
  std::map<std::int64_t, v1::StartReplica> waiting_;   // their zygotes are
  absl::Status refused_;                               // by the pool, for good
  bool ever_welcomed_ = false;
  // While the machine goes away: until then checkpoints may still be fetched.
  Clock::time_point busy_until_;
  // Every replica whose end the service may not know: it runs, or its exit is not acknowledged.
  std::map<std::int64_t, v1::LiveReplica> unfinished_;
  std::set<std::int64_t> ended_;
  CutOffRanks cut_off_;
  HeldExits held_exits_;
  Leftovers leftovers_;
  AgentWatch watch_;
  std::vector<LeavingReplica> leaving_;
  Clock::time_point sweep_at_ = Clock::now();
  bool knows_orphans_ = false;
  Clock::time_point logs_at_ = Clock::now();
  Clock::time_point outputs_at_ = Clock::time_point::max();  // none is read
  bool log_trouble_ = false;                                 // and it was said
  OutOfMemory out_of_memory_;
  Outbox outbox_;
  std::int64_t node_id_ = 0;
  HostAddress host_;  // told to replicas that start
  double lease_s_ = 0;
  std::int64_t stream_number_ = 0;  // of the stream opened last
  bool welcomed_ = false;
  bool service_sends_heartbeats_ = false;
  Clock::time_point last_heard_;
  Clock::time_point next_heartbeat_;
  Clock::time_point event_sent_;  // the last one
  std::string last_break_;        // so that a lasting absence is logged once
  Clock::time_point listened_until_ = Clock::now();
  bool stopping_ = false;
  std::optional<ReplaceOrder> replacing_;
  std::optional<Replacement> replacement_;  // while it shows whether it can
  std::optional<Clock::time_point> machine_ends_;
  std::optional<Clock::time_point> leave_at_;  // replicas have ended; last events are on their way
  std::unique_ptr<GpuWatch> gpu_watch_;        // none without GPUs
  std::unique_ptr<ServiceStream> stream_;
  std::thread owner_;  // of Start; last: it uses all of the above
};

}  // namespace espalier
