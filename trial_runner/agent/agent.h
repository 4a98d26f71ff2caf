#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/port_range.h"
#include "base/status.h"
#include "trial_runner/agent/gpus/gpus.h"
#include "trial_runner/agent/service_call.h"

namespace espalier {

inline constexpr double kDefaultReplicaLease_s = 5;
inline constexpr double kMinReplicaLease_s = 0.1;
inline constexpr double kMaxReplicaLease_s = 86400;
inline constexpr std::int64_t kDefaultMaxLog_bytes = std::int64_t{64} << 20;
inline constexpr std::int64_t kMinMaxLog_bytes = std::int64_t{4} << 20;
inline constexpr std::int64_t kDefaultDiskReserve_bytes = std::int64_t{256} << 20;

struct AgentOptions {
  std::string service_address;  // gRPC host:port of the service
  ServiceDialer dial{};         // how it is called; none: by gRPC
  std::string http_address;     // the service's HTTP endpoint, for commands; may be empty
  std::string node_name;        // unique in the pool
  int slots = 1;
  // The cores whose time the slots share: each replica may have so many threads. 0: those that this
  // process may use when the agent starts.
  int cores = 0;
  std::string directory;  // logs, parameter files and checkpoints; created if absent
  // A folder that all agents of the pool see, perhaps under other paths, and in which checkpoints
  // are kept. Empty: they are kept in `directory`, and agents fetch them from one another.
  std::string shared_directory;
  // Whether other agents may fetch checkpoints here, and this one keeps copies of theirs.
  bool keep_checkpoints = true;
  std::string token;      // empty: none
  std::string tls_roots;  // PEM of the roots to trust; empty: the connection is in the clear
  // Where commands that speak with the service themselves (trial_proxy.h) find both:
  // ESPALIER_TOKEN_FILE and ESPALIER_TLS_CA. Absolute, may be empty.
  std::string token_file;
  std::string tls_ca_file;
  // Where replicas of other machines reach those of this one: an address or an interface of this
  // machine. Both empty: the address from which it reaches the service.
  std::string host_address;
  std::string interface;
  PortRange ports;  // that replicas listen at
  // An elastic replica that is silent for that many seconds is killed; 0: none is.
  double replica_lease_s = kDefaultReplicaLease_s;
  // Memory for elastic replicas that have left their group, so that the trial's next one need not
  // be started anew; 0: they end.
  std::int64_t spare_memory_bytes = 0;
  // A replica's log that grows beyond this loses its middle; 0: none does.
  std::int64_t max_log_bytes = kDefaultMaxLog_bytes;
  // Nothing is started while the disk of `directory` has less room than this.
  std::int64_t disk_reserve_bytes = kDefaultDiskReserve_bytes;
  // Slots are shares of these, slots_per_gpu of each: slot i is on the i-th, and round again. None:
  // slots are CPU slots.
  std::vector<Gpu> gpus;
  int slots_per_gpu = 1;
  bool hide_gpus = false;        // from replicas in CPU slots
  std::string gpu_type;          // what the allocator tells slots apart by; empty: CPU slots
  bool spot = false;             // the machine may be taken away at short notice
  double price_per_hour = 0;     // of the machine; 0: not told
  std::string tuner_executable;  // path of `tuner`, put first in PATH so that commands find it
  // A process of this same program, whose main function begins with RunAgentWatch
  // (processes/agent_watch.h), ends what trials have left when the agent is killed. False: only the
  // next agent of the same node and directory does.
  bool watched = false;
  // The file in which the agent that ran before in this process hands over its replicas to this
  // one. Empty: there was none.
  std::string take_over;
};

// Runs one machine's share of the pool: dials the service, starts replicas in its slots, watches
// them, carries their messages, and ends them when told or when its own end comes. Survives the
// service's absence: replicas run on, events wait and are sent again until acknowledged.
//
// Methods may be called from any thread. Replicas do not outlive the process that holds the agent
// (PR_SET_PDEATHSIG); what they have started elsewhere is ended by a process that watches the
// agent, and by the next agent of the same node and directory.
class Agent {
 public:
  // Works on a thread of its own.
  static absl::StatusOr<std::unique_ptr<Agent>> Start(const AgentOptions& options);
  // Works on the thread that calls Run: the main thread of a program that may be replaced.
  static absl::StatusOr<std::unique_ptr<Agent>> Make(const AgentOptions& options);
  // Whether Make could take over what these options name. Changes nothing.
  static absl::Status CheckTakeOver(const AgentOptions& options);
  virtual ~Agent() = default;  // stops if Stop was not called

  // Returns when the agent has been stopped and its replicas have ended, or with the reason when
  // the pool does not take it. Only after Make.
  virtual absl::Status Run() = 0;

  // Puts another program in this process, called with these arguments (the first is its name), as
  // the agent that goes on: same replicas, same run. First the program has to show that it starts
  // and understands what it is handed; if it does not, all stays as it is and the log says why. How
  // it went is also written to the agent's folder (replacement.h). Only after Make.
  virtual void Replace(const std::string& executable, std::vector<std::string> arguments) = 0;

  // The machine goes away in that many seconds: the service is told, and moves or pauses the trials
  // that are here. Said again, only an earlier moment counts.
  virtual void LeaveWithin(double within_s) = 0;
  // After LeaveWithin: the service knows, and nothing runs here any more. Stop loses nothing.
  virtual bool empty() const = 0;

  // Ends all replicas (SIGTERM, then SIGKILL after grace_s) and leaves the pool. After Start it
  // waits until that is done, after Make Run returns then.
  virtual void Stop(double grace_s) = 0;
  // True once the service has answered Hello, until the stream breaks.
  virtual bool connected() const = 0;
  // Waits until connected or the time has passed; false: the latter.
  virtual bool WaitConnected(double timeout_s) = 0;
};

}  // namespace espalier
