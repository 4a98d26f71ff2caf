#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace espalier {

// What an engine's machines are like. What --node-start, --max-nodes and the like leave out is
// taken from here.
struct EngineCapabilities {
  double notice_s = 0;     // between the word that a machine is taken away and its end; 0: no word
  double start_s = 5;      // from asking for a machine to its first replica, where one is free
  double queue_s = 0;      // that it may have to wait until one is free; 0: there is no queue
  int most_nodes = 0;      // 0: as many as this machine's CPU cores make
  bool elsewhere = false;  // they are other machines, which do not reach our loopback
};

// What gives a pool its machines: processes of this machine, a batch system, a cloud. The tuner
// says which nodes it wants and which it can do without; the engine sees to it.
//
// A node that was asked for joins by itself, as an agent with the name that it was asked for by;
// how long that takes is the engine's affair. A node is released when no trial holds its slots, or
// when it has not come in time: its agent may end at once, or never begin. Requests may come twice,
// and for nodes that are gone or were never asked for: both change nothing. A name that was
// released may be asked for again, and then means a new node. These calls, and NodeJoined, come
// from one thread and must not wait; the others come from another.
//
// An engine with remote machines may be unable to list them: then it concludes nothing, keeps what
// there is, and goes on trying. No fault of it costs more than growth.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual EngineCapabilities capabilities() const { return {}; }

  // If several services were started for one pool, only one serves at a time: returns when it is
  // this one's turn, before any other call of the engine. `wait` lets so many seconds pass, and
  // says whether to go on waiting; where not, the error is Cancelled. A turn that is lost later
  // ends the process at once: another has begun.
  virtual absl::Status AwaitTurn(const std::function<bool(double seconds)>& /*wait*/) {
    return absl::OkStatus();
  }
  // Names the election that decides which service serves; empty: none. If several engines of one
  // process have the same election, one of them awaits the turn for all, and lives as long as the
  // others; these are told by ShareTurn instead.
  virtual std::string election() const { return ""; }
  virtual absl::Status ShareTurn() { return absl::OkStatus(); }

  // Where agents dial, HOST:PORT; an empty one of HTTP: none. What was asked for before starts now.
  virtual void Open(const std::string& grpc_address, const std::string& http_address) = 0;

  virtual void StartNode(const std::string& name) = 0;
  virtual void ReleaseNode(const std::string& name) = 0;
  // Its agent has said Hello: for an engine that tells people of machines whose agents do not.
  virtual void NodeJoined(const std::string& /*name*/) {}

  // What keeps it from giving the nodes that are wanted, a line each, for people. From any thread.
  virtual std::vector<std::string> Troubles() const { return {}; }

  // Ends all nodes, and waits for them. Requests that come later change nothing.
  virtual void Stop() = 0;
  // Instead of Stop: leaves the nodes to the next engine of the same directory and address, as a
  // crash would, where they can outlive this process.
  virtual void Leave() { Stop(); }
};

}  // namespace espalier
