#include "trial_runner/collectives/rendezvous.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "tuner/base/status.h"

namespace espalier {
namespace {

// A request is: u32 length of the rest, u8 operation, i64 generation, u32 key length, key, value.
// Set has no answer, Get is answered by u32 length and the value. All in the machine's byte order:
// the members of a group run the same build.
enum class Operation : std::uint8_t { kSet = 1, kGet = 2 };

constexpr std::size_t kHeaderBytes = 1 + 8 + 4;
constexpr std::uint32_t kMaxRequestBytes = 1 << 20;
constexpr std::size_t kKeptGenerations = 4;
constexpr int kBacklog = 1024;

template <typename T>
void Append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
T Read(std::string_view from) {
  T value;
  std::memcpy(&value, from.data(), sizeof value);
  return value;
}

absl::Status SystemError(std::string_view what) {
  return absl::UnavailableError(
      absl::StrCat(std::string(what).c_str(), ": ", std::strerror(errno)));
}

absl::Status SendAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return SystemError("rendezvous: cannot send");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return absl::OkStatus();
}

absl::Status ReceiveAll(int socket, char* start, std::size_t size) {
  while (size > 0) {
    const ssize_t got = recv(socket, start, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError("rendezvous: cannot receive");
    if (got == 0) return absl::UnavailableError("rendezvous: the store's replica is gone");
    start += got;
    size -= static_cast<std::size_t>(got);
  }
  return absl::OkStatus();
}

std::string Request(Operation operation, std::int64_t generation, std::string_view key,
                    std::string_view value) {
  std::string request;
  Append(request, static_cast<std::uint32_t>(kHeaderBytes + key.size() + value.size()));
  Append(request, operation);
  Append(request, generation);
  Append(request, static_cast<std::uint32_t>(key.size()));
  request.append(key).append(value);
  return request;
}

// The server's side of all connections; runs on the server's thread alone.
class Server {
 public:
  Server(int listener, int stop) : listener_(listener), stop_(stop) {}

  ~Server() {
    for (const Connection& c : connections_) close(c.socket);
    close(listener_);
    close(stop_);
  }

  void Run() {
    while (true) {
      std::vector<pollfd> polled{{listener_, POLLIN, 0}, {stop_, POLLIN, 0}};
      for (const Connection& c : connections_) polled.push_back({c.socket, POLLIN, 0});
      if (poll(polled.data(), polled.size(), -1) < 0) {
        if (errno == EINTR) continue;
        return;
      }
      if (polled[1].revents != 0) return;
      std::vector<Connection> kept;
      for (std::size_t i = 0; i < connections_.size(); ++i) {
        if (polled[i + 2].revents == 0 || Serve(connections_[i])) {
          kept.push_back(std::move(connections_[i]));
        } else {
          close(connections_[i].socket);
        }
      }
      connections_ = std::move(kept);
      if (polled[0].revents != 0) Accept();
      AnswerWaiting();
    }
  }

 private:
  struct Connection {
    int socket = -1;
    std::string received;
    std::optional<std::pair<std::int64_t, std::string>> awaited;  // the key of an open Get
  };

  void Accept() {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connections_.push_back({socket, {}, {}});
  }

  // False if the connection is to be closed.
  bool Serve(Connection& connection) {
    char chunk[4096];
    const ssize_t got = recv(connection.socket, chunk, sizeof chunk, MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    connection.received.append(chunk, static_cast<std::size_t>(got));
    while (connection.received.size() >= sizeof(std::uint32_t)) {
      const auto size = Read<std::uint32_t>(connection.received);
      if (size < kHeaderBytes || size > kMaxRequestBytes) return false;
      if (connection.received.size() < sizeof size + size) return true;
      if (!Take(connection, std::string_view(connection.received).substr(sizeof size, size))) {
        return false;
      }
      connection.received.erase(0, sizeof size + size);
    }
    return true;
  }

  bool Take(Connection& connection, std::string_view request) {
    const auto operation = Read<Operation>(request);
    const auto generation = Read<std::int64_t>(request.substr(1));
    const auto key_size = Read<std::uint32_t>(request.substr(9));
    request.remove_prefix(kHeaderBytes);
    if (key_size > request.size()) return false;
    const std::string key(request.substr(0, key_size));
    if (operation == Operation::kGet) {
      connection.awaited = {generation, key};
    } else {
      tables_[generation][key] = request.substr(key_size);
      while (tables_.size() > kKeptGenerations) tables_.erase(tables_.begin());
    }
    return true;
  }

  void AnswerWaiting() {
    for (Connection& connection : connections_) {
      if (!connection.awaited) continue;
      const auto table = tables_.find(connection.awaited->first);
      if (table == tables_.end()) continue;
      const auto entry = table->second.find(connection.awaited->second);
      if (entry == table->second.end()) continue;
      std::string answer;
      Append(answer, static_cast<std::uint32_t>(entry->second.size()));
      // A failure shows as a closed connection in the next round.
      SendAll(connection.socket, answer.append(entry->second)).IgnoreError();
      connection.awaited.reset();
    }
  }

  const int listener_;
  const int stop_;
  std::vector<Connection> connections_;
  std::map<std::int64_t, std::map<std::string, std::string>> tables_;
};

// Calls `use(socket, address)` for each address of host:port until it returns true; the socket is
// then the caller's.
template <typename Use>
absl::StatusOr<int> OpenSocket(const std::string& host, const std::string& port, Use use) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return absl::UnavailableError(
        absl::StrCat("rendezvous ", host, ":", port, ": ", gai_strerror(error)));
  }
  const absl::Cleanup free_found = [found] { freeaddrinfo(found); };
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    const int socket = ::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) continue;
    if (use(socket, *a)) return socket;
    const int error = errno;
    close(socket);
    errno = error;
  }
  return SystemError(absl::StrCat("rendezvous ", host, ":", port));
}

int PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Listen(
    const std::string& host) {
  ESPALIER_ASSIGN_OR_RETURN(const int listener,
                            OpenSocket(host, "0", [](int socket, const addrinfo& address) {
                              return bind(socket, address.ai_addr, address.ai_addrlen) == 0 &&
                                     listen(socket, kBacklog) == 0;
                            }));
  int stop[2];
  if (pipe2(stop, O_CLOEXEC) != 0) {
    const absl::Status status = SystemError("rendezvous: cannot make a pipe");
    close(listener);
    return status;
  }
  return std::unique_ptr<RendezvousServer>(
      new RendezvousServer(listener, stop[0], stop[1], absl::StrCat(host, ":", PortOf(listener))));
}

RendezvousServer::RendezvousServer(int listener, int stop_read, int stop_write, std::string address)
    : stop_write_(stop_write),
      address_(std::move(address)),
      thread_([listener, stop_read] { Server(listener, stop_read).Run(); }) {}

RendezvousServer::~RendezvousServer() {
  close(stop_write_);
  thread_.join();
}

absl::StatusOr<std::unique_ptr<RendezvousClient>> RendezvousClient::Connect(
    const std::string& address, std::int64_t generation) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("rendezvous address \"", address, "\" is not host:port"));
  }
  ESPALIER_ASSIGN_OR_RETURN(
      const int socket,
      OpenSocket(address.substr(0, colon), address.substr(colon + 1), [](int s, const addrinfo& a) {
        return connect(s, a.ai_addr, a.ai_addrlen) == 0;
      }));
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return std::unique_ptr<RendezvousClient>(new RendezvousClient(socket, generation));
}

RendezvousClient::~RendezvousClient() { close(socket_); }

absl::Status RendezvousClient::Set(std::string_view key, std::string_view value) {
  return SendAll(socket_, Request(Operation::kSet, generation_, key, value));
}

absl::StatusOr<std::string> RendezvousClient::Get(std::string_view key) {
  ESPALIER_RETURN_IF_ERROR(SendAll(socket_, Request(Operation::kGet, generation_, key, "")));
  std::uint32_t size = 0;
  ESPALIER_RETURN_IF_ERROR(ReceiveAll(socket_, reinterpret_cast<char*>(&size), sizeof size));
  std::string value(size, '\0');
  ESPALIER_RETURN_IF_ERROR(ReceiveAll(socket_, value.data(), size));
  return value;
}

void RendezvousClient::Cancel() { shutdown(socket_, SHUT_RDWR); }

}  // namespace espalier
