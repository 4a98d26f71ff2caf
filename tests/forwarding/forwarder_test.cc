#include "tuner/forwarding/forwarder.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/local_end.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/machine_needs.h"
#include "tests/base/no_room.h"
#include "tests/forwarding/test_service.h"
#include "tuner/forwarding/loopback_listener.h"

namespace espalier {
namespace {

using testing::HasSubstr;

constexpr uid_t kNobody = 65534;
constexpr std::size_t kMuch = 3 << 20;  // more than all buffers on the way hold

// Collects why connections were not forwarded.
class Failures {
 public:
  std::function<void(const absl::Status&)> Taker() {
    return [this](const absl::Status& status) {
      const std::lock_guard lock(mutex_);
      all_.push_back(status);
      changed_.notify_all();
    };
  }
  absl::Status First() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !all_.empty(); });
    return all_.front();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<absl::Status> all_;
};

// A client's connection to a forwarder.
class Client {
 public:
  explicit Client(const Forwarder& forwarder) : socket_(ConnectToLoopback(forwarder.address())) {
    EXPECT_GE(socket_, 0);
  }
  ~Client() { Close(); }
  void Close() {
    if (socket_ >= 0) close(std::exchange(socket_, -1));
  }
  int socket() const { return socket_; }
  std::string Echoed(const std::string& text) const {
    EXPECT_TRUE(SendAll(socket_, text));
    return ReceiveAll(socket_, text.size());
  }

 private:
  int socket_;
};

const Certificate& TheCertificate() {
  static const Certificate* const certificate =
      new Certificate(*MakeCertificate(kServiceCertificateName));
  return *certificate;
}

TlsTrust Pinned() { return {*CertificateHash(TheCertificate().pem), {}}; }

std::unique_ptr<Forwarder> ForwardTo(const std::string& service, TlsTrust trust = {},
                                     ForwarderLimits limits = {},
                                     std::function<void(const absl::Status&)> failed = {}) {
  return Forwarder::Start(*ListenOnAnyLoopback(),
                          {service, std::move(trust), "", limits, std::move(failed)});
}

// Sends all, says that it was all, and has it back.
void SendMuchAndHaveItBack(const Forwarder& forwarder) {
  std::string much(kMuch, 0);
  for (std::size_t i = 0; i < much.size(); ++i) much[i] = static_cast<char>(i * 7 + i / 251);
  const Client client(forwarder);
  std::thread sender([&] {
    EXPECT_TRUE(SendAll(client.socket(), much));
    shutdown(client.socket(), SHUT_WR);
  });
  const std::string back = ReceiveAll(client.socket());
  sender.join();
  EXPECT_TRUE(back == much) << back.size();
}

TEST(Forwarder, CarriesBytesBothWaysAndTheEndOfEither) {
  const TestService service;
  SendMuchAndHaveItBack(*ForwardTo(service.address()));
}

TEST(Forwarder, SpeaksTlsWithTheServiceOfThatCertificate) {
  const TestService service(&TheCertificate());
  const auto forwarder = ForwardTo(service.address(), Pinned());
  SendMuchAndHaveItBack(*forwarder);
  const Client client(*forwarder);
  EXPECT_EQ(client.Echoed("PRI * HTTP/2.0"), "PRI * HTTP/2.0");
  EXPECT_EQ(client.Echoed("and more"), "and more");
}

TEST(Forwarder, GoesOnWhereWhoIsToldOfAFailureThrows) {
  std::atomic<int> told = 0;
  const auto forwarder = ForwardTo("127.0.0.1:1", {}, {}, [&told](const absl::Status&) {
    ++told;
    throw std::runtime_error("nobody listens");
  });
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 16; ++i) clients.push_back(std::make_unique<Client>(*forwarder));
  // Each has its thread before the first fails, so that nothing but the forwarder's lock orders
  // them.
  while (forwarder->connections() < clients.size()) std::this_thread::yield();
  for (const auto& client : clients) EXPECT_TRUE(SendAll(client->socket(), "hello"));
  for (const auto& client : clients) EXPECT_EQ(ReceiveAll(client->socket()), "");
  EXPECT_EQ(told, 1) << "the same reason once";
}

TEST(Forwarder, AConnectionThatThrowsIsClosedAndToldByItsName) {
  constexpr std::size_t kMany = 1 << 20;
  const TestService service;
  Failures failures;
  ForwarderOptions options;
  options.service = service.address();
  options.token = std::string(kMany, 't');  // which each connection has a copy of
  options.failed = failures.Taker();
  const auto forwarder = Forwarder::Start(*ListenOnAnyLoopback(), std::move(options));
  const NoRoomFor no_room(kMany);
  for (const char* first : {"GET / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}) {
    const Client client(*forwarder);
    EXPECT_TRUE(SendAll(client.socket(), first));
    EXPECT_EQ(ReceiveAll(client.socket()), "");
  }
  EXPECT_THAT(std::string(failures.First().message()),
              HasSubstr("a connection to " + forwarder->address() + ": std::bad_alloc"));
}

TEST(Forwarder, SaysNothingToAServiceOfAnotherCertificate) {
  const TestService service(&TheCertificate());
  Failures failures;
  const auto forwarder =
      ForwardTo(service.address(), {std::string(64, '0'), {}}, {}, failures.Taker());
  const Client client(*forwarder);
  EXPECT_TRUE(SendAll(client.socket(), "a secret"));
  EXPECT_EQ(ReceiveAll(client.socket()), "");
  EXPECT_THAT(std::string(failures.First().message()), HasSubstr("another pool"));
  EXPECT_EQ(service.begun_with(), "");
}

TEST(Forwarder, DialsAgainOnceTheServiceIsBack) {
  // Bound, and never listens, so that nobody else takes its port.
  const int place = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(place, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(place, reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  const std::string address = LocalEnd(place).text();
  Failures failures;
  const auto forwarder = ForwardTo(address, {}, {}, failures.Taker());
  const Client early(*forwarder);
  EXPECT_TRUE(SendAll(early.socket(), "anybody?"));
  EXPECT_EQ(ReceiveAll(early.socket()), "");
  EXPECT_TRUE(absl::IsUnavailable(failures.First()));
  EXPECT_THAT(std::string(failures.First().message()), HasSubstr(address));

  const int back = *ListenOnLoopback(address);
  const Client late(*forwarder);
  EXPECT_TRUE(SendAll(late.socket(), "anybody?"));
  pollfd waited{back, POLLIN, 0};
  EXPECT_EQ(poll(&waited, 1, -1), 1);
  const int accepted = accept(back, nullptr, nullptr);
  fcntl(accepted, F_SETFL, 0);
  EXPECT_EQ(ReceiveAll(accepted, 8), "anybody?");
  close(accepted);
  EXPECT_EQ(ReceiveAll(late.socket()), "");
  close(back);
  close(place);
}

TEST(Forwarder, WhoIsOneTooManyWaitsForAnotherToEnd) {
  const TestService service;
  ForwarderLimits limits;
  limits.connections = 2;
  const auto forwarder = ForwardTo(service.address(), {}, limits);
  Client first(*forwarder);
  const Client second(*forwarder);
  EXPECT_EQ(first.Echoed("first"), "first");
  EXPECT_EQ(second.Echoed("second"), "second");
  EXPECT_EQ(forwarder->connections(), 2U);
  const Client third(*forwarder);
  EXPECT_TRUE(SendAll(third.socket(), "third"));
  EXPECT_EQ(second.Echoed("still here"), "still here");
  EXPECT_EQ(service.connections(), 2);
  first.Close();
  EXPECT_EQ(ReceiveAll(third.socket(), 5), "third");
  EXPECT_EQ(service.most_at_once(), 2);
}

TEST(Forwarder, WhoSaysNothingIsClosedAndCostsTheServiceNothing) {
  const TestService service;
  ForwarderLimits limits;
  limits.first_s = 0.01;
  const auto forwarder = ForwardTo(service.address(), {}, limits);
  const Client client(*forwarder);
  EXPECT_EQ(ReceiveAll(client.socket()), "");
  EXPECT_EQ(service.connections(), 0);
}

TEST(Forwarder, AConnectionThatIsIdleForTooLongIsClosed) {
  const TestService service;
  ForwarderLimits limits;
  limits.idle_s = 0.01;
  const auto forwarder = ForwardTo(service.address(), {}, limits);
  const Client client(*forwarder);
  EXPECT_TRUE(SendAll(client.socket(), "once"));
  EXPECT_THAT(ReceiveAll(client.socket()), testing::AnyOf("once", ""));  // it may be closed first
}

TEST(Forwarder, EndsWithConnectionsUnderWay) {
  for (const Certificate* certificate :
       {static_cast<const Certificate*>(nullptr), &TheCertificate()}) {
    const TestService service(certificate);
    auto forwarder = ForwardTo(service.address(), certificate != nullptr ? Pinned() : TlsTrust{});
    const Client idle(*forwarder);
    EXPECT_EQ(idle.Echoed("here"), "here");
    // Nobody takes what comes back, so that it ends in the middle of something.
    const Client busy(*forwarder);
    std::thread sender([&] {
      while (SendAll(busy.socket(), std::string(1 << 20, 'x'))) {
      }
    });
    EXPECT_EQ(ReceiveAll(busy.socket(), 5), "xxxxx");
    forwarder.reset();
    sender.join();
    EXPECT_EQ(ReceiveAll(idle.socket()), "");
  }
}

TEST(Forwarder, EndsWhileTheServiceDoesNotAnswer) {
  const int silent = *ListenOnLoopback("127.0.0.1:0");
  ForwarderLimits limits;
  limits.dial_s = 86400;
  auto forwarder = ForwardTo(LocalEnd(silent).text(), Pinned(), limits);
  const Client client(*forwarder);
  EXPECT_TRUE(SendAll(client.socket(), "hello"));
  pollfd waited{silent, POLLIN, 0};
  EXPECT_EQ(poll(&waited, 1, -1), 1);
  forwarder.reset();
  EXPECT_EQ(ReceiveAll(client.socket()), "");
  close(silent);
}

TEST(Forwarder, ASuccessorTakesOverWhoWaits) {
  const TestService service;
  auto forwarder = ForwardTo(service.address());
  const int kept = dup(forwarder->listener());
  const std::string address = forwarder->address();
  forwarder.reset();
  const int client = ConnectToLoopback(address);
  ASSERT_GE(client, 0);
  EXPECT_TRUE(SendAll(client, "hello"));
  const auto successor = Forwarder::Start(kept, {service.address()});
  EXPECT_EQ(successor->address(), address);
  EXPECT_EQ(ReceiveAll(client, 5), "hello");
  close(client);
}

TEST(Forwarder, ListensOnIpv6Too) {
  if (NotTestedHere(NoIpv6())) return;
  const TestService service;
  const auto forwarder = Forwarder::Start(*ListenOnLoopback("[::1]:0"), {service.address()});
  EXPECT_THAT(forwarder->address(), HasSubstr("[::1]:"));
  EXPECT_EQ(Client(*forwarder).Echoed("hello"), "hello");
}

TEST(Forwarder, IsForThisUserAlone) {
  if (NotTestedHere(NoOtherUser())) return;
  const TestService service;
  Failures failures;
  const auto forwarder = ForwardTo(service.address(), {}, {}, failures.Taker());
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(2);
    const int client = ConnectToLoopback(forwarder->address());
    if (client < 0) _exit(3);
    SendAll(client, "let me in");
    _exit(ReceiveAll(client).empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_THAT(std::string(failures.First().message()), HasSubstr("user 65534"));
  EXPECT_EQ(service.connections(), 0);
}

TEST(LoopbackListener, ListensOnLoopbackAlone) {
  for (const std::string address : {"0.0.0.0:0", "10.0.0.1:0", "[::]:0", "example.org:0", "x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ListenOnLoopback(address).status())) << address;
  }
  EXPECT_TRUE(NamesLoopback("localhost"));
  EXPECT_TRUE(NamesLoopback("127.1.2.3"));
  EXPECT_TRUE(NamesLoopback("::1"));
  EXPECT_FALSE(NamesLoopback("::"));
  EXPECT_FALSE(NamesLoopback("oak"));
  const int taken = *ListenOnLoopback("127.0.0.1:0");
  const absl::Status twice = ListenOnLoopback(LocalEnd(taken).text()).status();
  EXPECT_THAT(std::string(twice.message()), HasSubstr("choose another port"));
  close(taken);
}

}  // namespace
}  // namespace espalier
