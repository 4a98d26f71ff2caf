#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trial_runner/agent/agent.h"
#include "trial_runner/agent/checkpoints/checkpoint_server.h"
#include "trial_runner/agent/checkpoints/checkpoint_store.h"
#include "trial_runner/agent/checkpoints/checkpoint_transfers.h"
#include "trial_runner/agent/checkpoints/folder_watch.h"
#include "trial_runner/agent/host_address.h"
#include "tuner.pb.h"

namespace espalier {

// A Hello lists at most so many trials, and says where there are more.
inline constexpr std::size_t kMaxToldCheckpoints = 50'000;

// An agent's part in keeping the pool's checkpoints: it gives its own to other agents, fetches
// those that it is told to, and removes copies that are not needed. Used by the agent's owner
// thread alone.
class CheckpointKeeper {
 public:
  // The outcome of a transfer.
  struct Arrived {
    std::int64_t replica_id = 0;  // the replica that waits for it; 0: a copy that was ordered
    v1::CheckpointCopied told;
    std::string path;   // if there is no error
    bool gone = false;  // if there is one: no source has it whole
  };

  // `wake` is called from other threads when TakeArrived has something. `mark` is that of the
  // options' shared folder.
  CheckpointKeeper(const AgentOptions& options, std::string mark, std::function<void()> wake);
  ~CheckpointKeeper();

  // Whether it exchanges checkpoints with other agents at all.
  bool on() const { return on_; }

  // Adds what a Hello tells of checkpoints.
  void Describe(v1::Hello& hello) const;
  // Opens the server at that address unless it is open there. Returns what other agents need to
  // know of it.
  v1::CheckpointServerOpen OpenServer(const HostAddress& host);
  void Allow(const v1::AllowRead& read);
  // Whether other agents fetch something, or are about to.
  bool giving() const { return server_ != nullptr && server_->busy(); }

  void Copy(const v1::CopyCheckpoint& copy);
  // Whether the checkpoint that the start names is here, and cannot be checked: then `start` has
  // its path here.
  bool IsHere(v1::StartReplica& start) const;
  // Fetches the checkpoint for the replica, or checks the one that is here.
  absl::Status Fetch(const v1::StartReplica& start);
  std::vector<Arrived> TakeArrived();
  // The trial runs here from now on, so that the checkpoints that lie here are its own.
  void TrialRunsHere(const v1::StartReplica& start);
  FolderWatch& folders() { return folders_; }
  const FolderWatch& folders() const { return folders_; }
  void Drop(const v1::DropCheckpoints& drop) const;

  // Adds what others need to know of a checkpoint that a replica has saved. False: it is gone, and
  // a newer one was said to be there.
  bool Complete(const v1::StartReplica& start, v1::CheckpointSaved& saved) const;

 private:
  const bool on_;
  const std::string mark_;  // empty: its own disk
  const PortRange ports_;
  const std::string directory_;
  const std::shared_ptr<const CheckpointStore> store_;
  std::string server_host_;
  std::string server_error_;
  std::unique_ptr<CheckpointServer> server_;
  FolderWatch folders_;
  std::unique_ptr<CheckpointTransfers> transfers_;  // last: uses the store
};

}  // namespace espalier
