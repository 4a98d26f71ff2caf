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

#include "trial_runner/agent/agent.h"
#include "trial_runner/agent/gpu_watch.h"
#include "trial_runner/agent/outbox.h"
#include "trial_runner/agent/replica_process.h"
#include "trial_runner/agent/service_stream.h"
#include "trial_runner/agent/spare_pool.h"

namespace espalier {

// The agent's owner thread: everything but the stream's blocking calls happens here, in turns of
// one poll() over the stream's eventfd, the control sockets and the pidfds. It is also the only
// thread that forks, because a replica's life hangs on the thread that forked it.
class AgentLoop : public Agent {
 public:
  AgentLoop(AgentOptions options, FileDescriptor wake);
  ~AgentLoop() override;

  void LeaveWithin(double within_s) override;
  bool empty() const override;
  void Stop(double grace_s) override;
  bool connected() const override;
  bool WaitConnected(double timeout_s) override;

 private:
  using Clock = ReplicaProcess::Clock;

  // Replicas whose ids are remembered after their end, to refuse a start that arrives twice.
  static constexpr std::size_t kMaxRememberedReplicas = 4096;

  void Run();
  void WatchGpus();
  bool Finished(Clock::time_point now);
  void ObeyStop(Clock::time_point now);
  void ObeyLeave(Clock::time_point now);
  void NoteWhetherEmpty();
  // Poll and hear who is ready.
  void Wait(Clock::time_point now);
  int WaitMs(Clock::time_point now) const;
  void KeepTime(Clock::time_point now);
  // Counts the time since the last call as silence of the replicas: before they are read.
  void ListenedSince(bool listening);
  void Wake();

  void TakeArrivals();
  void SendHello(std::int64_t stream);
  void Obey(const v1::ServiceMessage& message);
  void SendOutput(const v1::ReadOutput& request);
  void Welcomed(const v1::Welcome& welcome);
  void Broken(const absl::Status& status);
  void Acknowledged(std::int64_t sequence);
  void SendEvents();
  void SetConnected(bool connected);

  void StartReplica(const v1::StartReplica& start);
  absl::StatusOr<std::unique_ptr<ReplicaProcess>> LaunchReplica(const v1::StartReplica& start);
  // True: one of the trial's spares is that replica now.
  bool AdoptSpare(const v1::StartReplica& start);
  void Running(std::unique_ptr<ReplicaProcess> replica);
  void Forward(std::int64_t replica_id, std::vector<v1::ReplicaMessage> messages);
  // The replica has left its group and waits to be adopted.
  void Park(std::int64_t replica_id);
  void ReplicaEnded(std::int64_t replica_id);
  void AddExit(v1::ReplicaExited exited);

  const AgentOptions options_;
  const std::map<std::string, std::string> inherited_environment_;
  const std::string incarnation_;
  const FileDescriptor wake_;
  const Clock::duration replica_lease_;  // 0: none

  // Asked for from other threads.
  mutable std::mutex mutex_;
  std::condition_variable connection_changed_;
  bool connected_ = false;
  std::optional<double> stop_grace_s_;
  std::optional<double> leave_within_s_;
  bool empty_ = false;
  std::mutex join_mutex_;  // a second Stop may hurry the first one up, and waits with it

  // The owner thread's alone.
  std::map<std::int64_t, std::unique_ptr<ReplicaProcess>> running_;
  SparePool spares_;
  // All that the service may not know the end of: running, or their exit is not acknowledged.
  std::map<std::int64_t, v1::LiveReplica> unfinished_;
  std::set<std::int64_t> ended_;
  Outbox outbox_;
  std::int64_t node_id_ = 0;
  double lease_s_ = 0;
  std::int64_t stream_number_ = 0;  // of the stream opened last
  bool welcomed_ = false;
  bool service_sends_heartbeats_ = false;
  Clock::time_point last_heard_;
  Clock::time_point next_heartbeat_;
  std::string last_break_;  // so that a lasting absence is logged once
  Clock::time_point listened_until_ = Clock::now();
  bool stopping_ = false;
  std::optional<Clock::time_point> machine_ends_;
  std::optional<Clock::time_point> leave_at_;  // replicas have ended; last events are on their way
  std::unique_ptr<GpuWatch> gpu_watch_;        // none without GPUs
  std::unique_ptr<ServiceStream> stream_;
  std::thread owner_;  // last: it uses all of the above
};

}  // namespace espalier
