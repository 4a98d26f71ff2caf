#pragma once

#include <map>
#include <memory>
#include <string>

#include "tests/benchmarks/power_cuts/stage.h"
#include "trial_runner/agent/checkpoints/checkpoint_server.h"
#include "trial_runner/agent/checkpoints/checkpoint_store.h"

namespace espalier::power_cuts {

// Two machines of the pool, "a" and "b", with one slot each: what agents and the trials on them
// write to their disks and tell the service. No processes: a replica is a few lines here.
class TwoAgents {
 public:
  TwoAgents(const Stage& stage, TestedService& service);
  ~TwoAgents();

  void Join();
  // Does what the service has asked for, until it asks for nothing more.
  void Serve();
  // All trials that run report a value and save a checkpoint.
  void Train(std::int64_t step, double value);
  void Finish(double value);  // all that run

  // The checkpoint of that name (empty: the folder) comes from the machine "a" to "b".
  absl::StatusOr<std::string> Copy(const std::string& study, std::int64_t number,
                                   const std::string& name);

 private:
  struct Replica {
    TrialId trial;
    NodeId node;
    std::int64_t generation = 0;
  };

  void On(const StartReplicaCommand& command);
  void On(const RegroupCommand& command);
  void On(const StopReplicaCommand& command);
  void On(const CopyCheckpointCommand& command);
  void On(const DropCheckpointsCommand& command);
  void On(const EndSparesCommand&) {}
  void On(const RanksMeetCommand&) {}

  struct TrialOf {
    std::string study;
    std::int64_t number = 0;
  };
  TrialOf Look(TrialId trial);
  std::string MachineOf(NodeId node);
  CheckpointStore& StoreOf(const std::string& machine);
  absl::StatusOr<std::string> Obtain(const std::string& from, const std::string& to,
                                     const FetchOrder& order);
  // Saves and tells the service.
  void Save(ReplicaId id, const Replica& replica, std::int64_t step);

  const Stage& stage_;
  TestedService& service_;
  std::map<std::string, std::unique_ptr<CheckpointStore>> stores_;
  std::map<std::string, std::unique_ptr<CheckpointServer>> servers_;
  std::map<NodeId, std::string> machines_;
  std::map<ReplicaId, Replica> replicas_;
  std::int64_t step_ = 0;
};

// A trial's checkpoint, as the library in its program writes it. Returns its path.
absl::StatusOr<std::string> SaveCheckpoint(const Stage& stage, const std::string& folder,
                                           std::int64_t step, std::size_t bytes);

// The identity by which trials' folders are told apart.
std::string IdentityFor(const std::string& study);

}  // namespace espalier::power_cuts
