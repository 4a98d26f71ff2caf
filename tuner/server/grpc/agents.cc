#include "tuner/server/grpc/agents.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/guarded.h"
#include "base/host_port.h"
#include "spdlog/spdlog.h"
#include "tuner/api/agent_convert.h"
#include "tuner/credentials/hexadecimal.h"

namespace espalier {

namespace {

constexpr std::size_t kTicketBytes = 16;

// Logs what a replica says of others that it cannot reach, for the network's administrator.
void LogOutOfReach(const FromAgent& from_agent) {
  const auto* said = from_agent.event ? std::get_if<FromReplica>(&*from_agent.event) : nullptr;
  const auto* stuck = said == nullptr ? nullptr : std::get_if<ReplicaStuck>(&said->message);
  if (stuck == nullptr) return;
  for (const ReplicaContact& contact : stuck->contacts) {
    if (!OutOfReach(contact.contact)) continue;
    spdlog::warn("event=replica_out_of_reach from={} to={} address={} error=\"{}\"",
                 said->replica.value, contact.replica.value, contact.address, contact.error);
  }
}

// Good for one checkpoint, at one agent, for as long as that remembers it.
std::string NewTicket() { return RandomHexadecimal(kTicketBytes); }

}  // namespace

Agents::Agents(double lease_s, std::function<Time()> clock)
    : lease_s_(lease_s), clock_(std::move(clock)) {}

Agents::~Agents() { Stop(); }

void Agents::Start(Loop& loop, TokenOf token_of, GroupSecretOf group_secret_of) {
  loop_ = &loop;
  token_of_ = std::move(token_of);
  group_secret_of_ = std::move(group_secret_of);
  watch_ = std::thread([this] { Watch(); });
}

void Agents::Stop() {
  std::set<std::shared_ptr<AgentSession>> sessions;
  {
    const std::lock_guard lock(routes_mutex_);
    stopping_ = true;
    sessions = sessions_;
  }
  stop_changed_.notify_all();
  for (const auto& session : sessions) session->Cancel();
  if (watch_.joinable()) watch_.join();
}

bool Agents::Arrive(const std::shared_ptr<AgentSession>& session) {
  const std::lock_guard lock(routes_mutex_);
  if (stopping_) return false;
  sessions_.insert(session);
  return true;
}

void Agents::Send(const std::vector<Command>& commands, const TunerState& state) {
  for (const Command& command : commands) {
    std::shared_ptr<AgentSession> session;
    {
      const std::lock_guard lock(routes_mutex_);
      const auto route = routes_.find(NodeOf(command));
      if (route != routes_.end()) session = route->second;
    }
    if (session) {
      v1::ServiceMessage message = ToProto(command, state);
      OpenSources(SourcesOf(command, message));
      if (const auto* start = std::get_if<StartReplicaCommand>(&command); start && token_of_) {
        message.mutable_start()->set_token(token_of_(start->trial, start->replica));
      }
      // A replica that leaves need not know the secret of those that stay.
      if (const auto* regroup = std::get_if<RegroupCommand>(&command);
          regroup && group_secret_of_ && regroup->membership.RankOf(regroup->replica)) {
        message.mutable_to_replica()->mutable_command()->mutable_regroup()->set_secret(
            group_secret_of_(regroup->membership));
      }
      session->Send(std::move(message));
    } else {
      spdlog::debug("event=command_dropped node={} reason=\"not connected\"",
                    NodeOf(command).value);
    }
  }
}

void Agents::OpenSources(const CommandSources& sources) {
  for (std::size_t i = 0; i < sources.nodes.size(); ++i) {
    v1::CheckpointSource& source = *sources.told->mutable_sources(static_cast<int>(i));
    std::shared_ptr<AgentSession> holder;
    {
      const std::lock_guard lock(routes_mutex_);
      const auto route = routes_.find(sources.nodes[i]);
      const auto server = checkpoint_servers_.find(sources.nodes[i]);
      if (route == routes_.end()) {
        source.set_error("its agent is not connected");
      } else if (server == checkpoint_servers_.end()) {
        source.set_error("its agent has opened no port for checkpoints yet");
      } else if (!server->second.error.empty()) {
        source.set_error(server->second.error);
      } else {
        source.set_address(server->second.address);
        source.set_certificate(server->second.certificate);
        holder = route->second;
      }
    }
    if (holder == nullptr) continue;
    v1::ServiceMessage allow;
    v1::AllowRead& read = *allow.mutable_allow_read();
    read.set_ticket(NewTicket());
    read.set_study(sources.study);
    read.set_trial_number(sources.trial_number);
    read.set_name(sources.told->name());
    source.set_ticket(read.ticket());
    holder->Send(std::move(allow));
  }
}

void Agents::Join(const std::shared_ptr<AgentSession>& session, const v1::Hello& hello,
                  const std::function<void(const absl::Status&)>& refused) {
  if (const absl::Status attached = AttachNode(session, hello, refused); !attached.ok())
    refused(attached);
}

absl::Status Agents::AttachNode(const std::shared_ptr<AgentSession>& session,
                                const v1::Hello& hello,
                                const std::function<void(const absl::Status&)>& refused) {
  v1::AgentMessage message;
  *message.mutable_hello() = hello;
  ESPALIER_ASSIGN_OR_RETURN(FromAgent from_agent, FromProto(message));
  std::shared_ptr<AgentSession> before;
  bool queued = false;
  {
    const std::lock_guard lock(node_sessions_mutex_);
    NodeSession& node_session = node_sessions_[hello.node_name()];
    const bool same = node_session.incarnation == hello.incarnation();
    if (node_session.session && !same && !node_session.session->cancelled() &&
        !node_session.session->Silent(clock_(), lease_s_)) {
      return absl::AlreadyExistsError(absl::StrCat(
          "an agent named \"", hello.node_name(),
          "\" is connected already: give this one another name, or end the other first"));
    }
    before = std::exchange(node_session.session, session);
    node_names_.erase(before);
    node_names_[session] = hello.node_name();
    if (!same || hello.incarnation().empty()) node_session.last_sequence = 0;
    node_session.incarnation = hello.incarnation();
    session->TakeHello();
    const auto joined = [this, session, refused, name = hello.node_name(), slots = hello.slots(),
                         replicas = hello.replicas_size()](const Reply& reply) {
      if (!reply.status.ok()) {
        refused(reply.status);
        return;
      }
      Welcome(session, reply.node());
      spdlog::info("event=agent_connected node=\"{}\" slots={} replicas={}", name, slots, replicas);
      {
        const std::lock_guard sessions_lock(node_sessions_mutex_);
        node_sessions_[name].node = reply.node();
      }
      session->Settled(clock_());
    };
    queued = loop_->PostAsync(std::move(from_agent), joined);
  }
  if (before) before->Cancel();
  return queued ? absl::OkStatus() : ShuttingDown();
}

// On the owner thread, before the commands of the same batch are sent: they find their way.
void Agents::Welcome(const std::shared_ptr<AgentSession>& session, NodeId node) {
  v1::ServiceMessage welcome;
  welcome.mutable_welcome()->set_node_id(node.value);
  welcome.mutable_welcome()->set_lease_s(lease_s_);
  welcome.mutable_welcome()->set_sends_heartbeats(true);
  session->Send(std::move(welcome));
  const std::lock_guard lock(routes_mutex_);
  // One that has left in the meantime must not take the node's commands.
  if (sessions_.contains(session)) routes_[node] = session;
}

bool Agents::Take(const std::shared_ptr<AgentSession>& session, const v1::AgentMessage& message) {
  session->Heard(clock_());
  if (message.kind_case() == v1::AgentMessage::kHeartbeat) return true;
  if (message.kind_case() == v1::AgentMessage::kOutput) {
    const std::lock_guard lock(routes_mutex_);
    // Not if nobody waits any more. The agent of another node could answer in its place, but knows
    // no number that is worth guessing: all agents of a pool have its token.
    const auto request = requests_.extract(message.output().request());
    if (!request.empty()) request.mapped().set_value(message.output().text());
    return true;
  }
  if (message.kind_case() == v1::AgentMessage::kCheckpointServer) {
    NoteCheckpointServer(session, message.checkpoint_server());
    return true;
  }
  absl::StatusOr<FromAgent> from_agent = FromProto(message);
  if (!from_agent.ok()) {
    // Acknowledged all the same: sent again it would be no better.
    spdlog::error("event=agent_message_refused error=\"{}\"",
                  std::string(from_agent.status().message()));
    from_agent = FromAgent{};
  }
  LogOutOfReach(*from_agent);
  const std::int64_t sequence = message.sequence();
  const std::lock_guard lock(node_sessions_mutex_);
  const auto name = node_names_.find(session);
  if (name == node_names_.end()) return true;  // a newer session speaks for the node
  NodeSession& node_session = node_sessions_.at(name->second);
  // Resent because its acknowledgement was lost: it is queued or durable already. It goes
  // through the queue empty, so that it is acknowledged once what precedes it is durable.
  if (sequence > 0 && sequence <= node_session.last_sequence) from_agent = FromAgent{};
  node_session.last_sequence = std::max(node_session.last_sequence, sequence);
  if (from_agent->event) {
    // An agent speaks for its own node, whatever it says.
    std::visit(
        [&node_session]<typename E>(E& event) {
          if constexpr (std::is_same_v<E, AgentLeaving> || std::is_same_v<E, AgentSlots> ||
                        std::is_same_v<E, FromReplica> || std::is_same_v<E, ReplicaStarted> ||
                        std::is_same_v<E, ReplicaExited> || std::is_same_v<E, CheckpointCopied>) {
            event.node = node_session.node;
          }
        },
        *from_agent->event);
  }
  // The message may be overwritten by the next one as soon as this is queued.
  const bool read_on = session->TakeEvent();
  const auto settled = [this, session, sequence](const Reply& reply) {
    if (!absl::IsUnavailable(reply.status) && sequence > 0) session->Acknowledge(sequence);
    session->Settled(clock_());
  };
  if (!loop_->PostAsync(*std::move(from_agent), settled)) session->Settled(clock_());
  return read_on;
}

void Agents::NoteCheckpointServer(const std::shared_ptr<AgentSession>& session,
                                  const v1::CheckpointServerOpen& server) {
  const std::lock_guard sessions_lock(node_sessions_mutex_);
  const auto name = node_names_.find(session);
  if (name == node_names_.end()) return;
  const NodeId node = node_sessions_.at(name->second).node;
  if (const auto at = ParseHostPort(server.address()); at.ok()) {
    loop_->PostAsync({std::nullopt, NodeHost{name->second, at->host}}, nullptr);
  }
  if (!server.error().empty()) {
    spdlog::warn("event=checkpoint_server_closed node=\"{}\" error=\"{}\"", name->second,
                 server.error());
  }
  const std::lock_guard lock(routes_mutex_);
  checkpoint_servers_[node] = {server.address(), server.certificate(), server.error()};
}

absl::StatusOr<std::string> Agents::ReadOutput(NodeId node, const TrialName& trial,
                                               const OutputPart& part) {
  v1::ServiceMessage message;
  v1::ReadOutput& wanted = *message.mutable_read_output();
  wanted.set_study(trial.study);
  wanted.set_study_identity(trial.study_identity);
  wanted.set_trial_number(trial.number);
  wanted.set_max_bytes(part.max_bytes);
  wanted.set_rank(part.rank);
  std::shared_ptr<AgentSession> session;
  std::future<std::string> text;
  {
    const std::lock_guard lock(routes_mutex_);
    const auto route = routes_.find(node);
    if (route == routes_.end()) return absl::UnavailableError("its agent is not connected");
    session = route->second;
    wanted.set_request(++last_request_);
    text = requests_[last_request_].get_future();
  }
  const std::int64_t request = wanted.request();
  session->Send(std::move(message));
  const bool answered =
      text.wait_for(std::chrono::duration<double>(kOutputWait_s)) == std::future_status::ready;
  const std::lock_guard lock(routes_mutex_);
  requests_.erase(request);
  if (!answered) return absl::UnavailableError("its agent does not answer");
  return text.get();
}

void Agents::Leave(const std::shared_ptr<AgentSession>& session) {
  {
    const std::lock_guard lock(routes_mutex_);
    sessions_.erase(session);
    std::erase_if(routes_, [&session](const auto& route) { return route.second == session; });
  }
  const std::lock_guard lock(node_sessions_mutex_);
  // Not if a newer session of the node has taken its place: the node is not gone then.
  const auto left = node_names_.extract(session);
  if (left.empty()) return;
  NodeSession& node_session = node_sessions_.at(left.mapped());
  node_session.session.reset();
  spdlog::info("event=agent_disconnected node=\"{}\"", left.mapped());
  if (node_session.node) loop_->PostAsync({AgentGone{node_session.node}, {}}, nullptr);
}

void Agents::Watch() {
  v1::ServiceMessage heartbeat;
  heartbeat.mutable_heartbeat();
  std::unique_lock lock(routes_mutex_);
  const std::chrono::duration<double> interval(lease_s_ / kHeartbeatsPerLease);
  while (!stop_changed_.wait_for(lock, interval, [this] { return stopping_; })) {
    const std::set<std::shared_ptr<AgentSession>> sessions = sessions_;
    lock.unlock();
    for (const auto& session : sessions) {
      const absl::Status watched =
          Guarded([] { return std::string("a heartbeat of an agent"); },
                  [&] {
                    if (!session->Silent(clock_(), lease_s_)) return session->Send(heartbeat);
                    if (!session->cancelled()) {
                      spdlog::warn("event=agent_silent lease_s={}", lease_s_);
                    }
                    session->Cancel();
                  });
      if (!watched.ok()) {
        spdlog::error("event=agent_watch_failed error=\"{}\"", std::string(watched.message()));
      }
    }
    lock.lock();
  }
}

}  // namespace espalier
