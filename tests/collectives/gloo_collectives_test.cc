#include "trial_runner/collectives/gloo_collectives.h"

#include <csignal>
#include <future>
#include <thread>

#include "gtest/gtest.h"

// Members are threads of one process here: each has its own Collectives object, sockets and all.
// Lost and stopped processes are in tests/trial_runner.

namespace espalier {
namespace {

using Members = std::vector<std::unique_ptr<Collectives>>;

Members MakeMembers(int count) {
  Members members;
  for (int i = 0; i < count; ++i) {
    auto made = MakeGlooCollectives({});
    EXPECT_TRUE(made.ok()) << made.status();
    members.push_back(std::move(*made));
  }
  return members;
}

// Runs `body(member, plan)` for each member as rank 0, 1, ... of `generation`, at the same time.
template <typename Body>
std::vector<absl::Status> InGroup(const Members& members, std::int64_t generation, int size,
                                  Body body) {
  std::vector<std::future<absl::Status>> running;
  for (int rank = 0; rank < size; ++rank) {
    running.push_back(std::async(std::launch::async, [&, rank] {
      const GroupPlan plan{generation, rank, size, members[0]->Address()};
      return body(*members[static_cast<std::size_t>(rank)], plan);
    }));
  }
  std::vector<absl::Status> statuses;
  for (auto& r : running) statuses.push_back(r.get());
  return statuses;
}

void ExpectAllOk(const std::vector<absl::Status>& statuses) {
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
}

absl::Status FormAndSum(Collectives& member, const GroupPlan& plan) {
  if (absl::Status formed = member.Form(plan); !formed.ok()) return formed;
  auto values = std::make_shared<std::vector<float>>(1000, static_cast<float>(plan.rank + 1));
  if (absl::Status summed = member.AllReduceSum(CollectiveBuffer::Of(values)); !summed.ok()) {
    return summed;
  }
  const auto expected = static_cast<float>(plan.size * (plan.size + 1) / 2);
  for (const float v : *values) {
    if (v != expected) return absl::InternalError("wrong sum");
  }
  return absl::OkStatus();
}

// Would notice if the Gloo headers that were compiled against do not fit the Gloo in LibTorch.
TEST(GlooCollectives, SumsBroadcastsAndGathersOverThreeMembers) {
  const Members members = MakeMembers(3);
  ExpectAllOk(InGroup(members, 1, 3, [](Collectives& member, const GroupPlan& plan) {
    if (absl::Status summed = FormAndSum(member, plan); !summed.ok()) return summed;
    auto bytes = std::make_shared<std::vector<std::uint8_t>>(
        77, static_cast<std::uint8_t>(plan.rank == 2 ? 9 : 0));
    if (absl::Status sent = member.Broadcast(CollectiveBuffer::Of(bytes), 2); !sent.ok()) {
      return sent;
    }
    if (bytes->back() != 9) return absl::InternalError("broadcast did not arrive");
    const auto table = member.AllGather({plan.rank, 10 * plan.rank});
    if (!table.ok()) return table.status();
    const std::vector<std::vector<std::int64_t>> expected{{0, 0}, {1, 10}, {2, 20}};
    return *table == expected ? absl::OkStatus() : absl::InternalError("wrong table");
  }));
}

TEST(GlooCollectives, RunsSeveralOperationsAtOnceInTheOrderTheyWereBegun) {
  const Members members = MakeMembers(3);
  ExpectAllOk(InGroup(members, 1, 3, [](Collectives& member, const GroupPlan& plan) {
    if (absl::Status formed = member.Form(plan); !formed.ok()) return formed;
    std::vector<std::shared_ptr<std::vector<float>>> sums;
    for (int i = 0; i < 8; ++i) {
      sums.push_back(std::make_shared<std::vector<float>>(50'000, static_cast<float>(i)));
      member.StartAllReduceSum(CollectiveBuffer::Of(sums.back()));
    }
    if (absl::Status done = member.WaitAll(); !done.ok()) return done;
    for (int i = 0; i < 8; ++i) {
      if (sums[static_cast<std::size_t>(i)]->back() != static_cast<float>(3 * i)) {
        return absl::InternalError("wrong sum");
      }
    }
    return absl::OkStatus();
  }));
}

TEST(GlooCollectives, SendsBetweenTwoWhileTheThirdLooksOn) {
  const Members members = MakeMembers(3);
  ExpectAllOk(InGroup(members, 1, 3, [](Collectives& member, const GroupPlan& plan) {
    if (absl::Status formed = member.Form(plan); !formed.ok()) return formed;
    auto a = std::make_shared<std::vector<std::uint8_t>>(100'000, plan.rank == 2 ? 5 : 0);
    auto b = std::make_shared<std::vector<double>>(3, plan.rank == 2 ? 1.5 : 0.0);
    for (const CollectiveBuffer& buffer : {CollectiveBuffer::Of(a), CollectiveBuffer::Of(b)}) {
      if (plan.rank == 2) member.StartSend(buffer, 0);
      if (plan.rank == 0) member.StartReceive(buffer, 2);
    }
    if (absl::Status done = member.WaitAll(); !done.ok()) return done;
    const bool has_it = a->back() == 5 && b->back() == 1.5;
    return has_it == (plan.rank != 1) ? absl::OkStatus() : absl::InternalError("wrong content");
  }));
}

TEST(GlooCollectives, AbandonWakesAReceiverWhoseSenderNeverSends) {
  const Members members = MakeMembers(2);
  std::promise<void> waiting;
  auto statuses = std::async(std::launch::async, [&] {
    return InGroup(members, 1, 2, [&](Collectives& member, const GroupPlan& plan) {
      if (absl::Status formed = member.Form(plan); !formed.ok()) return formed;
      if (plan.rank == 1) return absl::OkStatus();
      member.StartReceive(CollectiveBuffer::Of(std::make_shared<std::vector<double>>(8)), 1);
      waiting.set_value();
      return member.WaitAll();
    });
  });
  waiting.get_future().wait();
  members[0]->Abandon(2);
  EXPECT_EQ(statuses.get()[0].code(), absl::StatusCode::kAborted);
  ExpectAllOk(InGroup(members, 2, 2, FormAndSum));
}

TEST(GlooCollectives, GrowsAndShrinksThroughGenerations) {
  const Members members = MakeMembers(4);
  std::int64_t generation = 0;
  for (const int size : {1, 2, 4, 1, 3, 2}) {
    ExpectAllOk(InGroup(members, ++generation, size, FormAndSum));
  }
}

TEST(GlooCollectives, AbandonWakesAWaitingAllReduce) {
  const Members members = MakeMembers(2);
  std::promise<void> waiting;
  auto statuses = std::async(std::launch::async, [&] {
    return InGroup(members, 1, 2, [&](Collectives& member, const GroupPlan& plan) {
      if (absl::Status formed = member.Form(plan); !formed.ok()) return formed;
      if (plan.rank == 1) return absl::OkStatus();  // never comes to the all-reduce
      auto values = std::make_shared<std::vector<double>>(8, 1.0);
      waiting.set_value();
      return member.AllReduceSum(CollectiveBuffer::Of(values));
    });
  });
  waiting.get_future().wait();
  members[0]->Abandon(2);
  EXPECT_EQ(statuses.get()[0].code(), absl::StatusCode::kAborted);
  // The same objects form the next generation while the old operation is still stuck.
  ExpectAllOk(InGroup(members, 2, 2, FormAndSum));
}

TEST(GlooCollectives, AbandonWakesAFormationWhoseMemberNeverComes) {
  const Members members = MakeMembers(2);
  auto lonely = std::async(std::launch::async, [&] {
    return members[0]->Form({5, 0, 2, members[0]->Address()});
  });
  members[0]->Abandon(6);
  EXPECT_EQ(lonely.get().code(), absl::StatusCode::kAborted);
  ExpectAllOk(InGroup(members, 6, 2, FormAndSum));
}

TEST(GlooCollectives, AbandonWithGraceWakesOnlyWhoGoesOnWaiting) {
  const Members members = MakeMembers(2);
  members[0]->Abandon(2, /*grace_s=*/0.3);
  members[1]->Abandon(2, /*grace_s=*/3600);
  const auto statuses = InGroup(members, 1, 2, [](Collectives& member, const GroupPlan& plan) {
    // Everybody comes: nobody waits for long, and the group works.
    if (absl::Status summed = FormAndSum(member, plan); !summed.ok()) return summed;
    if (plan.rank == 1) return absl::OkStatus();
    return member.AllReduceSum(CollectiveBuffer::Of(std::make_shared<std::vector<double>>(8, 1.0)));
  });
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(statuses[1].ok()) << statuses[1];
}

TEST(GlooCollectives, FormRefusesAGenerationOlderThanTheWord) {
  const Members members = MakeMembers(1);
  members[0]->Abandon(3);
  EXPECT_EQ(members[0]->Form({2, 0, 1, members[0]->Address()}).code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(members[0]->Form({3, 0, 1, members[0]->Address()}).ok());
}

// Gloo, closing or abandoning a group, writes to sockets that the other member has closed.
TEST(GlooCollectives, BrokenPipeDoesNotEndTheProcess) {
  const Members members = MakeMembers(1);
  EXPECT_EQ(raise(SIGPIPE), 0);
}

TEST(GlooCollectives, UnknownInterfaceIsAnErrorThatNamesIt) {
  const auto made = MakeGlooCollectives({.host = "127.0.0.1", .interface = "nosuch0"});
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("nosuch0"), absl::string_view::npos);
}

}  // namespace
}  // namespace espalier
