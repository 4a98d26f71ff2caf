// A service with a frontend that it knows nothing of.

#include "tuner/server/frontend.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/server/patient_client.h"
#include "tests/server/running_service.h"

namespace espalier {
namespace {

constexpr char kStudy[] = R"({
  "name": "s", "command": ["/bin/true"], "metric": {"name": "loss", "direction": "minimize"},
  "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}, "trials": 1})";

// What has happened to a frontend.
struct FrontendRecord {
  std::atomic<bool> loaded = false;
  std::atomic<bool> saw_study = false;
  std::atomic<bool> started = false;
  std::atomic<bool> closed = false;
};

// Answers GET /echo/{word} with the word, for which there is no row in the table of permissions.
class EchoFrontend final : public Frontend {
 public:
  explicit EchoFrontend(std::shared_ptr<FrontendRecord> record) : record_(std::move(record)) {}

  const char* name() const override { return "echo"; }
  void Load(const TunerState&) override { record_->loaded = true; }
  void Take(const std::vector<Change>&, const TunerState& state) override {
    if (state.FindStudy("s") != nullptr) record_->saw_study = true;
  }
  std::vector<HttpRoute> Routes(Tuner&) override {
    return {{"GET", "/echo/{word}", "Echo", [](const HttpCall& call) {
               return HttpAnswer{absl::OkStatus(), call.path.at("word"), "text/plain"};
             }}};
  }
  void Start(Tuner& tuner) override {
    record_->started = tuner.Read([](const View&) {}).ok();
  }
  void Close() override { record_->closed = true; }

 private:
  const std::shared_ptr<FrontendRecord> record_;
};

class FrontendTest : public testing::Test {
 protected:
  ServiceOptions WithFrontend() const {
    ServiceOptions options;
    options.frontends = {[record = record_] { return std::make_unique<EchoFrontend>(record); }};
    return options;
  }

  const std::shared_ptr<FrontendRecord> record_ = std::make_shared<FrontendRecord>();
};

TEST_F(FrontendTest, ItsRoutesAreAnsweredBesideTheServicesOwn) {
  RunningService running(WithFrontend());
  PatientClient client(running.http_port());
  const auto echoed = client.Get("/echo/hello%20you");
  ASSERT_TRUE(echoed);
  EXPECT_EQ(echoed->status, 200);
  EXPECT_EQ(echoed->body, "hello you");
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  EXPECT_EQ(client.Post("/echo/hello", "", "text/plain")->status, 405);
  EXPECT_NE(client.Get("/metrics")->body.find("\"Echo\""), std::string::npos);
}

TEST_F(FrontendTest, LearnsWhatIsStoredAndCommittedAndOfTheEnd) {
  RunningService running(WithFrontend());
  EXPECT_TRUE(record_->loaded);
  EXPECT_TRUE(record_->started) << "and the tuner answers it by then";
  EXPECT_FALSE(record_->saw_study);
  v1::CreateStudyRequest create;
  create.set_study_json(kStudy);
  create.set_directory("/");
  const grpc::Status created = running.Create(create);
  ASSERT_TRUE(created.ok()) << created.error_message();
  EXPECT_TRUE(record_->saw_study) << "a frontend takes a change before its client is answered";
  EXPECT_FALSE(record_->closed);
  running.service->Shutdown();
  EXPECT_TRUE(record_->closed);
}

TEST_F(FrontendTest, WithoutARowInTheTableOfPermissionsOnlyAdministratorsEnter) {
  ServiceOptions options = WithFrontend();
  options.token = "secret";  // whoever shows it administers
  RunningService running(options);
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer secret");
  v1::CreateTokenRequest wanted;
  wanted.set_role("submit");
  wanted.set_name("ada");
  v1::Token submit;
  ASSERT_TRUE(running.stub->CreateToken(&context, wanted, &submit).ok());

  PatientClient client(running.http_port());
  const auto status_with = [&client](const std::string& token) {
    return client.Get("/echo/hello", {{"Authorization", "Bearer " + token}})->status;
  };
  EXPECT_EQ(client.Get("/echo/hello")->status, 401);
  EXPECT_EQ(status_with("another"), 401);
  EXPECT_EQ(status_with(submit.text()), 403);
  EXPECT_EQ(status_with("secret"), 200);
}

}  // namespace
}  // namespace espalier
