// Plans that are made beside the owner of the core: the test is the planner, and answers when it
// likes.

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/core/core_fixture.h"
#include "tuner/core/scheduling/planner.h"

namespace espalier {
namespace {

using testing::HasSubstr;

CoreOptions Aside() {
  CoreOptions options;
  options.plan_aside = true;
  options.policy = PluginSpec{"promise_goodput", {}};
  return options;
}

class PlanningTest : public CoreTest {
 protected:
  PlanningTest() : CoreTest(Aside()) {}

  Reply Step(const Event& event) {
    now_ = After(now_, 0.01);
    StepResult result = core_.Step(now_, event);
    for (const Command& command : result.commands) {
      if (const auto* c = std::get_if<StartReplicaCommand>(&command)) starts_.push_back(*c);
      if (const auto* c = std::get_if<RegroupCommand>(&command)) regroups_.push_back(*c);
    }
    if (result.plan) {
      EXPECT_EQ(asked_, nullptr) << "one plan at a time";
      asked_ = result.plan;
      ++plans_;
    }
    return result.reply;
  }
  void Answer() {
    ASSERT_NE(asked_, nullptr);
    const auto request = std::exchange(asked_, nullptr);
    Step(PlanMade{std::make_shared<const Plan>(planner_.Make(*request))});
  }
  // Until nothing changes any more; the last answer is given.
  void Settle() {
    for (int i = 0; i < 10; ++i) {
      if (asked_) Answer();
      now_ = After(now_, 1);
      Step(Tick{});
    }
    if (asked_) Answer();
  }
  void Join(const std::string& name, int slots) { Step(AgentHello{name, slots, {}}); }
  bool Recorded(const std::string& text) {
    for (const Decision& decision : study().decisions) {
      if (decision.reason.find(text) != std::string::npos) return true;
    }
    return false;
  }

  Planner planner_;
  std::shared_ptr<const PlanRequest> asked_;
  int plans_ = 0;
};

TEST_F(PlanningTest, NothingStartsBeforeThePlanIsThere) {
  Step(CreateStudy{Spec(2), false});
  Join("node", 2);
  EXPECT_TRUE(starts_.empty());
  Answer();  // to the study alone: there was no slot
  now_ = After(now_, 1);
  Step(Tick{});
  Answer();
  EXPECT_EQ(starts_.size(), 2u);
}

TEST_F(PlanningTest, ReportsThatComeMeanwhileAreOneLook) {
  Step(CreateStudy{Spec(1), false});
  Join("node", 1);
  Settle();
  ASSERT_EQ(starts_.size(), 1u);
  now_ = After(now_, 10);
  Step(FromReplica{starts_[0].replica, ReplicaReport{.step = 1, .value = 0.5}});
  const int before = plans_;
  if (!asked_) Step(Tick{});
  ASSERT_NE(asked_, nullptr);
  const int asked = plans_;
  for (int step = 2; step < 200; ++step) {
    Step(FromReplica{starts_[0].replica, ReplicaReport{.step = step, .value = 0.5}});
  }
  EXPECT_EQ(plans_, asked);
  EXPECT_LE(asked, before + 1);
  Answer();
  now_ = After(now_, 10);
  Step(FromReplica{starts_[0].replica, ReplicaReport{.step = 200, .value = 0.5}});
  EXPECT_EQ(plans_, asked + 1);
}

// The planner rests three times as long as it has worked.
TEST_F(PlanningTest, TheNextPlanWaitsThreeTimesAsLongAsTheLastOneTook) {
  Step(CreateStudy{Spec(1), false});
  Join("node", 1);
  Settle();
  now_ = After(now_, 100);
  Step(Tick{});
  ASSERT_NE(asked_, nullptr);
  now_ = After(now_, 2);
  Step(FromReplica{starts_.at(0).replica, ReplicaReport{.step = 1, .value = 0.5}});
  Answer();
  EXPECT_EQ(asked_, nullptr);
  const std::optional<Time> next = core_.NextDeadline();
  ASSERT_TRUE(next.has_value());
  EXPECT_LE(SecondsBetween(now_, *next), 6.1);
  now_ = After(now_, 5.9);
  Step(FromReplica{starts_.at(0).replica, ReplicaReport{.step = 2, .value = 0.5}});
  EXPECT_EQ(asked_, nullptr);
  now_ = After(now_, 0.2);
  Step(FromReplica{starts_.at(0).replica, ReplicaReport{.step = 3, .value = 0.5}});
  EXPECT_NE(asked_, nullptr);
}

// As where it waited for a commit.
TEST_F(PlanningTest, ThePlannerRestsForTenSecondsAtTheMost) {
  Step(CreateStudy{Spec(1), false});
  Join("node", 1);
  Settle();
  now_ = After(now_, 100);
  Step(Tick{});
  ASSERT_NE(asked_, nullptr);
  now_ = After(now_, 60);
  Answer();
  Step(FromReplica{starts_.at(0).replica, ReplicaReport{.step = 1, .value = 0.5}});
  EXPECT_EQ(asked_, nullptr);
  now_ = After(now_, 10);
  Step(Tick{});
  EXPECT_NE(asked_, nullptr);
}

TEST_F(PlanningTest, SlotsOfANodeThatIsGoneAreNotGivenOut) {
  Step(CreateStudy{Spec(2), false});
  Settle();
  Join("one", 1);
  const NodeId two = Step(AgentHello{"two", 1, {}}).node();
  Settle();
  ASSERT_EQ(starts_.size(), 2u) << "both run";
  starts_.clear();
  // Shown with both nodes; one is lost before the answer.
  Step(CreateStudy{[&] {
                     StudySpec spec = Spec(2);
                     spec.name = "t";
                     return spec;
                   }(),
                   false});
  Join("three", 2);
  if (!asked_) {
    now_ = After(now_, 5);
    Step(Tick{});
  }
  Step(AgentGone{two});
  now_ = After(now_, 11);  // its lease
  Step(Tick{});
  if (asked_) Answer();
  for (const StartReplicaCommand& start : starts_) EXPECT_NE(start.node, two);
}

TEST_F(PlanningTest, AnAnswerToAnotherQuestionIsDropped) {
  Step(CreateStudy{Spec(1), false});
  Join("node", 1);
  Plan other;
  other.number = 4711;
  Step(PlanMade{std::make_shared<const Plan>(other)});
  EXPECT_TRUE(starts_.empty());
  Settle();
  EXPECT_EQ(starts_.size(), 1u);
}

TEST_F(PlanningTest, WhatIsStaleIsDroppedAndLookedAtAgain) {
  Step(CreateStudy{Spec(1), false});
  Join("node", 1);
  Settle();
  starts_.clear();
  // A second study waits for the slot of the first; it is stopped while it is being planned for.
  StudySpec spec = Spec(1);
  spec.name = "t";
  Step(FromReplica{ReplicaId(1), ReplicaReport{.step = 1, .value = 0.5}});
  now_ = After(now_, 5);
  Step(CreateStudy{spec, false});
  Settle();
  now_ = After(now_, 10);  // the planner has rested
  Step(AgentHello{"more", 1, {}});
  ASSERT_NE(asked_, nullptr);
  Step(StopStudy{"t"});
  Answer();
  EXPECT_TRUE(starts_.empty());
}

TEST_F(PlanningTest, TheSameEventsGiveTheSameCommands) {
  const auto run = [] {
    Core core(TunerState{}, Aside());
    Planner planner;
    std::vector<std::string> log;
    Time now{1'000'000};
    std::shared_ptr<const PlanRequest> asked;
    const auto step = [&](const Event& event) {
      now = After(now, 0.5);
      StepResult result = core.Step(now, event);
      for (const Command& command : result.commands) {
        if (const auto* c = std::get_if<StartReplicaCommand>(&command)) {
          log.push_back(std::to_string(c->node.value) + ":" + std::to_string(c->slot));
        }
      }
      if (result.plan) asked = result.plan;
    };
    StudySpec spec;
    spec.name = "s";
    spec.space = *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
    spec.command = {"program"};
    spec.sampler = {"random", {}};
    spec.max_trials = 30;
    step(CreateStudy{spec, false});
    for (int node = 0; node < 4; ++node) {
      step(AgentHello{"node-" + std::to_string(node), 2, {}});
      if (node % 2 == 1 && asked) {
        step(PlanMade{std::make_shared<const Plan>(planner.Make(*std::exchange(asked, nullptr)))});
      }
    }
    for (int i = 0; i < 20; ++i) {
      if (asked) {
        step(PlanMade{std::make_shared<const Plan>(planner.Make(*std::exchange(asked, nullptr)))});
      }
      step(Tick{});
    }
    return log;
  };
  const std::vector<std::string> first = run();
  EXPECT_EQ(first.size(), 8u);
  EXPECT_EQ(run(), first);
}

// One trial of a study that scales badly, beside a study with many configurations to start.
PlanRequest OneBesideMany(const Options& policy) {
  Job alone;
  alone.id = TrialId(1);
  alone.study = StudyId(2);
  alone.order = 1;
  alone.max_slots = 32;
  alone.running = true;
  alone.current = {{NodeId(1), 8}};
  alone.max_profiled_replicas = 16;
  alone.promise = 0.5;
  alone.goodput = GoodputModel({.alpha_c = 1e-8,
                                .beta_c = 0.001,
                                .alpha_n = 0.0064,
                                .beta_n = 1e-8,
                                .alpha_r = 0.0032,
                                .beta_r = 1e-8,
                                .gamma = 1},
                               {}, {.initial = 64, .max_global = 64, .max_atomic = 64});
  PlanRequest request;
  request.policy = {"promise_goodput", policy};
  request.shared = Pool{{{.id = NodeId(1), .slots = 32}}, {alone}};
  request.demand = {{StudyId(1), {100, 1}}, {StudyId(2), {0, 1}}};
  return request;
}

TEST(PlannedParts, FollowTheFairnessOfThePolicy) {
  Planner planner;
  const auto fair = planner.Make(OneBesideMany({})).parts;
  EXPECT_GT(fair.at(StudyId(2)).slots, fair.at(StudyId(1)).slots) << "near-equal goodput";
  const auto by_sum = planner.Make(OneBesideMany({{"fairness", 1}})).parts;
  EXPECT_LT(by_sum.at(StudyId(2)).slots, fair.at(StudyId(2)).slots)
      << "those that scale come first";
  EXPECT_EQ(planner.Divide(OneBesideMany({{"fairness", 1}})).at(StudyId(2)).slots,
            by_sum.at(StudyId(2)).slots);
}

TEST_F(PlanningTest, AClientSetsThePoolsPolicy) {
  StudySpec spec = Spec(1);
  spec.policy = {"fixed", {}};
  spec.names_policy = true;
  Step(CreateStudy{spec, false});
  EXPECT_TRUE(Recorded("its policy fixed is not followed: the pool is divided by promise_goodput"));
  EXPECT_EQ(core_.PoolPolicy()->name, "promise_goodput");
  const absl::Status unknown = Step(SetPoolPolicy{{"nobody", {}}}).status;
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("\"nobody\""));
  ASSERT_TRUE(Step(SetPoolPolicy{{"fixed", {}}}).status.ok());
  EXPECT_EQ(core_.PoolPolicy()->name, "fixed");
  EXPECT_TRUE(Recorded("the pool's policy is fixed from now on; it was promise_goodput"));
  // Also after a restart, whatever the service is started with.
  const Core again(core_.state(), Aside());
  EXPECT_EQ(again.PoolPolicy()->name, "fixed");
}

TEST_F(CoreTest, APoolWithoutAPolicyOfItsOwnFollowsItsStudy) {
  EXPECT_EQ(core_.PoolPolicy(), std::nullopt);
  EXPECT_EQ(Step(SetPoolPolicy{{"fixed", {}}}).status.code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(StudyRecord, KeepsTheNewestDecisions) {
  Study study;
  for (std::size_t i = 0; i < kDecisionsShown + 10; ++i) {
    study.Note({Time{}, static_cast<std::int64_t>(i), DecisionKind::kGrow, 1, 2, ""});
  }
  EXPECT_EQ(study.decisions.size(), kDecisionsShown);
  EXPECT_EQ(study.decisions.front().trial_number, 10);
  EXPECT_EQ(study.decisions_made, static_cast<std::int64_t>(kDecisionsShown) + 10);
}

}  // namespace
}  // namespace espalier
