#include <map>
#include <string>

#include "gmock/gmock.h"
#include "tests/api/answer_json.h"
#include "tests/api/direct_tuner.h"
#include "tests/server/patient_client.h"
#include "tests/server/running_service.h"
#include "tuner/api/json.h"
#include "tuner/server/http/http_server.h"
#include "tuner/web/assets/web_assets.h"

namespace espalier {
namespace {

using testing::HasSubstr;

class HttpTest : public testing::Test {
 protected:
  RunningService running_;
  PatientClient client_{running_.http_port()};
};

TEST_F(HttpTest, AnswersHealthAndIndex) {
  const auto health = client_.Get("/healthz");
  ASSERT_TRUE(health);
  EXPECT_EQ(health->status, 200);
  EXPECT_EQ(health->body, "ok\n");
  // Without the page, links.
  EXPECT_THAT(client_.Get("/")->body,
              HasSubstr(WebAssets().empty() ? "api/studies" : "<div id=\"page\">"));
}

TEST_F(HttpTest, ShowsStudiesTrialsAndPool) {
  ASSERT_TRUE(running_.Create(CreateRequest()).ok());
  ScriptedAgent agent(running_, "oak", 1, "run-1");
  agent.AwaitStart();
  EXPECT_THAT(client_.Get("/api/studies")->body, HasSubstr("\"name\":\"mnist\""));
  const auto study = client_.Get("/api/studies/mnist");
  ASSERT_EQ(study->status, 200);
  v1::StudyDetails details;
  ASSERT_TRUE(MessageFromJson(WithoutNulls(study->body), details).ok());
  EXPECT_EQ(details.study().state(), v1::STUDY_RUNNING);
  EXPECT_EQ(details.trials_size(), 1);
  EXPECT_EQ(details.trials(0).spans_size(), 1);
  const auto brief = client_.Get("/api/studies/mnist?values=0&active=1");
  v1::StudyDetails brief_details;
  ASSERT_TRUE(MessageFromJson(WithoutNulls(brief->body), brief_details).ok());
  EXPECT_EQ(brief_details.trials(0).spans_size(), 0);
  EXPECT_THAT(client_.Get("/api/studies/mnist/trials")->body, HasSubstr("{\"trials\":[{\"id\":1,"));
  EXPECT_THAT(client_.Get("/api/pool")->body, HasSubstr("\"slots_held\":1"));
}

TEST_F(HttpTest, TellsAValue) {
  ASSERT_TRUE(running_.Create(CreateRequest()).ok());
  ScriptedAgent agent(running_, "oak", 1, "run-1");
  const std::string path = "/api/trials/" + std::to_string(agent.AwaitStart().trial_id()) + "/tell";
  const auto step = client_.Post(path, R"({"step": 3, "value": 0.5})", "application/json");
  EXPECT_EQ(step->status, 200);
  EXPECT_EQ(step->body, R"({"should_stop":false,"state":"TRIAL_RUNNING","note":""})");
  const auto again = client_.Post(path, R"({"step": 3, "value": 0.7})", "application/json");
  EXPECT_THAT(again->body, HasSubstr("step 3 was already told as 0.5; this value is ignored"));
  EXPECT_EQ(client_.Post(path, R"({"value": 0.25, "final": true})", "application/json")->status,
            200);
  v1::StudyDetails details;
  ASSERT_TRUE(running_.Get("mnist", &details).ok());
  EXPECT_EQ(details.trials(0).values(0).step(), 3);
  EXPECT_EQ(details.trials(0).value(), 0.25);
}

TEST_F(HttpTest, ErrorsAreJsonWithTheirStatus) {
  const auto absent = client_.Get("/api/studies/absent");
  EXPECT_EQ(absent->status, 404);
  EXPECT_EQ(absent->body, R"({"error":"no study \"absent\"","code":"NOT_FOUND"})");
  EXPECT_EQ(client_.Get("/nowhere")->status, 404);
  EXPECT_THAT(client_.Get("/nowhere")->body, HasSubstr("\"error\""));
  EXPECT_EQ(client_.Post("/api/trials/1/tell", "{", "application/json")->status, 400);
  EXPECT_EQ(client_.Post("/api/trials/1/tell", "{}", "application/json")->status, 400);
  EXPECT_EQ(client_.Post("/api/trials/1/tell", R"({"value": 1})", "application/json")->status, 404);
  for (const char* name : {"", "   ", "a\\nb", "esc\\u001b[31mred"}) {
    const auto unreadable = client_.Post(
        "/api/studies", std::string(R"({"ask_and_tell": true, "name": ")") + name + "\"}",
        "application/json");
    EXPECT_EQ(unreadable->status, 400);
    EXPECT_THAT(unreadable->body, HasSubstr("not blank and has no control characters"));
  }
  // A client that names a file is not told what is in it.
  const auto of_file = client_.Post(
      "/api/studies", R"({"name": "f", "ask_and_tell": true, "search_space": "/etc/passwd"})",
      "application/json");
  EXPECT_EQ(of_file->status, 400);
  EXPECT_THAT(of_file->body, HasSubstr("a service reads no file that a client names"));
  const std::string large(kMaxHttpBody + 1, ' ');
  const auto refused = client_.Post("/api/trials/1/tell", large, "application/json");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 413);
}

// As curl and urllib send it unless they are told what it is.
TEST_F(HttpTest, ABodyIsJsonAlsoWhereItIsSaidToBeAForm) {
  const auto create = [this](const std::string& name, const std::string& remark) {
    const std::string study =
        R"({"name": ")" + name + R"(", "ask_and_tell": true, "env": {"U": ")" + remark + "\"}}";
    return client_.Post("/api/studies", study, "application/x-www-form-urlencoded")->status;
  };
  EXPECT_EQ(create("large", std::string(100'000, 'x')), 201);
  EXPECT_EQ(create("query", "http://x/?a=1&exist_ok=1&b=2"), 201);
  EXPECT_EQ(create("query", "http://x/?a=1&exist_ok=1&b=2"), 409);
  const std::string again = R"({"name": "query", "ask_and_tell": true,
                                "env": {"U": "http://x/?a=1&exist_ok=1&b=2"}})";
  EXPECT_EQ(
      client_.Post("/api/studies?exist_ok=1", again, "application/x-www-form-urlencoded")->status,
      200);
}

TEST_F(HttpTest, WhatAQuerySaysIsKnownOrRefused) {
  ASSERT_TRUE(running_.Create(CreateRequest()).ok());
  const auto error = [this](const std::string& target) {
    const auto answer = client_.Get(target);
    EXPECT_EQ(answer->status, 400) << target;
    return answer->body;
  };
  EXPECT_THAT(
      error("/api/studies/mnist?value=0"),
      HasSubstr(
          R"(query \"value\": unknown key of GET /api/studies/{study}, did you mean \"values\"? )"
          "Known: active, values"));
  EXPECT_THAT(
      error("/api/studies/mnist/trials?values=0&limit=3"),
      HasSubstr(R"(query \"limit\": unknown key of GET /api/studies/{study}/trials. Known)"));
  EXPECT_THAT(
      error("/api/studies/mnist/trials?values=0&active=1&values=1"),
      HasSubstr(R"(query \"values\" of GET /api/studies/{study}/trials: is given 2 times)"));
  EXPECT_THAT(error("/api/view/events?after=1&after=2"), HasSubstr("is given 2 times, and takes"));
  EXPECT_THAT(error("/api/pool?nodes=1"),
              HasSubstr(R"(query \"nodes\": unknown key of GET /api/pool, which takes none)"));
  EXPECT_EQ(client_.Post("/api/studies/mnist/stop?now=1", "", "application/json")->status, 400);
  EXPECT_THAT(client_.Get("/api/studies/mnist")->body, HasSubstr("STUDY_RUNNING"));
  for (const char* asked : {"/healthz?from=balancer", "/metrics?from=prometheus", "/?from=mail"}) {
    EXPECT_EQ(client_.Get(asked)->status, 200) << asked;
  }
}

TEST_F(HttpTest, NullIsNoNumber) {
  ASSERT_TRUE(running_.Create(CreateRequest()).ok());
  ScriptedAgent agent(running_, "oak", 1, "run-1");
  const std::string trial = "/api/trials/" + std::to_string(agent.AwaitStart().trial_id());
  for (const char* call : {"/tell", "/report"}) {
    const auto told =
        client_.Post(trial + call, R"({"step": 3, "value": null})", "application/json");
    EXPECT_EQ(told->status, 400);
    EXPECT_THAT(told->body, HasSubstr(R"(\"value\": needs a number, got null)"));
  }
  const auto pin = client_.Post(trial + "/pin", R"({"slots": null})", "application/json");
  EXPECT_EQ(pin->status, 400);
}

TEST_F(HttpTest, PagesAreToldWhatTheyShow) {
  ASSERT_TRUE(running_.Create(CreateRequest()).ok());
  ScriptedAgent agent(running_, "oak", 1, "run-1");
  agent.AwaitStart();
  const auto overview = client_.Get("/api/view/overview");
  ASSERT_EQ(overview->status, 200);
  EXPECT_THAT(overview->body, HasSubstr("\"role\":\"administer\""));
  EXPECT_THAT(overview->body, HasSubstr("\"slot_use\":[{\"slot\":0,\"trial_id\":1,"));
  EXPECT_THAT(overview->body, testing::Not(HasSubstr("\"revision\":0,\"incarnation\":\"\"")));
  EXPECT_THAT(client_.Get("/api/view/studies/1")->body, HasSubstr("\"name\":\"mnist\""));
  EXPECT_THAT(client_.Get("/api/view/studies/1/trials?from=0&rows=5")->body,
              HasSubstr("\"words\":{"));
  EXPECT_THAT(client_.Get("/api/view/studies/1/curves?trials=1&x=time&width=10")->body,
              HasSubstr("\"points\":0"));
  EXPECT_THAT(client_.Get("/api/view/lanes?width=10&study=1")->body, HasSubstr("\"spans\":{"));
  EXPECT_THAT(client_.Get("/api/view/decisions?study=1&kind=start&limit=1")->body,
              HasSubstr("\"kind\":\"start\""));
  EXPECT_THAT(client_.Get("/api/view/trials/1")->body, HasSubstr("\"node\":\"oak\""));
}

TEST_F(HttpTest, PagesThatAskForWhatIsNotThereAreToldWhatWouldBe) {
  ASSERT_TRUE(running_.Create(CreateRequest()).ok());
  const std::map<std::string, std::string> wrong = {
      {"studies/x", "study id \\\"x\\\": needs the number of a study"},
      {"studies/-1/analysis", "study id \\\"-1\\\": needs the number of a study"},
      {"studies/" + std::string(300, '9'), "999...\\\": needs the number of a study"},
      {"studies/1/trials?from=-1", "from \\\"-1\\\": needs a whole number from 0 on"},
      {"studies/1/trials?rows=10001", "rows \\\"10001\\\": needs a whole number from 1 to 10000"},
      {"studies/1/trials?changed_since=a",
       "changed_since \\\"a\\\": needs a whole number from 0 on"},
      {"studies/1/curves?trials=1,b", "trials \\\"1,b\\\": needs ids of trials, such as 17,18,23"},
      {"studies/1/curves?trials=1&best=2", "not both"},
      {"studies/1/curves?best=301", "best \\\"301\\\": needs a whole number from 1 to 300"},
      {"studies/1/curves?x=epoch", "x \\\"epoch\\\": needs step, time, progress or slot_seconds"},
      {"studies/1/curves?width=0", "width \\\"0\\\": needs a whole number from 1 to 4096"},
      {"studies/1/curves?xlog=1&from=-3", "needs numbers above 0, got -3"},
      {"lanes?from=nan", "from \\\"nan\\\": needs a number"},
      {"lanes?from=20&to=10", "from 20: needs to be before 10"},
      {"decisions?kind=sing", "kind \\\"sing\\\": needs one of start, grow"},
      {"decisions?before=1", "before \\\"1\\\": needs the \\\"cursor\\\" of a decision"},
      {"decisions?limit=1001", "limit \\\"1001\\\": needs a whole number from 1 to 1000"}};
  for (const auto& [path, message] : wrong) {
    const auto answer = client_.Get("/api/view/" + path);
    EXPECT_EQ(answer->status, 400) << path;
    EXPECT_THAT(answer->body, HasSubstr(message)) << path;
  }
  for (const char* path :
       {"studies/7", "studies/7/trials", "studies/7/curves", "lanes?study=7", "decisions?study=7",
        "decisions?trial=7", "trials/7", "studies/1/curves?trials=7"}) {
    EXPECT_EQ(client_.Get(std::string("/api/view/") + path)->status, 404) << path;
  }
}

TEST_F(HttpTest, MetricsNameTheService) {
  ASSERT_TRUE(running_.Create(CreateRequest()).ok());
  const auto metrics = client_.Get("/metrics");
  EXPECT_EQ(metrics->status, 200);
  EXPECT_THAT(metrics->body, HasSubstr("espalier_studies{state=\"RUNNING\"} 1"));
  EXPECT_THAT(metrics->body, HasSubstr("espalier_requests_total{"));
  EXPECT_THAT(metrics->body, HasSubstr("espalier_commit_seconds_bucket"));
}

TEST(HttpToken, IsNeededButForHealth) {
  ServiceOptions options;
  options.token = "secret";
  RunningService running(options);
  PatientClient client(running.http_port());
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  for (const char* path : {"/api/studies", "/metrics", "/api/pool"}) {
    EXPECT_EQ(client.Get(path)->status, 401) << path;
    EXPECT_EQ(client.Get(path, {{"Authorization", "Bearer secret"}})->status, 200) << path;
  }
}

}  // namespace
}  // namespace espalier
