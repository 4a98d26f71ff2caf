// In which orders of events members of a population take over from one another, and from whom.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/trials/population_fixture.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

class TakeoversTest : public PopulationTest {};

TEST_F(TakeoversTest, NobodyTakesOverFromWhoHasComeToTheEnd) {
  Begin(Population(2), 2);
  Report(1, 2, 0.1);
  Report(1, 10, 0.1);  // of as many as its program says that it will do
  Report(2, 2, 0.9);
  EXPECT_EQ(trial(2).state, TrialState::kRunning) << "a clone would have nothing left to train";
  EXPECT_EQ(Trials(), 2);
}

TEST_F(TakeoversTest, OfTheBestThoseThatAreNotAtTheEndAreTakenOverFrom) {
  StudySpec spec = Population(4);
  spec.population.quantile = 0.5;
  spec.max_step = 4;
  Begin(spec, 4);
  Report(1, 2, 0.1);
  Report(1, 4, 0.1);
  Report(2, 2, 0.2);
  Report(3, 2, 0.8);
  Report(4, 2, 0.9);
  ASSERT_EQ(Trials(), 6);
  for (const std::int64_t clone : {5, 6}) EXPECT_EQ(trial(clone).lineage->parent, 1) << clone;
}

TEST_F(TakeoversTest, TheWorstTakesOverOnceTheBestHasSaved) {
  BeginUnsaved(Population(2), 2);
  Report(1, 2, 0.1);
  Report(2, 2, 0.9);
  EXPECT_EQ(Trials(), 2);
  EXPECT_EQ(trial(2).state, TrialState::kRunning);
  EXPECT_THAT(
      LastReasonOf(2),
      HasSubstr("at step 2 it is among the worst, and trial 0 among the best, from which it "
                "takes over once that has saved a checkpoint"));
  Save(1, 10);
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_THAT(trial(2).reason, HasSubstr("at step 2 it is among the worst, and trial 0 among"));
  ASSERT_EQ(Trials(), 3);
  EXPECT_EQ(trial(3).lineage->parent, 0);
}

TEST_F(TakeoversTest, AfterARestartOfTheServiceToo) {
  BeginUnsaved(Population(2), 2);
  Report(1, 2, 0.1);
  Report(2, 2, 0.9);
  Core again(core_.state(), {});
  again.Step(now_, HelloOfAll());
  EXPECT_EQ(again.state().trials.size(), 2u);
  again.Step(now_, FromReplica{replicas_.at(1),
                               ReplicaCheckpoint{"/a/trial-1/checkpoints/step-10.pt", 10}});
  ASSERT_EQ(again.state().trials.size(), 3u);
  EXPECT_EQ(again.state().trials.at(TrialId(2)).state, TrialState::kPruned);
}

TEST_F(TakeoversTest, WhoIsBetterByThenStays) {
  BeginUnsaved(Population(2), 2);
  Report(1, 2, 0.1);
  Report(2, 2, 0.9);
  Report(2, 3, 0.05);
  Save(1, 10);
  EXPECT_EQ(trial(2).state, TrialState::kRunning);
  Report(2, 4, 0.9);
  Save(1, 20);
  EXPECT_EQ(trial(2).state, TrialState::kRunning) << "it waits for nothing any more";
}

TEST_F(TakeoversTest, WhoHasBeenComparedSinceThenWaitsNoMore) {
  BeginUnsaved(Population(2), 2);
  Report(1, 2, 0.1);
  Report(2, 2, 0.9);
  Report(2, 4, 0.8);  // nobody else has come there
  Save(1, 10);
  EXPECT_EQ(trial(2).state, TrialState::kRunning);
  Report(1, 4, 0.1);
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_THAT(trial(2).reason, HasSubstr("at step 4 it is among the worst"));
}

TEST_F(TakeoversTest, NobodyWaitsWhereAnotherOfTheBestHasSaved) {
  StudySpec spec = Population(4);
  spec.population.quantile = 0.5;
  BeginUnsaved(spec, 4);
  Save(2, 10);
  for (std::int64_t id = 1; id <= 4; ++id) Report(id, 2, 0.1 * static_cast<double>(id));
  ASSERT_EQ(Trials(), 6);
  for (const std::int64_t clone : {5, 6}) EXPECT_EQ(trial(clone).lineage->parent, 1) << clone;
}

// The service has been busy, and hears all of it before it looks.
TEST_F(TakeoversTest, WhoComesToSeveralStepsAtOnceIsComparedAtEachOfThem) {
  Begin(Population(2), 2);
  Report(2, 2, 0.9);
  Report(2, 3, 0.8);
  for (const std::int64_t step : {1, 2, 3, 4, 5}) Hear(1, ReplicaReport{step, 0.1});
  Step(Tick{});
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_THAT(trial(2).reason, HasSubstr("at step 2 it is among the worst"));
}

TEST_F(TakeoversTest, WhoEndsRightAfterItHasComeIsComparedTheSame) {
  Begin(Population(3), 3);
  Report(1, 2, 0.1);
  Report(2, 2, 0.9);
  Hear(3, ReplicaReport{2, 0.5});
  Hear(3, ReplicaFinished{});
  Step(Tick{});
  ASSERT_EQ(trial(3).state, TrialState::kComplete);
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_EQ(trial(4).lineage->parent, 0);
}

TEST_F(TakeoversTest, WhoFailsBehindTheOthersIsWaitedForNoLonger) {
  Begin(Population(3), 3);
  Report(1, 2, 0.1);
  Report(2, 2, 0.9);
  EXPECT_EQ(Trials(), 3) << "the third may be worse still";
  Step(CancelTrial{TrialId(3), TrialState::kFail, ""});
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_EQ(trial(4).lineage->parent, 0);
}

TEST_F(TakeoversTest, WhatCameWhileTheStudyWasStoppedIsComparedWhenItGoesOn) {
  Begin(Population(2), 2);
  Report(1, 2, 0.1);
  Step(StopStudy{"s"});
  Report(2, 2, 0.9);
  for (const std::int64_t id : {1, 2}) Exit(id);
  ASSERT_EQ(trial(2).values.size(), 1u);
  Step(ResumeStudy{"s", 0, 0});
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_EQ(trial(3).lineage->parent, 0);
}

TEST_F(TakeoversTest, SlotsOfANodeThatIsToBeEmptiedAreNotFreeForThoseThatWait) {
  const NodeId empty = Join("empty", 1);
  ASSERT_TRUE(Step(DrainNode{"empty"}).status.ok());
  ASSERT_NE(empty, NodeId{});
  Begin(Population(3), 2);
  ASSERT_EQ(Trials(), 2);
  Report(1, 2, 0.4);
  EXPECT_THAT(LastReasonOf(1), HasSubstr("has come to step 2, and others that wait have not"));
}

TEST_F(TakeoversTest, NorAreThoseOfClients) {
  StudySpec by_clients = Spec(0);
  by_clients.name = "by clients";
  by_clients.kind = StudyKind::kByClients;
  const StudyId study = Step(CreateStudy{by_clients, false}).study();
  const TrialId of_client = Step(CreateTrial{study, nullptr}).trial();
  Join("of a client", 1);
  Step(AcquireSlots{of_client, 1, "", 0});
  ASSERT_EQ(core_.Activity(of_client).slots, 1);
  Begin(Population(3), 2);
  ASSERT_EQ(Trials(), 3) << "its own, and two members";
  Report(2, 2, 0.4);
  EXPECT_THAT(LastReasonOf(2), HasSubstr("has come to step 2, and others that wait have not"));
}

TEST_F(TakeoversTest, NorAreThoseBeyondAsManyTrialsAsMayRun) {
  StudySpec spec = Population(3);
  spec.max_concurrent_trials = 2;
  Begin(spec, 3);
  ASSERT_EQ(Trials(), 2);
  Report(1, 2, 0.4);
  EXPECT_THAT(LastReasonOf(1), HasSubstr("has come to step 2, and others that wait have not"));
  Exit(1);
  TrainThoseThatStart();
  EXPECT_EQ(trial(3).state, TrialState::kRunning) << "its turn";
}

}  // namespace
}  // namespace espalier
