// Pools whose nodes come from an engine, on virtual time with the production core.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tuner/simulator/virtual_pool.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Every trial trains for so long on one slot, reports each 10 s of that, and scales almost linearly
// up to `batch` slots.
class EvenLoad : public Workload {
 public:
  EvenLoad(std::int64_t trial_s, std::int64_t batch) : trial_s_(trial_s), batch_(batch) {}

  StudySpec Study() const override {
    StudySpec spec;
    spec.name = "even";
    spec.space = *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
    spec.sampler = {"random", {}};
    spec.command = {"program"};
    spec.directory = "/";
    return spec;
  }
  std::unique_ptr<TrialTruth> Begin(const Trial&) override {
    return std::make_unique<Truth>(trial_s_ / 10, batch_);
  }

 private:
  class Truth : public TrialTruth {
   public:
    Truth(std::int64_t steps, std::int64_t batch) : steps_(steps), batch_(batch) {}
    BatchBounds bounds() const override { return {batch_, batch_, 1, batch_, true}; }
    std::int64_t steps() const override { return steps_; }
    Pace On(int, int replicas) const override {
      return {100, 0.1 / replicas + (replicas > 1 ? 0.002 : 0), 0.1 / replicas};
    }
    double ValueAfter(std::int64_t nth) const override { return 1.0 / static_cast<double>(nth); }

   private:
    std::int64_t steps_;
    std::int64_t batch_;
  };

  const std::int64_t trial_s_;
  const std::int64_t batch_;
};

struct Sized {
  double finish_s = 0;
  VirtualPool::NodeUse use;
  TunerState state;
  int starts = 0;  // that the engine was asked for

  std::vector<std::string> Reasons() const {
    std::vector<std::string> reasons;
    for (const Decision& decision : state.studies.begin()->second.decisions) {
      if (decision.kind == DecisionKind::kPool) reasons.push_back(decision.reason);
    }
    return reasons;
  }
};

struct Case {
  PluginSpec rule{"utility_price", {}};
  NodeTemplate node{.slots = 4, .start_s = 20, .min_nodes = 0, .max_nodes = 6};
  std::vector<NodeTemplate> further{};  // with names, as then the first has
  std::int64_t trials = 16;
  std::int64_t trial_s = 300;
  std::int64_t batch = 256;
  double time_limit_s = 0;
  int min_slots = 1;
};

Sized RunSized(const Case& c) {
  EvenLoad load(c.trial_s, c.batch);
  VirtualPoolOptions options;
  options.core.pool_size = PoolSizeOptions{.rule = c.rule, .templates = {c.node}};
  for (const NodeTemplate& more : c.further) options.core.pool_size->templates.push_back(more);
  options.progress_period_s = 5;
  Sized sized;
  options.observer = [&sized](Time, const Event&, const StepResult& result) {
    sized.starts +=
        static_cast<int>(std::count_if(result.node_requests.begin(), result.node_requests.end(),
                                       [](const NodeRequest& request) { return request.start; }));
  };
  VirtualPool pool(load, options);
  StudySpec spec = load.Study();
  spec.max_trials = c.trials;
  spec.time_limit_s = c.time_limit_s;
  spec.min_slots = c.min_slots;
  EXPECT_TRUE(pool.Client(CreateStudy{spec, false}).status.ok());
  pool.Run(30'000);
  sized.state = pool.state();
  const Study& study = sized.state.studies.begin()->second;
  EXPECT_EQ(study.state, StudyState::kComplete) << c.rule.name;
  EXPECT_DOUBLE_EQ(pool.lost_steps(), 0) << c.rule.name;
  for (const auto& [id, trial] : sized.state.trials) {
    EXPECT_EQ(trial.state, TrialState::kComplete) << c.rule.name << ": " << trial.reason;
    EXPECT_EQ(trial.restarts, 0);
  }
  sized.finish_s = SecondsBetween(VirtualPool::kStart, study.ended);
  sized.use = pool.UseOfNodes(study.ended);
  return sized;
}

class PoolSizeInAStudy : public ::testing::TestWithParam<std::string> {};

TEST_P(PoolSizeInAStudy, StartsWhatAStudyNeedsAndLosesNothing) {
  const Sized sized = RunSized({.rule = {GetParam(), {}}});
  EXPECT_GE(sized.use.most_nodes, 1);
  EXPECT_LE(sized.use.most_nodes, 6);
  EXPECT_LT(sized.finish_s, 5000);
  EXPECT_THAT(sized.Reasons(), Contains(HasSubstr("pool grows from 0 to")));
}

TEST_P(PoolSizeInAStudy, OneTrialThatFillsNoNodeGetsOne) {
  const Sized sized = RunSized({.rule = {GetParam(), {}}, .trials = 1, .trial_s = 100, .batch = 1});
  EXPECT_EQ(sized.use.most_nodes, 1);
}

TEST_P(PoolSizeInAStudy, ATrialWiderThanANodeGetsSeveralAtOnce) {
  const Sized sized =
      RunSized({.rule = {GetParam(), {}}, .trials = 1, .trial_s = 100, .min_slots = 10});
  EXPECT_GE(sized.use.most_nodes, 3);
}

TEST_P(PoolSizeInAStudy, TheSameSeedGivesTheSamePool) {
  const Case c{.rule = {GetParam(), {}}, .trials = 8};
  EXPECT_EQ(RunSized(c).Reasons(), RunSized(c).Reasons());
}

INSTANTIATE_TEST_SUITE_P(Rules, PoolSizeInAStudy, ::testing::ValuesIn(PoolSizeRules().Names()),
                         [](const auto& rule) { return rule.param; });

using PoolSizeRules = PoolSizeInAStudy;

TEST_F(PoolSizeRules, PriceKeepsThePoolFullAndReleasesItsTail) {
  // A batch of one: what cannot be trained on several slots at once.
  const Sized sized = RunSized({.trials = 18, .batch = 1});
  EXPECT_GE(sized.use.most_nodes, 4) << "configurations that wait are worth nodes";
  EXPECT_LT(sized.finish_s, 1300);
  const double work_s = 18 * 300;
  EXPECT_LT(sized.use.slot_seconds, 1.6 * work_s) << "and not many slots for nothing";
  EXPECT_LE(sized.starts, 6) << "it does not flap";
}

TEST_F(PoolSizeRules, LeastCostTakesItsTimeAndMeetsTheDeadline) {
  const Sized hurried = RunSized({.rule = {"least_cost", {}}, .time_limit_s = 700});
  const Sized relaxed = RunSized({.rule = {"least_cost", {}}, .time_limit_s = 3000});
  EXPECT_LT(relaxed.finish_s, 3000);
  EXPECT_LT(relaxed.use.most_nodes, hurried.use.most_nodes);
  EXPECT_LT(relaxed.use.node_seconds, hurried.use.node_seconds);
}

TEST_F(PoolSizeRules, TheLeastStaysWhateverHappens) {
  const Sized sized = RunSized({.node = {.slots = 4, .start_s = 20, .min_nodes = 2, .max_nodes = 2},
                                .trials = 1,
                                .batch = 1});
  EXPECT_EQ(sized.use.most_nodes, 2);
  EXPECT_THAT(sized.Reasons(), Not(Contains(HasSubstr("shrinks"))));
}

TEST_F(PoolSizeRules, NodesCostFromTheMomentTheyAreAskedFor) {
  const Sized sized = RunSized(
      {.node = {.slots = 4, .price_per_hour = 36, .start_s = 50, .min_nodes = 0, .max_nodes = 1},
       .trials = 4,
       .batch = 1});
  EXPECT_NEAR(sized.use.node_seconds, sized.finish_s, 1);
  EXPECT_NEAR(sized.use.price, sized.finish_s / 100, 0.01);
}

// Two nodes that cost a third, and as many others as are wanted.
TEST_P(PoolSizeInAStudy, OfSeveralTemplatesTheCheapComeFirst) {
  Case c{.rule = {GetParam(), {}}};
  c.node.price_per_hour = 3;
  c.node.name = "on-demand";
  const Sized dear = RunSized(c);
  c.further = {{.slots = 4,
                .price_per_hour = 1,
                .start_s = 20,
                .max_nodes = 2,
                .name = "spot",
                .spot = true}};
  const Sized both = RunSized(c);
  if (GetParam() == "utility_band") {
    EXPECT_EQ(both.use.price, dear.use.price) << "it knows the first template alone";
    return;
  }
  EXPECT_LT(both.use.price, dear.use.price);
  if (GetParam() == "utility_price") {
    EXPECT_LE(both.finish_s, dear.finish_s + 1) << "and least_cost is in no hurry";
  }
  EXPECT_THAT(both.Reasons(), Contains(HasSubstr("pool grows from 0 to 2 of spot, all in all ")));
}

}  // namespace
}  // namespace espalier
