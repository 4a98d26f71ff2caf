#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tuner/base/status.h"
#include "tuner/core/engine.h"

namespace espalier {

struct LocalEngineOptions {
  std::string executable;  // started as: executable agent --join ... --name ... --dir ...
  std::vector<std::string> arguments;  // that follow
  std::string directory;               // of all nodes; each has a folder in it, by its name
  double end_grace_s = 20;             // between SIGTERM and SIGKILL
};

// Nodes that are processes of this machine. They outlive a process that dies without ending its
// engine: which they are is written down in their folders, and the next engine of the same
// directory takes them over if they dial the same address, and else ends them. What an agent prints
// goes to agent.log in its folder. Has a thread of its own; methods may be called from any thread.
class LocalEngine : public Engine {
 public:
  // Refuses a directory that cannot be written to, or that another engine uses.
  static absl::StatusOr<std::unique_ptr<LocalEngine>> Make(LocalEngineOptions options);
  ~LocalEngine() override = default;  // stops

  // Where agents dial, HOST:PORT; an empty one of HTTP: none. What was asked for before starts now.
  virtual void Open(const std::string& grpc_address, const std::string& http_address) = 0;

  // Ends all nodes, and waits for them. Requests that come later change nothing.
  virtual void Stop() = 0;
};

}  // namespace espalier
