#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/api/direct_tuner.h"
#include "tuner/api/notes.h"
#include "tuner/api/operations.h"

namespace espalier {
namespace {

using testing::HasSubstr;

constexpr char kAskJson[] = R"({
  "name": "asked", "ask_and_tell": true, "sampler": "random", "seed": 3,
  "search_space": {"lr": {"_type": "loguniform", "_value": [1e-5, 1]},
                   "layers": {"_type": "choice", "_value": [1, 2, 3]}}
})";

class TrialOperations : public testing::Test {
 protected:
  void SetUp() override {
    const auto study = api::CreateStudy(tuner_, CreateRequest(kAskJson));
    ASSERT_TRUE(study.ok()) << study.status();
  }
  absl::StatusOr<v1::TrialRecord> Ask(const std::string& parameters = {}) {
    v1::AskRequest request;
    request.set_study("asked");
    request.set_parameters(parameters);
    return api::Ask(tuner_, request);
  }
  v1::TellRequest End(std::int64_t trial, v1::TrialState state) {
    v1::TellRequest request;
    request.set_trial_id(trial);
    request.set_state(state);
    return request;
  }
  v1::TrialId Id(std::int64_t trial) {
    v1::TrialId id;
    id.set_trial_id(trial);
    return id;
  }

  DirectTuner tuner_;
};

TEST_F(TrialOperations, AskShowsTheTrialWithItsParametersInTheirTypes) {
  const auto trial = Ask(R"({"layers": 2})");
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_EQ(trial->study(), "asked");
  EXPECT_EQ(trial->number(), 0);
  EXPECT_EQ(trial->state(), v1::TRIAL_RUNNING);
  const auto parameters = ParametersFromJson(trial->parameters());
  ASSERT_TRUE(parameters.ok()) << trial->parameters();
  EXPECT_EQ(*Find(*parameters, "layers"), ParameterValue(std::int64_t{2}));
  EXPECT_TRUE(std::holds_alternative<double>(*Find(*parameters, "lr")));
  EXPECT_EQ(api::GetTrial(tuner_, Id(trial->trial_id()))->SerializeAsString(),
            trial->SerializeAsString());
}

TEST_F(TrialOperations, BadParametersAndAttributesAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(Ask("{").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Ask("[]").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Ask(R"({"lr": [1]})").status()));
  v1::EnqueueRequest enqueue;
  enqueue.set_study("asked");
  (*enqueue.mutable_user_attributes())["note"] = "not json";
  EXPECT_THAT(std::string(api::Enqueue(tuner_, enqueue).status().message()), HasSubstr("\"note\""));
}

TEST_F(TrialOperations, ParametersThatNestTooMuchAreRefused) {
  ASSERT_TRUE(api::CreateStudy(tuner_, CreateRequest(R"({
      "name": "queued", "sampler": "queue", "command": "train"})"))
                  .ok());
  std::string members = R"("_name": "o")";
  for (int i = 0; i < 600; ++i) absl::StrAppend(&members, ", \"k", i, "\": ", i);
  v1::EnqueueRequest enqueue;
  enqueue.set_study("queued");
  enqueue.set_parameters(absl::StrCat("{\"a\": {", members, "}, \"b\": {", members, "}}"));
  EXPECT_TRUE(absl::IsInvalidArgument(api::Enqueue(tuner_, enqueue).status()));
  EXPECT_TRUE(tuner_.core.state().trials.empty());
  enqueue.set_parameters(absl::StrCat("{\"a\": {", members, "}}"));
  EXPECT_TRUE(api::Enqueue(tuner_, enqueue).ok());
}

TEST_F(TrialOperations, AQueueWithoutASpaceTakesAnyJson) {
  ASSERT_TRUE(api::CreateStudy(tuner_, CreateRequest(R"({
      "name": "queued", "sampler": "queue", "command": "train"})"))
                  .ok());
  ASSERT_TRUE(api::CreateStudy(tuner_, CreateRequest(R"({
      "name": "spaced", "sampler": "queue", "command": "train",
      "search_space": {"depth": {"_type": "choice", "_value": [4, 8]}}})"))
                  .ok());
  v1::EnqueueRequest enqueue;
  enqueue.set_study("queued");
  enqueue.set_parameters(R"({"depth": null,  "shape": [1, 2], "x": 1})");
  const auto enqueued = api::Enqueue(tuner_, enqueue);
  ASSERT_TRUE(enqueued.ok()) << enqueued.status();
  const Trial& trial = tuner_.core.state().trials.at(TrialId(enqueued->trial_id()));
  EXPECT_EQ(trial.attributes.system.at(kTrialParameters), enqueue.parameters()) << "verbatim";
  EXPECT_EQ(*Find(trial.parameters, "depth"), ParameterValue(std::string("null")));
  EXPECT_EQ(*Find(trial.parameters, "shape"), ParameterValue(std::string("[1,2]")));
  EXPECT_EQ(*Find(trial.parameters, "x"), ParameterValue(std::int64_t{1}));
  enqueue.set_parameters(R"({"x": 1})");
  const auto plain = api::Enqueue(tuner_, enqueue);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_FALSE(tuner_.core.state()
                   .trials.at(TrialId(plain->trial_id()))
                   .attributes.system.contains(kTrialParameters));
  enqueue.set_parameters(R"({"depth": )");
  EXPECT_TRUE(absl::IsInvalidArgument(api::Enqueue(tuner_, enqueue).status()));
  enqueue.set_parameters(R"({"depth": null})");
  for (const char* study : {"asked", "spaced"}) {
    enqueue.set_study(study);
    EXPECT_THAT(std::string(api::Enqueue(tuner_, enqueue).status().message()),
                HasSubstr("got null"));
  }
}

TEST_F(TrialOperations, ReportIsAnsweredWithTheVerdict) {
  const std::int64_t trial = Ask()->trial_id();
  v1::ReportRequest report;
  report.set_trial_id(trial);
  EXPECT_TRUE(absl::IsInvalidArgument(api::Report(tuner_, report).status())) << "without a value";
  report.set_value(0.5);
  EXPECT_FALSE(api::Report(tuner_, report)->prune());
  v1::StudyName name;
  name.set_name("asked");
  ASSERT_TRUE(api::StopStudy(tuner_, name).ok());
  const auto verdict = api::ShouldPrune(tuner_, Id(trial));
  EXPECT_TRUE(verdict->prune());
  EXPECT_THAT(verdict->reason(), HasSubstr("STOPPED"));
  EXPECT_TRUE(absl::IsNotFound(api::ShouldPrune(tuner_, Id(99)).status()));
}

TEST_F(TrialOperations, RanksOfAProgramGetOneVerdictAtAStep) {
  const std::int64_t trial = Ask()->trial_id();
  v1::ReportRequest report;
  report.set_trial_id(trial);
  report.set_step(1);
  report.set_value(0.5);
  report.set_rank(1);
  EXPECT_EQ(api::Report(tuner_, report).status().message(),
            R"("rank" and "ranks" are given together, such as {"rank": 0, "ranks": 2}; got "rank" )"
            "alone");
  report.set_ranks(2);
  EXPECT_FALSE(api::Report(tuner_, report)->prune());
  v1::StudyName name;
  name.set_name("asked");
  ASSERT_TRUE(api::StopStudy(tuner_, name).ok());
  report.set_rank(0);
  const auto first = api::Report(tuner_, report);
  EXPECT_FALSE(first->prune()) << "rank 1 went on";
  EXPECT_EQ(first->reason(), "");
  report.set_value(0.75);
  EXPECT_TRUE(absl::IsFailedPrecondition(api::Report(tuner_, report).status()));
  report.clear_value();
  report.set_step(2);
  const auto asked = api::Report(tuner_, report);
  EXPECT_TRUE(asked->prune()) << "it need not report to ask";
  EXPECT_THAT(asked->reason(), HasSubstr("STOPPED"));
  v1::ResumeStudyRequest resume;
  resume.set_name("asked");
  ASSERT_TRUE(api::ResumeStudy(tuner_, resume).ok());
  EXPECT_EQ(api::Report(tuner_, report)->reason(), "the other ranks of its program were told so");
  v1::TellRequest tell;
  tell.set_trial_id(trial);
  tell.set_step(2);
  tell.set_value(0.25);
  tell.set_rank(0);
  tell.set_ranks(2);
  EXPECT_TRUE(api::Tell(tuner_, tell)->should_stop());
}

TEST_F(TrialOperations, ToSaveIsAskedAtAStep) {
  v1::ReportRequest ask;
  ask.set_trial_id(Ask()->trial_id());
  ask.set_should_save(true);
  EXPECT_TRUE(absl::IsInvalidArgument(api::Report(tuner_, ask).status())) << "at no step";
  ask.set_step(1);
  const auto answer = api::Report(tuner_, ask);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->save()) << "its client runs it";
  ask.set_value(0.5);
  EXPECT_THAT(std::string(api::Report(tuner_, ask).status().message()),
              HasSubstr(R"(such as {"step": 1, "should_save": true})"));
}

TEST_F(TrialOperations, TellEndsTheTrialAndSaysItsState) {
  const std::int64_t trial = Ask()->trial_id();
  v1::TellRequest end = End(trial, v1::TRIAL_COMPLETE);
  end.set_value(0.25);
  EXPECT_EQ(api::Tell(tuner_, end)->state(), v1::TRIAL_COMPLETE);
  EXPECT_EQ(api::Tell(tuner_, end)->state(), v1::TRIAL_COMPLETE) << "told again";
  end.set_value(0.5);
  EXPECT_TRUE(absl::IsFailedPrecondition(api::Tell(tuner_, end).status()));
  EXPECT_EQ(api::GetTrial(tuner_, Id(trial))->values(0), 0.25);
}

TEST_F(TrialOperations, CancelEndsATrialOfThePoolOnly) {
  ASSERT_TRUE(api::CreateStudy(tuner_, CreateRequest(R"({"name": "queue", "sampler": "queue",
                                                         "command": "true"})"))
                  .ok());
  v1::EnqueueRequest enqueue;
  enqueue.set_study("queue");
  enqueue.set_parameters(R"({"x": 1})");
  const auto enqueued = api::Enqueue(tuner_, enqueue);
  ASSERT_TRUE(enqueued.ok()) << enqueued.status();
  v1::CancelTrialRequest request;
  request.set_trial_id(enqueued->trial_id());
  request.set_state(v1::TRIAL_COMPLETE);
  EXPECT_THAT(std::string(api::CancelTrial(tuner_, request).status().message()),
              HasSubstr("PRUNED or FAIL"));
  request.set_state(v1::TRIAL_PRUNED);
  request.set_reason("too slow");
  const auto cancelled = api::CancelTrial(tuner_, request);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->state(), v1::TRIAL_PRUNED);
  EXPECT_EQ(cancelled->reason(), "too slow");
  request.set_trial_id(Ask()->trial_id());
  EXPECT_TRUE(absl::IsPermissionDenied(api::CancelTrial(tuner_, request).status()));
}

TEST_F(TrialOperations, ATellSaysOneThing) {
  const std::int64_t trial = Ask()->trial_id();
  v1::TellRequest both = End(trial, v1::TRIAL_COMPLETE);
  both.set_value(1);
  both.add_values(1);
  EXPECT_TRUE(absl::IsInvalidArgument(api::Tell(tuner_, both).status()));
  v1::TellRequest step = End(trial, v1::TRIAL_COMPLETE);
  step.set_value(1);
  step.set_step(1);
  EXPECT_TRUE(absl::IsInvalidArgument(api::Tell(tuner_, step).status()));
  v1::TellRequest open;
  open.set_trial_id(trial);
  open.add_values(1);
  EXPECT_TRUE(absl::IsInvalidArgument(api::Tell(tuner_, open).status()));
  open.clear_values();
  EXPECT_THAT(std::string(api::Tell(tuner_, open).status().message()),
              HasSubstr("\"value\" or \"state\" is needed"));
  EXPECT_TRUE(absl::IsInvalidArgument(api::Tell(tuner_, End(trial, v1::TRIAL_RUNNING)).status()));
}

TEST_F(TrialOperations, TheBestTrialIsThatOfOneDirection) {
  v1::StudyName name;
  name.set_name("asked");
  EXPECT_TRUE(absl::IsNotFound(api::GetBestTrial(tuner_, name).status())) << "none has a value";
  for (const double value : {2.0, 1.0, 3.0}) {
    v1::TellRequest end = End(Ask()->trial_id(), v1::TRIAL_COMPLETE);
    end.set_value(value);
    ASSERT_TRUE(api::Tell(tuner_, end).ok());
  }
  EXPECT_EQ(api::GetBestTrial(tuner_, name)->number(), 1);
  ASSERT_TRUE(api::CreateStudy(tuner_, CreateRequest(R"({"name": "two", "ask_and_tell": true,
                                        "directions": ["minimize", "maximize"]})"))
                  .ok());
  name.set_name("two");
  EXPECT_TRUE(absl::IsFailedPrecondition(api::GetBestTrial(tuner_, name).status()));
}

TEST_F(TrialOperations, TheBestTrialKeepsToItsConstraints) {
  v1::StudyName name;
  name.set_name("asked");
  const auto run = [this](double value, const std::string& constraint) {
    const std::int64_t trial = Ask()->trial_id();
    v1::SetAttributesRequest request;
    request.set_trial_id(trial);
    (*request.mutable_system())["constraints:size"] = constraint;
    ASSERT_TRUE(api::SetAttributes(tuner_, request).ok());
    v1::TellRequest end = End(trial, v1::TRIAL_COMPLETE);
    end.set_value(value);
    ASSERT_TRUE(api::Tell(tuner_, end).ok());
  };
  run(1, "0.5");
  EXPECT_THAT(std::string(api::GetBestTrial(tuner_, name).status().message()),
              HasSubstr("none that keeps to its constraints"));
  run(3, "-1");
  run(2, "0");
  run(1, "2");
  EXPECT_EQ(api::GetBestTrial(tuner_, name)->number(), 2);
  v1::GetStudyRequest request;
  request.set_name("asked");
  const auto details = api::GetStudy(tuner_, request);
  ASSERT_TRUE(details.ok()) << details.status();
  std::vector<bool> infeasible;
  for (const v1::Trial& trial : details->trials()) infeasible.push_back(trial.infeasible());
  EXPECT_THAT(infeasible, testing::ElementsAre(true, false, false, true));
}

TEST_F(TrialOperations, AttributesOfBothKindsAreKept) {
  const std::int64_t trial = Ask()->trial_id();
  v1::SetAttributesRequest request;
  request.set_trial_id(trial);
  (*request.mutable_user())["note"] = "\"mine\"";
  (*request.mutable_system())["made_by"] = "{}";
  const auto changed = api::SetAttributes(tuner_, request);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->user_attributes().at("note"), "\"mine\"");
  EXPECT_EQ(changed->system_attributes().at("made_by"), "{}");
  (*request.mutable_user())["note"] = "mine";
  EXPECT_TRUE(absl::IsInvalidArgument(api::SetAttributes(tuner_, request).status()));
}

// A trial's own program may set attributes, and could pass for another trial by these.
TEST_F(TrialOperations, AttributesThatTheServiceKeepsCannotBeSet) {
  v1::SetAttributesRequest request;
  request.set_trial_id(Ask()->trial_id());
  for (const char* key : {"nni:trial", "nni:metric:FINAL", "espalier:request_key"}) {
    request.mutable_system()->clear();
    (*request.mutable_system())[key] = "\"x\"";
    const absl::Status status = api::SetAttributes(tuner_, request).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(std::string(status.message()).find(key), std::string::npos) << status;
  }
  request.mutable_system()->clear();
  (*request.mutable_user())["nni:trial"] = "1";
  EXPECT_TRUE(api::SetAttributes(tuner_, request).ok()) << "a user's own";
}

TEST_F(TrialOperations, NotesStayAfterTheEndAndOptunaDashboardFindsThem) {
  const std::int64_t trial = Ask()->trial_id();
  v1::TellRequest end = End(trial, v1::TRIAL_COMPLETE);
  end.set_value(1);
  ASSERT_TRUE(api::Tell(tuner_, end).ok());
  const Study& study = *tuner_.core.state().FindStudy("asked");
  // A longer one, which the dashboard has written in pieces.
  const std::string prefix = absl::StrCat("dashboard:", trial, ":");
  for (const auto& [key, json] : {std::pair("note_str:0", "\"lo\""),
                                  std::pair("note_str:1", "\"ng\""), std::pair("note_ver", "4")}) {
    tuner_.Post(SetStudyAttribute{study.id, true, prefix + key, json});
  }
  EXPECT_EQ(NoteOf(study.attributes.system, TrialId(trial)).body, "long");
  v1::SetTrialNoteRequest request;
  request.set_trial_id(trial);
  request.set_text("a \"good\" one\n");
  const auto written = api::SetTrialNote(tuner_, request);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->version(), 5);
  EXPECT_EQ(NoteOf(study.attributes.system, TrialId(trial)).body, "a \"good\" one\n");
  EXPECT_EQ(study.attributes.system.at(prefix + "note_str:1"), "\"\"");
  EXPECT_EQ(NoteOf(study.attributes.system, std::nullopt).version, 0) << "the study has its own";

  v1::SetStudyNoteRequest of_study;
  of_study.set_study("asked");
  of_study.set_text(std::string(kMaxNote, 'x'));
  EXPECT_EQ(api::SetStudyNote(tuner_, of_study)->version(), 1);
  of_study.mutable_text()->push_back('x');
  EXPECT_TRUE(absl::IsInvalidArgument(api::SetStudyNote(tuner_, of_study).status()));
  of_study.set_study("absent");
  of_study.set_text("");
  EXPECT_TRUE(absl::IsNotFound(api::SetStudyNote(tuner_, of_study).status()));
  request.set_trial_id(99);
  EXPECT_TRUE(absl::IsNotFound(api::SetTrialNote(tuner_, request).status()));
}

}  // namespace
}  // namespace espalier
