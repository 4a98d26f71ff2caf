#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trial_runner/agent/gpus.h"
#include "tuner/base/status.h"

namespace espalier {

inline constexpr double kDefaultReplicaLease_s = 5;
inline constexpr double kMinReplicaLease_s = 0.1;
inline constexpr double kMaxReplicaLease_s = 86400;

struct AgentOptions {
  std::string service_address;  // gRPC host:port of the service
  std::string http_address;     // the service's HTTP door, told to commands; may be empty
  std::string node_name;        // unique in the pool
  int slots = 1;
  std::string directory;  // logs, parameter files and checkpoints; created if absent
  std::string token;      // empty: none
  std::string tls_roots;  // PEM of whom to trust; empty: the connection is in the clear
  // Where commands find both: ESPALIER_TOKEN_FILE and ESPALIER_TLS_CA. Absolute, may be empty.
  std::string token_file;
  std::string tls_ca_file;
  // An elastic replica from which nothing is heard for so many seconds is killed; 0: none is.
  double replica_lease_s = kDefaultReplicaLease_s;
  // Memory for elastic replicas that have left their group, so that the trial's next one need not
  // be started anew; 0: they end.
  std::int64_t spare_memory_bytes = 0;
  // Slots are shares of these, slots_per_gpu of each: slot i is on the i-th, and round again. None:
  // slots are CPU slots.
  std::vector<Gpu> gpus;
  int slots_per_gpu = 1;
  bool hide_gpus = false;        // from replicas in CPU slots
  std::string gpu_type;          // what the allocator tells slots apart by; empty: CPU slots
  bool spot = false;             // the machine may be taken away at short notice
  double price_per_hour = 0;     // of the machine; 0: not told
  std::string tuner_executable;  // path of `tuner`, put first in PATH so that commands find it
};

// Runs one machine's share of the pool: dials the service, starts replicas in its slots, watches
// them, carries their messages, and ends them when told or when its own end comes. Survives the
// service's absence: replicas run on, events wait and are sent again until acknowledged.
//
// Starts a thread of its own; methods may be called from any thread. Replicas do not outlive the
// process that holds the agent (PR_SET_PDEATHSIG).
class Agent {
 public:
  static absl::StatusOr<std::unique_ptr<Agent>> Start(const AgentOptions& options);
  virtual ~Agent() = default;  // stops if Stop was not called

  // The machine goes away in so many seconds: the service is told, and moves or pauses the trials
  // that are here. Said again, only an earlier moment counts.
  virtual void LeaveWithin(double within_s) = 0;
  // After LeaveWithin: the service knows, and nothing runs here any more. Stop loses nothing.
  virtual bool empty() const = 0;

  // Ends all replicas (SIGTERM, then SIGKILL after grace_s) and leaves the pool.
  virtual void Stop(double grace_s) = 0;
  // True once the service has answered Hello, until the stream breaks.
  virtual bool connected() const = 0;
  // Waits until connected or the time has passed; false: the latter.
  virtual bool WaitConnected(double timeout_s) = 0;
};

}  // namespace espalier
