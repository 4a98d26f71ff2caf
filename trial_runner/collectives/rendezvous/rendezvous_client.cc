#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/connect.h"
#include "base/status.h"
#include "trial_runner/collectives/rendezvous/rendezvous.h"
#include "trial_runner/collectives/rendezvous/rendezvous_wire.h"
#include "tuner/credentials/hexadecimal.h"

namespace espalier {
namespace {

constexpr int kLookEvery_ms = 100;  // whether the caller has lost interest
// Between attempts with a server that closes connections without a word, as it does where there are
// too many strangers.
constexpr int kFirstPause_ms = 10;
constexpr int kLongestPause_ms = 1000;

absl::Status Cancelled() { return absl::CancelledError("rendezvous: given up"); }

// Until when the caller wants to wait.
struct Patience {
  bool over() const { return cancelled || std::chrono::steady_clock::now() >= end; }

  const std::atomic<bool>& cancelled;
  std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();
};

bool ConnectWhileWanted(int socket, const addrinfo& to, const Patience& patience) {
  const auto await = [&patience](int connecting) {
    pollfd polled{connecting, POLLOUT, 0};
    while (poll(&polled, 1, kLookEvery_ms) <= 0) {
      if (!patience.over()) continue;
      errno = ECANCELED;
      return false;
    }
    return true;
  };
  const int flags = fcntl(socket, F_GETFL);
  fcntl(socket, F_SETFL, flags | O_NONBLOCK);
  return Connect(socket, to.ai_addr, to.ai_addrlen, await) && fcntl(socket, F_SETFL, flags) == 0;
}

absl::Status SendAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return rendezvous::SystemError("rendezvous: cannot send");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return absl::OkStatus();
}

absl::Status ReceiveAll(int socket, char* start, std::size_t size) {
  while (size > 0) {
    const ssize_t got = recv(socket, start, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return rendezvous::SystemError("rendezvous: cannot receive");
    if (got == 0) return absl::UnavailableError("rendezvous: the store's replica is gone");
    start += got;
    size -= static_cast<std::size_t>(got);
  }
  return absl::OkStatus();
}

// False: the other end has closed.
absl::StatusOr<bool> ReceiveWhileWanted(int socket, char* start, std::size_t size,
                                        const Patience& patience) {
  while (size > 0) {
    pollfd polled{socket, POLLIN, 0};
    const bool readable = poll(&polled, 1, kLookEvery_ms) > 0;
    if (patience.over()) return Cancelled();
    if (!readable) continue;
    const ssize_t got = recv(socket, start, size, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return false;
    start += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

std::string PingRequest() {
  std::string request;
  rendezvous::Append(request, static_cast<std::uint32_t>(rendezvous::kPingBytes));
  rendezvous::Append(request, rendezvous::Operation::kPing);
  return request.append(rendezvous::kPingBytes - 1, '\0');
}

class RendezvousClient::Link {
 public:
  Link(int socket, const std::string& secret)
      : socket_(socket), conversation_{secret, RandomBytes(rendezvous::kNonceBytes)} {
    rendezvous::SendAtOnce(socket);
  }
  ~Link() { close(socket_); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Proves to the server that this is a member, and hears the same of it. False: it has closed the
  // connection without a word.
  absl::StatusOr<bool> Introduce(std::int64_t generation, const Patience& patience) {
    const std::string hello =
        rendezvous::HelloMessage(conversation_.secret, generation, conversation_.nonce);
    if (!SendAll(socket_, hello).ok()) return false;
    char answer[rendezvous::kProofBytes];
    ESPALIER_ASSIGN_OR_RETURN(
        const bool answered, ReceiveWhileWanted(socket_, answer, rendezvous::kSizeBytes, patience));
    if (!answered) return false;
    const auto told = rendezvous::Read<std::uint32_t>({answer, rendezvous::kSizeBytes});
    if (told == rendezvous::kNothing) {
      return absl::UnavailableError(absl::StrCat("it knows another secret of generation ",
                                                 generation, ", or that generation is over"));
    }
    if (told == rendezvous::kProofBytes) {
      ESPALIER_ASSIGN_OR_RETURN(const bool proved,
                                ReceiveWhileWanted(socket_, answer, told, patience));
      if (!proved) return false;
      if (conversation_.ReadAnswer({answer, told}, 0)) return true;
    }
    return absl::UnavailableError(
        absl::StrCat("the program there does not know the secret of generation ", generation));
  }

  absl::Status Ask(const rendezvous::Request& request) {
    return SendAll(socket_, conversation_.RequestMessage(request, ++requests_));
  }

  absl::StatusOr<std::string> Answer() {
    char prefix[rendezvous::kSizeBytes];
    ESPALIER_RETURN_IF_ERROR(ReceiveAll(socket_, prefix, sizeof prefix));
    const auto size = rendezvous::Read<std::uint32_t>({prefix, sizeof prefix});
    // No value is larger than the request that set it may be.
    if (size > RendezvousLimits{}.request_bytes) {
      return absl::UnavailableError(
          absl::StrCat("rendezvous: an answer of ", size, " bytes, which no member gives"));
    }
    std::string body(size, '\0');
    ESPALIER_RETURN_IF_ERROR(ReceiveAll(socket_, body.data(), size));
    const auto value = conversation_.ReadAnswer(body, requests_);
    if (value) return std::string(*value);
    return absl::UnavailableError(
        "rendezvous: an answer that was made without the generation's secret");
  }

  void LimitWaits(std::chrono::seconds limit) {
    const timeval each{.tv_sec = limit.count(), .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &each, sizeof each);
    setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &each, sizeof each);
  }

  void Cancel() { shutdown(socket_, SHUT_RDWR); }

 private:
  const int socket_;
  const rendezvous::Conversation conversation_;
  std::uint64_t requests_ = 0;
};

RendezvousClient::RendezvousClient(std::unique_ptr<Link> link) : link_(std::move(link)) {}
RendezvousClient::~RendezvousClient() = default;

absl::StatusOr<std::unique_ptr<RendezvousClient>> RendezvousClient::Connect(
    const std::string& address, std::int64_t generation, const std::string& secret,
    const std::atomic<bool>& cancelled, std::optional<std::chrono::seconds> limit) {
  ESPALIER_ASSIGN_OR_RETURN(const HostPort to, ParseHostPort(address));
  Patience patience{.cancelled = cancelled};
  if (limit) patience.end = std::chrono::steady_clock::now() + *limit;
  int pause_ms = kFirstPause_ms;
  while (!patience.over()) {
    ESPALIER_ASSIGN_OR_RETURN(const int socket,
                              rendezvous::OpenSocket(to, [&](int s, const addrinfo& a) {
                                return ConnectWhileWanted(s, a, patience);
                              }));
    auto link = std::make_unique<Link>(socket, secret);
    const absl::StatusOr<bool> introduced = link->Introduce(generation, patience);
    if (!introduced.ok()) {
      return absl::Status(
          introduced.status().code(),
          absl::StrCat("rendezvous ", address, ": ", std::string(introduced.status().message())));
    }
    if (*introduced) {
      if (limit) link->LimitWaits(*limit);
      return std::unique_ptr<RendezvousClient>(new RendezvousClient(std::move(link)));
    }
    poll(nullptr, 0, pause_ms);
    pause_ms = std::min(2 * pause_ms, kLongestPause_ms);
  }
  return Cancelled();
}

absl::Status RendezvousClient::Set(std::string_view key, std::string_view value) {
  return link_->Ask({rendezvous::Operation::kSet, key, value});
}

absl::StatusOr<std::string> RendezvousClient::Get(std::string_view key) {
  ESPALIER_RETURN_IF_ERROR(link_->Ask({rendezvous::Operation::kGet, key, {}}));
  return link_->Answer();
}

absl::StatusOr<std::string> RendezvousClient::Peek(std::string_view key) {
  ESPALIER_RETURN_IF_ERROR(link_->Ask({rendezvous::Operation::kPeek, key, {}}));
  return link_->Answer();
}

void RendezvousClient::Cancel() { link_->Cancel(); }

}  // namespace espalier
