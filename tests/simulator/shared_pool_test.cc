// Studies that compete for a pool, and machines that come and go.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tuner/simulator/virtual_pool.h"

namespace espalier {
namespace {

// Divides evenly among up to 10, 12 and 14 to 16 replicas, so that trials are as fast as the tuner,
// which knows that others carry padding, takes them to be.
constexpr std::int64_t kBatch = 5040;

double IterationSeconds(int replicas) { return 0.1 / replicas + (replicas > 1 ? 0.004 : 0); }
double Speedup(int replicas) {
  return replicas == 0 ? 0 : IterationSeconds(1) / IterationSeconds(replicas);
}

class LongTruth : public TrialTruth {
 public:
  explicit LongTruth(std::int64_t steps) : steps_(steps) {}
  BatchBounds bounds() const override { return {kBatch, kBatch, 1, kBatch, true}; }
  std::int64_t steps() const override { return steps_; }
  Pace On(int, int replicas) const override {
    return {10, IterationSeconds(replicas), 0.1 / replicas};
  }
  double ValueAfter(std::int64_t nth) const override { return 1.0 / static_cast<double>(nth); }

 private:
  std::int64_t steps_;
};

// Trials of each study take so many seconds on one slot.
class Loads : public Workload {
 public:
  explicit Loads(std::map<std::string, std::int64_t> seconds) : seconds_(std::move(seconds)) {}

  StudySpec Study() const override {
    StudySpec spec;
    spec.space = *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
    spec.sampler = {"random", {}};
    spec.command = {"program"};
    spec.directory = "/";
    return spec;
  }
  StudySpec Study(const std::string& name, std::int64_t trials, double share = 1) {
    StudySpec spec = Study();
    spec.name = name;
    spec.max_trials = trials;
    spec.share = share;
    return spec;
  }
  std::unique_ptr<TrialTruth> Begin(const Trial& trial) override {
    return std::make_unique<LongTruth>(names_.at(trial.study));
  }
  // Study ids ascend in the order of creation.
  void Created(std::int64_t id, const std::string& name) {
    names_[StudyId(id)] = seconds_.at(name);
  }

 private:
  std::map<std::string, std::int64_t> seconds_;
  std::map<StudyId, std::int64_t> names_;
};

// Speedups of the study's trials over one slot, summed and averaged over the time.
double Goodput(const TunerState& state, std::int64_t study, double from_s, double to_s) {
  double sum = 0;
  for (const auto& [id, trial] : state.trials) {
    if (trial.study != StudyId(study)) continue;
    for (const SlotSpan& span : trial.spans) {
      const double begin = SecondsBetween(VirtualPool::kStart, span.from);
      const double end = span.to == Time{} ? to_s : SecondsBetween(VirtualPool::kStart, span.to);
      const double both = std::min(end, to_s) - std::max(begin, from_s);
      if (both > 0) sum += both * Speedup(static_cast<int>(span.slots.size()));
    }
  }
  return sum / (to_s - from_s);
}

double FirstStart(const TunerState& state, std::int64_t study) {
  double first_s = 1e9;
  for (const auto& [id, trial] : state.trials) {
    if (trial.study != StudyId(study) || trial.started == Time{}) continue;
    first_s = std::min(first_s, SecondsBetween(VirtualPool::kStart, trial.started));
  }
  return first_s;
}

VirtualPoolOptions Nodes(int nodes, int slots) {
  VirtualPoolOptions options;
  for (int i = 0; i < nodes; ++i) options.nodes.push_back({"node-" + std::to_string(i), slots});
  return options;
}

struct Sizes {
  std::string name;
  std::int64_t trials;
  std::int64_t trial_s;
};

// Two studies of equal shares from the start.
void ExpectEqualGoodput(const Sizes& a, const Sizes& b) {
  Loads load({{"a", a.trial_s}, {"b", b.trial_s}});
  load.Created(1, "a");
  load.Created(2, "b");
  VirtualPool pool(load, Nodes(2, 16));
  ASSERT_TRUE(pool.Client(CreateStudy{load.Study("a", a.trials), false}).status.ok());
  ASSERT_TRUE(pool.Client(CreateStudy{load.Study("b", b.trials), false}).status.ok());
  pool.Run(700);
  const double of_a = Goodput(pool.state(), 1, 350, 700);
  const double of_b = Goodput(pool.state(), 2, 350, 700);
  EXPECT_NEAR(of_a / of_b, 1, 0.1) << a.name << " " << of_a << ", " << b.name << " " << of_b;
  EXPECT_GT(of_a + of_b, 20) << "of 32 slots";
}

TEST(Fairness, ManyTrialsBesideFewGetEqualGoodput) {
  ExpectEqualGoodput({"many", 2'000, 50}, {"few", 4, 1'000'000});
}

TEST(Fairness, FewTrialsBesideManyGetEqualGoodput) {
  ExpectEqualGoodput({"few", 3, 1'000'000}, {"many", 2'000, 90});
}

TEST(Fairness, LongTrialsBesideShortOnesGetEqualGoodput) {
  ExpectEqualGoodput({"long", 2'000, 600}, {"short", 2'000, 20});
}

TEST(Fairness, TwiceTheShareIsTwiceTheGoodput) {
  Loads load({{"a", 50}, {"b", 50}});
  load.Created(1, "a");
  load.Created(2, "b");
  VirtualPool pool(load, Nodes(3, 8));
  ASSERT_TRUE(pool.Client(CreateStudy{load.Study("a", 2'000, 1), false}).status.ok());
  ASSERT_TRUE(pool.Client(CreateStudy{load.Study("b", 2'000, 2), false}).status.ok());
  pool.Run(700);
  const double ratio = Goodput(pool.state(), 2, 350, 700) / Goodput(pool.state(), 1, 350, 700);
  EXPECT_NEAR(ratio, 2, 0.2);
}

TEST(Fairness, ALateStudyIsNotKeptOutByEndlessTrials) {
  Loads load({{"a", 1'000'000}, {"b", 1'000'000}});
  load.Created(1, "a");
  load.Created(2, "b");
  VirtualPool pool(load, Nodes(2, 8));
  ASSERT_TRUE(pool.Client(CreateStudy{load.Study("a", 2'000), false}).status.ok());
  pool.Run(200);
  ASSERT_EQ(pool.core().SlotsHeld(), 16);
  ASSERT_TRUE(pool.Client(CreateStudy{load.Study("b", 2'000), false}).status.ok());
  pool.Run(700);
  EXPECT_LT(FirstStart(pool.state(), 2), 230);
  EXPECT_NEAR(Goodput(pool.state(), 1, 400, 700) / Goodput(pool.state(), 2, 400, 700), 1, 0.15);
  EXPECT_DOUBLE_EQ(pool.lost_steps(), 0) << "who gave way kept a checkpoint";
}

// Trials that cannot be resized, of several slots beside small ones: 4 slots, equal shares.
struct Turns {
  double gang_part = 0;    // of the slot-seconds that both have had
  double first_start = 0;  // of the large ones
  int large_trials = 0;
};

Turns TakeTurns(int large, const std::string& policy, double share, double until_s) {
  Loads load({{"small", 10}, {"large", 10}});
  load.Created(1, "small");
  load.Created(2, "large");
  VirtualPoolOptions options = Nodes(1, 4);
  options.core.policy = PluginSpec{policy, {}};
  VirtualPool pool(load, options);
  StudySpec small = load.Study("small", 100'000);
  small.max_slots = 1;
  StudySpec gang = load.Study("large", 100'000, share);
  gang.min_slots = gang.max_slots = large;
  EXPECT_TRUE(pool.Client(CreateStudy{small, false}).status.ok());
  pool.Run(20);
  EXPECT_TRUE(pool.Client(CreateStudy{gang, false}).status.ok());
  pool.Run(until_s);
  double held[2] = {};
  Turns turns{.first_start = FirstStart(pool.state(), 2)};
  for (const auto& [id, trial] : pool.state().trials) {
    for (const SlotSpan& span : trial.spans) {
      const double from = std::max(20.0, SecondsBetween(VirtualPool::kStart, span.from));
      const double to = span.to == Time{} ? until_s : SecondsBetween(VirtualPool::kStart, span.to);
      held[trial.study.value - 1] +=
          std::max(0.0, to - from) * static_cast<double>(span.slots.size());
    }
    turns.large_trials += trial.study == StudyId(2) && trial.started != Time{} ? 1 : 0;
  }
  turns.gang_part = held[1] / (held[0] + held[1]);
  return turns;
}

TEST(Turns, ATrialOfAllSlotsStartsBesideAStreamOfSmallOnes) {
  for (const std::string policy : {"promise_goodput", "fixed", "tiresias"}) {
    for (const int large : {3, 4}) {
      const Turns turns = TakeTurns(large, policy, 1, 600);
      EXPECT_LT(turns.first_start, 50) << policy << " " << large;
      EXPECT_NEAR(turns.gang_part, 0.5, 0.1) << policy << " " << large;
      EXPECT_GT(turns.large_trials, 10) << policy << " " << large;
    }
  }
}

// Whose trials fill the pool and which has no other to draw is no reason to keep others out.
TEST(Turns, ALateStudyIsNotKeptOutByEndlessTrialsThatAreTheLastOnes) {
  for (const int large : {1, 4}) {
    Loads load({{"a", 1'000'000}, {"b", 30}});
    load.Created(1, "a");
    load.Created(2, "b");
    VirtualPool pool(load, Nodes(1, 4));
    ASSERT_TRUE(pool.Client(CreateStudy{load.Study("a", 4), false}).status.ok());
    pool.Run(100);
    ASSERT_EQ(pool.core().SlotsHeld(), 4);
    StudySpec late = load.Study("b", 100);
    late.min_slots = late.max_slots = large;
    ASSERT_TRUE(pool.Client(CreateStudy{late, false}).status.ok());
    pool.Run(400);
    EXPECT_LT(FirstStart(pool.state(), 2), 250) << large;
  }
}

// Two kinds of GPU, and a trial that needs more than there are of one.
TEST(Turns, NobodyWaitsForATrialThatNoPolicyCanPlace) {
  Loads load({{"small", 10}, {"large", 10}});
  load.Created(1, "large");
  load.Created(2, "small");
  VirtualPoolOptions options = Nodes(2, 2);
  options.nodes[0].gpu_type = "a100";
  options.nodes[1].gpu_type = "v100";
  VirtualPool pool(load, options);
  StudySpec gang = load.Study("large", 10);
  gang.min_slots = gang.max_slots = 4;
  StudySpec small = load.Study("small", 100'000);
  small.max_slots = 1;
  ASSERT_TRUE(pool.Client(CreateStudy{gang, false}).status.ok());
  ASSERT_TRUE(pool.Client(CreateStudy{small, false}).status.ok());
  pool.Run(600);
  EXPECT_GT(Goodput(pool.state(), 2, 0, 600), 3) << "of 4 slots";
}

TEST(Turns, FollowTheShares) {
  EXPECT_NEAR(TakeTurns(2, "promise_goodput", 0.25, 900).gang_part, 0.2, 0.05);
  EXPECT_NEAR(TakeTurns(4, "promise_goodput", 4, 900).gang_part, 0.8, 0.05);
}

TEST(Turns, SmallStudiesThatAreMoreThanSlotsTakeThemToo) {
  std::map<std::string, std::int64_t> seconds;
  for (int i = 0; i < 6; ++i) seconds["s" + std::to_string(i)] = 10;
  Loads load(seconds);
  VirtualPool pool(load, Nodes(1, 2));
  for (int i = 0; i < 6; ++i) {
    const std::string name = "s" + std::to_string(i);
    load.Created(i + 1, name);
    StudySpec spec = load.Study(name, 100'000);
    spec.max_slots = 1;
    ASSERT_TRUE(pool.Client(CreateStudy{spec, false}).status.ok());
  }
  pool.Run(300);
  for (int i = 0; i < 6; ++i) {
    EXPECT_LT(FirstStart(pool.state(), i + 1), 60) << i;
    EXPECT_NEAR(Goodput(pool.state(), i + 1, 60, 300), 2.0 / 6, 0.1) << i;
  }
}

// One machine stays; spot machines are taken away every few minutes.
VirtualPoolOptions SpotPool(std::optional<double> notice_s) {
  VirtualPoolOptions options = Nodes(1, 2);
  for (int i = 0; i < 6; ++i) {
    VirtualNode spot{"spot-" + std::to_string(i), 4, 40.0 * i, 40.0 * i + 173.3, notice_s};
    spot.spot = true;
    options.nodes.push_back(spot);
  }
  return options;
}

double LostSteps(std::optional<double> notice_s) {
  Loads load({{"a", 300}});
  load.Created(1, "a");
  VirtualPool pool(load, SpotPool(notice_s));
  EXPECT_TRUE(pool.Client(CreateStudy{load.Study("a", 12), false}).status.ok());
  pool.Run(5000);
  for (const auto& [id, trial] : pool.state().trials) {
    EXPECT_EQ(trial.state, TrialState::kComplete) << "trial " << id.value << ": " << trial.reason;
    EXPECT_EQ(trial.restarts, 0);
  }
  return pool.lost_steps();
}

TEST(SpotMachines, WithNoticeNoProgressIsLost) {
  EXPECT_DOUBLE_EQ(LostSteps(120), 0);
  EXPECT_DOUBLE_EQ(LostSteps(30), 0) << "two seconds of pause fit into 30 s";
}

TEST(SpotMachines, WithoutNoticeSomeIs) { EXPECT_GT(LostSteps(std::nullopt), 0); }

}  // namespace
}  // namespace espalier
