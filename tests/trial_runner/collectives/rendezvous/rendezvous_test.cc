#include "trial_runner/collectives/rendezvous/rendezvous.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/host_port.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trial_runner/collectives/rendezvous/contacts.h"
#include "trial_runner/collectives/rendezvous/rendezvous_wire.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

constexpr char kSecret[] = "of generation 1";
constexpr int kPatience_ms = 60'000;  // for what must come, however busy the machine is

const std::atomic<bool> kWanted{false};  // not cancelled

std::unique_ptr<RendezvousServer> Serve(const RendezvousLimits& limits = {}) {
  auto server = RendezvousServer::Listen("127.0.0.1", {}, limits);
  EXPECT_TRUE(server.ok()) << server.status();
  (*server)->Expect(1, kSecret);
  return *std::move(server);
}

std::unique_ptr<RendezvousClient> ConnectTo(const RendezvousServer& server, std::int64_t generation,
                                            const std::string& secret = kSecret) {
  auto client = RendezvousClient::Connect(server.address(), generation, secret, kWanted);
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *std::move(client) : nullptr;
}

bool ComesTrue(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatience_ms);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

// One who reaches the server's port and says what it likes.
class Stranger {
 public:
  explicit Stranger(const RendezvousServer& server)
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<std::uint16_t>(ParseHostPort(server.address())->port));
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~Stranger() {
    if (socket_ >= 0) close(socket_);
  }
  Stranger(Stranger&& from) noexcept : socket_(std::exchange(from.socket_, -1)) {}
  Stranger& operator=(Stranger&&) = delete;

  void Say(std::string_view bytes) const {
    (void)!send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  std::string Hear(std::size_t bytes) const {
    std::string heard(bytes, '\0');
    const ssize_t got = recv(socket_, heard.data(), bytes, MSG_WAITALL);
    heard.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
    return heard;
  }
  // All that the server says before it closes the connection. Nothing: it does not close it.
  std::optional<std::string> HearAll() const {
    std::string heard;
    char chunk[4096];
    while (true) {
      pollfd polled{socket_, POLLIN, 0};
      if (poll(&polled, 1, kPatience_ms) <= 0) return std::nullopt;
      const ssize_t got = recv(socket_, chunk, sizeof chunk, 0);
      if (got <= 0) return heard;
      heard.append(chunk, static_cast<std::size_t>(got));
    }
  }

 private:
  int socket_;
};

std::string Nonce(char byte) { return std::string(rendezvous::kNonceBytes, byte); }

// A member's first words, by hand.
std::string Hello(const std::string& secret, char nonce, std::int64_t generation = 1) {
  return rendezvous::HelloMessage(secret, generation, Nonce(nonce));
}

std::string Set(const std::string& secret, char nonce, std::string_view key,
                std::string_view value) {
  return rendezvous::Conversation{secret, Nonce(nonce)}.RequestMessage(
      {rendezvous::Operation::kSet, key, value}, 1);
}

const std::string kRefusal(4, '\0');

TEST(Rendezvous, GetWaitsUntilAnotherMemberHasSetTheKey) {
  const auto server = Serve();
  const auto a = ConnectTo(*server, 1);
  const auto b = ConnectTo(*server, 1);
  auto waiting = std::async(std::launch::async, [&] { return a->Get("rank/1"); });
  const std::string value(1'000'000, 'v');  // arrives and leaves in many pieces
  ASSERT_TRUE(b->Set("rank/1", value).ok());
  EXPECT_EQ(*waiting.get(), value);
  EXPECT_EQ(*b->Get("rank/1"), value);
  EXPECT_EQ(server->turned_away(), 0);
}

TEST(Rendezvous, PeekSaysWhatIsThereNow) {
  const auto server = Serve();
  const auto a = ConnectTo(*server, 1);
  const auto b = ConnectTo(*server, 1);
  EXPECT_EQ(*a->Peek("place/1"), "");
  ASSERT_TRUE(a->Set("place/1", "here").ok());
  EXPECT_EQ(*a->Peek("place/1"), "here");
  EXPECT_EQ(*b->Peek("place/1"), "here");
}

TEST(Rendezvous, GenerationsDoNotSeeEachOther) {
  const auto server = Serve();
  server->Expect(2, "of generation 2");
  const auto old_member = ConnectTo(*server, 1);
  const auto new_member = ConnectTo(*server, 2, "of generation 2");
  ASSERT_TRUE(old_member->Set("k", "old").ok());
  ASSERT_TRUE(new_member->Set("k", "new").ok());
  EXPECT_EQ(*old_member->Get("k"), "old");
  EXPECT_EQ(*new_member->Get("k"), "new");
}

TEST(Rendezvous, WhoComesBeforeTheGenerationIsExpectedWaits) {
  const auto server = Serve();
  auto early = std::async(std::launch::async, [&] {
    const auto member = ConnectTo(*server, 2, "of generation 2");
    return member->Set("k", "v").ok();
  });
  server->Expect(2, "of generation 2");
  EXPECT_TRUE(early.get());
  EXPECT_EQ(*ConnectTo(*server, 2, "of generation 2")->Get("k"), "v");
}

TEST(Rendezvous, WithoutSecretsEverybodyIsAMember) {
  const auto server = Serve();
  server->Expect(2, "");
  ASSERT_TRUE(ConnectTo(*server, 2, "")->Set("k", "v").ok());
  EXPECT_EQ(*ConnectTo(*server, 2, "")->Get("k"), "v");
}

TEST(Rendezvous, CancelEndsAWaitingGet) {
  const auto server = Serve();
  const auto client = ConnectTo(*server, 1);
  auto waiting = std::async(std::launch::async, [&] { return client->Get("never"); });
  client->Cancel();
  EXPECT_FALSE(waiting.get().ok());
}

TEST(Rendezvous, CancelledEndsTheWaitForAGeneration) {
  const auto server = Serve();
  std::atomic<bool> cancelled{false};
  auto waiting = std::async(std::launch::async, [&] {
    return RendezvousClient::Connect(server->address(), 2, kSecret, cancelled).status();
  });
  cancelled = true;
  EXPECT_TRUE(absl::IsCancelled(waiting.get()));
}

TEST(Rendezvous, NothingThatIsLimitedWaitsForASilentServer) {
  const std::chrono::seconds limit(1);
  const auto server = Serve();
  EXPECT_TRUE(absl::IsCancelled(
      RendezvousClient::Connect(server->address(), 2, kSecret, kWanted, limit).status()));
  auto client = RendezvousClient::Connect(server->address(), 1, kSecret, kWanted, limit);
  // A busy machine may keep a server that answers from doing so in time.
  while (!client.ok()) {
    client = RendezvousClient::Connect(server->address(), 1, kSecret, kWanted, limit);
  }
  EXPECT_FALSE((*client)->Get("rank/1").ok());
}

TEST(Rendezvous, EndOfTheServerEndsAWaitingGet) {
  auto server = Serve();
  const auto client = ConnectTo(*server, 1);
  auto waiting = std::async(std::launch::async, [&] { return client->Get("never"); });
  server.reset();
  EXPECT_FALSE(waiting.get().ok());
}

int PortOf(const RendezvousServer& server) {
  return ParseHostPort(server.address())->port;
}

TEST(Rendezvous, PortRangeThatIsTakenIsAnError) {
  const auto first = Serve();
  const int taken = PortOf(*first);
  const auto second = RendezvousServer::Listen("127.0.0.1", {taken, taken});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find(std::to_string(taken) + "-" + std::to_string(taken)),
            std::string::npos)
      << second.status();
}

TEST(Rendezvous, ListensOnAFreePortOfItsRange) {
  const auto first = Serve();
  const int taken = PortOf(*first);
  const auto second = RendezvousServer::Listen("127.0.0.1", {taken, taken + 100});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_GT(PortOf(**second), taken);
  EXPECT_LE(PortOf(**second), taken + 100);
}

TEST(Rendezvous, AddressThatIsNoneIsAnErrorThatNamesIt) {
  for (const std::string address : {"nonsense", "127.0.0.1:notaport", "::1:7077"}) {
    const auto client = RendezvousClient::Connect(address, 1, kSecret, kWanted);
    ASSERT_FALSE(client.ok());
    EXPECT_NE(std::string(client.status().message()).find(address), std::string::npos);
  }
}

// ---- Who does not know the secret --------------------------------------------------------------

TEST(Rendezvous, RefusesWhoKnowsAddressAndGenerationButNotTheSecret) {
  const auto server = Serve();
  const auto client = RendezvousClient::Connect(server->address(), 1, "guessed", kWanted);
  EXPECT_TRUE(absl::IsUnavailable(client.status())) << client.status();
  EXPECT_THAT(std::string(client.status().message()), HasSubstr(server->address()));
  EXPECT_THAT(std::string(client.status().message()), HasSubstr("another secret of generation 1"));
  EXPECT_EQ(server->turned_away(), 1);
}

TEST(Rendezvous, StrangerNeitherReadsNorWritesTheTable) {
  const auto server = Serve();
  const auto member = ConnectTo(*server, 1);
  ASSERT_TRUE(member->Set("rank/0", "true").ok());

  const Stranger writes(*server);
  writes.Say(Hello("guessed", 'a') + Set("guessed", 'a', "rank/0", "false"));
  EXPECT_EQ(writes.HearAll(), kRefusal);
  const Stranger says_no_hello(*server);
  says_no_hello.Say(Set(kSecret, 'b', "rank/0", "false"));
  EXPECT_EQ(says_no_hello.HearAll(), "");

  EXPECT_EQ(*member->Get("rank/0"), "true");
  EXPECT_EQ(server->turned_away(), 2);
}

TEST(Rendezvous, RequestsThatWereChangedOrPlayedAgainEndTheConnection) {
  const auto server = Serve();
  const auto member = ConnectTo(*server, 1);
  ASSERT_TRUE(member->Set("k", "true").ok());
  // On a connection that a member has opened.
  std::string changed = Set(kSecret, 'a', "k", "true");
  changed[4 + 1 + 4 + 1] = 'T';
  for (const auto& [nonce, request] : std::vector<std::pair<char, std::string>>{
           {'a', changed},
           {'b', Set(kSecret, 'a', "k", "of another")},
           {'c', Set("guessed", 'c', "k", "guessed")},
           {'d', Set(kSecret, 'd', "k", "true") + Set(kSecret, 'd', "k", "again")}}) {
    const Stranger between(*server);
    between.Say(Hello(kSecret, nonce) + request);
    ASSERT_TRUE(between.HearAll()) << nonce;
    EXPECT_EQ(*member->Get("k"), "true") << nonce;
  }
  EXPECT_EQ(server->turned_away(), 4);
}

TEST(Rendezvous, WhoPlaysAMembersHelloAgainIsRefused) {
  const auto server = Serve();
  const Stranger member(*server);
  member.Say(Hello(kSecret, 'a') + Set(kSecret, 'a', "k", "v"));
  EXPECT_EQ(*ConnectTo(*server, 1)->Get("k"), "v");
  const Stranger replays(*server);
  replays.Say(Hello(kSecret, 'a'));
  EXPECT_EQ(replays.HearAll(), kRefusal);
}

// Whoever listens at the port of a member that has gone.
TEST(Rendezvous, MemberDoesNotTakeAServerThatDoesNotKnowTheSecret) {
  const auto impostor = RendezvousServer::Listen("127.0.0.1");
  ASSERT_TRUE(impostor.ok());
  (*impostor)->Expect(1, "guessed");
  EXPECT_TRUE(absl::IsUnavailable(
      RendezvousClient::Connect((*impostor)->address(), 1, kSecret, kWanted).status()));
}

TEST(Rendezvous, PingIsAnsweredToEverybodyWithNothing) {
  const auto server = Serve();
  const Stranger asks(*server);
  asks.Say(PingRequest());
  EXPECT_EQ(asks.HearAll(), kRefusal);
  EXPECT_EQ(server->turned_away(), 0);
}

TEST(Rendezvous, GenerationThatIsOverIsRefused) {
  const auto server = Serve();
  server->Expect(3, kSecret);
  EXPECT_TRUE(absl::IsUnavailable(
      RendezvousClient::Connect(server->address(), 2, kSecret, kWanted).status()));
}

// ---- Limits ------------------------------------------------------------------------------------

TEST(Rendezvous, ClosesWhoDoesNotSayWhoItIsInTime) {
  RendezvousLimits limits;
  limits.silence_s = 2;
  const auto server = Serve(limits);
  const auto member = ConnectTo(*server, 1);
  // On a busy machine it may have taken the member more than one connection.
  const std::int64_t before = server->turned_away();
  const Stranger silent(*server);
  const Stranger half(*server);
  half.Say(Hello(kSecret, 'a').substr(0, 30));
  const Stranger half_a_ping(*server);
  half_a_ping.Say(PingRequest().substr(0, 3));
  for (const Stranger* s : {&silent, &half, &half_a_ping}) EXPECT_EQ(s->HearAll(), "");
  EXPECT_EQ(server->turned_away() - before, 3);
  ASSERT_TRUE(member->Set("k", "v").ok());  // has been silent for as long
  EXPECT_EQ(*member->Get("k"), "v");
}

TEST(Rendezvous, ClosesWhoSaysNonsenseOrTooMuch) {
  const auto server = Serve();
  std::string huge;
  rendezvous::Append(huge, std::uint32_t{0xFFFFFFFF});
  const std::string http = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::string zeros(1000, '\0');
  std::string ping_of_hellos_size = Hello(kSecret, 'a');
  ping_of_hellos_size[4] = 3;
  for (const std::string& words : {huge, http, zeros, ping_of_hellos_size}) {
    const Stranger stranger(*server);
    stranger.Say(words);
    EXPECT_TRUE(stranger.HearAll());
  }
  EXPECT_EQ(server->turned_away(), 4);
}

TEST(Rendezvous, RequestOfTooManyBytesEndsAMembersConnection) {
  RendezvousLimits limits;
  limits.request_bytes = 1000;
  const auto server = Serve(limits);
  const auto member = ConnectTo(*server, 1);
  ASSERT_TRUE(member->Set("k", std::string(1000 - rendezvous::kRequestBytes - 1, 'v')).ok());
  EXPECT_TRUE(member->Get("k").ok());
  (void)member->Set("k", std::string(1000 - rendezvous::kRequestBytes, 'v'));
  EXPECT_FALSE(member->Get("k").ok());
}

TEST(Rendezvous, TableIsBoundedInEntriesAndBytes) {
  RendezvousLimits limits;
  limits.table_entries = 2;
  limits.table_bytes = 100;
  const auto server = Serve(limits);
  const auto member = ConnectTo(*server, 1);
  ASSERT_TRUE(member->Set("a", std::string(49, 'v')).ok());
  ASSERT_TRUE(member->Set("b", std::string(49, 'v')).ok());
  ASSERT_TRUE(member->Set("a", std::string(49, 'w')).ok());  // in its place
  ASSERT_TRUE(member->Get("b").ok());
  (void)member->Set("c", "");
  EXPECT_FALSE(member->Get("a").ok());
  const auto other = ConnectTo(*server, 1);
  (void)other->Set("a", std::string(50, 'v'));
  EXPECT_FALSE(other->Get("a").ok());
  EXPECT_EQ(server->turned_away(), 2);
}

// Members that ask for a large value again and again and do not read: when the system holds no
// more, the server has a part of an answer to each. What each asks for first has another length, so
// that these parts have, too.
TEST(Rendezvous, WhatIsHeldForAllIsBounded) {
  RendezvousLimits limits;
  limits.held_bytes = 1'500'000;
  const auto server = Serve(limits);
  const auto member = ConnectTo(*server, 1);
  ASSERT_TRUE(member->Set("k", std::string(1'000'000, 'v')).ok());
  std::vector<Stranger> asking;
  for (char nonce = 0; nonce < 8; ++nonce) {
    const std::string first(1, nonce);
    ASSERT_TRUE(
        member->Set(first, std::string(static_cast<std::size_t>(nonce) * 125'000, 'v')).ok());
    const rendezvous::Conversation words{kSecret, Nonce(nonce)};
    std::string requests = Hello(kSecret, nonce);
    for (std::uint64_t i = 1; i <= 100; ++i) {
      requests += words.RequestMessage({rendezvous::Operation::kGet, i == 1 ? first : "k", {}}, i);
    }
    asking.emplace_back(*server).Say(requests);
  }
  EXPECT_TRUE(ComesTrue([&] { return server->turned_away() > 0; }));
}

TEST(Rendezvous, KeepsTheNewestGenerationsOnly) {
  RendezvousLimits limits;
  limits.generations = 2;
  const auto server = Serve(limits);
  const auto old_member = ConnectTo(*server, 1);
  server->Expect(2, kSecret);
  ASSERT_TRUE(ConnectTo(*server, 2));
  ASSERT_TRUE(old_member->Set("k", "v").ok());
  EXPECT_TRUE(old_member->Get("k").ok());
  server->Expect(3, kSecret);
  ASSERT_TRUE(ConnectTo(*server, 3));
  EXPECT_FALSE(old_member->Get("k").ok());
  EXPECT_FALSE(RendezvousClient::Connect(server->address(), 1, kSecret, kWanted).ok());
}

TEST(Rendezvous, OfTooManyStrangersTheLongestSilentGoesFirst) {
  RendezvousLimits limits;
  limits.strangers = 3;
  const auto server = Serve(limits);
  const Stranger early(*server);
  early.Say(Hello(kSecret, 'a', /*generation=*/9));
  const Stranger silent(*server);
  // So that both are in when the next come.
  ASSERT_EQ(TryContacts({server->address()}, 60)[0].contact, Contact::kAnswered);
  const Stranger second(*server);
  const Stranger third(*server);
  EXPECT_EQ(silent.HearAll(), "");
  EXPECT_EQ(server->turned_away(), 1);
  server->Expect(9, kSecret);  // who waits for a generation is still there
  EXPECT_EQ(early.Hear(4), std::string("\x20\0\0\0", 4));
}

TEST(Rendezvous, OfTooManyConnectionsTheNewestMemberGoes) {
  RendezvousLimits limits;
  limits.connections = 2;
  const auto server = Serve(limits);
  const auto a = ConnectTo(*server, 1);
  const Stranger silent(*server);
  const auto b = ConnectTo(*server, 1);
  EXPECT_EQ(silent.HearAll(), "");
  const Stranger one_more(*server);
  one_more.Say(Hello(kSecret, 'a'));
  EXPECT_TRUE(one_more.HearAll());
  ASSERT_TRUE(a->Set("k", "v").ok());
  EXPECT_EQ(*b->Get("k"), "v");
}

// ---- All of it at once -------------------------------------------------------------------------

TEST(Rendezvous, MembersMeetWhileStrangersDoTheirWorst) {
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  constexpr int kStrangers = 2000;        // open at a time
  constexpr int kMostStrangers = 10'000;  // the system's ports are not used up
  constexpr int kMembers = 8;
  const auto server = Serve();
  std::atomic<bool> met{false};
  std::promise<void> crowded;
  auto strangers = std::async(std::launch::async, [&] {
    std::vector<Stranger> open;
    for (int i = 0; i < kStrangers || (!met && i < kMostStrangers); ++i) {
      if (i == kStrangers - 1) crowded.set_value();
      if (open.size() == kStrangers) open.clear();
      const Stranger& stranger = open.emplace_back(*server);
      const char nonce = static_cast<char>(i);
      if (i % 5 == 1) stranger.Say(Hello("guessed", nonce).substr(0, 20));
      if (i % 5 == 2) stranger.Say(Hello("guessed", nonce));
      if (i % 5 == 3) stranger.Say(Hello("guessed", nonce, /*generation=*/2));
      if (i % 5 == 4) stranger.Say(std::string(2000, static_cast<char>(i)));
    }
  });
  crowded.get_future().wait();
  for (const std::int64_t generation : {1, 2}) {
    std::vector<std::future<absl::StatusOr<std::string>>> members;
    for (int i = 0; i < kMembers; ++i) {
      members.push_back(std::async(std::launch::async, [&, i]() -> absl::StatusOr<std::string> {
        const auto member = ConnectTo(*server, generation);
        if (!member) return absl::UnavailableError("not let in");
        const absl::Status set = member->Set(std::to_string(i), std::string(10'000, 'v'));
        if (!set.ok()) return set;
        return member->Get(std::to_string((i + 1) % kMembers));
      }));
    }
    if (generation == 2) server->Expect(2, kSecret);  // these have come too early
    for (auto& member : members) {
      const auto value = member.get();
      EXPECT_TRUE(value.ok() && value->size() == 10'000) << value.status();
    }
  }
  met = true;
  strangers.get();
  EXPECT_GT(server->turned_away(), 0);
}

}  // namespace
}  // namespace espalier
