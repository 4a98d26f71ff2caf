#include "adapters/optuna/storage_service.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "adapters/optuna/encoded_trials.h"
#include "tests/adapters/optuna/storage_stub.h"
#include "tests/api/direct_tuner.h"
#include "tests/base/no_room.h"
#include "tests/server/running_service.h"
#include "tests/storage/scratch_folder.h"

namespace espalier {
namespace {

constexpr char kFloat[] =
    R"({"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 1.0, "log": false}})";
constexpr char kChoices[] =
    R"({"name": "CategoricalDistribution", "attributes": {"choices": ["a", "b"]}})";

ServiceOptions WithStorage(ServiceOptions options = {}) {
  options.frontends = {optuna_storage::MakeFrontend};
  return options;
}

// A client that speaks to a whole service, over the wire.
class OptunaClient {
 public:
  explicit OptunaClient(const std::string& address, std::string token = {})
      : token_(std::move(token)), stub_(StorageStubAt(address)) {}

  template <typename Request, typename Reply>
  grpc::StatusCode Call(grpc::Status (StorageStub::*method)(grpc::ClientContext*, const Request&,
                                                            Reply*),
                        const Request& request, Reply* reply) {
    grpc::ClientContext context;
    if (!token_.empty()) context.AddMetadata("authorization", "Bearer " + token_);
    const grpc::Status status = ((*stub_).*method)(&context, request, reply);
    message_ = status.error_message();
    return status.error_code();
  }

  grpc::StatusCode CreateStudy(const std::string& name, std::int64_t& id,
                               const std::vector<optuna::StudyDirection>& directions = {
                                   optuna::MINIMIZE}) {
    optuna::CreateNewStudyRequest request;
    request.set_study_name(name);
    for (const auto direction : directions) request.add_directions(direction);
    optuna::CreateNewStudyReply reply;
    const auto code = Call(&StorageStub::CreateNewStudy, request, &reply);
    id = reply.study_id();
    return code;
  }
  std::int64_t Study(const std::string& name) {
    std::int64_t id = 0;
    EXPECT_EQ(CreateStudy(name, id), grpc::OK) << message_;
    return id;
  }
  std::int64_t Trial(std::int64_t study) {
    optuna::CreateNewTrialRequest request;
    request.set_study_id(study);
    request.set_template_trial_is_none(true);
    optuna::CreateNewTrialReply reply;
    EXPECT_EQ(Call(&StorageStub::CreateNewTrial, request, &reply), grpc::OK);
    return reply.trial_id();
  }
  grpc::StatusCode Suggest(std::int64_t trial, const std::string& name, double value,
                           const std::string& distribution) {
    optuna::SetTrialParameterRequest request;
    request.set_trial_id(trial);
    request.set_param_name(name);
    request.set_param_value_internal(value);
    request.set_distribution(distribution);
    optuna::SetTrialParameterReply reply;
    return Call(&StorageStub::SetTrialParameter, request, &reply);
  }
  grpc::StatusCode SetState(std::int64_t trial, optuna::TrialState state,
                            const std::vector<double>& values = {}, bool* updated = nullptr) {
    optuna::SetTrialStateValuesRequest request;
    request.set_trial_id(trial);
    request.set_state(state);
    for (const double value : values) request.add_values(value);
    optuna::SetTrialStateValuesReply reply;
    const auto code = Call(&StorageStub::SetTrialStateValues, request, &reply);
    if (updated != nullptr) *updated = reply.trial_updated();
    return code;
  }
  grpc::StatusCode Report(std::int64_t trial, std::int64_t step, double value) {
    optuna::SetTrialIntermediateValueRequest request;
    request.set_trial_id(trial);
    request.set_step(step);
    request.set_intermediate_value(value);
    optuna::SetTrialIntermediateValueReply reply;
    return Call(&StorageStub::SetTrialIntermediateValue, request, &reply);
  }
  grpc::StatusCode SetAttribute(std::int64_t trial, const std::string& key,
                                const std::string& value) {
    optuna::SetTrialUserAttributeRequest request;
    request.set_trial_id(trial);
    request.set_key(key);
    request.set_value(value);
    optuna::SetTrialUserAttributeReply reply;
    return Call(&StorageStub::SetTrialUserAttribute, request, &reply);
  }
  std::vector<optuna::Trial> Trials(std::int64_t study, std::int64_t above = -1,
                                    const std::vector<std::int64_t>& included = {}) {
    optuna::GetTrialsRequest request;
    request.set_study_id(study);
    request.set_trial_id_greater_than(above);
    for (const std::int64_t id : included) request.add_included_trial_ids(id);
    optuna::GetTrialsReply reply;
    EXPECT_EQ(Call(&StorageStub::GetTrials, request, &reply), grpc::OK);
    return {reply.trials().begin(), reply.trials().end()};
  }
  grpc::StatusCode Get(std::int64_t id, optuna::Trial* trial) {
    optuna::GetTrialRequest request;
    request.set_trial_id(id);
    optuna::GetTrialReply reply;
    const auto code = Call(&StorageStub::GetTrial, request, &reply);
    *trial = reply.trial();
    return code;
  }
  grpc::StatusCode Delete(std::int64_t study) {
    optuna::DeleteStudyRequest request;
    request.set_study_id(study);
    optuna::DeleteStudyReply reply;
    return Call(&StorageStub::DeleteStudy, request, &reply);
  }

  const std::string& message() const { return message_; }

 private:
  const std::string token_;
  std::string message_;
  std::unique_ptr<StorageStub> stub_;
};

class OptunaStorage : public ::testing::Test {
 protected:
  RunningService running_{WithStorage()};
  OptunaClient client_{running_.service->grpc_address()};
};

TEST_F(OptunaStorage, ATrialComesBackAsItWasWritten) {
  const std::int64_t study = client_.Study("größe /?* ✂");
  const std::int64_t id = client_.Trial(study);
  EXPECT_EQ(client_.Suggest(id, "x", 0.25, kFloat), grpc::OK);
  EXPECT_EQ(client_.Suggest(id, "c", 1, kChoices), grpc::OK);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(client_.Report(id, -3, std::numeric_limits<double>::quiet_NaN()), grpc::OK);
  EXPECT_EQ(client_.Report(id, 7, -infinity), grpc::OK);
  EXPECT_EQ(client_.SetAttribute(id, "k", "{\"b\":1,   \"a\":NaN}"), grpc::OK);
  EXPECT_EQ(client_.SetState(id, optuna::COMPLETE, {infinity, -0.5}), grpc::OK);
  const std::vector<optuna::Trial> trials = client_.Trials(study);
  ASSERT_EQ(trials.size(), 1u);
  const optuna::Trial& trial = trials[0];
  EXPECT_EQ(trial.trial_id(), id);
  EXPECT_EQ(trial.number(), 0);
  EXPECT_EQ(trial.state(), optuna::COMPLETE);
  EXPECT_EQ(std::vector<double>(trial.values().begin(), trial.values().end()),
            (std::vector<double>{infinity, -0.5}));
  EXPECT_EQ(trial.params().at("x"), 0.25);
  EXPECT_EQ(trial.distributions().at("c"), kChoices);
  EXPECT_TRUE(std::isnan(trial.intermediate_values().at(-3)));
  EXPECT_EQ(trial.intermediate_values().at(7), -infinity);
  EXPECT_EQ(trial.user_attributes().at("k"), "{\"b\":1,   \"a\":NaN}");
  EXPECT_LE(trial.datetime_start(), trial.datetime_complete());
  EXPECT_EQ(trial.datetime_start().size(), 26u);
}

TEST_F(OptunaStorage, ACallThatThrowsIsAnsweredByItsNameAndOthersGoOn) {
  constexpr std::size_t kMany = 1 << 20;
  const std::int64_t study = client_.Study("s");
  const std::int64_t id = client_.Trial(study);
  EXPECT_EQ(client_.SetAttribute(id, "k", '"' + std::string(kMany, 'x') + '"'), grpc::OK);
  optuna::Trial trial;
  {
    const NoRoomFor no_room(kMany);
    EXPECT_EQ(client_.Get(id, &trial), grpc::INTERNAL);
    EXPECT_EQ(client_.message(), "GetTrial: std::bad_alloc");
    optuna::GetTrialsRequest request;
    request.set_study_id(study);
    optuna::GetTrialsReply reply;
    EXPECT_EQ(client_.Call(&StorageStub::GetTrials, request, &reply), grpc::INTERNAL);
    EXPECT_EQ(client_.message(), "GetTrials: std::bad_alloc");
  }
  EXPECT_EQ(client_.Get(id, &trial), grpc::OK);
  EXPECT_EQ(client_.Trials(study).size(), 1u);
}

TEST_F(OptunaStorage, ErrorsHaveTheCodesThatOptunasClientsKnow) {
  const std::int64_t study = client_.Study("s");
  std::int64_t other = 0;
  EXPECT_EQ(client_.CreateStudy("s", other), grpc::ALREADY_EXISTS);
  EXPECT_EQ(client_.CreateStudy("", other), grpc::OK) << "a name like any other";
  EXPECT_EQ(client_.CreateStudy("n", other, {static_cast<optuna::StudyDirection>(7)}),
            grpc::UNKNOWN);
  EXPECT_EQ(client_.Delete(1'000'000), grpc::NOT_FOUND);
  optuna::Trial trial;
  EXPECT_EQ(client_.Get(1'000'000, &trial), grpc::NOT_FOUND);
  const std::int64_t id = client_.Trial(study);
  EXPECT_EQ(client_.Suggest(id, "x", 0.5, kFloat), grpc::OK);
  EXPECT_EQ(client_.Suggest(id, "x", 1, kChoices), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(client_.Suggest(id, "y", 1, "{bad"), grpc::UNKNOWN);
  EXPECT_EQ(client_.SetAttribute(id, "k", "{bad"), grpc::UNKNOWN);
  EXPECT_NE(client_.message().find("\"k\""), std::string::npos) << client_.message();
  EXPECT_EQ(client_.SetState(id, static_cast<optuna::TrialState>(9)), grpc::UNKNOWN);
  EXPECT_EQ(client_.SetState(id, optuna::COMPLETE, {1}), grpc::OK);
  // What has ended is told before what does not fit.
  EXPECT_EQ(client_.Suggest(id, "x", 1, kChoices), grpc::FAILED_PRECONDITION);
  EXPECT_EQ(client_.SetState(id, optuna::RUNNING), grpc::FAILED_PRECONDITION);
  EXPECT_EQ(client_.Report(id, 1, 1), grpc::FAILED_PRECONDITION);
}

TEST_F(OptunaStorage, AClientIsSentWhatItMayNotKnowYet) {
  const std::int64_t study = client_.Study("s");
  const std::int64_t unrelated = client_.Trial(client_.Study("t"));
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(client_.Trial(study));
  const std::vector<optuna::Trial> some =
      client_.Trials(study, ids[2], {ids[0], ids[4], unrelated, 12345});
  std::vector<std::int64_t> sent;
  for (const optuna::Trial& trial : some) sent.push_back(trial.trial_id());
  EXPECT_EQ(sent, (std::vector<std::int64_t>{ids[0], ids[3], ids[4]})) << "each once, by number";
}

TEST_F(OptunaStorage, ManyTrialsComeInSlicesAndInOrder) {
  const std::int64_t study = client_.Study("s");
  const int count = static_cast<int>(optuna_storage::kTrialsInSlice) + 100;
  for (int i = 0; i < count; ++i) {
    const std::int64_t id = client_.Trial(study);
    if (i % 2 == 0) client_.SetState(id, optuna::COMPLETE, {1.0 * i});
  }
  for (int round = 0; round < 2; ++round) {
    const std::vector<optuna::Trial> trials = client_.Trials(study);
    ASSERT_EQ(std::ssize(trials), count);
    for (int i = 0; i < count; ++i) ASSERT_EQ(trials[static_cast<std::size_t>(i)].number(), i);
  }
}

TEST_F(OptunaStorage, OneOfManyClientsGetsAWaitingTrial) {
  const std::int64_t study = client_.Study("s");
  optuna::CreateNewTrialRequest request;
  request.set_study_id(study);
  request.mutable_template_trial()->set_state(optuna::WAITING);
  optuna::CreateNewTrialReply reply;
  std::vector<std::int64_t> waiting;
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(client_.Call(&StorageStub::CreateNewTrial, request, &reply), grpc::OK);
    waiting.push_back(reply.trial_id());
  }
  std::atomic<int> got = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      OptunaClient client(running_.service->grpc_address());
      for (const std::int64_t id : waiting) {
        bool updated = false;
        EXPECT_EQ(client.SetState(id, optuna::RUNNING, {}, &updated), grpc::OK);
        got += updated ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(got, 20);
}

TEST_F(OptunaStorage, NumbersAreDenseUnderManyClients) {
  const std::int64_t study = client_.Study("s");
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      OptunaClient client(running_.service->grpc_address());
      for (int i = 0; i < 25; ++i) {
        const std::int64_t id = client.Trial(study);
        if (i % 5 == 0) client.SetState(id, optuna::COMPLETE, {0.5});
      }
      EXPECT_GE(client.Trials(study).size(), 25u);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<optuna::Trial> trials = client_.Trials(study);
  ASSERT_EQ(trials.size(), 200u);
  std::int64_t last = 0;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    EXPECT_EQ(trials[i].number(), static_cast<std::int64_t>(i));
    EXPECT_LT(last, trials[i].trial_id());
    last = trials[i].trial_id();
  }
}

TEST_F(OptunaStorage, LargeAttributesAreTaken) {
  const std::int64_t id = client_.Trial(client_.Study("s"));
  const std::string large = "\"" + std::string(5'000'000, 'x') + "\"";
  EXPECT_EQ(client_.SetAttribute(id, "large", large), grpc::OK);
}

TEST_F(OptunaStorage, OneTruthForBothFrontends) {
  ASSERT_TRUE(running_.Create(CreateRequest()).ok());
  const std::int64_t study = client_.Study("by optuna");
  const std::int64_t id = client_.Trial(study);
  client_.Suggest(id, "c", 1, kChoices);
  client_.SetAttribute(id, "note", "\"good\"");
  client_.SetState(id, optuna::COMPLETE, {0.5});
  v1::StudyDetails details;
  ASSERT_TRUE(running_.Get("by optuna", &details).ok());
  EXPECT_TRUE(details.study().ask_and_tell());
  ASSERT_EQ(details.trials_size(), 1);
  EXPECT_EQ(details.trials(0).parameters(0).name(), "c");
  EXPECT_EQ(details.trials(0).parameters(0).json(), "\"b\"");
  EXPECT_EQ(details.trials(0).user_attributes().at("note"), "\"good\"");
  EXPECT_EQ(details.study().best_value(), 0.5);
  // And the other way.
  optuna::GetStudyIdFromNameRequest request;
  request.set_study_name("mnist");
  optuna::GetStudyIdFromNameReply reply;
  ASSERT_EQ(client_.Call(&StorageStub::GetStudyIdFromName, request, &reply), grpc::OK);
  EXPECT_TRUE(client_.Trials(reply.study_id()).empty());
  optuna::CreateNewTrialRequest create;
  create.set_study_id(reply.study_id());
  create.set_template_trial_is_none(true);
  optuna::CreateNewTrialReply created;
  EXPECT_EQ(client_.Call(&StorageStub::CreateNewTrial, create, &created), grpc::PERMISSION_DENIED);
  EXPECT_NE(client_.message().find("mnist"), std::string::npos);
}

TEST(OptunaStorageFile, ARestartKeepsAllAndNoIdIsUsedTwice) {
  const ScratchFolder folder;
  ServiceOptions options;
  options.database = folder.File("espalier.db");
  std::int64_t deleted = 0;
  std::int64_t deleted_trial = 0;
  std::int64_t kept = 0;
  std::string before;
  {
    RunningService running(WithStorage(options));
    OptunaClient client(running.service->grpc_address());
    kept = client.Study("kept");
    const std::int64_t id = client.Trial(kept);
    client.Suggest(id, "x", 0.5, kFloat);
    client.SetState(id, optuna::COMPLETE, {1, std::numeric_limits<double>::quiet_NaN()});
    optuna::Trial trial;
    ASSERT_EQ(client.Get(id, &trial), grpc::OK);
    before = trial.ShortDebugString();
    deleted = client.Study("deleted");
    deleted_trial = client.Trial(deleted);
    ASSERT_EQ(client.Delete(deleted), grpc::OK);
  }
  RunningService running(WithStorage(options));
  OptunaClient client(running.service->grpc_address());
  const std::vector<optuna::Trial> trials = client.Trials(kept);
  ASSERT_EQ(trials.size(), 1u);
  EXPECT_EQ(trials[0].ShortDebugString(), before);
  const std::int64_t next = client.Study("deleted");
  EXPECT_LT(deleted, next);
  EXPECT_LT(deleted_trial, client.Trial(next));
  EXPECT_EQ(client.Suggest(client.Trial(kept), "x", 1, kChoices), grpc::INVALID_ARGUMENT);
}

// What gRPC itself refuses.
#ifndef ESPALIER_CALLS_IN_PROCESS

TEST_F(OptunaStorage, TooLargeAMessageIsRefused) {
  const std::int64_t id = client_.Trial(client_.Study("s"));
  std::string larger;
  larger.resize(70'000'000, 'x');
  EXPECT_EQ(client_.SetAttribute(id, "larger", "\"" + larger + "\""), grpc::RESOURCE_EXHAUSTED);
}

TEST(OptunaStorageToken, WhoDoesNotShowItIsNotLetIn) {
  ServiceOptions options;
  options.token = "secret";
  RunningService running(WithStorage(options));
  std::int64_t id = 0;
  EXPECT_EQ(OptunaClient(running.service->grpc_address()).CreateStudy("s", id),
            grpc::UNAUTHENTICATED);
  EXPECT_EQ(OptunaClient(running.service->grpc_address(), "secret").CreateStudy("s", id), grpc::OK);
}

#endif

}  // namespace
}  // namespace espalier
