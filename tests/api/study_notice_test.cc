#include "tuner/api/study_notice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/api/direct_tuner.h"
#include "tuner/api/operations.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

// A study whose trials need two slots each, unless it is said otherwise.
class StudyNoticeTest : public testing::Test {
 protected:
  explicit StudyNoticeTest(const std::string& slots = "2", const std::string& trials = "2") {
    std::string text = kStudyJson;
    text.replace(text.rfind('2'), 1, trials);
    text.replace(text.rfind('}'), 1, ", \"slots\": " + slots + "}");
    made_ = api::CreateStudy(tuner_, CreateRequest(text));
  }
  void Join(const std::string& name, int slots) {
    ASSERT_TRUE(tuner_.Post(AgentHello{name, slots, {}}).status.ok());
  }
  void Tell(double value, bool final) {
    v1::TellRequest request;
    request.set_trial_id(1);
    request.set_value(value);
    request.set_final(final);
    ASSERT_TRUE(api::Tell(tuner_, request).ok());
  }
  absl::Status Pin(int slots) {
    v1::PinTrialRequest request;
    request.set_study("mnist");
    request.set_slots(slots);
    return api::PinTrial(tuner_, request).status();
  }
  std::string Notice() {
    return StudyNotice(tuner_.core.state().studies.begin()->second, tuner_.view());
  }

  DirectTuner tuner_;
  absl::StatusOr<v1::Study> made_;
};

TEST_F(StudyNoticeTest, SaysThatThePoolHasNoMachineAndThenThatItHasTooFewSlots) {
  ASSERT_TRUE(made_.ok()) << made_.status();
  EXPECT_EQ(made_->notice(),
            "no machine is in the pool: have one join it by tuner agent --join HOST:PORT, as the "
            "service prints it when it starts");
  Join("oak", 1);
  EXPECT_EQ(Notice(),
            "each trial needs 2 slots, and the pool has 1: have more machines join it, "
            "or lower \"slots\" of the study");
  Join("elm", 1);
  EXPECT_EQ(Notice(), "");
}

// Sixteen slots or eight, two of them on a machine at most.
class SpreadNoticeTest : public StudyNoticeTest {
 protected:
  SpreadNoticeTest() : StudyNoticeTest("[16, 8], \"slots_per_node\": 2") {}
};

TEST_F(SpreadNoticeTest, SaysWhatTheLargestTrialOfThePoolWouldHave) {
  ASSERT_TRUE(made_.ok()) << made_.status();
  Join("oak", 4);
  Join("elm", 4);
  Join("ash", 1);
  EXPECT_EQ(Notice(),
            "each trial needs 8 slots, and the largest that the pool could hold has 5 (at most 2 "
            "on one machine): have more machines join it, or lower \"slots\" of the study or raise "
            "its \"slots_per_node\"");
  EXPECT_EQ(Pin(9).message(), "trial 0 cannot have 9 slots: its study's sizes are 8 and 16");
  Join("fir", 2);
  EXPECT_NE(Notice(), "");
  Join("yew", 1);
  EXPECT_EQ(Notice(), "");
}

TEST_F(StudyNoticeTest, SaysWhatTheLargestTrialOnGpusOfOneTypeWouldHave) {
  for (const char* type : {"A100", "T4"}) {
    AgentHello hello{type, 1, {}};
    hello.gpu_type = type;
    ASSERT_TRUE(tuner_.Post(hello).status.ok());
  }
  EXPECT_EQ(Notice(),
            "each trial needs 2 slots, and the largest that the pool could hold has 1 (on GPUs of "
            "one type): have more machines join it, or lower \"slots\" of the study");
}

TEST_F(StudyNoticeTest, SaysWhyNoSlotCanBeUsed) {
  Join("oak", 2);
  Join("elm", 2);
  const auto lose = [&](std::int64_t node, std::map<int, std::string> slots) {
    tuner_.Post(AgentSlots{NodeId(node), std::move(slots)});
  };
  lose(1, {{0, "GPU is lost"}, {1, "GPU is lost"}});
  lose(2, {{1, "too hot"}});
  EXPECT_EQ(Notice(), "");
  lose(2, {{0, "too hot"}, {1, "too hot"}});
  EXPECT_EQ(Notice(), "no slot of the pool can be used: oak: GPU is lost; elm: too hot");
}

TEST_F(StudyNoticeTest, SaysThatATrialWaitsForItsTurn) {
  ASSERT_TRUE(made_.ok()) << made_.status();
  Join("oak", 2);
  ASSERT_TRUE(tuner_.core.state().FindStudy("mnist") != nullptr);
  std::string text = kStudyJson;
  text.replace(text.find("mnist"), 5, "small");
  ASSERT_TRUE(api::CreateStudy(tuner_, CreateRequest(text)).ok());
  const auto notice_of = [this](const char* name) {
    return StudyNotice(*tuner_.core.state().FindStudy(name), tuner_.view());
  };
  EXPECT_EQ(notice_of("small"), "") << "the trial of two slots has the pool, as it came first";
  tuner_.now = After(tuner_.now, 30);
  tuner_.Post(Tick{});
  EXPECT_EQ(notice_of("mnist"), "");
  EXPECT_THAT(notice_of("small"),
              HasSubstr("its next trial waits for 1 slot: 0 are free and kept for it so far, the "
                        "rest come as trials of other studies end"));
}

TEST_F(StudyNoticeTest, IsSilentWhereAnEngineStartsMachines) {
  tuner_.users_add_machines = false;
  EXPECT_EQ(Notice(), "");
}

TEST_F(StudyNoticeTest, SaysThatAProgramWhichIsNotElasticLeavesSlotsIdle) {
  Join("oak", 2);
  EXPECT_TRUE(Pin(2).ok()) << "its program may yet be elastic";
  Tell(0.5, false);
  EXPECT_THAT(Notice(), HasSubstr("not elastic: each trial is one process, which has 2 slots, and "
                                  "what it does not use of them by itself stays idle"));
  EXPECT_EQ(std::string(Pin(2).message()),
            "trial 0 runs a program that is not elastic: it keeps the 2 slots that it was started "
            "with");
  EXPECT_TRUE(Pin(0).ok());
  Tell(0.4, true);
  EXPECT_THAT(Notice(), HasSubstr("not elastic")) << "that holds for the next ones too";
}

class PopulationNoticeTest : public StudyNoticeTest {
 protected:
  PopulationNoticeTest()
      : StudyNoticeTest("1, \"population\": {\"interval\": 2, \"parameters\": [\"lr\"]}") {}
};

TEST_F(PopulationNoticeTest, SaysWhyMembersDoNotTakeOver) {
  ASSERT_TRUE(made_.ok()) << made_.status();
  Join("oak", 2);
  Tell(0.5, false);
  EXPECT_EQ(Notice(), "") << "it may yet ask";
  Tell(0.4, false);
  EXPECT_THAT(Notice(), HasSubstr("none takes over from another: the program is not elastic, and "
                                  "neither asks whether to save"));
  tuner_.Post(AskVerdict{TrialId(1), 2, Question::kSave});
  EXPECT_EQ(Notice(), "");
}

TEST_F(StudyNoticeTest, SaysThatOneProcessHasNotTheSlotsOfSeveralMachines) {
  Join("oak", 1);
  Join("elm", 1);
  Tell(0.5, false);
  EXPECT_THAT(Notice(), HasSubstr("each trial is one process, which has 1 of its 2 slots, and the "
                                  "others stay idle (give the study a \"launch\""));
}

TEST_F(StudyNoticeTest, SaysNothingOfAnElasticProgram) {
  Join("oak", 2);
  // Once the first is ready, the second is started.
  for (std::size_t i = 0; i < tuner_.commands.size(); ++i) {
    const auto* start = std::get_if<StartReplicaCommand>(&tuner_.commands[i]);
    if (start == nullptr) continue;
    const ReplicaId replica = start->replica;
    tuner_.Post(FromReplica{replica, ReplicaReady{"host:1", {64, 64, 1, 64, true}, 10}});
  }
  ASSERT_EQ(tuner_.core.state().trials.at(TrialId(1)).generation, 1);
  Tell(0.5, false);
  EXPECT_EQ(Notice(), "");
}

// A study of two trials with two parameters each, one after the other.
class UnreadParameters : public testing::Test {
 protected:
  UnreadParameters() {
    std::string text = kStudyJson;
    const std::string space = R"("lr": {"_type": "uniform", "_value": [0.1, 0.2]})";
    text.replace(text.find(space), space.size(),
                 space + R"(, "width": {"_type": "choice", "_value": [1, 2]})");
    EXPECT_TRUE(api::CreateStudy(tuner_, CreateRequest(text)).ok());
    tuner_.Post(AgentHello{"oak", 1, {}});
  }
  // The program of the newest trial ends, and names what it has not asked for.
  void Finish(std::vector<std::string> unread, std::string failure = "") {
    ReplicaId replica;
    for (const Command& command : tuner_.commands) {
      if (const auto* start = std::get_if<StartReplicaCommand>(&command)) replica = start->replica;
    }
    ReplicaFinished finished;
    if (failure.empty()) finished.value = 0.5;
    finished.failure = std::move(failure);
    finished.unread = std::move(unread);
    tuner_.Post(FromReplica{replica, finished});
    tuner_.Post(ReplicaExited{replica, 0, 0, "", ""});
  }
  std::string Notice() {
    return StudyNotice(tuner_.core.state().studies.begin()->second, tuner_.view());
  }

  DirectTuner tuner_;
};

TEST_F(UnreadParameters, AreNamedWhereNoTrialHasReadThem) {
  Finish({"lr", "no parameter of the study"});
  EXPECT_EQ(
      Notice(),
      "no complete trial has asked for the parameter \"lr\": look whether the program and the "
      "search space give it the same name");
  Finish({"lr", "width"});
  EXPECT_EQ(tuner_.core.state().studies.begin()->second.state, StudyState::kComplete);
  EXPECT_THAT(Notice(), HasSubstr("the parameter \"lr\": ")) << "the other one was read once";
}

TEST_F(UnreadParameters, OfAllTrialsAreNamedTogether) {
  Finish({"width", "lr"});
  EXPECT_THAT(Notice(), HasSubstr("the parameters \"lr\", \"width\": "));
  Finish({});
  EXPECT_EQ(Notice(), "");
}

TEST_F(UnreadParameters, OfATrialThatFailsMeanNothing) {
  Finish({"lr"}, "no GPU");
  EXPECT_EQ(Notice(), "");
}

class GrowthNoticeTest : public StudyNoticeTest {
 protected:
  GrowthNoticeTest() : StudyNoticeTest(R"({"min": 1, "max": 2})", "1") {}
};

TEST_F(GrowthNoticeTest, SaysThatReplicasFailWhenTheyJoin) {
  Join("oak", 2);
  std::size_t seen = 0;
  bool first = true;
  for (int tick = 0; tick < 20; ++tick) {
    for (; seen < tuner_.commands.size(); ++seen) {
      const Command command = tuner_.commands[seen];
      if (const auto* regroup = std::get_if<RegroupCommand>(&command)) {
        const std::int64_t generation = regroup->membership.generation;
        tuner_.Post(FromReplica{regroup->replica, ReplicaRegrouped{generation, 0, 0.01}});
      }
      const auto* start = std::get_if<StartReplicaCommand>(&command);
      if (start == nullptr) continue;
      if (std::exchange(first, false)) {
        const ReplicaReady ready{"host:1", {64, 64, 1, 64, true}, 10};
        tuner_.Post(FromReplica{start->replica, ready});
      } else {
        tuner_.Post(ReplicaExited{start->replica, 1, 0, "KeyError: 3", ""});
      }
    }
    tuner_.now = After(tuner_.now, 5);
    tuner_.Post(Tick{});
  }
  const std::string why =
      "does not grow beyond 1 replica: 3 in a row that were to join failed, the last one exited "
      "with code 1: KeyError: 3";
  EXPECT_EQ(Notice(), "trial 0 " + why);
  v1::GetStudyRequest request;
  request.set_name("mnist");
  const auto details = api::GetStudy(tuner_, request);
  ASSERT_TRUE(details.ok()) << details.status();
  EXPECT_EQ(details->trials(0).not_growing(), why);
  EXPECT_EQ(details->trials(0).failed_joins(), 3);
}

}  // namespace
}  // namespace espalier
