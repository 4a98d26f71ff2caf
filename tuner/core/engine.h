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
// released may be asked for again, and then means a new node. Calls come from one thread and must
// not wait.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual void StartNode(const std::string& name) = 0;
  virtual void ReleaseNode(const std::string& name) = 0;
};

}  // namespace espalier
