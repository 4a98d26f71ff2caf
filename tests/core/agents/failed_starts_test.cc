// Replicas that a node cannot start, and what that means for trials, studies and the node.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

constexpr char kFull[] = "cannot write /data/s/0: No space left on device";
constexpr char kNoProgram[] = "cannot start train.sh: No such file or directory";

class FailedStartsTest : public CoreTest {
 protected:
  void NotStarted(ReplicaId replica, const char* error, bool node_at_fault) {
    ReplicaExited exit{replica, -1, 0, "", error};
    exit.node_at_fault = node_at_fault;
    Step(exit);
  }

  // Answers the starts of this step: those on bad nodes fail, the others run. Returns how many ran.
  int Answer(const std::set<NodeId>& bad, const char* error, bool node_at_fault) {
    int ran = 0;
    const std::vector<StartReplicaCommand> starts = starts_;
    std::vector<StartReplicaCommand> next;
    for (const StartReplicaCommand& start : starts) {
      if (bad.contains(start.node)) {
        NotStarted(start.replica, error, node_at_fault);
        ++failed_;
      } else {
        Step(ReplicaStarted{start.replica, start.node});
        Step(TellValue{start.trial, 1, 0.5, true});
        Step(ReplicaExited{start.replica, 0, 0, "", ""});
        ++ran;
      }
      next.insert(next.end(), starts_.begin(), starts_.end());
    }
    starts_ = next;
    return ran;
  }

  // Until the study has ended or the seconds have passed. Returns how many trials ran.
  int Run(const std::set<NodeId>& bad, const char* error, bool node_at_fault, int seconds) {
    int ran = 0;
    for (int s = 0; s < seconds && study().state == StudyState::kRunning; ++s) {
      while (!starts_.empty()) ran += Answer(bad, error, node_at_fault);
      if (study().state == StudyState::kRunning) Wait(1);
    }
    return ran;
  }

  std::int64_t CountFailed() {
    std::int64_t count = 0;
    for (const auto& [id, trial] : core_.state().trials) count += trial.state == TrialState::kFail;
    return count;
  }

  std::vector<std::string> Told(const std::string& part) {
    std::vector<std::string> told;
    for (const Decision& decision : study().decisions) {
      if (decision.reason.find(part) != std::string::npos) told.push_back(decision.reason);
    }
    return told;
  }

  int failed_ = 0;
};

TEST_F(FailedStartsTest, ANodeThatIsFullEndsNoStudy) {
  StudySpec spec = Spec(20);
  spec.max_slots = 1;
  const NodeId full = Join("full", 2);
  Join("well", 2);
  Step(CreateStudy{spec, false});
  EXPECT_EQ(Run({full}, kFull, true, 600), 20);
  EXPECT_EQ(study().state, StudyState::kComplete) << study().reason;
  EXPECT_EQ(CountFailed(), 0);
  EXPECT_LE(failed_, 8) << "it is left alone for a while";
  ASSERT_FALSE(Told("of full cannot be used").empty());
  EXPECT_THAT(Told("of full cannot be used").front(),
              HasSubstr("cannot write /data/s/0: No space left on device; it is tried again after "
                        "10 s"));
}

TEST_F(FailedStartsTest, TrialsWaitForTheOnlyNode) {
  const NodeId node = Join("only", 4);
  Step(CreateStudy{Spec(2), false});
  EXPECT_EQ(Run({node}, kFull, true, 3600), 0);
  EXPECT_EQ(study().state, StudyState::kRunning);
  EXPECT_EQ(trial().state, TrialState::kPaused);
  EXPECT_EQ(trial().reason, absl::StrCat(kFull, " on only"));
  EXPECT_EQ(trial().restarts, 0);
  EXPECT_LE(failed_, 2 * 20) << "longer each time, up to five minutes";
  EXPECT_GE(failed_, 10);
  EXPECT_EQ(Run({}, "", false, 600), 2);
  EXPECT_EQ(study().state, StudyState::kComplete);
}

TEST_F(FailedStartsTest, WhatRunsThereRunsOn) {
  StudySpec spec = Spec(3);
  spec.max_slots = 1;
  const NodeId node = Join("node", 2);
  Step(CreateStudy{spec, false});
  ASSERT_EQ(starts_.size(), 2u);
  const ReplicaId running = starts_[0].replica;
  Step(ReplicaStarted{running, node});
  NotStarted(ReplicaId(running.value + 1), kFull, true);
  EXPECT_TRUE(stops_.empty());
  EXPECT_TRUE(starts_.empty());
  EXPECT_FALSE(core_.Nodes().at(0).draining);
  EXPECT_EQ(core_.Nodes().at(0).unusable.size(), 1u) << "the slot that is free";
  EXPECT_EQ(trial().state, TrialState::kRunning);
}

TEST_F(FailedStartsTest, AProgramThatIsMissingOnOneNodeIsStartedOnOthers) {
  StudySpec spec = Spec(12);
  spec.max_slots = 1;
  const NodeId without = Join("without", 2);
  Join("with", 1);
  Step(CreateStudy{spec, false});
  EXPECT_EQ(Run({without}, kNoProgram, false, 600), 12);
  EXPECT_EQ(study().state, StudyState::kComplete) << study().reason;
  EXPECT_EQ(CountFailed(), 0);
}

TEST_F(FailedStartsTest, AProgramThatIsMissingOnAllNodesFails) {
  std::set<NodeId> all;
  for (const char* const name : {"a", "b", "c", "d", "e"}) all.insert(Join(name, 1));
  Step(CreateStudy{Spec(50), false});
  EXPECT_EQ(Run(all, kNoProgram, false, 600), 0);
  EXPECT_EQ(study().state, StudyState::kFailed);
  EXPECT_THAT(study().reason, HasSubstr(kNoProgram));
  EXPECT_LE(Told("cannot be used").size(), 3u) << "the pool is not blamed for a wrong command";
}

TEST_F(FailedStartsTest, AProgramThatIsMissingOnTheOnlyNodeFails) {
  const NodeId node = Join("only", 1);
  Step(CreateStudy{Spec(50), false});
  EXPECT_EQ(Run({node}, kNoProgram, false, 600), 0);
  EXPECT_EQ(study().state, StudyState::kFailed);
  EXPECT_TRUE(Told("cannot be used").empty());
}

// A node that cannot start a second replica keeps no trial from training with one.
TEST_F(FailedStartsTest, AJoinerThatANodeCannotStartIsNoFailedJoin) {
  Join("well", 1);
  const NodeId full = Join("full", 1);
  Step(CreateStudy{Spec(1), false});
  const ReplicaId first = Ready(starts_.at(0).replica);
  Form(regroups_);
  int tried = 0;
  for (int s = 0; s < 1200; ++s) {
    Wait(1);
    for (const StartReplicaCommand& start : std::vector(starts_)) {
      EXPECT_EQ(start.node, full);
      NotStarted(start.replica, kFull, true);
      ++tried;
    }
  }
  EXPECT_GE(tried, 2);
  EXPECT_LE(tried, 12);
  EXPECT_EQ(trial().state, TrialState::kRunning);
  EXPECT_EQ(trial().failed_joins->in_a_row, 0) << "it grows when the node can start it";
  EXPECT_NE(first, ReplicaId{});
}

}  // namespace
}  // namespace espalier
