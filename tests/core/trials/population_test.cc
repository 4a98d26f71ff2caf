// Studies whose trials are a population: the worst end, and clones of the best go on in their
// place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tests/core/trials/population_fixture.h"
#include "tuner/core/studies/validate.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(PopulationTest, ACloneOfTheBestTakesTheWorstsPlace) {
  Begin(Population(4), 4);
  for (std::int64_t id = 1; id <= 4; ++id) Report(id, 1, 0.1 * static_cast<double>(id));
  EXPECT_EQ(Trials(), 4) << "step 1 is no multiple of the interval";
  for (std::int64_t id = 1; id <= 3; ++id) Report(id, 2, 0.1 * static_cast<double>(id));
  const std::int64_t before = Trials();
  EXPECT_EQ(before, 4) << "one of four is the worst, which has told more at step 1 already";
  Report(4, 2, 0.4);
  EXPECT_EQ(trial(4).state, TrialState::kPruned);
  EXPECT_THAT(trial(4).reason, HasSubstr("at step 2 it is among the worst, and trial 0 among the "
                                         "best: trial 4 goes on from there in its place"));
  ASSERT_EQ(Trials(), before + 1);
  const Trial& clone = trial(before + 1);
  EXPECT_EQ(clone.lineage->parent, 0);
  EXPECT_NE(clone.parameters, trial(1).parameters);
  EXPECT_EQ(trial(1).state, TrialState::kRunning);
  EXPECT_EQ(study().counted(), 4);
}

TEST_F(PopulationTest, TheCloneGoesOnInTheMembersSlots) {
  Begin(Population(2), 2);
  Report(1, 2, 0.1);
  Report(2, 2, 0.9);
  ASSERT_EQ(trial(2).state, TrialState::kPruned);
  Bring(3);
  EXPECT_TRUE(starts_.empty()) << "the member has not left them yet";
  Exit(2);
  EXPECT_EQ(study().decisions.back().reason, "takes the slots of the member whose place it takes");
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].trial, TrialId(3));
  EXPECT_EQ(starts_[0].slot, slots_.at(replicas_.at(2)));
}

TEST_F(PopulationTest, TheCloneWaitsForItsCheckpointThough) {
  Begin(Population(2), 2);
  Report(1, 2, 0.1);
  Report(2, 2, 0.9);
  Exit(2);
  EXPECT_TRUE(starts_.empty());
  Bring(3);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(study().decisions.back().reason, "takes the slots of the member whose place it takes");
}

TEST_F(PopulationTest, WhereStudiesShareThePoolTheCloneWaitsForAPlan) {
  Begin(Population(2), 2);
  StudySpec other = Spec(1);
  other.name = "other";
  Step(CreateStudy{other, false});
  Report(1, 2, 0.1);
  Report(2, 2, 0.9);
  ASSERT_EQ(trial(2).state, TrialState::kPruned);
  Bring(Trials());
  Exit(2);
  for (const Decision& decision : study().decisions) {
    EXPECT_THAT(decision.reason, Not(HasSubstr("takes the slots")));
  }
}

TEST_F(PopulationTest, WhoCameFirstIsReplacedOnceOthersHaveComeAfter) {
  Begin(Population(2), 2);
  Report(2, 2, 0.9);
  Report(2, 3, 0.8);
  EXPECT_EQ(trial(2).state, TrialState::kRunning) << "it was alone when it came there";
  Report(1, 2, 0.1);
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_THAT(trial(2).reason, HasSubstr("at step 2 it is among the worst, and trial 0 among"));
  EXPECT_EQ(trial(3).lineage->parent, 0);
}

TEST_F(PopulationTest, WhoIsBetterByNowIsNotReplacedForWhatWas) {
  Begin(Population(2), 2);
  Report(2, 2, 0.9);
  Report(2, 3, 0.05);
  Report(1, 2, 0.1);
  EXPECT_EQ(Trials(), 2);
  EXPECT_EQ(trial(2).state, TrialState::kRunning);
}

TEST_F(PopulationTest, AsManyAreReplacedInWhateverOrderTheyCome) {
  Begin(Population(8), 8);
  for (std::int64_t id = 8; id >= 1; --id) Report(id, 2, 0.1 * static_cast<double>(id));
  EXPECT_EQ(Trials(), 10) << "two of eight";
  for (const std::int64_t id : {7, 8}) EXPECT_EQ(trial(id).state, TrialState::kPruned) << id;
  for (std::int64_t id = 1; id <= 6; ++id) {
    EXPECT_EQ(trial(id).state, TrialState::kRunning) << id;
    Report(id, 3, 0.1);
  }
  EXPECT_EQ(Trials(), 10);
}

TEST_F(PopulationTest, WhoComesWorstOfManyIsReplacedBeforeAllHaveCome) {
  Begin(Population(8), 8);
  for (std::int64_t id = 1; id <= 8; ++id) {
    Report(id, 2, 0.1 * static_cast<double>(id));
    EXPECT_EQ(Trials(), id < 4 ? 8 : id < 8 ? 9 : 10) << id;
  }
  for (const std::int64_t id : {4, 8}) EXPECT_EQ(trial(id).state, TrialState::kPruned) << id;
}

TEST_F(PopulationTest, NoTwoClonesOfOneMemberTrainTheSame) {
  StudySpec spec = Population(4);
  spec.population.quantile = 0.5;
  spec.population.resample_probability = 0;
  Begin(spec, 4);
  for (std::int64_t id = 1; id <= 4; ++id) Report(id, 2, id == 1 ? 0.1 : 0.9);
  ASSERT_EQ(Trials(), 6);
  for (const std::int64_t clone : {5, 6}) EXPECT_EQ(trial(clone).lineage->parent, 0) << clone;
  EXPECT_NE(trial(5).parameters, trial(6).parameters);
}

TEST_F(PopulationTest, NorDoThoseThatABanditHasChosenFor) {
  StudySpec spec = Population(4);
  spec.space = *SearchSpace::FromJson(R"json({"x": {"_type": "choice", "_value": [1, 2, 3]}})json");
  spec.population.quantile = 0.5;
  spec.population.explore = Explore::kPb2;
  spec.points = {{{"x", 1.0}}, {{"x", 2.0}}, {{"x", 3.0}}, {{"x", 1.0}}};
  Begin(spec, 4);
  // What the best one has is what promises most.
  for (std::int64_t id = 1; id <= 4; ++id) {
    Report(id, 1, 1);
    Report(id, 2, id == 1 ? 0.1 : 0.9);
  }
  ASSERT_EQ(Trials(), 6);
  for (const std::int64_t clone : {5, 6}) {
    EXPECT_EQ(trial(clone).lineage->parent, 0) << clone;
    EXPECT_NE(trial(clone).parameters, trial(1).parameters) << clone;
  }
  EXPECT_NE(trial(5).parameters, trial(6).parameters);
}

TEST_F(PopulationTest, WhoHasFailedIsNotWaitedFor) {
  Begin(Population(3), 3);
  Step(CancelTrial{TrialId(3), TrialState::kFail, ""});
  Report(2, 2, 0.9);
  Report(1, 2, 0.1);
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
}

TEST_F(PopulationTest, WhoHasFailedTakesNobodysPlaceAmongTheWorst) {
  Begin(Population(4), 4);
  for (std::int64_t id = 2; id <= 4; ++id) Report(id, 2, 0.1 * static_cast<double>(id));
  Step(CancelTrial{TrialId(4), TrialState::kFail, ""});
  Report(1, 2, 0.1);
  EXPECT_EQ(trial(3).state, TrialState::kPruned) << "the worst of three";
}

TEST_F(PopulationTest, WhoHasComeToTheEndIsNotReplaced) {
  StudySpec spec = Population(2);
  spec.max_step = 4;
  Begin(spec, 2);
  Report(1, 4, 0.1);
  Report(2, 4, 0.9);
  EXPECT_EQ(trial(2).state, TrialState::kRunning);
  EXPECT_EQ(Trials(), 2);
}

TEST_F(PopulationTest, MembersGoForwardTogetherWhereTheyAreMoreThanSlots) {
  Begin(Population(2), 1);
  EXPECT_EQ(Trials(), 1);
  Report(1, 1, 0.5);
  EXPECT_TRUE(regroups_.empty());
  Report(1, 2, 0.4);
  ASSERT_EQ(regroups_.size(), 1u);
  EXPECT_TRUE(regroups_[0].membership.members.empty()) << "it saves and gives its slot back";
  Exit(1);
  EXPECT_EQ(trial(1).state, TrialState::kPaused);
  EXPECT_THAT(trial(1).reason, HasSubstr("has come to step 2, and others that wait have not"));
  ASSERT_EQ(Trials(), 2);
  TrainThoseThatStart();
  ASSERT_TRUE(replicas_.contains(2)) << "the other one's turn";
  Report(2, 1, 0.5);
  Report(2, 2, 0.4);
  EXPECT_EQ(trial(2).state, TrialState::kRunning) << "the other one has come as far";
  EXPECT_EQ(trial(1).state, TrialState::kPaused);
}

// Eight on four slots, of which the fourth is the worst: its clone would begin at step 2, and some
// have not begun.
TEST_F(PopulationTest, ACloneLeavesTheMembersSlotsToThoseThatAreBehind) {
  Begin(Population(8), 4);
  for (std::int64_t id = 1; id <= 3; ++id) {
    Report(id, 2, 0.1 * static_cast<double>(id));
    Exit(id);
    TrainThoseThatStart();
  }
  ASSERT_TRUE(replicas_.contains(7)) << "those that waited have their slots";
  Report(4, 2, 0.9);
  ASSERT_EQ(trial(4).state, TrialState::kPruned);
  const std::int64_t clone = Trials();
  ASSERT_TRUE(trial(clone).lineage->cloned());
  Bring(clone);
  Exit(4);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_FALSE(trial(starts_[0].trial.value).lineage->cloned()) << "the eighth member";
  TrainThoseThatStart();
  EXPECT_EQ(trial(clone).state, TrialState::kWaiting);
}

// It would begin anew.
TEST_F(PopulationTest, APlainProgramIsNotPausedForOthers) {
  Step(CreateStudy{Population(2), false});
  Join(1);
  const ReplicaId plain = starts_.at(0).replica;
  CoreTest::Report(plain, 1, 0.5);
  CoreTest::Report(plain, 2, 0.4);
  EXPECT_TRUE(stops_.empty());
  Wait(3);
  EXPECT_TRUE(stops_.empty());
  EXPECT_EQ(trial(1).state, TrialState::kRunning);
}

// Programs that are not elastic, and keep files of their own.
class PlainPopulationTest : public PopulationTest {
 protected:
  void BeginPlain(int slots, bool ask = true) {
    StartPlain(slots);
    for (const auto& [id, replica] : std::map(replicas_)) {
      Tell(id, 1, 0.5);
      if (ask) {
        EXPECT_FALSE(Saves(id, 1));
      }
    }
  }
  void StartPlain(int slots) {
    Step(CreateStudy{Population(2), false});
    AgentHello hello{"node", slots, {}};
    hello.clones = true;
    node_ = Step(hello).node();
    for (const StartReplicaCommand& start : starts_) {
      replicas_[start.trial.value] = start.replica;
    }
  }
  void Tell(std::int64_t id, std::int64_t step, double value) {
    Step(TellValue{TrialId(id), step, value});
  }
  bool Saves(std::int64_t id, std::int64_t step) {
    return Step(AskVerdict{TrialId(id), step, Question::kSave}).should_stop();
  }
  void SaveFolder(std::int64_t id) {
    Step(FromReplica{replicas_.at(id), ReplicaCheckpoint{"/a/checkpoints/", 1}});
  }
  std::int64_t Records(const std::string& words) {
    return std::ranges::count_if(study().decisions, [&words](const Decision& decision) {
      return decision.reason.find(words) != std::string::npos;
    });
  }
};

TEST_F(PlainPopulationTest, TheBestSavesForItsClone) {
  BeginPlain(2);
  Tell(1, 2, 0.1);
  Tell(2, 2, 0.9);
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  ASSERT_EQ(Trials(), 3);
  Exit(2);
  EXPECT_TRUE(Saves(1, 2));
  SaveFolder(1);
  EXPECT_TRUE(copies_.empty());
  Exit(1);
  ASSERT_EQ(copies_.size(), 1u);
  EXPECT_EQ(copies_[0].of, 0);
  EXPECT_TRUE(starts_.empty());
  Bring(3);
  ASSERT_EQ(starts_.size(), 2u) << "the clone in the worst one's slot, and the best one in its own";
  EXPECT_EQ(trial(1).state, TrialState::kRunning);
  EXPECT_EQ(trial(3).state, TrialState::kRunning);
}

// As a program that has just been started again: it tells its first value, and asks then.
TEST_F(PlainPopulationTest, TheBestIsTakenOverOnceItAsksWhetherToSave) {
  StartPlain(2);
  Tell(2, 2, 0.9);
  Tell(1, 2, 0.1);
  EXPECT_EQ(trial(2).state, TrialState::kRunning);
  EXPECT_EQ(Records("among the best, from which it takes over once that has saved"), 1);
  Saves(1, 2);
  Step(Tick{});
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_EQ(Trials(), 3);
}

TEST_F(PlainPopulationTest, WhoDoesNotSaveIsNotTakenOverAndTheRecordSaysWhy) {
  BeginPlain(2, /*ask=*/false);
  for (std::int64_t step = 2; step < 8; ++step) {
    Tell(1, step, 0.1);
    Tell(2, step, 0.9);
  }
  EXPECT_EQ(Trials(), 2);
  EXPECT_EQ(trial(2).state, TrialState::kRunning);
  EXPECT_TRUE(stops_.empty());
  EXPECT_EQ(Records("population: nothing is taken over from it: the program is not elastic"), 1);
}

TEST_F(PlainPopulationTest, WhoSavesGivesItsSlotToThoseThatAreBehind) {
  BeginPlain(1);
  Tell(1, 2, 0.4);
  EXPECT_TRUE(stops_.empty()) << "it asks";
  EXPECT_TRUE(Saves(1, 2));
  SaveFolder(1);
  Exit(1);
  EXPECT_EQ(trial(1).state, TrialState::kPaused);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].trial, TrialId(2));
}

TEST_F(PlainPopulationTest, WhoComesToItsEndBeforeItIsToldHasEnded) {
  BeginPlain(1);
  Tell(1, 2, 0.4);
  Exit(1);
  EXPECT_EQ(trial(1).state, TrialState::kComplete);
}

TEST_F(PlainPopulationTest, SoHasWhoseRanksAreOnTwoNodes) {
  StudySpec spec = Population(2);
  spec.min_slots = 2;
  spec.max_slots = 2;
  spec.launch = {"ranks"};
  for (const char* name : {"oak", "elm"}) {
    AgentHello hello{name, 1, {}};
    hello.spans_launches = true;
    Step(hello);
  }
  Step(CreateStudy{spec, false});
  ASSERT_EQ(starts_.size(), 2u);
  const std::vector<StartReplicaCommand> ranks = starts_;
  Step(FromReplica{ranks[1].replica, RanksWait{""}});
  Step(FromReplica{ranks[0].replica, RanksWait{"10.0.0.1:7100"}});
  Tell(1, 1, 0.5);
  EXPECT_FALSE(Saves(1, 1));
  Tell(1, 2, 0.4);
  for (const StartReplicaCommand& rank : ranks) Step(ReplicaExited{rank.replica, 0, 0, "", ""});
  EXPECT_EQ(trial(1).state, TrialState::kComplete);
}

TEST_F(PopulationTest, NobodyWaitsForMembersThatAreNeverDrawn) {
  StudySpec spec = Population(4);
  spec.space = *SearchSpace::FromJson(R"json({"x": {"_type": "choice", "_value": [1, 2]}})json");
  spec.sampler = {"grid", {}};
  Begin(spec, 1);
  Report(1, 2, 0.4);
  Exit(1);
  TrainThoseThatStart();
  Report(2, 2, 0.4);
  Exit(2);  // where the others' turn would be
  for (int i = 0; i < 4 && starts_.empty(); ++i) Wait(3);
  EXPECT_EQ(study().state, StudyState::kRunning);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].trial, TrialId(1));
}

TEST_F(PopulationTest, NobodyWaitsForMembersForWhichItIsTooLate) {
  StudySpec spec = Population(4);
  spec.max_step = 8;
  spec.time_limit_s = 100;
  Begin(spec, 2);
  Wait(30);  // for two steps of eight: 120 s to the end of another
  for (const std::int64_t id : {1, 2}) {
    Report(id, 2, 0.4);
    if (!stops_.empty()) Exit(id);
  }
  for (int i = 0; i < 4; ++i) Wait(3);
  EXPECT_EQ(study().state, StudyState::kRunning);
  TrainThoseThatStart();
  for (const std::int64_t id : {1, 2}) EXPECT_EQ(trial(id).state, TrialState::kRunning) << id;
  EXPECT_EQ(Trials(), 2);
}

TEST_F(PopulationTest, WhoIsPausedAmongTheWorstIsReplaced) {
  Begin(Population(2), 1);
  Report(1, 2, 0.4);
  Exit(1);
  TrainThoseThatStart();
  Report(2, 2, 0.1);
  EXPECT_EQ(trial(1).state, TrialState::kPruned);
  ASSERT_EQ(Trials(), 3);
  EXPECT_EQ(trial(3).lineage->parent, 1);
  EXPECT_EQ(trial(2).state, TrialState::kRunning) << "the clone begins where it is";
}

TEST_F(PopulationTest, WhatIsDrawnFollowsFromSeedMemberAndStep) {
  Begin(Population(2), 2);
  Report(1, 2, 0.1);
  Core again(core_.state(), {});
  Report(2, 2, 0.9);
  ASSERT_EQ(Trials(), 3);
  EXPECT_TRUE(study().spec.space.Validate(trial(3).parameters).ok());
  again.Step(now_, HelloOfAll());
  again.Step(now_, FromReplica{replicas_.at(2), ReplicaReport{2, 0.9}});
  ASSERT_EQ(again.state().trials.size(), 3u) << "after a restart of the service";
  EXPECT_EQ(again.state().trials.at(TrialId(3)).parameters, trial(3).parameters);
}

TEST_F(PopulationTest, WhatABanditChoosesFollowsFromWhatIsStored) {
  StudySpec spec = Population(4);
  spec.population.explore = Explore::kPb2;
  Begin(spec, 4);
  for (std::int64_t id = 1; id <= 4; ++id) {
    Report(id, 1, 1);
    if (id < 4) Report(id, 2, 0.2 * static_cast<double>(id));
  }
  Core again(core_.state(), {});
  Report(4, 2, 0.9);
  ASSERT_EQ(Trials(), 5);
  EXPECT_TRUE(study().spec.space.Validate(trial(5).parameters).ok());
  again.Step(now_, HelloOfAll());
  again.Step(now_, FromReplica{replicas_.at(4), ReplicaReport{2, 0.9}});
  ASSERT_EQ(again.state().trials.size(), 5u) << "after a restart of the service";
  EXPECT_EQ(again.state().trials.at(TrialId(5)).parameters, trial(5).parameters);
  const std::string parent = ToDisplay(trial(1).parameters.front().value);
  for (const double factor : spec.population.factors) {
    EXPECT_NE(*NumberOf(trial(5).parameters.front().value),
              factor * *NumberOf(trial(1).parameters.front().value))
        << "it is not perturbed from " << parent;
  }
}

TEST_F(PopulationTest, WhoWillBeReplacedGetsNoMoreSlots) {
  StudySpec spec = Population(2);
  spec.max_slots = 2;
  Begin(spec, 2);
  Report(1, 1, 0.1);
  Report(2, 1, 0.9);
  EXPECT_EQ(study().decisions.back().reason,
            "population: at step 1 it is among the worst, so that it gets no more slots until "
            "members are compared at step 2");
  EXPECT_EQ(study().decisions.back().trial_number, 1);
  Join("another", 4);
  const auto has_grown = [this](std::int64_t number) {
    return std::ranges::any_of(study().decisions, [number](const Decision& decision) {
      return decision.trial_number == number && decision.kind == DecisionKind::kGrow;
    });
  };
  for (int i = 0; i < 4; ++i) Wait(3);
  EXPECT_TRUE(has_grown(0));
  EXPECT_FALSE(has_grown(1));
  Report(1, 2, 0.2);
  Report(2, 2, 0.2);  // nobody is replaced
  ASSERT_EQ(Trials(), 2);
  for (int i = 0; i < 4; ++i) Wait(3);
  EXPECT_TRUE(has_grown(1));
}

TEST_F(PopulationTest, NobodyIsReplacedAtTheEndAndSoAllMayGrow) {
  StudySpec spec = Population(2);
  spec.max_slots = 2;
  spec.max_step = 2;
  Begin(spec, 2);
  Report(1, 1, 0.1);
  Report(2, 1, 0.9);
  for (const Decision& decision : study().decisions) {
    EXPECT_THAT(decision.reason, Not(HasSubstr("no more slots")));
  }
}

class AdaptivePopulationTest : public PopulationTest {
 protected:
  StudySpec Adaptive(std::int64_t members) {
    StudySpec spec = Population(members);
    spec.batch_mode = BatchMode::kAdaptive;
    return spec;
  }
  // With a progress of so much in each step.
  void ReportUntil(std::int64_t id, std::int64_t last, double each, double value) {
    const Trial& told = trial(id);
    for (std::int64_t step = told.values.empty() ? 1 : told.values.back().step + 1; step <= last;
         ++step) {
      Step(FromReplica{replicas_.at(id),
                       ReplicaReport{step, value, each * static_cast<double>(step)}});
    }
  }
};

TEST_F(AdaptivePopulationTest, MembersAreComparedAtEqualProgress) {
  Begin(Adaptive(2), 2);
  ReportUntil(1, 2, 100, 0.1);
  ReportUntil(2, 3, 50, 0.9);  // its batch has grown
  EXPECT_EQ(trial(2).state, TrialState::kRunning) << "it has come to step 1";
  EXPECT_EQ(trial(1).state, TrialState::kRunning);
  ReportUntil(2, 4, 50, 0.9);
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_THAT(trial(2).reason, HasSubstr("at step 2 it is among the worst"));
  EXPECT_THAT(trial(2).reason, HasSubstr("(steps at equal progress)"));
}

TEST_F(AdaptivePopulationTest, WhoComesToSeveralStepsAtOnceIsComparedAtEachOfThem) {
  Begin(Adaptive(2), 2);
  ReportUntil(2, 3, 100, 0.9);
  for (const std::int64_t step : {1, 2, 3, 4, 5}) {
    Hear(1, ReplicaReport{step, 0.1, 100 * static_cast<double>(step)});
  }
  Step(Tick{});
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_THAT(trial(2).reason, HasSubstr("at step 2 it is among the worst"));
}

TEST_F(AdaptivePopulationTest, WhoIsBehindByProgressHasToComeForwardFirst) {
  Begin(Adaptive(2), 1);
  ReportUntil(1, 2, 100, 0.4);
  Exit(1);
  ASSERT_EQ(trial(1).state, TrialState::kPaused);
  TrainThoseThatStart();
  ReportUntil(2, 3, 50, 0.4);
  for (int i = 0; i < 3; ++i) Wait(3);
  EXPECT_EQ(trial(2).state, TrialState::kRunning);
  EXPECT_EQ(trial(1).state, TrialState::kPaused);
  ReportUntil(2, 4, 50, 0.4);
  EXPECT_EQ(trial(2).state, TrialState::kRunning) << "nobody who waits is behind it";
}

// It has begun a step that it did not come to, and is not taken to have come there.
TEST_F(AdaptivePopulationTest, WhoWasReplacedCountsWhereItWasCompared) {
  StudySpec spec = Adaptive(3);
  spec.population.interval = 1;
  Begin(spec, 3);
  for (const std::int64_t id : {1, 2}) ReportUntil(id, 1, 100, 0.1 * static_cast<double>(id));
  ReportUntil(3, 2, 60, 0.9);
  ASSERT_EQ(trial(3).state, TrialState::kPruned);
  for (const std::int64_t id : {1, 2}) ReportUntil(id, 2, 100, 0.1 * static_cast<double>(id));
  const std::int64_t clone = 4;
  Bring(clone);
  Exit(3);
  TrainThoseThatStart();
  Step(FromReplica{replicas_.at(clone), ReplicaReport{2, 0.8, 200}});
  EXPECT_EQ(trial(clone).state, TrialState::kPruned) << "the worst of three at step 2";
}

TEST_F(PopulationTest, WhatCannotBeOneIsRefusedByName) {
  const auto refusal = [](const StudySpec& spec) { return std::string(Validate(spec).message()); };
  StudySpec spec = Population(4);
  EXPECT_EQ(refusal(spec), "");
  spec.pruner = {"median", {}};
  EXPECT_THAT(refusal(spec), HasSubstr("leave out \"pruner\", got \"median\""));
  spec = Population(1);
  EXPECT_THAT(refusal(spec), HasSubstr("\"trials\""));
  spec = Population(4);
  spec.population.parameters = {"y"};
  EXPECT_THAT(refusal(spec), HasSubstr("\"population\": parameter \"y\""));
  spec = Population(4);
  spec.space = *SearchSpace::FromJson(
      R"({"x": {"_type": "uniform", "_value": [0, 1]}, "y": {"_type": "uniform", "_value": [0, 1]}})");
  spec.fixed = {{"x", 0.5}};
  EXPECT_THAT(refusal(spec), HasSubstr("\"x\" is held by \"fixed\""));
}

}  // namespace
}  // namespace espalier
