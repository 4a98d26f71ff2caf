#pragma once

#include <string>

namespace espalier {

// What gives a pool its machines: processes of this machine, a batch system, a cloud. The tuner
// says which nodes it wants and which it can do without; the engine sees to it.
//
// A node that was asked for joins by itself, as an agent with the name that it was asked for by;
// how long that takes is the engine's affair. A node is released when no trial holds its slots, or
// when it has not come in time: its agent may end at once, or never begin. Requests may come twice,
// and for nodes that are gone or were never asked for: both change nothing. A name that was
// released may be asked for again, and then means a new node. These two calls come from one thread
// and must not wait; the others come from another.
class Engine {
 public:
  virtual ~Engine() = default;

  // Where agents dial, HOST:PORT; an empty one of HTTP: none. What was asked for before starts now.
  virtual void Open(const std::string& grpc_address, const std::string& http_address) = 0;

  virtual void StartNode(const std::string& name) = 0;
  virtual void ReleaseNode(const std::string& name) = 0;

  // Ends all nodes, and waits for them. Requests that come later change nothing.
  virtual void Stop() = 0;
};

}  // namespace espalier
