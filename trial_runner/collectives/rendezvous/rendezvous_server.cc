#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/local_end.h"
#include "base/status.h"
#include "trial_runner/collectives/rendezvous/listening_ports.h"
#include "trial_runner/collectives/rendezvous/rendezvous.h"
#include "trial_runner/collectives/rendezvous/rendezvous_wire.h"

namespace espalier {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBacklog = 1024;
constexpr int kAcceptsAtOnce = 64;  // then connections that are in are looked at again
constexpr std::size_t kChunkBytes = 1 << 16;
constexpr std::chrono::milliseconds kWithoutDescriptors{100};  // until accepting is tried again
constexpr std::int64_t kToldTimes = 10;

std::string PeerName(const sockaddr_storage& peer, socklen_t size) {
  char host[INET6_ADDRSTRLEN] = "?";
  getnameinfo(reinterpret_cast<const sockaddr*>(&peer), size, host, sizeof host, nullptr, 0,
              NI_NUMERICHOST);
  return host;
}

}  // namespace

// All connections and tables are its thread's alone.
class RendezvousServer::Server {
 public:
  Server(int listener, int wake_read, int wake_write, std::string address,
         const RendezvousLimits& limits)
      : listener_(listener),
        wake_read_(wake_read),
        wake_write_(wake_write),
        address_(std::move(address)),
        limits_(limits),
        thread_([this] { Run(); }) {}

  ~Server() {
    close(wake_write_);
    thread_.join();
    for (const Connection& c : connections_) close(c.socket);
    close(listener_);
    close(wake_read_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void Expect(std::int64_t generation, const std::string& secret) {
    {
      const std::lock_guard lock(mutex_);
      expected_.emplace_back(generation, secret);
    }
    const char byte = 0;
    // A full pipe wakes it as well.
    (void)!write(wake_write_, &byte, 1);
  }

  std::int64_t turned_away() const { return turned_away_; }

 private:
  // What a server knows of one generation.
  struct Table {
    std::string secret;
    std::map<std::string, std::string> entries;
    std::size_t bytes = 0;
    std::set<std::string> nonces;  // of its members' connections so far
  };

  struct Connection {
    enum class Stage {
      kSilent,  // has not said a whole Hello or Ping
      kEarly,   // its generation is not expected yet
      kMember,  // has proved that it knows the secret
    };

    int socket = -1;
    std::string peer;
    Clock::time_point silent_until;
    Stage stage = Stage::kSilent;
    bool over = false;  // to be closed
    std::string received;
    std::string unsent;
    rendezvous::Hello hello;
    rendezvous::Conversation conversation;
    std::uint64_t requests = 0;
    std::optional<std::string> awaited;  // the key of an open Get

    bool stranger() const { return stage != Stage::kMember; }
    // One thing after the other: nothing more is read before what was asked is answered.
    bool reads() const { return unsent.empty() && !awaited && stage != Stage::kEarly; }
  };

  void Run() {
    while (true) {
      std::vector<pollfd> polled{{listener_, Accepting() ? short{POLLIN} : short{0}, 0},
                                 {wake_read_, POLLIN, 0}};
      for (const Connection& c : connections_) polled.push_back({c.socket, EventsOf(c), 0});
      if (poll(polled.data(), polled.size(), Patience_ms()) < 0) {
        if (errno == EINTR) continue;
        return;
      }
      if (polled[1].revents != 0 && !TakeExpected()) return;
      for (std::size_t i = 0; i < connections_.size(); ++i) {
        if (polled[i + 2].revents != 0) Serve(connections_[i], polled[i + 2].revents);
      }
      if (polled[0].revents != 0) Accept();
      AnswerWaiting();
      KeepToLimits();
      CloseThoseOver();
    }
  }

  static short EventsOf(const Connection& c) {
    if (!c.unsent.empty()) return POLLOUT | POLLRDHUP;
    return c.reads() ? POLLIN : POLLRDHUP;
  }

  bool Accepting() const { return Clock::now() >= accepts_from_; }

  // Until somebody has been silent for too long, or accepting is tried again.
  int Patience_ms() const {
    std::optional<Clock::time_point> next;
    if (!Accepting()) next = accepts_from_;
    for (const Connection& c : connections_) {
      if (c.stage != Connection::Stage::kSilent) continue;
      if (!next || c.silent_until < *next) next = c.silent_until;
    }
    if (!next) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
    return static_cast<int>(std::max<std::int64_t>(0, left));
  }

  // False: the server ends.
  bool TakeExpected() {
    char bytes[64];
    if (read(wake_read_, bytes, sizeof bytes) == 0) return false;
    std::vector<std::pair<std::int64_t, std::string>> expected;
    {
      const std::lock_guard lock(mutex_);
      expected.swap(expected_);
    }
    for (auto& [generation, secret] : expected) {
      tables_.try_emplace(generation).first->second.secret = std::move(secret);
    }
    while (tables_.size() > limits_.generations) tables_.erase(tables_.begin());
    for (Connection& c : connections_) {
      if (c.stage == Connection::Stage::kEarly) Judge(c);
    }
    return true;
  }

  // ---- Connections ---------------------------------------------------------------------------

  void Accept() {
    for (int i = 0; i < kAcceptsAtOnce; ++i) {
      sockaddr_storage peer{};
      socklen_t size = sizeof peer;
      const int socket = accept4(listener_, reinterpret_cast<sockaddr*>(&peer), &size,
                                 SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (socket < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
      if (socket < 0) {
        const bool none_waits = errno == EAGAIN;
        // No descriptor is left: a stranger's is as good as a free one.
        if (!none_waits && !TurnOneAway()) accepts_from_ = Clock::now() + kWithoutDescriptors;
        return;
      }
      rendezvous::SendAtOnce(socket);
      Connection& c = connections_.emplace_back();
      c.socket = socket;
      c.peer = PeerName(peer, size);
      c.silent_until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(limits_.silence_s));
      // Before anybody is closed for it: members say who they are at once.
      Serve(c, POLLIN);
    }
  }

  void Serve(Connection& c, int events) {
    if (c.reads()) {
      Receive(c);  // finds out as well that the other end has closed
    } else if ((events & (POLLERR | POLLHUP | POLLRDHUP)) != 0) {
      c.over = true;
    } else if ((events & POLLOUT) != 0) {
      Flush(c);
    }
    Digest(c);
  }

  void Receive(Connection& c) {
    // Nothing beyond its Hello is taken from a stranger.
    const std::size_t wanted =
        c.stranger() ? rendezvous::kSizeBytes + rendezvous::kHelloBytes - c.received.size()
                     : kChunkBytes;
    char chunk[kChunkBytes];
    const ssize_t got = recv(c.socket, chunk, wanted, 0);
    if (got > 0) {
      c.received.append(chunk, static_cast<std::size_t>(got));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      c.over = true;
    }
  }

  void Send(Connection& c, const std::string& bytes) {
    c.unsent += bytes;
    Flush(c);
  }

  void Flush(Connection& c) {
    const ssize_t sent = send(c.socket, c.unsent.data(), c.unsent.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      c.unsent.erase(0, static_cast<std::size_t>(sent));
    } else if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      c.over = true;
    }
  }

  // ---- What they say -------------------------------------------------------------------------

  // Takes the whole messages that were received.
  void Digest(Connection& c) {
    while (!c.over && c.reads() && c.received.size() >= rendezvous::kSizeBytes) {
      const auto size = rendezvous::Read<std::uint32_t>(c.received);
      if (c.stranger() ? size != rendezvous::kPingBytes && size != rendezvous::kHelloBytes
                       : size < rendezvous::kRequestBytes || size > limits_.request_bytes) {
        return TurnAway(c, absl::StrCat("a message of ", size, " bytes"));
      }
      const std::size_t end = rendezvous::kSizeBytes + size;
      if (c.received.size() < end) return;
      const std::string body = c.received.substr(rendezvous::kSizeBytes, size);
      c.received.erase(0, end);
      if (c.stranger()) {
        TakeFirst(c, body);
      } else {
        TakeRequest(c, body);
      }
    }
  }

  void TakeFirst(Connection& c, std::string_view body) {
    const auto operation = rendezvous::Read<rendezvous::Operation>(body);
    if (operation == rendezvous::Operation::kPing && body.size() == rendezvous::kPingBytes) {
      return Refuse(c);  // the same four bytes
    }
    if (operation != rendezvous::Operation::kHello || body.size() != rendezvous::kHelloBytes) {
      return TurnAway(c, "it said neither which member it is nor Ping");
    }
    c.hello = rendezvous::ReadHello(body);
    c.stage = Connection::Stage::kEarly;
    Judge(c);
  }

  void Judge(Connection& c) {
    const auto found = tables_.find(c.hello.generation);
    if (found == tables_.end()) {
      // One that was left out, or is over, does not come any more.
      if (!tables_.empty() && c.hello.generation < tables_.rbegin()->first) Refuse(c);
      return;
    }
    Table& table = found->second;
    if (!rendezvous::Proves(c.hello, table.secret)) {
      TurnAway(c, absl::StrCat("it does not know the secret of generation ", c.hello.generation));
      return Refuse(c);
    }
    if (!table.nonces.insert(c.hello.nonce).second) {
      TurnAway(c, "it said again what a member had said");
      return Refuse(c);
    }
    c.stage = Connection::Stage::kMember;
    c.conversation = {table.secret, c.hello.nonce};
    Send(c, c.conversation.AnswerMessage("", 0));
  }

  void TakeRequest(Connection& c, std::string_view body) {
    const auto request = c.conversation.ReadRequest(body, ++c.requests);
    const auto table = tables_.find(c.hello.generation);
    if (table == tables_.end()) {
      c.over = true;
    } else if (!request) {
      TurnAway(c, "a request without proof");
    } else if (request->operation == rendezvous::Operation::kGet) {
      c.awaited = request->key;
    } else if (request->operation == rendezvous::Operation::kPeek) {
      const auto entry = table->second.entries.find(std::string(request->key));
      const bool set = entry != table->second.entries.end();
      Send(c, c.conversation.AnswerMessage(set ? entry->second : "", c.requests));
    } else if (request->operation != rendezvous::Operation::kSet) {
      TurnAway(c, "a request of an unknown kind");
    } else if (!Store(table->second, *request)) {
      TurnAway(c, absl::StrCat("the table of generation ", c.hello.generation, " is full"));
    }
  }

  bool Store(Table& table, const rendezvous::Request& request) {
    const auto [entry, added] = table.entries.try_emplace(std::string(request.key));
    const std::size_t bytes = table.bytes + (added ? request.key.size() : 0) +
                              request.value.size() - entry->second.size();
    const bool fits = table.entries.size() <= limits_.table_entries && bytes <= limits_.table_bytes;
    if (fits) {
      table.bytes = bytes;
      entry->second = request.value;
    } else if (added) {
      table.entries.erase(entry);
    }
    return fits;
  }

  void AnswerWaiting() {
    for (bool progress = true; progress;) {
      progress = false;
      for (Connection& c : connections_) {
        if (!c.awaited || c.over) continue;
        const auto table = tables_.find(c.hello.generation);
        if (table == tables_.end()) {
          c.over = true;
          continue;
        }
        const auto entry = table->second.entries.find(*c.awaited);
        if (entry == table->second.entries.end()) continue;
        Send(c, c.conversation.AnswerMessage(entry->second, c.requests));
        c.awaited.reset();
        Digest(c);  // may set what others wait for
        progress = true;
      }
    }
  }

  // ---- Limits --------------------------------------------------------------------------------

  void KeepToLimits() {
    const Clock::time_point now = Clock::now();
    std::size_t strangers = 0;
    std::size_t open = 0;
    std::size_t held = 0;
    for (Connection& c : connections_) {
      if (c.stage == Connection::Stage::kSilent && !c.over && now >= c.silent_until) {
        TurnAway(c, absl::StrCat("nothing was said for ", limits_.silence_s, " s"));
      }
      if (c.over) continue;
      held += c.received.size() + c.unsent.size();
      if (held > limits_.held_bytes) TurnAway(c, "too much is held for all of them");
      if (c.over) continue;
      ++open;
      if (c.stranger()) ++strangers;
    }
    for (; strangers > limits_.strangers && TurnOneAway(); --strangers) --open;
    for (; open > limits_.connections && TurnOneAway(); --open) {
    }
    for (auto c = connections_.rbegin(); c != connections_.rend(); ++c) {
      if (open <= limits_.connections) break;
      if (c->over) continue;
      TurnAway(*c, "too many members");
      --open;
    }
  }

  // The stranger that has been silent longest, or else waits longest. False: there is none.
  bool TurnOneAway() {
    for (const auto stage : {Connection::Stage::kSilent, Connection::Stage::kEarly}) {
      const auto oldest =
          std::find_if(connections_.begin(), connections_.end(),
                       [&](const Connection& c) { return c.stage == stage && !c.over; });
      if (oldest == connections_.end()) continue;
      TurnAway(*oldest, "too many connections that have proved nothing");
      return true;
    }
    return false;
  }

  static void Refuse(Connection& c) {
    std::string nothing;
    rendezvous::Append(nothing, rendezvous::kNothing);
    (void)!send(c.socket, nothing.data(), nothing.size(), MSG_NOSIGNAL);
    c.over = true;
  }

  void TurnAway(Connection& c, const std::string& why) {
    c.over = true;
    if (++turned_away_ < tell_at_) return;
    tell_at_ *= kToldTimes;
    std::fprintf(stderr,
                 "espalier: the rendezvous at %s has turned away %" PRId64
                 " connections so far, the last one from %s: %s\n",
                 address_.c_str(), turned_away_.load(), c.peer.c_str(), why.c_str());
  }

  void CloseThoseOver() {
    std::erase_if(connections_, [](const Connection& c) {
      if (c.over) close(c.socket);
      return c.over;
    });
  }

  const int listener_;
  const int wake_read_;
  const int wake_write_;  // closing it ends the thread
  const std::string address_;
  const RendezvousLimits limits_;

  std::vector<Connection> connections_;  // in the order of their coming
  std::map<std::int64_t, Table> tables_;
  Clock::time_point accepts_from_;
  std::int64_t tell_at_ = 1;
  std::atomic<std::int64_t> turned_away_{0};

  std::mutex mutex_;
  std::vector<std::pair<std::int64_t, std::string>> expected_;  // since the thread last looked
  std::thread thread_;                                          // last: it uses the others
};

absl::StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Listen(
    const std::string& host, const PortRange& ports, const RendezvousLimits& limits) {
  const ListeningPorts within(ports);
  const auto opened = rendezvous::OpenSocket({host, 0}, [](int socket, const addrinfo& address) {
    return bind(socket, address.ai_addr, address.ai_addrlen) == 0 &&
           listen(socket, kBacklog) == 0 && fcntl(socket, F_SETFL, O_NONBLOCK) == 0;
  });
  if (!opened.ok() && !ports.any()) {
    return absl::UnavailableError(
        absl::StrCat(std::string(opened.status().message()), " (ports ", ports.text(), ")"));
  }
  ESPALIER_RETURN_IF_ERROR(opened.status());
  const int listener = *opened;
  int wake[2];
  if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) {
    const absl::Status status = rendezvous::SystemError("rendezvous: cannot make a pipe");
    close(listener);
    return status;
  }
  const std::string address = HostPort{host, LocalEnd(listener).port}.text();
  return std::unique_ptr<RendezvousServer>(new RendezvousServer(
      std::make_unique<Server>(listener, wake[0], wake[1], address, limits), address));
}

RendezvousServer::RendezvousServer(std::unique_ptr<Server> server, std::string address)
    : server_(std::move(server)), address_(std::move(address)) {}

RendezvousServer::~RendezvousServer() = default;

void RendezvousServer::Expect(std::int64_t generation, const std::string& secret) {
  server_->Expect(generation, secret);
}

std::int64_t RendezvousServer::turned_away() const { return server_->turned_away(); }

}  // namespace espalier
