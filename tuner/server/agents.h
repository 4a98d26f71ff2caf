#pragma once

#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tuner.pb.h"
#include "tuner/server/agent_session.h"
#include "tuner/server/loop.h"

namespace espalier {

inline constexpr double kHeartbeatsPerLease = 4;
inline constexpr double kOutputWait_s = 5;

// The connected agents: who may speak for a node, where its commands go, and whether it is still
// there. Threads: each stream's reader calls Join, Take and Leave; the owner thread of the loop
// calls Send; one thread of its own sends heartbeats and breaks streams that fell silent.
class Agents {
 public:
  Agents(double lease_s, std::function<Time()> clock);
  ~Agents();

  // Must be called once before anything else; the loop must live until Stop has returned.
  void Start(Loop& loop);
  // Breaks all streams and refuses new ones.
  void Stop();

  // Commands for nodes that are not connected are dropped: the core repairs at their next Hello.
  void Send(const std::vector<Command>& commands, const TunerState& state);

  // A stream that has not said Hello yet. It is watched for silence from here on; to be undone by
  // Leave. False: the service is shutting down.
  bool Arrive(const std::shared_ptr<AgentSession>& session);

  // The session speaks for hello.node_name from now on, and gets its Welcome once the node is
  // durable. Of two agents of one name the newer wins if it is the same agent dialling again
  // (same incarnation) or the older has been silent; else ALREADY_EXISTS.
  absl::Status Join(const std::shared_ptr<AgentSession>& session, const v1::Hello& hello);

  // An event or heartbeat of a session that has joined. Acknowledges once it is durable.
  void Take(const std::shared_ptr<AgentSession>& session, const v1::AgentMessage& message);

  // The newest of what the trial's processes have printed on the node. Waits for its agent, but not
  // for long; UNAVAILABLE: it is not connected, or does not answer. Not on the owner thread.
  absl::StatusOr<std::string> ReadOutput(NodeId node, const std::string& study,
                                         std::int64_t trial_number, std::int64_t max_bytes);

  // The session's stream has ended.
  void Leave(const std::shared_ptr<AgentSession>& session);

 private:
  // Who speaks for a node, by its name.
  struct Seat {
    std::shared_ptr<AgentSession> session;  // null: nobody at the moment
    std::string incarnation;
    std::int64_t last_sequence = 0;  // of the events taken from this incarnation
    NodeId node;
  };

  void Watch();
  void Welcome(const std::shared_ptr<AgentSession>& session, NodeId node);

  const double lease_s_;
  const std::function<Time()> clock_;
  Loop* loop_ = nullptr;

  // Held while events of agents are queued, so that they reach the core in the order of the
  // seats' changes. The owner thread never takes it: it empties the queue that we may wait for.
  std::mutex seats_mutex_;
  std::map<std::string, Seat> seats_;

  std::mutex routes_mutex_;  // taken last, never held while waiting
  std::map<NodeId, std::shared_ptr<AgentSession>> routes_;
  std::set<std::shared_ptr<AgentSession>> sessions_;
  std::condition_variable stop_changed_;
  bool stopping_ = false;
  std::int64_t last_request_ = 0;  // of output
  std::map<std::int64_t, std::promise<std::string>> requests_;
  std::thread watch_;
};

}  // namespace espalier
