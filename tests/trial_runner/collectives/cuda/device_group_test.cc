// Groups form, lose members and form again over a stand-in for NCCL, in the threads of one process.
// Built with the address sanitizer, because what matters is whose memory is written to when.

#include "trial_runner/collectives/cuda/device_group.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trial_runner/collectives/cuda/fake_nccl.h"
#include "tests/trial_runner/collectives/in_process_host.h"

namespace espalier {
namespace {

// ---- one replica --------------------------------------------------------------------------------

class Member {
 public:
  Member(FakeNccl& nccl, MeetingPlace& place, std::int64_t gpu, double formation_limit_s = 60)
      : host(place),
        group(host, {.nccl = nccl.api(),
                     .make_stream = FakeNccl::MakeStream,
                     .free_cached_memory = [this] { ++freed; },
                     .usable = true,
                     .gpu = {7, gpu},
                     .formation_limit_s = formation_limit_s}) {}

  absl::Status BeginToForm(const GroupPlan& plan) {
    group.GiveUp();
    ESPALIER_RETURN_IF_ERROR(host.Form(plan));
    return group.Form(plan);
  }
  // As with the sums of a step.
  absl::Status SumVotes() {
    const auto votes = std::make_shared<std::vector<std::int64_t>>(group.Vote());
    ESPALIER_RETURN_IF_ERROR(host.AllReduceSum(CollectiveBuffer::Of(votes)));
    group.CountVotes(*votes);
    return absl::OkStatus();
  }
  // Until the communicator is formed, or never will be.
  absl::Status Form(const GroupPlan& plan) {
    ESPALIER_RETURN_IF_ERROR(BeginToForm(plan));
    while (group.forming()) {
      EXPECT_EQ(group.communicator(), nullptr);
      ESPALIER_RETURN_IF_ERROR(SumVotes());
    }
    return absl::OkStatus();
  }
  NcclCommunicator::Patience Patience() {
    return [this](const std::function<bool()>& done) { return host.Wait(60, done); };
  }
  // The sum over all members of what each has; by NCCL.
  absl::StatusOr<float> Sum(float own) {
    auto values = std::make_shared<std::vector<float>>(100, own);
    const CollectiveBuffer buffer = CollectiveBuffer::Of(values);
    ESPALIER_RETURN_IF_ERROR(group.communicator()->AllReduceSum(buffer, Patience()));
    ESPALIER_RETURN_IF_ERROR(group.communicator()->WaitAll(Patience()));
    return values->back();
  }

  InProcessHost host;
  int freed = 0;
  DeviceGroup group;
};

class DeviceGroupTest : public ::testing::Test {
 protected:
  DeviceGroupTest() {
    for (std::int64_t gpu = 0; gpu < 4; ++gpu) {
      members_.push_back(std::make_unique<Member>(nccl_, place_, gpu));
    }
  }

  // All of them form the next generation, in this order.
  void Form(const std::vector<int>& who) {
    ++generation_;
    OnAll(who, [this, &who](Member& member, int rank) {
      const absl::Status formed =
          member.Form({generation_, rank, static_cast<int>(who.size()), "", ""});
      EXPECT_TRUE(formed.ok()) << formed;
    });
  }
  void OnAll(const std::vector<int>& who, const std::function<void(Member&, int rank)>& act) {
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < who.size(); ++rank) {
      threads.emplace_back([&, rank] {
        act(*members_[static_cast<std::size_t>(who[rank])], static_cast<int>(rank));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  int ByNccl(const std::vector<int>& who) const {
    return static_cast<int>(std::count_if(who.begin(), who.end(), [this](int index) {
      return members_[static_cast<std::size_t>(index)]->group.communicator() != nullptr;
    }));
  }
  void ExpectSums(const std::vector<int>& who) {
    const auto size = static_cast<float>(who.size());
    OnAll(who, [size](Member& member, int rank) {
      const auto sum = member.Sum(static_cast<float>(rank + 1));
      ASSERT_TRUE(sum.ok()) << sum.status();
      EXPECT_EQ(*sum, size * (size + 1) / 2);
    });
  }

  FakeNccl nccl_;
  MeetingPlace place_;
  std::vector<std::unique_ptr<Member>> members_;
  std::int64_t generation_ = 0;
};

TEST_F(DeviceGroupTest, TheSameMembersKeepTheirCommunicatorAndOthersGetANewOne) {
  Form({0, 1, 2});
  EXPECT_EQ(nccl_.joined(), 3);
  ExpectSums({0, 1, 2});
  Form({0, 1, 2});
  EXPECT_EQ(nccl_.joined(), 3);
  ExpectSums({0, 1, 2});
  Form({0, 2});
  EXPECT_EQ(nccl_.joined(), 5);
  ExpectSums({0, 2});
  Form({2, 0});
  EXPECT_EQ(nccl_.joined(), 7) << "their places have changed";
  Form({2, 0, 3, 1});
  EXPECT_EQ(nccl_.joined(), 11);
  ExpectSums({2, 0, 3, 1});
}

TEST_F(DeviceGroupTest, BroadcastsAndExchanges) {
  Form({0, 1});
  OnAll({0, 1}, [](Member& member, int rank) {
    auto root = std::make_shared<std::vector<std::int64_t>>(3, rank == 1 ? 5 : 0);
    NcclCommunicator& communicator = *member.group.communicator();
    ASSERT_TRUE(communicator.Broadcast(CollectiveBuffer::Of(root), 1, member.Patience()).ok());
    auto own = std::make_shared<std::vector<double>>(4, rank + 1.0);
    auto others = std::make_shared<std::vector<double>>(4);
    const std::vector<NcclCommunicator::Transfer> both = {
        {CollectiveBuffer::Of(own), 1 - rank, /*send=*/true},
        {CollectiveBuffer::Of(others), 1 - rank, /*send=*/false}};
    ASSERT_TRUE(communicator.Exchange(both, member.Patience()).ok());
    EXPECT_FALSE(communicator.idle());
    ASSERT_TRUE(communicator.WaitAll(member.Patience()).ok());
    EXPECT_TRUE(communicator.idle());
    EXPECT_EQ(root->back(), 5);
    EXPECT_EQ(others->back(), 2.0 - rank);
  });
}

TEST_F(DeviceGroupTest, AFailureHoldsForOneGroup) {
  nccl_.FailJoins(1, "unhandled system error");
  Form({0, 1, 2});
  EXPECT_EQ(ByNccl({0, 1, 2}), 0) << "one failed, so none has it";
  Form({0, 1, 2});
  EXPECT_EQ(ByNccl({0, 1, 2}), 3);
  nccl_.FailIds(1);
  Form({0, 1});
  EXPECT_EQ(ByNccl({0, 1}), 0);
  Form({1, 0});
  EXPECT_EQ(ByNccl({0, 1}), 2);
}

// Nobody waits until a limit because another has failed: its vote is enough.
TEST_F(DeviceGroupTest, OthersHearOfAFailureByTheNextVote) {
  nccl_.FailJoins(1, "unhandled system error");
  ++generation_;
  OnAll({0, 1, 2}, [this](Member& member, int rank) {
    ASSERT_TRUE(member.BeginToForm({generation_, rank, 3, "", ""}).ok());
    int votes = 0;
    for (; member.group.forming(); ++votes) ASSERT_TRUE(member.SumVotes().ok());
    EXPECT_LE(votes, FakeNccl::kPolls);  // that is when it hears of it itself
  });
  EXPECT_EQ(ByNccl({0, 1, 2}), 0);
}

TEST_F(DeviceGroupTest, ACommunicatorThatTakesTooLongIsGivenUp) {
  for (std::int64_t gpu = 4; gpu < 6; ++gpu) {
    members_.push_back(std::make_unique<Member>(nccl_, place_, gpu, /*formation_limit_s=*/0));
  }
  nccl_.HoldJoins(true);
  Form({4, 5});
  EXPECT_EQ(ByNccl({4, 5}), 0);
  EXPECT_THAT(members_[4]->group.way().text, ::testing::HasSubstr("NCCL failed"));
}

// As the others hear it, and the record of the study.
TEST_F(DeviceGroupTest, EachMemberKnowsHowDeviceMemoryGoes) {
  const auto ways = [this](const std::vector<int>& who) {
    Form(who);
    std::set<std::string> all;
    for (const int index : who)
      all.insert(members_[static_cast<std::size_t>(index)]->group.way().text);
    return all;
  };
  EXPECT_EQ(ways({0, 1, 2}), std::set<std::string>{"by NCCL"});
  EXPECT_EQ(ways({0, 1, 2}), std::set<std::string>{"by NCCL"}) << "with what they have";
  EXPECT_EQ(ways({0}), std::set<std::string>{""}) << "there is nobody else";
  nccl_.FailJoins(1, "system error");
  EXPECT_THAT(*ways({0, 1}).begin(), ::testing::HasSubstr("through host memory: NCCL failed"));
}

TEST_F(DeviceGroupTest, AFullGpuIsTriedOnceMoreWithoutWhatIsOnlyKept) {
  nccl_.FailJoins(1, "Cuda failure 2 'out of memory'");
  Form({0, 1});
  EXPECT_EQ(ByNccl({0, 1}), 2);
  EXPECT_EQ(members_[0]->freed + members_[1]->freed, 2);
  nccl_.FailJoins(4, "Cuda failure 2 'out of memory'");
  Form({0, 1, 2});
  EXPECT_EQ(ByNccl({0, 1, 2}), 0);
}

TEST_F(DeviceGroupTest, ALeaverLeavesItsMemoryToTheOthersForAWhile) {
  Form({0, 1});
  Form({0});
  EXPECT_EQ(nccl_.existing(), 2);
  EXPECT_EQ(ByNccl({0}), 0);
}

TEST_F(DeviceGroupTest, ACommunicatorThatAGroupWasLostWithIsNotUsedAgain) {
  Form({0, 1});
  // One waits for the other, which hears of a newer generation first.
  std::thread waits([this] { EXPECT_TRUE(absl::IsAborted(members_[0]->Sum(1).status())); });
  while (members_[0]->host.Waiting_s() == 0) std::this_thread::yield();
  members_[0]->host.Abandon(generation_ + 1, 0);
  waits.join();
  Form({0, 1});
  EXPECT_EQ(nccl_.joined(), 4);
  ExpectSums({0, 1});
}

// The members may hear of an error when they have begun nothing.
TEST_F(DeviceGroupTest, ACommunicatorInErrorIsNotKept) {
  Form({0, 1});
  nccl_.BreakAll();
  OnAll({0, 1}, [](Member& member, int) {
    const absl::Status status = member.group.communicator()->WaitAll(member.Patience());
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  });
  Form({0, 1});
  EXPECT_EQ(nccl_.joined(), 4);
  ExpectSums({0, 1});
}

TEST_F(DeviceGroupTest, TwoOnOneGpuGoThroughTheHost) {
  members_.push_back(std::make_unique<Member>(nccl_, place_, /*gpu=*/0));
  Form({0, 1, 4});
  EXPECT_EQ(ByNccl({0, 1, 4}), 0);
  EXPECT_EQ(nccl_.joined(), 0);
}

}  // namespace
}  // namespace espalier
