#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "trial_runner/agent/checkpoints/checkpoint_readers.h"

namespace espalier {

// Serves this agent's checkpoints to other agents, at a port with TLS and a certificate of its own.
// A reader needs a ticket of the service, which is good for one checkpoint. Each reader costs the
// memory of one piece. Methods may be called from any thread.
class CheckpointServer {
 public:
  using FolderOf = CheckpointReaders::FolderOf;

  // Listens on the first free port of first_port to last_port (0: any) of the host, a literal
  // address. `folder_of` is called from several threads.
  static absl::StatusOr<std::unique_ptr<CheckpointServer>> Open(const std::string& host,
                                                                int first_port, int last_port,
                                                                const FolderOf& folder_of);
  virtual ~CheckpointServer() = default;  // breaks off what is under way

  virtual const std::string& address() const = 0;      // host:port
  virtual const std::string& certificate() const = 0;  // PEM
  virtual void Allow(std::string ticket, CheckpointName what) = 0;
  // Whether an agent reads, or was given a ticket lately (kTicketUse) and has not used it yet.
  virtual bool busy() = 0;
};

}  // namespace espalier
