// Groups form, lose members and form again over a stand-in for NCCL, in the threads of one process.
// Built with the address sanitizer, because what matters is whose memory is written to when.

#include "trial_runner/collectives/device_group.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trial_runner/collectives/fake_nccl.h"
#include "trial_runner/collectives/bell.h"
#include "tuner/base/check.h"
#include "tuner/base/status.h"

namespace espalier {
namespace {

using std::chrono::microseconds;

// ---- where a member stops, as a process does that is killed or stopped: it keeps what it has
// ------

std::mutex stop_mutex;
std::condition_variable stops;
bool released = false;
thread_local int calls_left = 0;  // of this member before it stops; 0: it does not
thread_local std::atomic<bool>* stopped_here = nullptr;

void AtCall() {
  if (calls_left == 0 || --calls_left > 0) return;
  std::unique_lock lock(stop_mutex);
  *stopped_here = true;
  stops.notify_all();
  stops.wait(lock, [] { return released; });
}

// ---- the host's collectives, as far as a device group needs them
// ----------------------------------

// Where the members of each generation meet.
class MeetingPlace {
 public:
  using Values = std::vector<std::int64_t>;

  void Tell(std::int64_t generation, int round, int rank, const Values& values) {
    const std::lock_guard lock(mutex_);
    told_[{generation, round}][rank] = values;
  }
  // What all of them have told; empty: some have not come.
  std::vector<Values> Told(std::int64_t generation, int round, int size) {
    const std::lock_guard lock(mutex_);
    std::vector<Values> all;
    const auto& told = told_[{generation, round}];
    if (static_cast<int>(told.size()) < size) return all;
    for (const auto& [rank, values] : told) all.push_back(values);
    return all;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::int64_t, int>, std::map<int, Values>> told_;
};

class InProcessHost final : public Collectives {
 public:
  explicit InProcessHost(MeetingPlace& place) : place_(place) {}

  std::string Address() const override { return ""; }
  absl::Status Form(const GroupPlan& plan) override {
    plan_ = plan;
    round_ = 0;
    lost_ = false;
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<std::vector<std::int64_t>>> AllGather(
      const std::vector<std::int64_t>& values) override {
    AtCall();
    ESPALIER_CHECK(!lost_, "called on a group that is lost");
    const int round = round_++;
    place_.Tell(plan_.generation, round, plan_.rank, values);
    std::vector<std::vector<std::int64_t>> told;
    const absl::Status status = Wait(20, [&] {
      told = place_.Told(plan_.generation, round, plan_.size);
      return !told.empty();
    });
    lost_ = !status.ok();
    if (lost_) return status;
    return told;
  }
  void Abandon(std::int64_t generation, double grace_s) override {
    bell_.Abandon(generation, grace_s);
  }
  double Waiting_s() const override { return bell_.Waiting_s(); }
  absl::Status Wait(double limit_s, const std::function<bool()>& done) {
    return bell_.WaitFor({.generation = plan_.generation,
                          .limit_s = limit_s,
                          .done = done,
                          .poll_every = microseconds(50)});
  }

  // Not what is tested here.
  void StartAllReduceSum(const CollectiveBuffer&) override { Unused(); }
  void StartBroadcast(const CollectiveBuffer&, int) override { Unused(); }
  void StartSend(const CollectiveBuffer&, int) override { Unused(); }
  void StartReceive(const CollectiveBuffer&, int) override { Unused(); }
  absl::Status WaitAll() override { return absl::OkStatus(); }

 private:
  static void Unused() { ESPALIER_CHECK(false, "device memory is to go by the communicator"); }

  MeetingPlace& place_;
  Bell bell_;
  GroupPlan plan_;
  int round_ = 0;
  bool lost_ = false;
};

// ---- one replica
// ----------------------------------------------------------------------------------

class Member {
 public:
  Member(FakeNccl& nccl, MeetingPlace& place, std::int64_t gpu)
      : host(place),
        group(host, {.nccl = nccl.api(),
                     .make_stream = FakeNccl::MakeStream,
                     .free_cached_memory = [this] { ++freed; },
                     .usable = true,
                     .gpu = {7, gpu},
                     .formation_limit_s = 0.3}) {}

  absl::Status Form(const GroupPlan& plan) {
    group.GiveUp();
    ESPALIER_RETURN_IF_ERROR(host.Form(plan));
    return group.Form(plan, [this](double limit_s, const std::function<bool()>& done) {
      return host.Wait(limit_s, done);
    });
  }
  NcclCommunicator::Patience Patience() {
    return [this](const std::function<bool()>& done) { return host.Wait(20, done); };
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
  std::atomic<bool> stopped = false;
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
    EXPECT_TRUE(communicator.busy());
    ASSERT_TRUE(communicator.WaitAll(member.Patience()).ok());
    EXPECT_FALSE(communicator.busy());
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

// As the others hear it, and the record of the study.
TEST_F(DeviceGroupTest, EachMemberKnowsHowDeviceMemoryGoes) {
  const auto ways = [this](const std::vector<int>& who) {
    Form(who);
    std::set<std::string> all;
    for (const int index : who) all.insert(members_[static_cast<std::size_t>(index)]->group.way());
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

TEST_F(DeviceGroupTest, TwoOnOneGpuGoThroughTheHost) {
  members_.push_back(std::make_unique<Member>(nccl_, place_, /*gpu=*/0));
  Form({0, 1, 4});
  EXPECT_EQ(ByNccl({0, 1, 4}), 0);
  EXPECT_EQ(nccl_.joined(), 0);
}

// Each seed is eight generations of random members, in most of which one stops at a random call.
// The others must come to an end, agree in the next generation, and compute right sums.
class RandomDeaths : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  // One generation: its members by rank, and what comes of each.
  struct Generation {
    Generation(std::int64_t n, std::vector<Member*> by_rank)
        : number(n), members(std::move(by_rank)), results(members.size()), ended(members.size()) {}

    // Whether each has come to its end, or, `with_stopped`, has stopped.
    bool Over(bool with_stopped) const {
      for (std::size_t i = 0; i < members.size(); ++i) {
        if (!ended[i] && !(members[i]->stopped && with_stopped)) return false;
      }
      return true;
    }

    std::int64_t number = 0;
    std::vector<Member*> members;
    std::vector<absl::Status> results;
    std::vector<std::atomic<bool>> ended;
    std::vector<std::thread> threads;
  };

  RandomDeaths() : random_(GetParam()) {
    released = false;
    nccl_.CallAtEach(AtCall);
  }

  int Draw(int below) { return static_cast<int>(random_() % below); }

  // Some of those that live, and new ones.
  std::vector<Member*> DrawGroup() {
    std::vector<Member*> group;
    for (const auto& member : members_) {
      if (!member->stopped && Draw(4) > 0) group.push_back(member.get());
    }
    while (group.size() < 2 || (group.size() < 4 && Draw(3) == 0)) {
      members_.push_back(
          std::make_unique<Member>(nccl_, place_, static_cast<std::int64_t>(members_.size())));
      group.push_back(members_.back().get());
    }
    return group;
  }

  // A member's thread: forms the group and computes three sums. It stops at that call; 0: at none.
  static void Train(Generation& generation, int rank, int stops_at_call) {
    const auto index = static_cast<std::size_t>(rank);
    Member* const member = generation.members[index];
    const int size = static_cast<int>(generation.members.size());
    calls_left = stops_at_call;
    stopped_here = &member->stopped;
    absl::Status result = member->Form({generation.number, rank, size, "", ""});
    for (int step = 0; step < 3 && result.ok() && member->group.communicator(); ++step) {
      const auto sum = member->Sum(static_cast<float>(rank + 1));
      result = sum.status();
      if (sum.ok()) {
        EXPECT_EQ(*sum, static_cast<float>(size * (size + 1)) / 2);
      }
    }
    calls_left = 0;
    if (member->stopped) return;  // at the end of the test, when `generation` is gone
    if (!result.ok()) member->group.GiveUp();
    const std::lock_guard lock(stop_mutex);
    generation.results[index] = result;
    generation.ended[index] = true;
    stops.notify_all();
  }

  // The service sees that a member does not answer any more, and says so to the others.
  static void AwaitEnd(Generation& generation, int victim) {
    std::unique_lock lock(stop_mutex);
    const auto victim_stopped = [&] {
      return victim >= 0 && generation.members[static_cast<std::size_t>(victim)]->stopped;
    };
    ASSERT_TRUE(stops.wait_for(lock, std::chrono::seconds(30), [&] {
      return generation.Over(/*with_stopped=*/false) || victim_stopped();
    }));
    lock.unlock();
    if (victim_stopped()) {
      for (Member* member : generation.members) {
        if (!member->stopped) member->host.Abandon(generation.number + 1, 0);
      }
    }
    lock.lock();
    ASSERT_TRUE(stops.wait_for(lock, std::chrono::seconds(30),
                               [&] { return generation.Over(/*with_stopped=*/true); }))
        << "a member waits beyond all limits, generation " << generation.number;
  }

  // Whether no member was lost.
  bool JoinThreads(Generation& generation) {
    bool whole = true;
    for (std::size_t i = 0; i < generation.members.size(); ++i) {
      if (generation.members[i]->stopped) {
        whole = false;
        left_.push_back(std::move(generation.threads[i]));
      } else {
        generation.threads[i].join();
      }
    }
    return whole;
  }

  static void ExpectAgreed(const Generation& generation) {
    const auto has_communicator = [&](std::size_t i) {
      return generation.members[i]->group.communicator() != nullptr;
    };
    for (std::size_t i = 0; i < generation.members.size(); ++i) {
      EXPECT_TRUE(generation.results[i].ok()) << generation.results[i];
      EXPECT_EQ(has_communicator(i), has_communicator(0)) << "not all go the same way";
    }
  }

  void EndStoppedMembers() {
    {
      const std::lock_guard lock(stop_mutex);
      released = true;
      stops.notify_all();
    }
    for (const auto& member : members_) member->host.Abandon(1000, 0);
    for (std::thread& thread : left_) thread.join();
  }

  std::mt19937 random_;
  FakeNccl nccl_;
  MeetingPlace place_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<std::thread> left_;  // threads of members that have stopped
};

TEST_P(RandomDeaths, TheOthersAgreeAndGoOn) {
  for (std::int64_t number = 1; number <= 8; ++number) {
    Generation generation(number, DrawGroup());
    if (Draw(6) == 0) nccl_.FailJoins(1, Draw(2) == 0 ? "out of memory" : "system error");
    if (Draw(12) == 0) nccl_.FailIds(1);
    const int size = static_cast<int>(generation.members.size());
    const int victim = Draw(3) > 0 ? Draw(size) : -1;
    const int call = 1 + Draw(60);
    for (int rank = 0; rank < size; ++rank) {
      generation.threads.emplace_back(Train, std::ref(generation), rank, rank == victim ? call : 0);
    }
    ASSERT_NO_FATAL_FAILURE(AwaitEnd(generation, victim));
    if (JoinThreads(generation)) ExpectAgreed(generation);
  }
  EndStoppedMembers();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDeaths, ::testing::Range(0U, 100U));

}  // namespace
}  // namespace espalier
