#include "trial_runner/collectives/rendezvous.h"

#include <future>

#include "gtest/gtest.h"

namespace espalier {
namespace {

std::unique_ptr<RendezvousServer> Serve() {
  auto server = RendezvousServer::Listen("127.0.0.1");
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

std::unique_ptr<RendezvousClient> ConnectTo(const RendezvousServer& server,
                                            std::int64_t generation) {
  auto client = RendezvousClient::Connect(server.address(), generation);
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

TEST(Rendezvous, GetWaitsUntilAnotherMemberHasSetTheKey) {
  const auto server = Serve();
  const auto a = ConnectTo(*server, 1);
  const auto b = ConnectTo(*server, 1);
  auto waiting = std::async(std::launch::async, [&] { return a->Get("rank/1"); });
  const std::string value(100'000, 'v');  // arrives in many pieces
  ASSERT_TRUE(b->Set("rank/1", value).ok());
  EXPECT_EQ(*waiting.get(), value);
  EXPECT_EQ(*b->Get("rank/1"), value);
}

TEST(Rendezvous, GenerationsDoNotSeeEachOther) {
  const auto server = Serve();
  const auto old_member = ConnectTo(*server, 1);
  const auto new_member = ConnectTo(*server, 2);
  ASSERT_TRUE(old_member->Set("k", "old").ok());
  ASSERT_TRUE(new_member->Set("k", "new").ok());
  EXPECT_EQ(*old_member->Get("k"), "old");
  EXPECT_EQ(*new_member->Get("k"), "new");
}

TEST(Rendezvous, CancelEndsAWaitingGet) {
  const auto server = Serve();
  const auto client = ConnectTo(*server, 1);
  auto waiting = std::async(std::launch::async, [&] { return client->Get("never"); });
  client->Cancel();
  EXPECT_FALSE(waiting.get().ok());
}

TEST(Rendezvous, EndOfTheServerEndsAWaitingGet) {
  auto server = Serve();
  const auto client = ConnectTo(*server, 1);
  auto waiting = std::async(std::launch::async, [&] { return client->Get("never"); });
  server.reset();
  EXPECT_FALSE(waiting.get().ok());
}

TEST(Rendezvous, AddressThatIsNoneIsAnErrorThatNamesIt) {
  for (const std::string address : {"nonsense", "127.0.0.1:notaport"}) {
    const auto client = RendezvousClient::Connect(address, 1);
    ASSERT_FALSE(client.ok());
    EXPECT_NE(std::string(client.status().message()).find(address), std::string::npos);
  }
}

}  // namespace
}  // namespace espalier
