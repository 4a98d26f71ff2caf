// All kinds of callers at once: what the thread sanitizer sees of a whole service.

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/nni/service/frontend.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/api/direct_tuner.h"
#include "tests/server/patient_client.h"
#include "tests/server/running_service.h"

namespace espalier {
namespace {

constexpr int kRounds = 6;
constexpr char kJson[] = "application/json";

class CallersTest : public testing::Test {
 protected:
  // The library makes its tables for the first request, and the others look at them without a lock
  // that is seen.
  CallersTest() { EXPECT_TRUE(PatientClient(running_.http_port()).Get("/healthz")); }

  static ServiceOptions Options() {
    ServiceOptions options;
    options.frontends = {nni::MakeFrontend};
    return options;
  }

  // A thread of its own, with a client of its own. `call` is given the round.
  void HttpCaller(const std::function<void(httplib::Client&, int)>& call) {
    threads_.emplace_back([port = running_.http_port(), call] {
      PatientClient client(port);
      for (int round = 0; round < kRounds; ++round) call(client, round);
    });
  }
  void Caller(const std::function<void(int)>& call) {
    threads_.emplace_back([call] {
      for (int round = 0; round < kRounds; ++round) call(round);
    });
  }

  // Plays the trials that its slot is given, and shows what they print.
  void Agent(const std::string& name) {
    threads_.emplace_back([this, name] {
      ScriptedAgent agent(running_, name, 1, "run-of-" + name);
      for (v1::ServiceMessage message = agent.Next();
           message.kind_case() != v1::ServiceMessage::KIND_NOT_SET; message = agent.Next()) {
        if (message.has_start()) Play(agent, message.start());
        if (!message.has_read_output()) continue;
        v1::AgentMessage output;
        output.mutable_output()->set_request(message.read_output().request());
        output.mutable_output()->set_text("printed");
        agent.Say(output);
      }
    });
  }

  void Play(ScriptedAgent& agent, const v1::StartReplica& start) {
    v1::AgentMessage started;
    started.mutable_started()->set_replica_id(start.replica_id());
    started.mutable_started()->set_trial_id(start.trial_id());
    started.mutable_started()->set_pid(4711);
    agent.Say(started);
    for (int step = 1; step <= 5; ++step) agent.Report(start.replica_id(), step, 0.5);
    v1::AgentMessage finished;
    finished.mutable_from_replica()->set_replica_id(start.replica_id());
    finished.mutable_from_replica()->mutable_message()->mutable_finished()->set_value(0.25);
    agent.Say(finished);
    v1::AgentMessage exited;
    exited.mutable_exited()->set_replica_id(start.replica_id());
    exited.mutable_exited()->set_trial_id(start.trial_id());
    agent.Say(exited);
  }

  void CallByGrpc() {
    Caller([this](int round) {
      std::string json = kStudyJson;
      const std::string name = absl::StrCat("study-", round);
      json.replace(json.find("mnist"), 5, name);
      EXPECT_TRUE(running_.Create(CreateRequest(json)).ok());
      v1::StudyDetails details;
      EXPECT_TRUE(running_.Get(name, &details).ok());
      EXPECT_EQ(details.study().name(), name);
    });
  }

  void CallByHttp() {
    HttpCaller([](httplib::Client& client, int) {
      for (const char* path : {"/api/studies", "/api/pool", "/metrics", "/healthz"}) {
        const auto got = client.Get(path);
        ASSERT_TRUE(got) << path;
        EXPECT_EQ(got->status, 200) << path;
      }
      EXPECT_TRUE(client.Get("/api/trials/1/output"));  // once there is one
    });
  }

  void CallAsNni() {
    HttpCaller([](httplib::Client& client, int round) {
      const std::string path = absl::StrCat("/nni/v1/experiments/e", round);
      EXPECT_EQ(client.Put(path, R"({"command": "train", "directory": "/code"})", kJson)->status,
                200);
      EXPECT_EQ(client
                    .Put(path + "/trials/t",
                         R"({"sequence": 0, "parameter": "{\"parameter_id\": 0, )"
                         R"(\"parameters\": {}}"})",
                         kJson)
                    ->status,
                200);
      EXPECT_EQ(client.Get(path + "/events?wait_s=0")->status, 200);
    });
  }

  // Pages that come and go.
  void Follow() {
    HttpCaller([](httplib::Client& client, int) {
      std::string events;
      client.Get("/api/view/events", [&events](const char* text, std::size_t size) {
        events.append(text, size);
        return events.find("event: hello") == std::string::npos;
      });
      EXPECT_NE(events.find("event: hello"), std::string::npos);
    });
  }

  RunningService running_{Options()};
  std::vector<std::thread> threads_;
};

TEST_F(CallersTest, OfAllKindsAreAnsweredBesideEachOther) {
  for (const char* name : {"oak", "elm"}) Agent(name);
  const std::size_t agents = threads_.size();
  for (int i = 0; i < 2; ++i) CallByHttp();
  Follow();
  CallByGrpc();
  CallAsNni();
  for (std::size_t i = agents; i < threads_.size(); ++i) threads_[i].join();
  running_.service->Shutdown();  // which is what agents wait for
  for (std::size_t i = 0; i < agents; ++i) threads_[i].join();
}

TEST_F(CallersTest, AreRefusedByAServiceThatEndsMeanwhile) {
  Agent("oak");
  std::atomic<int> answered = 0;
  threads_.emplace_back([&] {
    v1::StudyDetails details;
    while (running_.Get("none", &details).error_code() == grpc::StatusCode::NOT_FOUND) ++answered;
  });
  threads_.emplace_back([&] {
    PatientClient client(running_.http_port());
    while (client.Get("/api/pool")) ++answered;
  });
  threads_.emplace_back([&] {  // it waits until the service ends
    PatientClient client(running_.http_port());
    client.Put("/nni/v1/experiments/e", R"({"command": "train", "directory": "/code"})", kJson);
    ++answered;
    client.Get("/nni/v1/experiments/e/events?wait_s=30");
  });
  threads_.emplace_back([&] {  // so does a page that follows it
    PatientClient client(running_.http_port());
    client.Get("/api/view/events", [](const char*, std::size_t) { return true; });
  });
  while (answered < 50) std::this_thread::yield();
  running_.service->Shutdown();
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace
}  // namespace espalier
