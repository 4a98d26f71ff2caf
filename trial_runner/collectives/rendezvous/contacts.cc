#include "trial_runner/collectives/rendezvous/contacts.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "trial_runner/collectives/rendezvous/rendezvous.h"

namespace espalier {
namespace {

using Clock = std::chrono::steady_clock;

// One attempt under way.
struct Attempt {
  int socket = -1;
  bool connected = false;
  ContactAttempt result;

  void End(Contact contact, std::string error) {
    result = {contact, std::move(error)};
    if (socket >= 0) close(socket);
    socket = -1;
  }
  // A connection that only times out is one that nobody answers.
  void EndBy(int error) {
    End(error == ETIMEDOUT ? Contact::kSilent : Contact::kRefused, std::strerror(error));
  }
};

void Begin(const std::string& address, Attempt& attempt) {
  const absl::StatusOr<HostPort> to = ParseHostPort(address);
  if (!to.ok()) return attempt.End(Contact::kUnknown, std::string(to.status().message()));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int unknown = getaddrinfo(to->host.c_str(), absl::StrCat(to->port).c_str(), &hints, &found);
  if (unknown != 0) return attempt.End(Contact::kRefused, gai_strerror(unknown));
  const absl::Cleanup free_found = [found] { freeaddrinfo(found); };
  attempt.socket = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (attempt.socket < 0) return attempt.End(Contact::kUnknown, std::strerror(errno));
  if (connect(attempt.socket, found->ai_addr, found->ai_addrlen) == 0) return;
  if (errno != EINPROGRESS) attempt.EndBy(errno);
}

// The connection stands, or has failed.
void Ask(Attempt& attempt) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(attempt.socket, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return attempt.EndBy(error);
  const std::string ping = PingRequest();
  if (send(attempt.socket, ping.data(), ping.size(), MSG_NOSIGNAL) < 0) return attempt.EndBy(errno);
  attempt.connected = true;
}

void TakeAnswer(Attempt& attempt) {
  char byte = 0;
  const ssize_t got = recv(attempt.socket, &byte, 1, MSG_DONTWAIT);
  if (got > 0) return attempt.End(Contact::kAnswered, "");
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) return attempt.EndBy(errno);
  attempt.End(Contact::kRefused, "closed the connection");
}

}  // namespace

std::vector<ContactAttempt> TryContacts(const std::vector<std::string>& addresses, double limit_s) {
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(limit_s));
  std::vector<Attempt> attempts(addresses.size());
  for (std::size_t i = 0; i < addresses.size(); ++i) Begin(addresses[i], attempts[i]);
  while (true) {
    std::vector<pollfd> polled;
    std::vector<Attempt*> open;
    for (Attempt& attempt : attempts) {
      if (attempt.socket < 0) continue;
      polled.push_back({attempt.socket, attempt.connected ? short{POLLIN} : short{POLLOUT}, 0});
      open.push_back(&attempt);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if (open.empty() || left <= 0) break;
    if (poll(polled.data(), polled.size(), static_cast<int>(left)) < 0) continue;  // interrupted
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (polled[i].revents == 0) continue;
      if (open[i]->connected) {
        TakeAnswer(*open[i]);
      } else {
        Ask(*open[i]);
      }
    }
  }
  std::vector<ContactAttempt> results;
  for (Attempt& attempt : attempts) {
    if (attempt.socket >= 0) {
      const bool mute = attempt.connected;
      attempt.End(
          mute ? Contact::kMute : Contact::kSilent,
          absl::StrCat(mute ? "takes connections and does not answer, for " : "no answer within ",
                       limit_s, " s"));
    }
    results.push_back(std::move(attempt.result));
  }
  return results;
}

}  // namespace espalier
