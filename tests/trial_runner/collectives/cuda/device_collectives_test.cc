// Groups over a stand-in for NCCL, in the threads of one process: random members, one of which
// often stops at a random call. Built with sanitizers, because what matters is whose memory is
// written to when.

#include "trial_runner/collectives/cuda/device_collectives.h"

#include <atomic>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "tests/trial_runner/collectives/cuda/fake_nccl.h"
#include "tests/trial_runner/collectives/cuda/host_staging.h"
#include "tests/trial_runner/collectives/in_process_host.h"

namespace espalier {
namespace {

constexpr std::int64_t kGenerations = 8;  // of a seed

// One replica, on a GPU of its own.
class Replica {
 public:
  Replica(FakeNccl& nccl, MeetingPlace& place, int gpu) : gpu_(gpu) {
    auto host = std::make_unique<InProcessHost>(place);
    DeviceCollectives::Device device{.staging = std::make_unique<HostStaging>(*host),
                                     .group = {.nccl = nccl.api(),
                                               .make_stream = FakeNccl::MakeStream,
                                               .free_cached_memory = [] {},
                                               .usable = true,
                                               .gpu = {7, gpu},
                                               .formation_limit_s = 60}};
    CollectivesOptions options;
    options.device = gpu;
    options.collective_limit_s = 60;
    collectives = std::make_unique<DeviceCollectives>(std::move(host), options, std::move(device));
  }

  // What training does in a group: states are handed on, as they are in between, and then there are
  // steps; `until_nccl`: as many more as there are until its communicator is formed.
  absl::Status Train(const GroupPlan& plan, int steps, bool until_nccl) {
    ESPALIER_RETURN_IF_ERROR(collectives->Form(plan));
    ESPALIER_RETURN_IF_ERROR(PassOn(plan));
    for (int step = 0; step < steps || (until_nccl && IsForming()); ++step) {
      ESPALIER_RETURN_IF_ERROR(Step(plan));
      if (step % 3 == 2) ESPALIER_RETURN_IF_ERROR(PassOn(plan));
    }
    const auto table = collectives->AllGather({plan.rank});
    ESPALIER_RETURN_IF_ERROR(table.status());
    EXPECT_EQ(table->size(), static_cast<std::size_t>(plan.size));
    return absl::OkStatus();
  }

  // Three buckets, and what lies in the host's memory.
  absl::Status Step(const GroupPlan& plan) {
    std::vector<CollectiveBuffer> buckets;
    for (int bucket = 1; bucket <= 3; ++bucket) {
      buckets.push_back(OnDevice<float>(100, static_cast<float>(bucket * (plan.rank + 1))));
      collectives->StartAllReduceSum(buckets.back());
    }
    const auto tail = std::make_shared<std::vector<double>>(5, 1.0);
    collectives->StartAllReduceSum(CollectiveBuffer::Of(tail));
    // By work of the device, as a step's norms are computed.
    const auto sums = std::make_shared<std::vector<float>>();
    const bool by_nccl = IsByNccl();
    ESPALIER_RETURN_IF_ERROR(collectives->WaitAllAnd([&] {
      EXPECT_TRUE(!by_nccl || FakeNccl::CurrentStreamFollows()) << "it may come before the sums";
      FakeNccl::GiveCurrentStream([sums, buckets] {
        for (const CollectiveBuffer& bucket : buckets) sums->push_back(LastOf<float>(bucket));
      });
    }));
    const int ranks = plan.size * (plan.size + 1) / 2;
    EXPECT_EQ(sums->size(), buckets.size()) << "not waited for";
    for (std::size_t i = 0; i < sums->size(); ++i) {
      EXPECT_EQ((*sums)[i], static_cast<float>((static_cast<int>(i) + 1) * ranks));
    }
    EXPECT_EQ(tail->back(), plan.size);
    return absl::OkStatus();
  }

  GradientTransport transport() const { return collectives->Way().transport; }
  bool IsByNccl() const { return transport() == GradientTransport::kNccl; }
  bool IsForming() const { return transport() == GradientTransport::kHostUntilNccl; }

  std::unique_ptr<DeviceCollectives> collectives;
  std::atomic<bool> stopped = false;

 private:
  template <typename T>
  CollectiveBuffer OnDevice(std::size_t count, T value) {
    auto values = std::make_shared<std::vector<T>>(count, value);
    CollectiveBuffer buffer = CollectiveBuffer::Of(values);
    buffer.device = gpu_;
    return buffer;
  }
  template <typename T>
  static T LastOf(const CollectiveBuffer& buffer) {
    return static_cast<const T*>(buffer.start)[buffer.count - 1];
  }

  // From each member to the next, and from the last to all.
  absl::Status PassOn(const GroupPlan& plan) {
    const int next = (plan.rank + 1) % plan.size;
    const int before = (plan.rank + plan.size - 1) % plan.size;
    const auto own = OnDevice<double>(500, plan.rank);
    const auto others = OnDevice<double>(500, -1);
    collectives->StartSend(own, next);
    collectives->StartReceive(others, before);
    ESPALIER_RETURN_IF_ERROR(collectives->WaitAll());
    EXPECT_EQ(LastOf<double>(others), before);
    const auto all = OnDevice<std::int64_t>(7, plan.rank);
    ESPALIER_RETURN_IF_ERROR(collectives->Broadcast(all, plan.size - 1));
    EXPECT_EQ(LastOf<std::int64_t>(all), plan.size - 1);
    return absl::OkStatus();
  }

  const int gpu_;
};

// ---- a communicator that takes its time ---------------------------------------------------------

TEST(DeviceCollectivesTest, WorksThroughTheHostUntilTheCommunicatorIsFormed) {
  FakeNccl nccl;
  MeetingPlace place;
  Replica first(nccl, place, 0);
  Replica second(nccl, place, 1);
  nccl.HoldJoins(true);
  const auto work = [&nccl](Replica& replica, int rank) {
    const GroupPlan plan{1, rank, 2, "", ""};
    const absl::Status trained = replica.Train(plan, /*steps=*/5, /*until_nccl=*/false);
    EXPECT_TRUE(trained.ok()) << trained;
    // The other one cannot be further than the end of this gathering.
    EXPECT_TRUE(replica.collectives->FromDeviceToDevice());
    EXPECT_TRUE(replica.IsForming()) << replica.collectives->Way().text;
    nccl.HoldJoins(false);
    int steps = 0;
    for (; replica.IsForming(); ++steps) ASSERT_TRUE(replica.Step(plan).ok());
    EXPECT_TRUE(replica.IsByNccl());
    EXPECT_LE(steps, 2 * FakeNccl::kPolls);
    const absl::Status by_nccl = replica.Step(plan);
    EXPECT_TRUE(by_nccl.ok()) << by_nccl;
  };
  std::thread other([&] { work(second, 1); });
  work(first, 0);
  other.join();
  EXPECT_EQ(nccl.joined(), 2);
}

// What is cut to the transport's measure is cut alike on all members, whenever they ask.
TEST(DeviceCollectivesTest, IsMeantToGoByNcclForAsLongAsTheGroupLasts) {
  FakeNccl nccl;
  MeetingPlace place;
  Replica first(nccl, place, 0);
  Replica second(nccl, place, 1);
  nccl.FailJoins(1, "system error");
  const auto work = [](Replica& replica, int rank) {
    const absl::Status trained = replica.Train({1, rank, 2, "", ""}, 1, /*until_nccl=*/true);
    EXPECT_TRUE(trained.ok()) << trained;
    EXPECT_FALSE(replica.IsForming());
    EXPECT_FALSE(replica.IsByNccl());
    EXPECT_TRUE(replica.collectives->FromDeviceToDevice());
  };
  std::thread other([&] { work(second, 1); });
  work(first, 0);
  other.join();
}

TEST(DeviceCollectivesTest, WhatTheCallersOwnWorkThrowsIsTheCallers) {
  FakeNccl nccl;
  MeetingPlace place;
  Replica first(nccl, place, 0);
  Replica second(nccl, place, 1);
  const auto work = [](Replica& replica, int rank) {
    const GroupPlan plan{1, rank, 2, "", ""};
    const absl::Status trained = replica.Train(plan, 1, /*until_nccl=*/true);
    EXPECT_TRUE(trained.ok()) << trained;
    EXPECT_TRUE(replica.IsByNccl());
    EXPECT_THROW(static_cast<void>(replica.collectives->WaitAllAnd(
                     [] { throw std::runtime_error("out of memory"); })),
                 std::runtime_error);
    const absl::Status next = replica.Step(plan);
    EXPECT_TRUE(next.ok()) << next;
  };
  std::thread other([&] { work(second, 1); });
  work(first, 0);
  other.join();
}

// ---- random deaths ------------------------------------------------------------------------------

// One generation: its members by rank, and what comes of each.
struct Generation {
  Generation(std::int64_t n, std::vector<Replica*> by_rank)
      : number(n), members(std::move(by_rank)), results(members.size()), ended(members.size()) {}

  // Whether each has come to its end, or, `with_stopped`, has stopped.
  bool Over(bool with_stopped) const {
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (!ended[i] && !(members[i]->stopped && with_stopped)) return false;
    }
    return true;
  }
  GroupPlan PlanOf(std::size_t index) const {
    return {number, static_cast<int>(index), static_cast<int>(members.size()), "", ""};
  }

  std::int64_t number = 0;
  std::vector<Replica*> members;
  int steps = 3;
  bool until_nccl = false;
  std::vector<absl::Status> results;
  std::vector<std::atomic<bool>> ended;
  std::vector<std::thread> threads;
};

class RandomDeaths : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  RandomDeaths() : random_(GetParam()) {
    nccl_.CallAtEach(Stops::AtCall);
    if (GetParam() % 2 == 1) nccl_.TellAborts();
  }

  int Draw(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  // Some of those that live, and new ones.
  std::vector<Replica*> DrawGroup() {
    std::vector<Replica*> group;
    for (const auto& replica : replicas_) {
      if (!replica->stopped && Draw(4) > 0) group.push_back(replica.get());
    }
    while (group.size() < 2 || (group.size() < 4 && Draw(3) == 0)) {
      replicas_.push_back(
          std::make_unique<Replica>(nccl_, place_, static_cast<int>(replicas_.size())));
      group.push_back(replicas_.back().get());
    }
    return group;
  }

  // What may go wrong beside a death.
  bool DrawFailures() {
    const bool fails_to_join = Draw(6) == 0;
    const bool fails_later = Draw(6) == 0;
    if (fails_to_join) nccl_.FailJoins(1, Draw(2) == 0 ? "out of memory" : "system error");
    if (Draw(12) == 0) nccl_.FailIds(1);
    if (fails_later) nccl_.FailOperations(1);
    return fails_later;
  }

  // A replica's thread. It stops at that call; 0: at none.
  void Run(Generation& generation, std::size_t index, int stops_at_call) {
    Replica& replica = *generation.members[index];
    Stops::StopAt(stops_at_call, &replica.stopped);
    const absl::Status result =
        replica.Train(generation.PlanOf(index), generation.steps, generation.until_nccl);
    Stops::StopAt(0, nullptr);
    if (replica.stopped) return;  // at the end of the test, when `generation` is gone
    stops_.Change([&] {
      generation.results[index] = result;
      generation.ended[index] = true;
    });
  }

  // The service hears that a member does not answer any more, or has lost its group, and tells the
  // others of the next generation.
  void AwaitEnd(Generation& generation) {
    const auto broken = [&] {
      for (std::size_t i = 0; i < generation.members.size(); ++i) {
        if (generation.members[i]->stopped) return true;
        if (generation.ended[i] && !generation.results[i].ok()) return true;
      }
      return false;
    };
    ASSERT_TRUE(stops_.Await([&] { return generation.Over(/*with_stopped=*/false) || broken(); }));
    if (broken()) {
      for (Replica* replica : generation.members) {
        // On a thread, as one that stops just then holds it up.
        const std::int64_t next = generation.number + 1;
        told_.emplace_back([replica, next] { replica->collectives->Abandon(next, 0); });
      }
    }
    ASSERT_TRUE(stops_.Await([&] { return generation.Over(/*with_stopped=*/true); }))
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

  void RunGeneration(Generation& generation, int victim, int call) {
    for (std::size_t i = 0; i < generation.members.size(); ++i) {
      const int stops_at = static_cast<int>(i) == victim ? call : 0;
      generation.threads.emplace_back(
          [this, &generation, i, stops_at] { Run(generation, i, stops_at); });
    }
    AwaitEnd(generation);
  }

  // All are well, and go the same way.
  static void ExpectAgreed(const Generation& generation) {
    const std::string way = generation.members[0]->collectives->Way().text;
    for (std::size_t i = 0; i < generation.members.size(); ++i) {
      EXPECT_TRUE(generation.results[i].ok()) << generation.results[i];
      EXPECT_EQ(generation.members[i]->collectives->Way().text, way);
    }
  }

  // Whatever has been, the next group without failures has NCCL again.
  void ExpectTheNextGroupHasNccl() {
    nccl_.FailJoins(0, "");
    nccl_.FailIds(0);
    nccl_.FailOperations(0);
    Generation generation(kGenerations + 1, DrawGroup());
    generation.until_nccl = true;
    ASSERT_NO_FATAL_FAILURE(RunGeneration(generation, -1, 0));
    ASSERT_TRUE(JoinThreads(generation));
    ExpectAgreed(generation);
    EXPECT_TRUE(generation.members[0]->IsByNccl());
  }

  void EndStoppedReplicas() {
    stops_.Release();
    for (const auto& replica : replicas_) replica->collectives->Abandon(1000, 0);
    for (std::thread& thread : left_) thread.join();
    for (std::thread& thread : told_) thread.join();
  }

  std::mt19937 random_;
  Stops stops_;
  FakeNccl nccl_;
  MeetingPlace place_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<std::thread> left_;  // threads of replicas that have stopped
  std::vector<std::thread> told_;  // threads that tell replicas of the next generation
};

// Each seed is eight generations, in most of which one stops at a random call. The others must come
// to an end, agree in the next generation, and compute right sums; and NCCL is not lost with that.
TEST_P(RandomDeaths, TheOthersAgreeAndGoOnByNccl) {
  for (std::int64_t number = 1; number <= kGenerations; ++number) {
    Generation generation(number, DrawGroup());
    generation.steps = 1 + Draw(20);
    const bool fails_later = DrawFailures();
    const int size = static_cast<int>(generation.members.size());
    const int victim = Draw(3) > 0 ? Draw(size) : -1;
    ASSERT_NO_FATAL_FAILURE(RunGeneration(generation, victim, 1 + Draw(120)));
    if (JoinThreads(generation) && !fails_later) ExpectAgreed(generation);
    nccl_.FailOperations(0);
  }
  ASSERT_NO_FATAL_FAILURE(ExpectTheNextGroupHasNccl());
  EndStoppedReplicas();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDeaths, ::testing::Range(0U, 100U));

}  // namespace
}  // namespace espalier
