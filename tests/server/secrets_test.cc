// Who may look and no more is told no secret, whatever is asked for: each call that the table of
// permissions opens to the role view is made, over studies with secrets.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "adapters/nni/service/frontend.h"
#include "adapters/nni/service/names.h"
#include "adapters/optuna/dashboard/server.h"
#include "adapters/optuna/storage_service.h"
#include "gmock/gmock.h"
#include "google/protobuf/dynamic_message.h"
#include "grpcpp/impl/client_unary_call.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "nlohmann/json.hpp"
#include "storage.pb.h"
#include "tests/server/patient_client.h"
#include "tests/server/port_of.h"
#include "tests/server/running_service.h"
#include "tuner/core/state/private_attributes.h"
#include "tuner/server/access/permissions.h"

namespace espalier {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using testing::HasSubstr;
using testing::Not;

constexpr char kSecretOfStudy[] = "value-of-the-studys-key";
constexpr char kSecretOfNni[] = "value-of-the-experiments-key";

httplib::Headers Bearer(const std::string& token) {
  if (token.empty()) return {};
  return {{"Authorization", "Bearer " + token}};
}

class SecretsTest : public testing::Test {
 protected:
  SecretsTest() : running_(Options()), http_(running_.http_port()) {
    v1::CreateStudyRequest create;
    create.set_study_json(absl::StrCat(
        R"({"name": "own", "command": "train", "metric": "loss", "env": {"API_KEY": ")",
        kSecretOfStudy, R"(", "SHOWN": 3}, "search_space": {"lr": {"_type": "choice", )",
        R"("_value": [1, 2]}}, "trials": 2})"));
    create.set_directory("/");
    const grpc::Status created = running_.Create(create);
    EXPECT_TRUE(created.ok()) << created.error_message();
    Put("/nni/v1/experiments/e",
        absl::StrCat(R"({"command": "train", "directory": "/", "environment": {"API_KEY": ")",
                     kSecretOfNni, R"("}})"));
    const nlohmann::json parameter = {{"sequence", 0},
                                      {"parameter", R"({"parameter_id": 0, "parameters": {}})"}};
    Put("/nni/v1/experiments/e/trials/t", parameter.dump());
    for (const char* role : {"view", "submit"}) tokens_.push_back(NewToken(role));
    secrets_ = {kSecretOfStudy, kSecretOfNni, ChannelSecret()};
    for (const std::string_view key : kPrivateAttributes) secrets_.emplace_back(key);
  }

  static ServiceOptions Options() {
    ServiceOptions options;
    options.frontends = {nni::MakeFrontend, optuna_storage::MakeFrontend};
    options.dashboard_address = "127.0.0.1:0";
    options.start_dashboard = optuna_dashboard::Server({});
    return options;
  }

  void Put(const std::string& path, const std::string& body) {
    const auto done = http_.Put(path, body, "application/json");
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, 200) << path << ": " << done->body;
  }

  std::string NewToken(const std::string& role) {
    grpc::ClientContext context;
    v1::CreateTokenRequest request;
    request.set_role(role);
    request.set_name(role);
    v1::Token made;
    EXPECT_TRUE(running_.stub->CreateToken(&context, request, &made).ok());
    return made.text();
  }
  const std::string& view() const { return tokens_[0]; }
  const std::string& submit() const { return tokens_[1]; }

  std::string Get(const std::string& path, const std::string& token) {
    const auto got = http_.Get(path, Bearer(token));
    EXPECT_TRUE(got) << path;
    return got ? got->body : "";
  }

  std::vector<std::int64_t> TrialIds() {
    std::vector<std::int64_t> ids;
    for (const std::string study : {"own", "nni-e"}) {
      v1::StudyDetails details;
      EXPECT_TRUE(running_.Get(study, &details).ok());
      for (const v1::Trial& trial : details.trials()) ids.push_back(trial.id());
    }
    return ids;
  }

  // The last part of the path of the trial's channel, which the service's own user may see.
  std::string ChannelSecret() {
    v1::StudyDetails details;
    EXPECT_TRUE(running_.Get("nni-e", &details).ok());
    if (details.trials_size() == 0) return "no trial";
    const auto& shown = details.trials(0).system_attributes();
    const auto found = shown.find("espalier:environment");
    EXPECT_NE(found, shown.end());
    if (found == shown.end()) return "no environment";
    const std::string& json = found->second;
    const std::string begin = "/nni/v1/channel/e/t/";
    const std::size_t at = json.find(begin);
    EXPECT_NE(at, std::string::npos) << json;
    if (at == std::string::npos) return "no channel";
    const std::size_t from = at + begin.size();
    return json.substr(from, json.find('"', from) - from);
  }

  void ExpectNoSecret(const std::string& call, const std::string& answer) const {
    for (const std::string& secret : secrets_) {
      EXPECT_EQ(answer.find(secret), std::string::npos) << call << " tells " << secret;
    }
  }

  // The bytes of the answer; empty: it was refused.
  std::string Call(const std::string& method, const Message& request, const std::string& token) {
    grpc::ClientContext context;
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    const grpc::Slice slice(request.SerializeAsString());
    const grpc::ByteBuffer bytes(&slice, 1);
    grpc::ByteBuffer answer;
    const grpc::Status status = grpc::internal::BlockingUnaryCall(
        channel_.get(),
        grpc::internal::RpcMethod(method.c_str(), grpc::internal::RpcMethod::NORMAL_RPC), &context,
        bytes, &answer);
    EXPECT_NE(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << method;
    if (!status.ok()) return "";
    std::vector<grpc::Slice> parts;
    EXPECT_TRUE(answer.Dump(&parts).ok());
    std::string all;
    for (const grpc::Slice& part : parts) all.append(part.begin(), part.end());
    return all;
  }

  RunningService running_;
  PatientClient http_;
  std::shared_ptr<grpc::Channel> channel_ =
      grpc::CreateChannel(running_.service->grpc_address(), grpc::InsecureChannelCredentials());
  std::vector<std::string> tokens_;
  std::vector<std::string> secrets_;
};

// A request for that study and trial.
void Fill(Message& request, const std::string& study, std::int64_t study_id, std::int64_t trial) {
  for (int i = 0; i < request.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *request.GetDescriptor()->field(i);
    if (field.is_repeated()) continue;
    if (field.name() == "name" || field.name() == "study" || field.name() == "study_name") {
      request.GetReflection()->SetString(&request, &field, study);
    } else if (field.name() == "trial_id" || field.name() == "study_id") {
      request.GetReflection()->SetInt64(&request, &field,
                                        field.name() == "trial_id" ? trial : study_id);
    }
  }
}

TEST_F(SecretsTest, NoGrpcCallTellsAViewerOne) {
  const std::vector<std::int64_t> trials = TrialIds();
  int calls = 0;
  int answered = 0;
  google::protobuf::DynamicMessageFactory messages;
  for (const auto* file : {v1::GetStudyRequest::descriptor()->file(),
                           ::optuna::GetTrialRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service(0)->method_count(); ++i) {
      const auto& method = *file->service(0)->method(i);
      const std::string name = "/" + file->service(0)->full_name() + "/" + method.name();
      if (FindPermission(name)->needed != Role::kView) continue;
      ++calls;
      bool any = false;
      for (const std::int64_t id : {1, 2}) {
        for (const std::int64_t trial : trials) {
          const std::unique_ptr<Message> request(messages.GetPrototype(method.input_type())->New());
          Fill(*request, id == 1 ? "own" : "nni-e", id, trial);
          const std::string answer = Call(name, *request, view());
          any = any || !answer.empty();
          ExpectNoSecret(name, answer);
        }
      }
      if (any) ++answered;
    }
  }
  EXPECT_GE(calls, 14);
  EXPECT_GE(answered, 10);
}

TEST_F(SecretsTest, NoHttpRouteTellsAViewerOne) {
  const std::vector<std::int64_t> trials = TrialIds();
  int routes = 0;
  for (const Permission& row : Permissions()) {
    if (!row.call.starts_with("GET ") || row.needed != Role::kView) continue;
    if (row.call == "GET /api/view/events") continue;  // goes on, and tells ids and numbers alone
    ++routes;
    for (const std::string study : {"own", "nni-e"}) {
      for (const std::int64_t trial : trials) {
        const std::string path = absl::StrReplaceAll(
            std::string(row.call.substr(4)),
            {{"{study}", study},
             {"{trial_id}", absl::StrCat(trial)},
             {"{experiment}", "e"},
             {"{trial}", "t"},
             {"{name}", row.call.find("/files/") != row.call.npos ? "parameter.cfg" : study}});
        const auto got = http_.Get(path, Bearer(view()));
        ASSERT_TRUE(got) << path;
        EXPECT_NE(got->status, 401) << path;
        EXPECT_NE(got->status, 403) << path;
        ExpectNoSecret(path, got->body);
      }
    }
  }
  EXPECT_GE(routes, 10);
}

TEST_F(SecretsTest, NoPageOfTheDashboardTellsAnybodyOne) {
  PatientClient dashboard(PortOf(running_.service->dashboard_address()));
  for (const std::string path :
       {"/api/studies", "/api/studies/1", "/api/studies/2", "/api/studies/1/param_importances",
        "/api/studies/2/param_importances", "/csv/1", "/csv/2", "/api/meta", "/dashboard"}) {
    for (const std::string& token : {view(), submit(), std::string()}) {
      const auto got = dashboard.Get(path, Bearer(token));
      ASSERT_TRUE(got) << path;
      ExpectNoSecret(path, got->body);
    }
  }
}

TEST_F(SecretsTest, ThoseWhoMaySubmitSeeTheirEnvironment) {
  for (const std::string& token : {submit(), std::string()}) {
    EXPECT_THAT(Get("/api/studies/own", token), HasSubstr(kSecretOfStudy));
    EXPECT_THAT(Get("/api/studies/nni-e", token), HasSubstr(kSecretOfNni));
    v1::StudyDetails details;
    ASSERT_TRUE(running_.Get("own", &details, token).ok());
    EXPECT_THAT(details.study().study_json(), HasSubstr(kSecretOfStudy));
  }
  v1::StudyDetails masked;
  ASSERT_TRUE(running_.Get("own", &masked, view()).ok());
  const std::string& study = masked.study().study_json();
  EXPECT_THAT(study, HasSubstr(R"("env":{"API_KEY":"***","SHOWN":"***"})"));
  EXPECT_THAT(study, HasSubstr(R"("_type":"choice")")) << "the rest is worded as it was";
}

TEST_F(SecretsTest, PrivateAttributesAreToldToNobody) {
  const std::vector<std::int64_t> trials = TrialIds();
  for (const std::string& token : {view(), submit(), std::string()}) {
    const std::string study = Get("/api/studies/nni-e", token);
    ::optuna::GetStudySystemAttributesRequest request;
    request.set_study_id(2);
    const std::string optuna =
        Call("/optuna.StorageService/GetStudySystemAttributes", request, token);
    for (const std::string_view key : kPrivateAttributes) {
      EXPECT_THAT(study, Not(HasSubstr(std::string(key))));
      EXPECT_THAT(optuna, Not(HasSubstr(std::string(key))));
    }
  }
  EXPECT_TRUE(IsPrivateAttribute(nni::kChannelKey));
  EXPECT_TRUE(IsPrivateAttribute(nni::kDefinition));
}

TEST_F(SecretsTest, PrivateAttributesAreSetByNoClient) {
  for (const std::string_view key : kPrivateAttributes) {
    const std::string body = absl::StrCat(R"({"system": {")", std::string(key), R"(": "1"}})");
    const auto set = http_.Post(absl::StrCat("/api/trials/", TrialIds().back(), "/attributes"),
                                body, "application/json");
    ASSERT_TRUE(set);
    EXPECT_EQ(set->status, 400) << set->body;
    EXPECT_THAT(set->body, HasSubstr("the service's own"));
    ::optuna::SetStudySystemAttributeRequest request;
    request.set_study_id(2);
    request.set_key(std::string(key));
    request.set_value("1");
    EXPECT_EQ(Call("/optuna.StorageService/SetStudySystemAttribute", request, ""), "");
  }
  // The experiment is as it was.
  Put("/nni/v1/experiments/e",
      absl::StrCat(R"({"command": "train", "directory": "/", "environment": {"API_KEY": ")",
                   kSecretOfNni, R"("}})"));
  EXPECT_EQ(ChannelSecret(), secrets_[2]);
}

}  // namespace
}  // namespace espalier
