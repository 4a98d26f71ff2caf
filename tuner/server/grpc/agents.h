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
#include "tuner/api/agent_convert.h"
#include "tuner/server/grpc/agent_session.h"
#include "tuner/server/grpc/send_thread.h"
#include "tuner/server/loop/loop.h"

namespace espalier {

inline constexpr double kHeartbeatsPerLease = 4;
inline constexpr double kOutputWait_s = 5;

// The connected agents: which of them speaks for a node, where its commands go, and whether it is
// still there. Threads: whichever of gRPC's threads has read from a stream calls Join, Take and
// Leave, none of which waits; the owner thread of the loop calls Send; one thread of its own sends
// heartbeats and breaks streams that fell silent.
class Agents {
 public:
  Agents(double lease_s, std::function<Time()> clock);
  ~Agents();

  // The token that a replica is given; may be called from the owner thread.
  using TokenOf = std::function<std::string(TrialId, ReplicaId)>;
  // The secret by which the members of a group know one another; likewise.
  using GroupSecretOf = std::function<std::string(const Membership&)>;

  // Must be called once before anything else; the loop must live until Stop has returned.
  void Start(Loop& loop, TokenOf token_of = nullptr, GroupSecretOf group_secret_of = nullptr);
  // Breaks all streams and refuses new ones.
  void Stop();

  // Commands for nodes that are not connected are dropped: the core repairs at their next Hello.
  void Send(const std::vector<Command>& commands, const TunerState& state);

  // A stream that has not said Hello yet is watched for silence from here on, until Leave. False:
  // the service is shutting down.
  bool Arrive(const std::shared_ptr<AgentSession>& session);

  // The session speaks for hello.node_name from now on; once the node is durable it gets its
  // Welcome and reads on. If two agents have one name, the newer wins if it is the same agent
  // dialling again (same incarnation) or the older has been silent; else `refused` is called with
  // ALREADY_EXISTS, here or later on the owner thread.
  void Join(const std::shared_ptr<AgentSession>& session, const v1::Hello& hello,
            const std::function<void(const absl::Status&)>& refused);

  // An event or heartbeat of a session that has joined. Acknowledges once it is durable. False: the
  // session says when its stream may be read on.
  bool Take(const std::shared_ptr<AgentSession>& session, const v1::AgentMessage& message);

  // The newest of what the trial's processes have printed on the node. Waits for its agent, but not
  // for long; UNAVAILABLE: it is not connected, or does not answer. Not on the owner thread.
  absl::StatusOr<std::string> ReadOutput(NodeId node, const TrialName& trial,
                                         const OutputPart& part);

  // The thread on which streams send.
  SendThread& sender() { return sender_; }

  // The session's stream has ended.
  void Leave(const std::shared_ptr<AgentSession>& session);

 private:
  // The session that speaks for a node, by the node's name.
  struct NodeSession {
    std::shared_ptr<AgentSession> session;  // null: none at the moment
    std::string incarnation;
    std::int64_t last_sequence = 0;  // of the events taken from this incarnation
    NodeId node;
  };

  // Where other agents fetch the node's checkpoints.
  struct CheckpointServer {
    std::string address;
    std::string certificate;
    std::string error;
  };

  void NoteCheckpointServer(const std::shared_ptr<AgentSession>& session,
                            const v1::CheckpointServerOpen& server);
  void Watch();
  // Tells the agent where the sources of a checkpoint are, and both sides of its right to read
  // there.
  void OpenSources(const CommandSources& sources);
  absl::Status AttachNode(const std::shared_ptr<AgentSession>& session, const v1::Hello& hello,
                          const std::function<void(const absl::Status&)>& refused);
  void Welcome(const std::shared_ptr<AgentSession>& session, NodeId node);

  const double lease_s_;
  const std::function<Time()> clock_;
  SendThread sender_;
  Loop* loop_ = nullptr;
  TokenOf token_of_;
  GroupSecretOf group_secret_of_;

  // Held while events of agents are queued, so that they reach the core in the order of the
  // nodes' changes; never while a thread waits.
  std::mutex node_sessions_mutex_;
  std::map<std::string, NodeSession> node_sessions_;                 // by node name
  std::map<std::shared_ptr<AgentSession>, std::string> node_names_;  // the same by session

  std::mutex routes_mutex_;  // taken last, never held while waiting
  std::map<NodeId, std::shared_ptr<AgentSession>> routes_;
  std::map<NodeId, CheckpointServer>
      checkpoint_servers_;  // as the agents said since they joined last
  std::set<std::shared_ptr<AgentSession>> sessions_;
  std::condition_variable stop_changed_;
  bool stopping_ = false;
  std::int64_t last_request_ = 0;  // of output
  std::map<std::int64_t, std::promise<std::string>> requests_;
  std::thread watch_;
};

}  // namespace espalier
