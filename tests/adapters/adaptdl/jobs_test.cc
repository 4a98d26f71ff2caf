#include "adapters/adaptdl/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "adapters/adaptdl/frontend.h"
#include "tests/server/engines/small_kubernetes.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/server/loop/loop.h"
#include "tuner/storage/storage.h"

namespace espalier::adaptdl {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kManifest = "adaptdljobs.yaml";

std::string Spec(const std::string& more = R"("minReplicas": 1, "maxReplicas": 2)") {
  return absl::StrCat(R"({"template": {"spec": {"containers": [{"name": "main", "image": "i:1",
                          "command": ["python3", "train.py"]}]}}, )",
                      more, "}");
}

// Jobs on a real loop with a database. Nodes and what their processes do are the test's word.
class JobsTest : public testing::Test {
 protected:
  JobsTest() {
    SmallKubernetes::Apply(kManifest);
    Restart();
  }

  void Restart() {
    jobs_.reset();
    loop_.reset();
    auto storage = OpenSqliteStorage(folder_.path() + "/studies.db");
    ASSERT_TRUE(storage.ok()) << storage.status();
    auto state = (*storage)->Load();
    ASSERT_TRUE(state.ok()) << state.status();
    LoopOptions options;
    options.clock = [this] { return Time{now_us_ += 1000}; };
    loop_ = std::make_unique<Loop>(
        *std::move(storage), *std::move(state), options, metrics_,
        [this](const std::vector<Command>& commands, const TunerState&) {
          const std::lock_guard lock(mutex_);
          for (const Command& command : commands) {
            if (const auto* start = std::get_if<StartReplicaCommand>(&command)) {
              replicas_.push_back(start->replica);
            }
          }
        });
    jobs_ = std::make_unique<Jobs>(kubernetes_.server(), *loop_);
  }

  void Compare() {
    const absl::Status compared = jobs_->Compare([] { return true; });
    EXPECT_TRUE(compared.ok()) << compared;
  }

  // What people do to the objects, by kubectl.
  Json Ask(const char* method, const std::string& path, const Json& body = {}) {
    return Json::parse(kubernetes_.Ask({.method = method,
                                        .path = "/adaptdljobs" + path,
                                        .group = "adaptdl.petuum.com/v1",
                                        .body = body.is_null() ? "" : body.dump()}));
  }
  void MakeJob(const std::string& name, const std::string& spec = Spec()) {
    Ask("POST", "",
        {{"kind", "AdaptDLJob"}, {"metadata", {{"name", name}}}, {"spec", Json::parse(spec)}});
  }
  void EditJob(const std::string& name, const std::string& spec = Spec()) {
    Ask("PATCH", "/" + name, {{"spec", Json::parse(spec)}});
  }
  void DeleteJob(const std::string& name) { Ask("DELETE", "/" + name); }
  Json Status(const std::string& name) {
    return Ask("GET", "/" + name).value("status", Json::object());
  }
  Json StatusAfterComparison(const std::string& name) {
    Compare();
    return Status(name);
  }
  // The process of the only replica that was started.
  ReplicaId Replica() {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(replicas_.size(), 1U);
    return replicas_.empty() ? ReplicaId{} : replicas_.front();
  }
  void SayStarted(ReplicaId replica) {
    std::promise<void> heard;
    EXPECT_TRUE(loop_->PostAsync(FromAgent{ReplicaStarted{replica}, ReplicaPid{replica, 77}},
                                 [&heard](const Reply&) { heard.set_value(); }));
    heard.get_future().wait();
  }
  std::map<std::string, StudyState> Studies() {
    std::map<std::string, StudyState> found;
    EXPECT_TRUE(loop_
                    ->Read([&](const View& view) {
                      for (const auto& [id, study] : view.core.state().studies) {
                        found[study.spec.name] = study.state;
                      }
                    })
                    .ok());
    return found;
  }
  std::string StudyOf(const std::string& name) {
    const std::string uid = Ask("GET", "/" + name)["metadata"]["uid"];
    return absl::StrCat(name, "-", uid.substr(0, 8));
  }
  std::size_t Patches() { return kubernetes_.Requests("PATCH /adaptdljobs").size(); }

  ScratchFolder folder_;
  SmallKubernetes kubernetes_;
  Metrics metrics_;
  std::atomic<std::int64_t> now_us_ = 1'700'000'000'000'000;
  std::mutex mutex_;
  std::vector<ReplicaId> replicas_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<Jobs> jobs_;
};

TEST_F(JobsTest, AJobGoesFromPendingToSucceeded) {
  MakeJob("cifar");
  Json status = StatusAfterComparison("cifar");
  EXPECT_EQ(status["phase"], "Pending");
  EXPECT_EQ(status["reason"], "Waiting");
  EXPECT_EQ(status["message"], "waits for 1 slot, the pool has 0");
  EXPECT_EQ(status["study"], StudyOf("cifar"));
  EXPECT_EQ(status["observedGeneration"], 1);
  EXPECT_THAT(Studies(), ElementsAre(testing::Pair(StudyOf("cifar"), StudyState::kRunning)));
  loop_->Post(AgentHello{"node-1", 1, {}});
  status = StatusAfterComparison("cifar");
  EXPECT_EQ(status["phase"], "Starting");
  EXPECT_EQ(status["allocation"], Json{"node-1"});
  EXPECT_EQ(status["replicas"], 1);
  EXPECT_EQ(status["readyReplicas"], 0);
  EXPECT_FALSE(status.contains("reason")) << status;
  SayStarted(Replica());
  status = StatusAfterComparison("cifar");
  EXPECT_EQ(status["phase"], "Running");
  EXPECT_EQ(status["readyReplicas"], 1);
  EXPECT_EQ(status["attemptCount"], 1);
  EXPECT_EQ(status["group"], 0);
  const std::size_t patches = Patches();
  Compare();
  EXPECT_EQ(Patches(), patches) << "nothing has changed";
  Restart();
  Compare();
  EXPECT_EQ(Patches(), patches) << "its agent has not told yet that it runs";
  AgentHello hello{"node-1", 1, {}};
  hello.replicas.push_back({Replica(), TrialId(1), 0, 0, std::nullopt});
  loop_->Post(hello);
  loop_->Post(ReplicaExited{Replica(), 0, 0, "", ""});
  status = StatusAfterComparison("cifar");
  EXPECT_EQ(status["phase"], "Succeeded");
  EXPECT_TRUE(status["completionTimestamp"].get<std::string>().starts_with("2023-11-14T22:"));
  EXPECT_FALSE(status.contains("allocation") || status.contains("replicas")) << status;
}

TEST_F(JobsTest, NothingIsTakenUpTwice) {
  MakeJob("cifar");
  // The service ends between the study and the status, and another one goes on.
  kubernetes_.SetFault("PATCH /adaptdljobs", {.code = 500, .message = "etcd is away"});
  const absl::Status compared = jobs_->Compare([] { return true; });
  EXPECT_THAT(std::string(compared.message()), HasSubstr("etcd is away"));
  Restart();
  EXPECT_EQ(StatusAfterComparison("cifar")["phase"], "Pending");
  Restart();
  Compare();
  EXPECT_EQ(Studies().size(), 1U);
  // What was lost in the database is not run again, nor is what was removed.
  loop_->Post(StopStudy{StudyOf("cifar")});
  StudyId id;
  ASSERT_TRUE(
      loop_->Read([&](const View& view) { id = view.core.state().studies.begin()->first; }).ok());
  ASSERT_TRUE(loop_->Post(DeleteStudy{id}).status.ok());
  const Json status = StatusAfterComparison("cifar");
  EXPECT_EQ(status["phase"], "Failed");
  EXPECT_EQ(status["reason"], "Lost");
  EXPECT_EQ(status["message"], absl::StrCat("its study \"", StudyOf("cifar"),
                                            "\" is gone: it was removed (tuner rm), or the service "
                                            "has another database"));
  Compare();
  EXPECT_EQ(Studies().size(), 0U);
}

TEST_F(JobsTest, ADeletedObjectStopsItsJobAlsoWhileNobodyLooked) {
  MakeJob("a");
  MakeJob("b");
  Compare();
  const std::string a = StudyOf("a");
  const std::string b = StudyOf("b");
  DeleteJob("a");
  DeleteJob("b");
  MakeJob("b");  // another one of the name
  Restart();
  Compare();
  EXPECT_EQ(Studies(), (std::map<std::string, StudyState>{{a, StudyState::kStopped},
                                                          {b, StudyState::kStopped},
                                                          {StudyOf("b"), StudyState::kRunning}}));
}

TEST_F(JobsTest, AStudyOfSomebodyElseIsLeftAlone) {
  StudySpec spec;
  spec.name = "mine-00000000";
  spec.command = {"true"};
  spec.directory = "/";
  spec.has_metric = false;
  ASSERT_TRUE(loop_->Post(CreateStudy{spec, false, "adaptdljob/elsewhere/00000000"}).status.ok());
  spec.name = "another";
  ASSERT_TRUE(loop_->Post(CreateStudy{spec}).status.ok());
  Compare();
  for (const auto& [name, state] : Studies()) EXPECT_EQ(state, StudyState::kRunning) << name;
}

TEST_F(JobsTest, ABrokenJobIsFailedUntilItIsEdited) {
  MakeJob("cifar", Spec(R"("minReplicas": 3, "maxReplicas": 2)"));
  Json status = StatusAfterComparison("cifar");
  EXPECT_EQ(status["phase"], "Failed");
  EXPECT_EQ(status["reason"], "Invalid");
  EXPECT_EQ(status["message"], "cifar: spec.maxReplicas: needs at least minReplicas, 3, got \"2\"");
  EXPECT_TRUE(status.contains("completionTimestamp"));
  const std::size_t patches = Patches();
  Compare();
  EXPECT_EQ(Patches(), patches);
  EditJob("cifar");
  status = StatusAfterComparison("cifar");
  EXPECT_EQ(status["phase"], "Pending");
  EXPECT_EQ(status["observedGeneration"], 2);
  EXPECT_FALSE(status.contains("completionTimestamp"));
}

TEST_F(JobsTest, AJobWhoseStudyWouldHaveTooLongANameIsFailed) {
  const std::string name(125, 'a');
  MakeJob(name);
  const Json status = StatusAfterComparison(name);
  EXPECT_EQ(status["phase"], "Failed");
  EXPECT_THAT(status["message"].get<std::string>(), HasSubstr("needs at most 128 bytes, got 134"));
  EXPECT_TRUE(Studies().empty());
}

TEST_F(JobsTest, AnEditedJobGoesOnAsItWasAndSaysSo) {
  MakeJob("cifar");
  Compare();
  EditJob("cifar", Spec(R"("minReplicas": 2)"));
  Json status = StatusAfterComparison("cifar");
  EXPECT_EQ(status["message"],
            "waits for 1 slot, the pool has 0; it was edited after it had been taken up, and goes "
            "on as it was: delete it and create it anew");
  EXPECT_EQ(status["observedGeneration"], 1);
  loop_->Post(AgentHello{"node-1", 1, {}});
  status = StatusAfterComparison("cifar");
  EXPECT_EQ(status["reason"], "Edited");
  EXPECT_EQ(Studies().size(), 1U);
}

TEST_F(JobsTest, AnObjectThatHasChangedSinceIsSeenWithTheNextComparison) {
  MakeJob("cifar");
  kubernetes_.SetFault(
      "PATCH /adaptdljobs",
      {.code = 409, .message = "the object has been modified", .reason = "Conflict"});
  Compare();
  EXPECT_EQ(Status("cifar"), Json::object());
  EXPECT_EQ(StatusAfterComparison("cifar")["phase"], "Pending");
}

TEST_F(JobsTest, ALongListComesInPagesAndAnIncompleteOneConcludesNothing) {
  kubernetes_.SetPage(2);
  for (const char* name : {"a", "b", "c", "d", "e"}) MakeJob(name);
  Compare();
  EXPECT_EQ(Studies().size(), 5U);
  EXPECT_EQ(kubernetes_.Requests("GET /adaptdljobs").size(), 3U);
  kubernetes_.SetPage(4);
  const std::string last_page = "GET /adaptdljobs?limit=500&continue=";
  kubernetes_.SetFault(last_page,
                       {.code = 410, .message = "too old", .reason = "Expired", .times = 1});
  Compare();
  kubernetes_.SetFault(last_page, {.code = 500, .message = "away"});
  EXPECT_FALSE(jobs_->Compare([] { return true; }).ok());
  SmallKubernetes::Remove(kManifest);
  EXPECT_THAT(std::string(jobs_->Compare([] { return true; }).message()),
              HasSubstr("kubectl apply -f deploy/kubernetes/adaptdljobs.yaml"));
  for (const auto& [name, state] : Studies()) EXPECT_EQ(state, StudyState::kRunning) << name;
}

class ThrowingTuner final : public Tuner {
 public:
  Reply Post(Event) override { return {}; }
  absl::Status Read(const std::function<void(const View&)>&) override {
    asked.set_value();
    throw std::runtime_error("no memory");
  }

  std::promise<void> asked;
};

TEST_F(JobsTest, WhatThrowsEndsThatComparisonByName) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  ThrowingTuner tuner;
  const auto frontend = MakeFrontend(kubernetes_.server());
  frontend->Start(tuner);
  tuner.asked.get_future().wait();
  frontend->Close();
  spdlog::set_default_logger(before);
  EXPECT_THAT(log.str(), HasSubstr("error=\"AdaptDL's jobs: no memory\""));
}

}  // namespace
}  // namespace espalier::adaptdl
