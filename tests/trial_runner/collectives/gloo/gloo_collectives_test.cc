#include "trial_runner/collectives/gloo/gloo_collectives.h"

#include <csignal>
#include <future>

#include "gtest/gtest.h"

// What is Gloo's alone; what all Collectives do is in collectives_contract_test.cc.

namespace espalier {
namespace {

std::unique_ptr<Collectives> Member() {
  auto made = MakeGlooCollectives({});
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

// Gloo, closing or abandoning a group, writes to sockets that the other member has closed.
TEST(GlooCollectives, BrokenPipeDoesNotEndTheProcess) {
  const auto member = Member();
  EXPECT_EQ(raise(SIGPIPE), 0);
}

// An abandoned group's connections are shut down, so the others need not wait for the word.
TEST(GlooCollectives, MemberThatGivesUpLooksLikeALostOne) {
  const auto quitter = Member();
  const auto waiting = Member();
  auto lost = std::async(std::launch::async, [&] {
    if (absl::Status formed = waiting->Form({1, 1, 2, quitter->Address()}); !formed.ok()) {
      return formed;
    }
    waiting->StartReceive(CollectiveBuffer::Of(std::make_shared<std::vector<double>>(8)), 0);
    waiting->StartAllReduceSum(CollectiveBuffer::Of(std::make_shared<std::vector<double>>(8)));
    return waiting->WaitAll();
  });
  ASSERT_TRUE(quitter->Form({1, 0, 2, quitter->Address()}).ok());
  quitter->StartReceive(CollectiveBuffer::Of(std::make_shared<std::vector<double>>(8)), 1);
  quitter->Abandon(2);
  EXPECT_EQ(quitter->WaitAll().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(lost.get().code(), absl::StatusCode::kUnavailable);
}

TEST(GlooCollectives, AddressOfAnotherMachineIsAnErrorThatNamesIt) {
  CollectivesOptions options;
  options.host = "192.0.2.1";
  const auto made = MakeGlooCollectives(options);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("192.0.2.1"), absl::string_view::npos);
}

}  // namespace
}  // namespace espalier
