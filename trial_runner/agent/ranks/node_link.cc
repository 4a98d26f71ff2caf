#include "trial_runner/agent/ranks/node_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "control.pb.h"
#include "trial_runner/agent/ranks/rank_end.h"

namespace espalier {
namespace {

// The clock may have been set meanwhile.
double Ago_s(const RankEnd& end) {
  constexpr double kSecond_ns = 1e9;
  return std::max(0.0, static_cast<double>(RankClock_ns() - end.at_ns) / kSecond_ns);
}

}  // namespace

void NodeLink::TellWaiting(const std::string& address) {
  v1::ReplicaMessage message;
  message.mutable_ranks_wait()->set_address(address);
  Send(message.SerializeAsString());
}

void NodeLink::TellFailed(const RankEnd& end) {
  v1::ReplicaMessage message;
  v1::RanksFailed& failed = *message.mutable_ranks_failed();
  failed.set_exit_code(end.exit_code);
  failed.set_signal(end.signal);
  failed.set_noted(end.noted);
  failed.set_ago_s(Ago_s(end));
  Send(message.SerializeAsString());
}

void NodeLink::TellLeft(int rank, const RankEnd& end) {
  v1::ReplicaMessage message;
  message.mutable_ranks_left()->set_rank(rank);
  message.mutable_ranks_left()->set_ago_s(Ago_s(end));
  Send(message.SerializeAsString());
}

void NodeLink::Send(const std::string& message) {
  const std::string frame = Frame(message);
  for (std::size_t sent = 0; sent < frame.size();) {
    const ssize_t now = send(socket_, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) return;
    sent += static_cast<std::size_t>(now);
  }
}

std::optional<std::string> NodeLink::TakeMeeting() {
  std::optional<std::string> meeting;
  std::array<char, 4096> chunk;
  while (!gone_) {
    const ssize_t got = recv(socket_, chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got <= 0) {
      gone_ = true;
      break;
    }
    reader_.Append({chunk.data(), static_cast<std::size_t>(got)});
    while (!gone_) {
      absl::StatusOr<std::optional<std::string>> frame = reader_.Next();
      if (!frame.ok()) gone_ = true;
      if (gone_ || !frame->has_value()) break;
      v1::ReplicaCommand command;
      if (command.ParseFromString(**frame) && command.has_ranks_meet()) {
        meeting = command.ranks_meet().address();
      }
    }
  }
  return meeting;
}

}  // namespace espalier
