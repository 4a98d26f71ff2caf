#include "tuner/api/operations.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/api/direct_tuner.h"
#include "tuner/api/agent_convert.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

using testing::HasSubstr;

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

// A study with a node of one slot, on which its first trial runs.
class Operations : public testing::Test {
 protected:
  void StartTrial() {
    ASSERT_TRUE(api::CreateStudy(tuner_, CreateRequest()).ok());
    ASSERT_TRUE(tuner_.Post(AgentHello{"oak", 1, {}}).status.ok());
    for (const Command& command : tuner_.commands) {
      if (const auto* start = std::get_if<StartReplicaCommand>(&command)) {
        replica_ = start->replica;
        trial_ = start->trial;
      }
    }
    ASSERT_TRUE(replica_);
  }

  absl::StatusOr<v1::TellResponse> Tell(double value, bool final) {
    v1::TellRequest request;
    request.set_trial_id(trial_.value);
    request.set_value(value);
    request.set_final(final);
    return api::Tell(tuner_, request);
  }

  v1::StudyDetails Details(bool active_only = false, bool without_values = false) {
    v1::GetStudyRequest request;
    request.set_name("mnist");
    request.set_active_only(active_only);
    request.set_without_values(without_values);
    auto details = api::GetStudy(tuner_, request);
    EXPECT_TRUE(details.ok()) << details.status();
    return *details;
  }

  DirectTuner tuner_;
  ReplicaId replica_;
  TrialId trial_;
};

TEST_F(Operations, CreatesAStudyFromItsFile) {
  const auto study = api::CreateStudy(tuner_, CreateRequest());
  ASSERT_TRUE(study.ok()) << study.status();
  EXPECT_EQ(study->name(), "mnist");
  EXPECT_EQ(study->state(), v1::STUDY_RUNNING);
  EXPECT_EQ(study->max_trials(), 2);
  EXPECT_EQ(study->metric(), "loss");
  EXPECT_FALSE(study->has_best_trial());
  const auto all = api::ListStudies(tuner_, {});
  ASSERT_EQ(all->studies_size(), 1);
  EXPECT_EQ(all->studies(0).id(), study->id());
}

TEST_F(Operations, RefusesASecondStudyOfTheNameUnlessExistIsOk) {
  ASSERT_TRUE(api::CreateStudy(tuner_, CreateRequest()).ok());
  v1::CreateStudyRequest request = CreateRequest();
  EXPECT_TRUE(absl::IsAlreadyExists(api::CreateStudy(tuner_, request).status()));
  request.set_exist_ok(true);
  EXPECT_TRUE(api::CreateStudy(tuner_, request).ok());
  EXPECT_EQ(api::ListStudies(tuner_, {})->studies_size(), 1);
}

TEST_F(Operations, RefusesWhatIsNoStudyWithItsReason) {
  const auto malformed = api::CreateStudy(tuner_, CreateRequest("{\"name\": "));
  EXPECT_TRUE(absl::IsInvalidArgument(malformed.status()));
  EXPECT_THAT(MessageOf(malformed.status()), HasSubstr("study_json"));

  std::string unknown = kStudyJson;
  unknown.replace(unknown.find("random"), 6, "oracle");
  const auto sampler = api::CreateStudy(tuner_, CreateRequest(unknown));
  EXPECT_TRUE(absl::IsInvalidArgument(sampler.status())) << sampler.status();
  EXPECT_THAT(MessageOf(sampler.status()), HasSubstr("oracle"));

  v1::CreateStudyRequest relative = CreateRequest();
  relative.set_directory("here");
  EXPECT_THAT(MessageOf(api::CreateStudy(tuner_, relative).status()), HasSubstr("directory"));

  v1::CreateStudyRequest zero = CreateRequest();
  zero.set_directory(std::string("/tmp\0x", 6));
  const absl::Status refused = api::CreateStudy(tuner_, zero).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(MessageOf(refused), HasSubstr("without a zero byte, got one after \"/tmp\""));

  const auto large =
      api::CreateStudy(tuner_, CreateRequest(std::string(api::kMaxStudyJson + 1, ' ')));
  EXPECT_THAT(MessageOf(large.status()), HasSubstr("at most 1048576 bytes"));
  EXPECT_EQ(api::ListStudies(tuner_, {})->studies_size(), 0);
}

// A sampler outside is asked whether it takes the study, before there is one.
TEST(NewStudies, AreThoseThatASamplerOutsideTakes) {
  DirectTuner tuner(TimeFromSeconds(1000), {.asks_outside = true});
  std::vector<std::string> checked;
  absl::StatusOr<std::string> says = absl::InvalidArgumentError("\"sampler\": \"T\" is unknown");
  tuner.check_sampler = [&](const StudySpec& spec) {
    checked.push_back(spec.name);
    return says;
  };
  EXPECT_TRUE(api::CreateStudy(tuner, CreateRequest()).ok()) << "random is not outside";
  std::string json = kStudyJson;
  json.replace(json.find("random"), 6, "optuna");
  json.replace(json.find("mnist"), 5, "other");
  EXPECT_EQ(api::CreateStudy(tuner, CreateRequest(json)).status(), says.status());
  EXPECT_EQ(tuner.core.state().FindStudy("other"), nullptr);
  says = std::string("it has not answered within 5 s");
  ASSERT_TRUE(api::CreateStudy(tuner, CreateRequest(json)).ok());
  EXPECT_EQ(
      tuner.core.state().FindStudy("other")->decisions.front().reason,
      "its sampler was not checked, it has not answered within 5 s: the first suggestion tells "
      "what is wrong with it");
  v1::CreateStudyRequest again = CreateRequest(json);
  again.set_exist_ok(true);
  EXPECT_TRUE(api::CreateStudy(tuner, again).ok());
  EXPECT_EQ(checked, (std::vector<std::string>{"other", "other"})) << "what exists is not checked";
}

TEST_F(Operations, ParseAStudyOnceAndKeepItsText) {
  const std::int64_t parsed = StudyTextsParsed();
  const auto study = api::CreateStudy(tuner_, CreateRequest());
  ASSERT_TRUE(study.ok()) << study.status();
  EXPECT_EQ(StudyTextsParsed(), parsed + 1);
  const Study& kept = *tuner_.core.state().FindStudy("mnist");
  EXPECT_EQ(study->study_json(), WriteStudy(DefinitionOf(kept)));
  EXPECT_EQ(api::ListStudies(tuner_, {})->studies(0).study_json(), study->study_json());
  EXPECT_EQ(StudyTextsParsed(), parsed + 1);
}

TEST_F(Operations, CallTheTextAsTheClientDoes) {
  v1::CreateStudyRequest request = CreateRequest(R"({"trials": 0})");
  request.set_label("runs/mine.json");
  EXPECT_THAT(MessageOf(api::CreateStudy(tuner_, request).status()),
              HasSubstr("runs/mine.json: \"trials\""));
  std::string nameless = kStudyJson;
  nameless.erase(nameless.find("\"name\""), std::string("\"name\": \"mnist\",").size());
  request.set_study_json(nameless);
  EXPECT_EQ(api::CreateStudy(tuner_, request)->name(), "mine");
  request.set_label(std::string(api::kMaxStudyLabel + 1, 'x'));
  EXPECT_THAT(MessageOf(api::CreateStudy(tuner_, request).status()),
              HasSubstr("label: at most 4096 bytes, got 4097"));
}

TEST_F(Operations, NameTheStudyThatIsNotThere) {
  v1::GetStudyRequest get;
  get.set_name("absent");
  v1::StudyName stop;
  stop.set_name("absent");
  v1::ResumeStudyRequest resume;
  resume.set_name("absent");
  v1::PinTrialRequest pin;
  pin.set_study("absent");
  for (const absl::Status& status :
       {api::GetStudy(tuner_, get).status(), api::StopStudy(tuner_, stop).status(),
        api::ResumeStudy(tuner_, resume).status(), api::PinTrial(tuner_, pin).status()}) {
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(MessageOf(status), HasSubstr("\"absent\""));
  }
  EXPECT_TRUE(absl::IsNotFound(Tell(1, false).status()));
}

TEST_F(Operations, TellEndsATrialWithItsFinalValue) {
  StartTrial();
  ASSERT_TRUE(Tell(0.5, false).ok());
  ASSERT_TRUE(Tell(0.25, true).ok());
  const v1::StudyDetails details = Details();
  ASSERT_GE(details.trials_size(), 1);
  EXPECT_EQ(details.trials(0).state(), v1::TRIAL_COMPLETE);
  EXPECT_EQ(details.trials(0).value(), 0.25);
  EXPECT_EQ(details.trials(0).values_size(), 2);
  EXPECT_EQ(details.study().best_trial(), 0);
  EXPECT_EQ(details.study().best_value(), 0.25);
  EXPECT_EQ(details.study().trials_by_state().at("COMPLETE"), 1);
  const auto late = Tell(0.1, false);
  ASSERT_TRUE(late.ok());
  EXPECT_TRUE(late->should_stop());
}

TEST_F(Operations, GetStudyLeavesOutWhatIsNotWanted) {
  StartTrial();
  ASSERT_TRUE(Tell(0.5, false).ok());
  EXPECT_EQ(Details().trials(0).values_size(), 1);
  EXPECT_EQ(Details(false, true).trials(0).values_size(), 0);
  EXPECT_FALSE(Details().decisions().empty());
  ASSERT_TRUE(Tell(0.5, true).ok());
  // The best trial stays, though it has ended.
  EXPECT_EQ(Details(true).trials(0).number(), 0);
}

TEST_F(Operations, GetStudyNamesNodesThatHaveLeft) {
  StartTrial();
  EXPECT_EQ(Details().former_nodes_size(), 0) << "the pool names it";
  const NodeId node{Details().pool().nodes(0).id()};
  tuner_.Post(AgentGone{node});
  tuner_.now = After(tuner_.now, 3600);
  tuner_.Post(Tick{});
  ASSERT_EQ(Details().pool().nodes_size(), 0);
  ASSERT_EQ(Details().former_nodes_size(), 1);
  EXPECT_EQ(Details().former_nodes(0).id(), node.value);
  EXPECT_EQ(Details().former_nodes(0).name(), "oak");
  EXPECT_EQ(Details(false, true).former_nodes_size(), 0) << "nor the slots that it had";
}

TEST_F(Operations, GetPoolShowsWhoHoldsWhichSlot) {
  StartTrial();
  tuner_.pids[replica_] = 4711;
  const auto pool = api::GetPool(tuner_, {});
  ASSERT_TRUE(pool.ok());
  EXPECT_EQ(pool->slots(), 1);
  EXPECT_EQ(pool->slots_held(), 1);
  ASSERT_EQ(pool->nodes_size(), 1);
  EXPECT_EQ(pool->nodes(0).name(), "oak");
  EXPECT_TRUE(pool->nodes(0).connected());
  ASSERT_EQ(pool->nodes(0).holders_size(), 1);
  EXPECT_EQ(pool->nodes(0).holders(0).study(), "mnist");
  EXPECT_EQ(pool->nodes(0).holders(0).replica_id(), replica_.value);
  EXPECT_EQ(pool->nodes(0).holders(0).pid(), 4711);
}

TEST_F(Operations, StopsAndResumesWithNewLimits) {
  ASSERT_TRUE(api::CreateStudy(tuner_, CreateRequest()).ok());
  v1::StudyName stop;
  stop.set_name("mnist");
  EXPECT_EQ(api::StopStudy(tuner_, stop)->state(), v1::STUDY_STOPPED);
  v1::ResumeStudyRequest resume;
  resume.set_name("mnist");
  resume.set_max_trials(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(api::ResumeStudy(tuner_, resume).status()));
  resume.set_max_trials(9);
  for (const double limit_s : {-1.0, 1e300, HUGE_VAL, std::nan("")}) {
    resume.set_time_limit_s(limit_s);
    EXPECT_TRUE(absl::IsInvalidArgument(api::ResumeStudy(tuner_, resume).status())) << limit_s;
  }
  resume.set_time_limit_s(kMaxTime_s);
  const auto study = api::ResumeStudy(tuner_, resume);
  ASSERT_TRUE(study.ok()) << study.status();
  EXPECT_EQ(study->state(), v1::STUDY_RUNNING);
  EXPECT_EQ(study->max_trials(), 9);
}

TEST_F(Operations, PinsATrialAndRefusesMoreSlotsThanThereAre) {
  StartTrial();
  v1::PinTrialRequest pin;
  pin.set_study("mnist");
  pin.set_slots(1);
  const auto trial = api::PinTrial(tuner_, pin);
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_EQ(trial->pinned_slots(), 1);
  pin.set_slots(2);
  EXPECT_TRUE(absl::IsInvalidArgument(api::PinTrial(tuner_, pin).status()));
  pin.set_trial_number(77);
  EXPECT_TRUE(absl::IsNotFound(api::PinTrial(tuner_, pin).status()));
}

}  // namespace
}  // namespace espalier
