#include "tuner/server/service.h"

#include <atomic>
#include <deque>
#include <filesystem>
#include <set>
#include <thread>

#include "gmock/gmock.h"
#include "tests/api/direct_tuner.h"
#include "tests/server/long_draws.h"
#include "tests/server/patient_client.h"
#include "tests/server/running_service.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/server/grpc/grpc_service.h"
#include "tuner/storage/storage.h"

namespace espalier {
namespace {

using testing::HasSubstr;

TEST(Service, CreatesListsStopsAndResumes) {
  RunningService running;
  v1::Study study;
  ASSERT_TRUE(running.Create(CreateRequest(), &study).ok());
  EXPECT_EQ(study.state(), v1::STUDY_RUNNING);
  {
    grpc::ClientContext context;
    v1::ListStudiesResponse all;
    ASSERT_TRUE(running.stub->ListStudies(&context, {}, &all).ok());
    EXPECT_EQ(all.studies_size(), 1);
  }
  {
    grpc::ClientContext context;
    v1::StudyName name;
    name.set_name("mnist");
    ASSERT_TRUE(running.stub->StopStudy(&context, name, &study).ok());
    EXPECT_EQ(study.state(), v1::STUDY_STOPPED);
  }
  grpc::ClientContext context;
  v1::ResumeStudyRequest resume;
  resume.set_name("mnist");
  ASSERT_TRUE(running.stub->ResumeStudy(&context, resume, &study).ok());
  EXPECT_EQ(study.state(), v1::STUDY_RUNNING);
}

TEST(Service, AnswersErrorsWithTheirCodeAndReason) {
  RunningService running;
  v1::StudyDetails details;
  const grpc::Status absent = running.Get("absent", &details);
  EXPECT_EQ(absent.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(absent.error_message(), HasSubstr("\"absent\""));
  const grpc::Status malformed = running.Create(CreateRequest("{"));
  EXPECT_EQ(malformed.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(malformed.error_message(), HasSubstr("study_json"));
}

// Asked again and again until the cancellation comes when the service has the call.
TEST(Service, AnAskWhoseClientCancelsItMakesNoTrial) {
  RunningService running;
  PatientClient client(running.http_port());
  ASSERT_TRUE(MakeStudyOfLongDraws(client));
  std::atomic<bool> counted = false;
  std::thread asks([&] {
    while (!counted) {
      grpc::ClientContext context;
      std::thread cancels([&] {
        client.Get("/healthz");
        context.TryCancel();
      });
      v1::AskRequest request;
      request.set_study("long");
      v1::TrialRecord trial;
      running.stub->Ask(&context, request, &trial);
      cancels.join();
    }
  });
  PatientClient looks(running.http_port());
  EXPECT_EQ(CodeOfNextAsk(looks, "grpc"), "CANCELLED");
  counted = true;
  asks.join();
}

// The database is of a release that took fractions for options that count.
TEST(Service, StartsWithAPolicyThatWouldBeRefusedToday) {
  const ScratchFolder folder;
  const std::string database = folder.File("tuner.db");
  {
    auto storage = OpenSqliteStorage(database);
    ASSERT_TRUE(storage.ok()) << storage.status();
    const Change set = PoolPolicySet{PluginSpec{"pollux", {{"generations", 10.5}}}};
    ASSERT_TRUE((*storage)->Commit({&set, 1}).ok());
  }
  ServiceOptions options;
  options.database = database;
  RunningService running(options);
  ASSERT_TRUE(running.Create(CreateRequest()).ok());
  ScriptedAgent agent(running, "oak", 1, "run-1");
  EXPECT_GT(agent.AwaitStart().trial_id(), 0) << "the policy has planned";
}

// Each waits for an agent, and holds one of the threads on which all others are answered.
TEST(Service, RefusesCallsThatMayWaitLongBeyondThoseForWhichThereIsRoom) {
  RunningService running;
  ASSERT_TRUE(running.Create(CreateRequest()).ok());
  ScriptedAgent agent(running, "oak", 1, "run-1");
  v1::TrialOutputRequest request;
  request.set_trial_id(agent.AwaitStart().trial_id());
  struct Waiting {
    grpc::ClientContext context;
    v1::TrialOutput output;
    grpc::Status status;
  };
  std::deque<Waiting> all(kMaxGrpcWaits + 1);
  grpc::CompletionQueue ends;
  for (Waiting& one : all) {
    running.stub->AsyncGetTrialOutput(&one.context, request, &ends)
        ->Finish(&one.output, &one.status, &one);
  }
  void* ended = nullptr;
  bool ok = false;
  const auto next = [&] {
    EXPECT_TRUE(ends.Next(&ended, &ok) && ok);
    return static_cast<const Waiting*>(ended)->status;
  };
  const grpc::Status refused = next();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("256 calls wait that may take long"));
  v1::StudyDetails details;
  EXPECT_TRUE(running.Get("mnist", &details).ok());
  for (int i = 0; i < kMaxGrpcWaits; ++i) {
    v1::AgentMessage output;
    output.mutable_output()->set_request(
        agent.Await([](const auto& message) { return message.has_read_output(); })
            .read_output()
            .request());
    agent.Say(output);
  }
  for (int i = 0; i < kMaxGrpcWaits; ++i) EXPECT_TRUE(next().ok());
}

TEST(Service, TakesToldValues) {
  RunningService running;
  ASSERT_TRUE(running.Create(CreateRequest()).ok());
  ScriptedAgent agent(running, "oak", 1, "run-1");
  const v1::StartReplica start = agent.AwaitStart();
  v1::TellRequest tell;
  tell.set_trial_id(start.trial_id());
  tell.set_value(0.5);
  tell.set_final(true);
  v1::TellResponse response;
  grpc::ClientContext context;
  ASSERT_TRUE(running.stub->Tell(&context, tell, &response).ok());
  v1::StudyDetails details;
  ASSERT_TRUE(running.Get("mnist", &details).ok());
  EXPECT_EQ(details.trials(0).state(), v1::TRIAL_COMPLETE);
}

TEST(Service, GivesTrialsToWhoAsks) {
  RunningService running;
  ASSERT_TRUE(running
                  .Create(CreateRequest(R"({"name": "asked", "ask_and_tell": true,
                      "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}})"))
                  .ok());
  v1::AskRequest ask;
  ask.set_study("asked");
  ask.set_request_key("k");
  std::int64_t ids[2] = {};
  for (std::int64_t& id : ids) {
    grpc::ClientContext context;
    v1::TrialRecord trial;
    ASSERT_TRUE(running.stub->Ask(&context, ask, &trial).ok());
    id = trial.trial_id();
  }
  EXPECT_EQ(ids[0], ids[1]) << "a repeated request";
  v1::ReportRequest report;
  report.set_trial_id(ids[0]);
  report.set_value(1);
  grpc::ClientContext reporting;
  v1::Verdict verdict;
  ASSERT_TRUE(running.stub->Report(&reporting, report, &verdict).ok());
  EXPECT_FALSE(verdict.prune());
  v1::TellRequest tell;
  tell.set_trial_id(ids[0]);
  tell.set_state(v1::TRIAL_PRUNED);
  grpc::ClientContext telling;
  v1::TellResponse told;
  ASSERT_TRUE(running.stub->Tell(&telling, tell, &told).ok());
  EXPECT_EQ(told.state(), v1::TRIAL_PRUNED);
}

// More than there are threads for calls that wait; meanwhile others are answered.
TEST(Service, KeepsNoThreadForAsksThatWaitForTheirDraw) {
  RunningService running;
  ASSERT_TRUE(running
                  .Create(CreateRequest(R"({"name": "asked", "ask_and_tell": true,
                      "sampler": {"name": "tpe", "candidates": 10000, "startup_trials": 0},
                      "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}})"))
                  .ok());
  v1::AskRequest ask;
  ask.set_study("asked");
  for (int i = 0; i < 5; ++i) {
    grpc::ClientContext asking, telling;
    v1::TrialRecord trial;
    ASSERT_TRUE(running.stub->Ask(&asking, ask, &trial).ok());
    v1::TellRequest tell;
    tell.set_trial_id(trial.trial_id());
    tell.set_state(v1::TRIAL_COMPLETE);
    tell.set_value(i);
    v1::TellResponse told;
    ASSERT_TRUE(running.stub->Tell(&telling, tell, &told).ok());
  }
  struct Waiting {
    grpc::ClientContext context;
    v1::TrialRecord trial;
    grpc::Status status;
  };
  std::deque<Waiting> all(kMaxGrpcWaits + 150);
  grpc::CompletionQueue ends;
  for (Waiting& one : all) {
    running.stub->AsyncAsk(&one.context, ask, &ends)->Finish(&one.trial, &one.status, &one);
  }
  v1::StudyDetails details;
  EXPECT_TRUE(running.Get("asked", &details).ok());
  std::set<std::int64_t> numbers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    void* ended = nullptr;
    bool ok = false;
    ASSERT_TRUE(ends.Next(&ended, &ok) && ok);
    const auto* one = static_cast<const Waiting*>(ended);
    EXPECT_TRUE(one->status.ok()) << one->status.error_message();
    numbers.insert(one->trial.number());
  }
  EXPECT_EQ(numbers.size(), all.size()) << "each has one of its own";
}

TEST(Service, NeedsTheTokenOnEveryCall) {
  ServiceOptions options;
  options.token = "secret";
  RunningService running(options);
  v1::StudyDetails details;
  EXPECT_EQ(running.Get("mnist", &details).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(running.Get("mnist", &details, "wrong").error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(running.Get("mnist", &details, "secret").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(running.Create(CreateRequest()).error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST(Service, NeedsTheTokenOfAnAgent) {
  ServiceOptions options;
  options.token = "secret";
  RunningService running(options);
  ScriptedAgent without(running, "oak", 1, "run-1");
  EXPECT_EQ(without.Next().kind_case(), v1::ServiceMessage::KIND_NOT_SET);
  EXPECT_EQ(without.Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  ScriptedAgent with(running, "oak", 1, "run-1", "secret");
  EXPECT_TRUE(with.Next().has_welcome());
}

// Before they are unpacked: what they hold may be a thousand times larger.
TEST(Service, RefusesCompressedMessages) {
  RunningService running;
  v1::GetStudyRequest request;
  request.set_name(std::string(1 << 20, 'x'));
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext context;
    context.set_compression_algorithm(algorithm);
    v1::StudyDetails details;
    const grpc::Status status = running.stub->GetStudy(&context, request, &details);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
  }
  v1::StudyDetails details;
  EXPECT_EQ(running.Get("absent", &details).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST(Service, RefusesPortsInUseNamingThem) {
  RunningService running;
  ServiceOptions options;
  options.grpc_address = running.service->grpc_address();
  const auto grpc_taken = Service::Start(options);
  EXPECT_THAT(std::string(grpc_taken.status().message()), HasSubstr(options.grpc_address));
  options.grpc_address = "127.0.0.1:0";
  options.http_address = running.service->http_address();
  const auto http_taken = Service::Start(options);
  EXPECT_THAT(std::string(http_taken.status().message()), HasSubstr(options.http_address));
}

TEST(Service, RefusesOtherMachinesWithoutAToken) {
  ServiceOptions options;
  options.grpc_address = "0.0.0.0:0";
  const auto refused = Service::Start(options);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("token"));
  options.token = "secret";
  EXPECT_TRUE(Service::Start(options).ok());
}

TEST(Service, KeepsEverythingOverARestart) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "espalier_service_restart";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  ServiceOptions options;
  options.database = folder / "tuner.db";
  v1::StudyDetails before;
  {
    RunningService running(options);
    ASSERT_TRUE(running.Create(CreateRequest()).ok());
    ScriptedAgent agent(running, "oak", 1, "run-1");
    const v1::StartReplica start = agent.AwaitStart();
    agent.AwaitAcknowledge(agent.Report(start.replica_id(), 1, 0.5));
    ASSERT_TRUE(running.Get("mnist", &before).ok());
    running.service->Shutdown();
  }
  RunningService running(options);
  v1::StudyDetails after;
  ASSERT_TRUE(running.Get("mnist", &after).ok());
  EXPECT_EQ(after.study().id(), before.study().id());
  ASSERT_EQ(after.trials_size(), before.trials_size());
  EXPECT_EQ(after.trials(0).values_size(), 1);
  EXPECT_EQ(after.trials(0).values(0).value(), 0.5);
  EXPECT_EQ(after.trials(0).parameters(0).json(), before.trials(0).parameters(0).json());
  running.service->Shutdown();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace espalier
