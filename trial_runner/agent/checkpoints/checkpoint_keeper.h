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

// Beyond so many trials a Hello says that there are more.
inline constexpr std::size_t kMaxToldCheckpoints = 50'000;

// An agent's part in keeping the pool's checkpoints: it gives its own to other agents, fetches
// those that it is told to, and removes copies that are not needed. The owner thread of the agent
// alone.
class CheckpointKeeper {
 public:
  // What a transfer has come to.
  struct Arrived {
    std::int64_t replica_id = 0;  // that waits for it; 0: a copy that was ordered
    v1::CheckpointCopied told;
    std::string path;   // if there is no error
    bool gone = false;  // if there is one: no source has it whole
  };

  // `wake` is called from other threads when TakeArrived has something. `mark` is that of the
  // options' shared folder.
  CheckpointKeeper(const AgentOptions& options, std::string mark, std::function<void()> wake);
  ~CheckpointKeeper();

  // Whether it gives and takes at all.
  bool on() const { return on_; }

  // For Hello.
  void Describe(v1::Hello& hello) const;
  // Opens the server at that address unless it is open there. What other agents are to know of it.
  v1::CheckpointServerOpen OpenServer(const HostAddress& host);
  void Allow(const v1::AllowRead& read);
  // Whether others are at it, or about to be, to fetch something.
  bool giving() const { return server_ != nullptr && server_->busy(); }

  void Copy(const v1::CopyCheckpoint& copy);
  // Whether the checkpoint that the start names is here, and cannot be checked: then `start` has
  // its path here.
  bool IsHere(v1::StartReplica& start) const;
  // Brings it here for the replica, or checks what is here.
  absl::Status Fetch(const v1::StartReplica& start);
  std::vector<Arrived> TakeArrived();
  // The trial runs here from now on: what lies here is its own.
  void TrialRunsHere(const v1::StartReplica& start);
  FolderWatch& folders() { return folders_; }
  const FolderWatch& folders() const { return folders_; }
  void Drop(const v1::DropCheckpoints& drop) const;

  // Adds what others need to know of a checkpoint that a replica has saved. False: it is gone, and
  // a newer one was said to be there.
  bool Complete(const v1::StartReplica& start, v1::CheckpointSaved& saved) const;

 private:
  absl::Status Put(std::int64_t trial_id, const std::string& study, std::int64_t number,
                   const v1::CheckpointSources& from, std::int64_t replica_id);

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
