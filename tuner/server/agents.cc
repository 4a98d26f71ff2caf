#include "tuner/server/agents.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"
#include "tuner/api/agent_convert.h"

namespace espalier {

Agents::Agents(double lease_s, std::function<Time()> clock)
    : lease_s_(lease_s), clock_(std::move(clock)) {}

Agents::~Agents() { Stop(); }

void Agents::Start(Loop& loop) {
  loop_ = &loop;
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
      session->Send(ToProto(command, state));
    } else {
      spdlog::debug("event=command_dropped node={} reason=\"not connected\"",
                    NodeOf(command).value);
    }
  }
}

absl::Status Agents::Join(const std::shared_ptr<AgentSession>& session, const v1::Hello& hello) {
  v1::AgentMessage message;
  *message.mutable_hello() = hello;
  ESPALIER_ASSIGN_OR_RETURN(FromAgent from_agent, FromProto(message));

  auto answered = std::make_shared<std::promise<Reply>>();
  {
    const std::lock_guard lock(seats_mutex_);
    Seat& seat = seats_[hello.node_name()];
    const bool same = seat.incarnation == hello.incarnation();
    if (seat.session && !same && !seat.session->cancelled() &&
        SecondsBetween(seat.session->last_heard(), clock_()) < lease_s_) {
      return absl::AlreadyExistsError(absl::StrCat(
          "an agent named \"", hello.node_name(),
          "\" is connected already: give this one another name, or end the other first"));
    }
    if (seat.session) seat.session->Cancel();
    seat.session = session;
    if (!same || hello.incarnation().empty()) seat.last_sequence = 0;
    seat.incarnation = hello.incarnation();
    loop_->PostAsync(std::move(from_agent), [this, session, answered](const Reply& reply) {
      if (reply.status.ok()) Welcome(session, reply.node);
      answered->set_value(reply);
    });
  }
  const Reply reply = answered->get_future().get();
  if (!reply.status.ok()) return reply.status;
  const std::lock_guard lock(seats_mutex_);
  seats_[hello.node_name()].node = reply.node;
  spdlog::info("event=agent_connected node=\"{}\" slots={} replicas={}", hello.node_name(),
               hello.slots(), hello.replicas_size());
  return absl::OkStatus();
}

// On the owner thread, before the commands of the same batch are sent: they find their way.
void Agents::Welcome(const std::shared_ptr<AgentSession>& session, NodeId node) {
  v1::ServiceMessage welcome;
  welcome.mutable_welcome()->set_node_id(node.value);
  welcome.mutable_welcome()->set_lease_s(lease_s_);
  session->Send(std::move(welcome));
  const std::lock_guard lock(routes_mutex_);
  // One that has left in the meantime must not take the node's commands.
  if (sessions_.contains(session)) routes_[node] = session;
}

void Agents::Take(const std::shared_ptr<AgentSession>& session, const v1::AgentMessage& message) {
  session->Heard(clock_());
  if (message.kind_case() == v1::AgentMessage::kHeartbeat) return;
  if (message.kind_case() == v1::AgentMessage::kOutput) {
    const std::lock_guard lock(routes_mutex_);
    // Not if nobody waits any more. The agent of another node could answer in its place, but knows
    // no number that is worth guessing: all agents of a pool have its token.
    const auto request = requests_.extract(message.output().request());
    if (!request.empty()) request.mapped().set_value(message.output().text());
    return;
  }
  absl::StatusOr<FromAgent> from_agent = FromProto(message);
  if (!from_agent.ok()) {
    // Acknowledged all the same: sent again it would be no better.
    spdlog::error("event=agent_message_refused error=\"{}\"",
                  std::string(from_agent.status().message()));
    from_agent = FromAgent{};
  }
  const std::int64_t sequence = message.sequence();
  const std::lock_guard lock(seats_mutex_);
  for (auto& [name, seat] : seats_) {
    if (seat.session != session) continue;
    // Resent because its acknowledgement was lost: it is queued or durable already. It goes
    // through the queue empty, so that it is acknowledged once what precedes it is durable.
    if (sequence > 0 && sequence <= seat.last_sequence) from_agent = FromAgent{};
    seat.last_sequence = std::max(seat.last_sequence, sequence);
    if (from_agent->event) {
      if (auto* leaving = std::get_if<AgentLeaving>(&*from_agent->event)) leaving->node = seat.node;
    }
    loop_->PostAsync(*std::move(from_agent), [session, sequence](const Reply& reply) {
      if (absl::IsUnavailable(reply.status)) return;
      if (sequence > 0) session->Acknowledge(sequence);
    });
    return;
  }
}

absl::StatusOr<std::string> Agents::ReadOutput(NodeId node, const std::string& study,
                                               std::int64_t trial_number, std::int64_t max_bytes) {
  v1::ServiceMessage message;
  v1::ReadOutput& wanted = *message.mutable_read_output();
  wanted.set_study(study);
  wanted.set_trial_number(trial_number);
  wanted.set_max_bytes(max_bytes);
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
  const std::lock_guard lock(seats_mutex_);
  for (auto& [name, seat] : seats_) {
    // Not if a newer session of the node has taken the seat: the node is not gone then.
    if (seat.session != session) continue;
    seat.session.reset();
    spdlog::info("event=agent_disconnected node=\"{}\"", name);
    if (seat.node) loop_->PostAsync({AgentGone{seat.node}, {}}, nullptr);
    return;
  }
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
      if (SecondsBetween(session->last_heard(), clock_()) > lease_s_) {
        if (!session->cancelled()) spdlog::warn("event=agent_silent lease_s={}", lease_s_);
        session->Cancel();
      } else {
        session->Send(heartbeat);
      }
    }
    lock.lock();
  }
}

}  // namespace espalier
