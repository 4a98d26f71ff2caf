// Replicas that are to join a group and fail, at whatever stage.

#include "tuner/core/groups/joins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

class JoinsTest : public CoreTest {
 protected:
  // A trial that trains on one slot, and a second one is free.
  void TrainAlone(const StudySpec& spec) {
    Step(CreateStudy{spec, false});
    Join(2);
    first_ = Ready(starts_.at(0).replica);
    Form(regroups_);
  }
  void TrainAlone() { TrainAlone(Spec(1)); }

  // The next replica that is to join; none: for a long time none is started.
  std::optional<ReplicaId> NextJoiner() {
    for (int i = 0; i < 200; ++i) {
      if (!starts_.empty()) return starts_.at(0).replica;
      Wait(5);
    }
    return std::nullopt;
  }

  void TrainWith(ReplicaId joiner, double seconds) {
    Ready(joiner);
    Form(regroups_);
    TrainOn(first_, seconds);
  }

  void Fail(ReplicaId replica) {
    Step(ReplicaExited{replica, 1, 0, "Traceback\n  File \"x.py\"\nKeyError: 3\n", ""});
    // The others go on without it.
    if (!regroups_.empty()) {
      const auto starts = starts_;
      Form(regroups_);
      if (starts_.empty()) starts_ = starts;
    }
  }

  void FailUntilItStays() {
    for (int i = 0; i < kMaxFailedJoins; ++i) {
      const auto joiner = NextJoiner();
      ASSERT_TRUE(joiner) << i;
      Fail(*joiner);
    }
    ASSERT_FALSE(NextJoiner());
  }

  int Decisions(const std::string& text) {
    int count = 0;
    for (const Decision& decision : study().decisions) {
      count += decision.reason.find(text) == std::string::npos ? 0 : 1;
    }
    return count;
  }

  ReplicaId first_;
};

// ---- What their first step costs --------------------------------------------------------------

TEST_F(JoinsTest, WhoIsNotRehearsedIsNamed) {
  const auto say = [this](const std::string& why_not) {
    const auto joiner = NextJoiner();
    ASSERT_TRUE(joiner);
    EXPECT_EQ(starts_.at(0).replicas, 2) << "it and the one that it joins";
    Step(FromReplica{*joiner, ReplicaReady{"there:1", {64, 64, 1, 64, true}, 10, why_not}});
    Form(regroups_);
    EXPECT_EQ(core_.Activity(TrialId(1)).not_rehearsed, why_not);
    Fail(*joiner);
  };
  TrainAlone();
  EXPECT_EQ(core_.Activity(TrialId(1)).not_rehearsed, "");
  const std::string said = "the first step of replicas that join is not rehearsed: ";
  say("no forward pass");
  say("no forward pass");
  EXPECT_EQ(Decisions(said + "no forward pass"), 1) << "once";
  say("");
  EXPECT_EQ(Decisions(said), 1);
}

// ---- At whatever stage --------------------------------------------------------------------------

enum class Stage { kStarting, kReady, kHandedOver, kFirstSteps };

class JoinsAtStage : public JoinsTest, public ::testing::WithParamInterface<Stage> {};

TEST_P(JoinsAtStage, ThreeFailuresInARowEndTheGrowthAndNotTheTrial) {
  TrainAlone();
  for (int failed = 0; failed < 3; ++failed) {
    EXPECT_EQ(trial().failed_joins->in_a_row, failed);
    const auto joiner = NextJoiner();
    ASSERT_TRUE(joiner) << failed;
    if (GetParam() >= Stage::kReady) Ready(*joiner);
    if (GetParam() >= Stage::kHandedOver) Form(regroups_);
    if (GetParam() >= Stage::kFirstSteps) {
      TellProgress(first_, 10 * failed + 1, 0.1);
      now_ = After(now_, 30);
      TellProgress(first_, 10 * failed + 2, 0.2);
    }
    Fail(*joiner);
  }
  EXPECT_FALSE(NextJoiner());
  EXPECT_EQ(trial().state, TrialState::kRunning);
  EXPECT_EQ(trial().restarts, 0);
  EXPECT_EQ(core_.Activity(TrialId(1)).replicas, 1);
  EXPECT_EQ(trial().failed_joins->in_a_row, 3);
  EXPECT_EQ(WhyNotGrowing(trial()),
            "does not grow beyond 1 replica: 3 in a row that were to join failed, the last one "
            "exited with code 1: KeyError: 3");
  EXPECT_EQ(Decisions(WhyNotGrowing(trial())), 1);
}

INSTANTIATE_TEST_SUITE_P(Stages, JoinsAtStage,
                         ::testing::Values(Stage::kStarting, Stage::kReady, Stage::kHandedOver,
                                           Stage::kFirstSteps));

TEST_F(JoinsTest, WhoIsNeverReadyHasFailed) {
  StudySpec spec = Spec(1);
  spec.timeouts.start_s = 20;
  TrainAlone(spec);
  for (int i = 0; i < 3; ++i) {
    const auto joiner = NextJoiner();
    ASSERT_TRUE(joiner);
    Wait(21);
    ASSERT_EQ(stops_.size(), 1u);
    Step(ReplicaExited{*joiner, -1, 9, "", ""});
  }
  EXPECT_FALSE(NextJoiner());
  EXPECT_THAT(WhyNotGrowing(trial()), HasSubstr("was not ready after 20 s"));
}

TEST_F(JoinsTest, WhoEndsBeforeItHasJoinedDoesNotEndTheTrial) {
  TrainAlone();
  for (const std::string failure : {"", "", "no data"}) {
    const auto joiner = NextJoiner();
    ASSERT_TRUE(joiner);
    ReplicaFinished finished;
    finished.failure = failure;
    Step(FromReplica{*joiner, finished});
    Step(ReplicaExited{*joiner, 0, 0, "", ""});
    EXPECT_EQ(trial().state, TrialState::kRunning);
  }
  EXPECT_FALSE(NextJoiner());
  EXPECT_THAT(WhyNotGrowing(trial()), HasSubstr("the last one exited with code 0"));
  ReplicaFinished finished;
  finished.value = 0.5;
  Step(FromReplica{first_, finished});
  EXPECT_EQ(trial().state, TrialState::kComplete);
}

TEST_F(JoinsTest, WhoEndsBeforeTheOthersHasFailed) {
  TrainAlone();
  const auto joiner = NextJoiner();
  Ready(joiner.value());
  Form(regroups_);
  Step(ReplicaExited{*joiner, 0, 0, "", ""});
  EXPECT_EQ(trial().failed_joins->in_a_row, 0) << "the other may follow";
  Wait(61);
  EXPECT_EQ(trial().failed_joins->in_a_row, 1);
  EXPECT_EQ(trial().state, TrialState::kRunning);
}

TEST_F(JoinsTest, WhoNeverComesToFormTheGroupHasFailed) {
  TrainAlone();
  const auto joiner = NextJoiner();
  Ready(joiner.value());
  for (int i = 0; i < 3; ++i) {
    Step(FromReplica{first_, ReplicaRegrouped{trial().generation, 0, 0.01}});
    Wait(31);
  }
  ASSERT_EQ(stops_.size(), 1u);
  EXPECT_EQ(stops_[0].replica, *joiner);
  EXPECT_EQ(trial().failed_joins->in_a_row, 1);
}

TEST_F(JoinsTest, AGroupThatCannotTrainGoesOnWithoutWhoCameLast) {
  TrainAlone();
  const auto joiner = NextJoiner();
  Ready(joiner.value());
  Form(regroups_);
  for (int i = 0; i < 3; ++i) {
    for (const ReplicaId replica : {first_, *joiner}) {
      Step(FromReplica{replica, ReplicaStuck{trial().generation, 5}});
    }
  }
  ASSERT_FALSE(regroups_.empty());
  ASSERT_EQ(regroups_[0].membership.members.size(), 1u);
  EXPECT_EQ(regroups_[0].membership.members[0].replica, first_);
  EXPECT_EQ(trial().restarts, 0);
  EXPECT_EQ(trial().failed_joins->in_a_row, 1);
}

// A program whose first replica fails as soon as there is a second one.
TEST_F(JoinsTest, AnOldMemberThatIsLostToANewOneCountsToo) {
  TrainAlone();
  for (int i = 0; i < 3; ++i) {
    const auto joiner = NextJoiner();
    ASSERT_TRUE(joiner) << i;
    Ready(*joiner);
    Form(regroups_);
    Fail(first_);
    first_ = *joiner;
  }
  EXPECT_FALSE(NextJoiner());
  EXPECT_EQ(trial().state, TrialState::kRunning);
  EXPECT_EQ(trial().restarts, 0);
}

TEST_F(JoinsTest, SeveralThatFailTogetherAreNotStartedAgainOneByOne) {
  Step(CreateStudy{Spec(1), false});
  Join(4);
  first_ = Ready(starts_.at(0).replica);
  Form(regroups_);
  std::size_t started = 0;
  for (int i = 0; i < 200 && trial().failed_joins->in_a_row < 3; ++i) {
    const auto starts = starts_;
    started += starts.size();
    starts_.clear();
    std::vector<StartReplicaCommand> more;
    for (const StartReplicaCommand& start : starts) {
      Step(ReplicaExited{start.replica, 1, 0, "", ""});
      more.insert(more.end(), starts_.begin(), starts_.end());
    }
    starts_ = more;
    if (starts_.empty()) Wait(5);
    if (more.empty() && trial().failed_joins->in_a_row < 3) continue;
  }
  EXPECT_LE(started, 3u);
  EXPECT_FALSE(NextJoiner());
}

// ---- What is no failure of a replica that joins -------------------------------------------------

TEST_F(JoinsTest, ALostNodeAndAnAgentThatEndsAreNotCounted) {
  TrainAlone();
  auto joiner = NextJoiner();
  ReplicaExited exit{joiner.value(), -1, 15, "", ""};
  exit.agent_stops = true;
  Step(exit);
  EXPECT_EQ(trial().failed_joins->in_a_row, 0);
  joiner = NextJoiner();
  Step(AgentHello{"node", 2, {{first_, TrialId(1), 0, trial().generation, ReplicaReady{}}}});
  EXPECT_EQ(trial().failed_joins->in_a_row, 0) << "its start was lost on the way";
}

TEST_F(JoinsTest, WhoHasJoinedWellAndIsKilledLaterIsReplaced) {
  TrainAlone();
  ReplicaId joiner = NextJoiner().value();
  for (int i = 0; i < 5; ++i) {
    TrainWith(joiner, 61);
    Fail(joiner);
    EXPECT_EQ(trial().failed_joins->in_a_row, 0);
    const auto next = NextJoiner();
    ASSERT_TRUE(next);
    joiner = *next;
  }
}

TEST_F(JoinsTest, OneThatDoesItsPartBreaksTheRow) {
  TrainAlone();
  Fail(NextJoiner().value());
  Fail(NextJoiner().value());
  EXPECT_EQ(trial().failed_joins->in_a_row, 2);
  TrainWith(NextJoiner().value(), 59);
  EXPECT_EQ(trial().failed_joins->in_a_row, 2) << "it has not trained for a minute";
  now_ = After(now_, 2);
  TellProgress(first_, 30, 1.9);
  EXPECT_EQ(trial().failed_joins->in_a_row, 2) << "nor once through the data";
  TellProgress(first_, 40, 2);
  EXPECT_EQ(trial().failed_joins->in_a_row, 0);
}

TEST_F(JoinsTest, AnHourIsEnoughWhereAPassOverTheDataTakesDays) {
  TrainAlone();
  Fail(NextJoiner().value());
  Ready(NextJoiner().value());
  Form(regroups_);
  TellProgress(first_, 10, 0.1);
  now_ = After(now_, 3601);
  TellProgress(first_, 20, 0.2);
  EXPECT_EQ(trial().failed_joins->in_a_row, 0);
}

// ---- It tries again when something has changed --------------------------------------------------

TEST_F(JoinsTest, AnAgentThatWasAwayForAMomentIsNoChange) {
  TrainAlone();
  FailUntilItStays();
  Step(AgentGone{node_});
  Step(AgentHello{"node", 2, {{first_, TrialId(1), 0, trial().generation, ReplicaReady{}}}});
  EXPECT_FALSE(NextJoiner()) << "the agent was away for a moment";
  EXPECT_EQ(trial().failed_joins->in_a_row, 3);
}

TEST_F(JoinsTest, TriesAgainWithAnotherNode) {
  TrainAlone();
  FailUntilItStays();
  Join("another", 1);
  EXPECT_EQ(Decisions("may grow again: node another has joined the pool"), 1);
  FailUntilItStays();
}

TEST_F(JoinsTest, TriesAgainWhenItIsPinned) {
  TrainAlone();
  FailUntilItStays();
  Step(PinTrial{"s", 0, 2});
  FailUntilItStays();
  EXPECT_EQ(trial().state, TrialState::kRunning);
}

TEST_F(JoinsTest, TriesAgainWhenItsStudyIsResumed) {
  TrainAlone();
  FailUntilItStays();
  Step(StopStudy{"s"});
  Step(ReplicaExited{first_, 0, 0, "", ""});
  Step(ResumeStudy{"s", 0, 0});
  EXPECT_EQ(trial().failed_joins, FailedJoins{});
  first_ = Ready(starts_.at(0).replica);
  Form(regroups_);
  FailUntilItStays();
}

TEST_F(JoinsTest, TriesAgainWhenItHasComeTwiceAsFar) {
  TrainAlone();
  TellProgress(first_, 100, 1);
  FailUntilItStays();
  TellProgress(first_, 199, 2);
  EXPECT_FALSE(NextJoiner());
  TellProgress(first_, 200, 2);
  FailUntilItStays();
}

// ---- The size at which it works -----------------------------------------------------------------

TEST_F(JoinsTest, UpToTheSizeAtWhichItWorksALostMemberIsReplaced) {
  TrainAlone();
  ReplicaId second = NextJoiner().value();
  TrainWith(second, 61);
  Join("other", 1);
  Step(PinTrial{"s", 0, 3});
  FailUntilItStays();
  EXPECT_EQ(trial().failed_joins->works_at, 2);
  for (int i = 0; i < 3; ++i) {
    Fail(second);
    const auto next = NextJoiner();
    ASSERT_TRUE(next) << i;
    second = *next;
    TrainWith(second, 61);
    EXPECT_EQ(trial().failed_joins->in_a_row, 3) << "that it works with two was known";
    EXPECT_FALSE(NextJoiner()) << "a third one";
  }
  // Where that fails too, it works with one.
  Fail(second);
  Fail(NextJoiner().value());
  EXPECT_EQ(trial().failed_joins->works_at, 1);
  EXPECT_FALSE(NextJoiner());
  EXPECT_EQ(trial().restarts, 0);
}

// ---- A trial that moves -------------------------------------------------------------------------

TEST_F(JoinsTest, WhoMovesToAReplicaThatFailsLosesNoRestart) {
  for (const bool has_left : {true, false}) {
    StudySpec spec = Spec(1);
    spec.name = has_left ? "a" : "b";
    spec.max_slots = 1;
    Step(CreateStudy{spec, false});
    const TrialId id(has_left ? 1 : 2);
    Join(spec.name, 1);
    first_ = Ready(starts_.at(0).replica);
    Form(regroups_);
    Step(FromReplica{first_, ReplicaCheckpoint{"/c/1"}});
    Join("other-" + spec.name, 1);
    Step(DrainNode{spec.name, false, 0});
    const ReplicaId joiner = Ready(NextJoiner().value());
    while (!regroups_.empty()) Form(regroups_);
    if (has_left) Step(ReplicaExited{first_, 0, 0, "", ""});
    Step(ReplicaExited{joiner, 1, 0, "KeyError: 3", ""});
    if (!has_left) Step(ReplicaExited{first_, 0, 0, "", ""});
    EXPECT_EQ(trial(id.value).restarts, 0);
    EXPECT_EQ(trial(id.value).state, TrialState::kRunning) << "from its checkpoint";
    EXPECT_EQ(trial(id.value).failed_joins->in_a_row, 1);
    Step(StopStudy{spec.name});
  }
}

TEST_F(JoinsTest, WhoCannotMoveStaysOnANodeThatIsToBeEmptied) {
  StudySpec spec = Spec(1);
  spec.max_slots = 1;
  Step(CreateStudy{spec, false});
  Join(1);
  first_ = Ready(starts_.at(0).replica);
  Form(regroups_);
  Join("other", 1);
  Step(DrainNode{"node", false, 0});
  FailUntilItStays();
  EXPECT_EQ(trial().state, TrialState::kRunning);
  EXPECT_EQ(core_.Activity(TrialId(1)).replicas, 1);
  Step(DrainNode{"node", true, 0});
  Step(DrainNode{"node", false, 0});
  FailUntilItStays();
}

// ---- The record ---------------------------------------------------------------------------------

TEST_F(JoinsTest, ANewServiceGoesOnCounting) {
  TrainAlone();
  FailUntilItStays();
  Core again(core_.state(), {});
  const ReplicaReady ready{"host:1", {64, 64, 1, 64, true}, 10};
  now_ = After(now_, 1);
  again.Step(now_, AgentHello{"node", 2, {{first_, TrialId(1), 0, trial().generation, ready}}});
  const std::int64_t generation = again.state().trials.at(TrialId(1)).generation;
  again.Step(now_, FromReplica{first_, ReplicaRegrouped{generation, 0, 0.01}});
  for (int i = 0; i < 100; ++i) {
    now_ = After(now_, 5);
    for (const Command& command : again.Step(now_, Tick{}).commands) {
      EXPECT_FALSE(std::holds_alternative<StartReplicaCommand>(command));
    }
  }
  EXPECT_EQ(again.state().trials.at(TrialId(1)).failed_joins->in_a_row, 3);
}

}  // namespace
}  // namespace espalier
