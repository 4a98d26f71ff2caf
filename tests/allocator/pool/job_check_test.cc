#include "allocator/pool/job_check.h"

#include <cmath>
#include <functional>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/pools.h"

namespace espalier {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Job GoodJob() {
  Job job = RunningJob(7, {{NodeId(1), 2}}, 0.5);
  job.goodput = Scaling(0.1);
  job.goodput_by_gpu_type.emplace("T4", Scaling(0.2));
  job.cost = 0.3;
  return job;
}

GoodputModel With(const std::function<void(ThroughputParams&, GradientNoise&)>& change) {
  ThroughputParams params = Scaling(0.1).params();
  GradientNoise noise;
  change(params, noise);
  return GoodputModel(params, noise, Scaling(0.1).bounds());
}

TEST(CheckJob, AcceptsGoodNumbers) {
  EXPECT_TRUE(CheckJob(GoodJob()).ok());
  EXPECT_TRUE(CheckJob(WaitingJob(1)).ok());
}

TEST(CheckJob, NamesTrialFieldValueAndWhatWouldBeRight) {
  struct Case {
    std::function<void(Job&)> spoil;
    std::string message;
  };
  const Case cases[] = {
      {[](Job& j) { j.promise = kNan; },
       "trial 7: promise needs a number between 0 and 1, got nan"},
      {[](Job& j) { j.promise = 1.5; }, "trial 7: promise needs a number between 0 and 1, got 1.5"},
      {[](Job& j) { j.work_left_s = -3; }, "trial 7: work left needs a number >= 0, got -3"},
      {[](Job& j) { j.resize_cost_s = kInfinity; },
       "trial 7: cost of a resize needs a number >= 0, got inf"},
      {[](Job& j) { j.min_slots = 0; }, "trial 7: min slots needs at least 1, got 0"},
      {[](Job& j) { j.min_slots = 9; }, "trial 7: max slots needs at least min slots, 9, got 8"},
      {[](Job& j) {
         j.sizes = {4, 2};
       },
       "trial 7: sizes need to ascend, with one of them between 1 and 8, got 4, 2"},
      {[](Job& j) {
         j.sizes = {2, 2};
       },
       "trial 7: sizes need to ascend, with one of them between 1 and 8, got 2, 2"},
      {[](Job& j) { j.sizes = {16}; },
       "trial 7: sizes need to ascend, with one of them between 1 and 8, got 16"},
      {[](Job& j) { j.most_on_node = -1; },
       "trial 7: most slots on a node needs at least 0, got -1"},
      {[](Job& j) { j.pinned_slots = -1; }, "trial 7: pinned slots needs at least 0, got -1"},
      {[](Job& j) { j.global_batch = -64; },
       "trial 7: global batch needs at least 0 samples, got -64"},
      {[](Job& j) { j.cost = kNan; }, "trial 7: cost needs a number, got nan"},
      {[](Job& j) { j.goodput = With([](auto& p, auto&) { p.beta_c = 0; }); },
       "trial 7: throughput parameter beta_c needs a number > 0, got 0"},
      {[](Job& j) { j.goodput = With([](auto& p, auto&) { p.alpha_r = kNan; }); },
       "trial 7: throughput parameter alpha_r needs a number > 0, got nan"},
      {[](Job& j) { j.goodput = With([](auto& p, auto&) { p.gamma = 0.5; }); },
       "trial 7: throughput parameter gamma needs a number between 1 and 10, got 0.5"},
      {[](Job& j) { j.goodput = With([](auto&, auto& n) { n.var = -1; }); },
       "trial 7: gradient noise needs a number >= 0, got -1"},
      {[](Job& j) {
         j.goodput_by_gpu_type.at("T4") = With([](auto&, auto& n) { n.sqr = kInfinity; });
       },
       "trial 7 on T4: squared gradient needs a number >= 0, got inf"},
      {[](Job& j) {
         j.known_step_s = std::make_shared<const std::vector<double>>(std::vector<double>{1, 0});
       },
       "trial 7: known step time needs a number > 0, got 0"},
  };
  for (const Case& c : cases) {
    Job job = GoodJob();
    c.spoil(job);
    EXPECT_EQ(CheckJob(job).message(), c.message);
    // What is left of it is good.
    Pool pool{{Node(1, 4)}, {job}};
    EXPECT_EQ(RefuseBadJobs(pool).size(), 1u);
    EXPECT_TRUE(CheckJob(pool.jobs[0]).ok()) << CheckJob(pool.jobs[0]);
  }
}

TEST(CheckModel, RefusesImpossibleBounds) {
  const ThroughputParams params = Scaling(0.1).params();
  EXPECT_EQ(CheckModel("trial 1", params, {}, {.initial = 0}).message(),
            "trial 1: initial batch needs at least one sample, got 0");
  EXPECT_EQ(CheckModel("trial 1", params, {}, {.min_atomic = 8, .max_atomic = 4}).message(),
            "trial 1: largest microbatch needs at least the smallest, 8, got 4");
  EXPECT_EQ(CheckModel("trial 1", params, {}, {.min_atomic = 0}).message(),
            "trial 1: smallest microbatch needs at least one sample, got 0");
}

TEST(RefuseBadJobs, KeepsTheJobWhereItIsUnderEveryPolicy) {
  Pool pool{{Node(1, 8)}, {GoodJob(), RunningJob(8, {{NodeId(1), 1}}, 0.5), WaitingJob(9)}};
  pool.jobs[0].promise = kNan;
  pool.jobs[2].goodput = With([](auto& p, auto&) { p.alpha_c = -1; });
  const std::vector<JobRefusal> refusals = RefuseBadJobs(pool);
  ASSERT_EQ(refusals.size(), 2u);
  EXPECT_EQ(refusals[0].trial, TrialId(7));
  EXPECT_EQ(refusals[1].trial, TrialId(9));
  EXPECT_FALSE(pool.jobs[0].goodput);
  for (const std::string& name : Policies().Names()) {
    const auto held = After(pool, Make(name)->Allocate(pool));
    EXPECT_EQ(Total(held.at(TrialId(7))), 2) << name;
    EXPECT_EQ(Total(held.at(TrialId(9))), 1) << name;
  }
}

}  // namespace
}  // namespace espalier
