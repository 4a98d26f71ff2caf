// Codes with which browsers begin sessions, over gRPC.

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "sessions.grpc.pb.h"
#include "tests/server/patient_client.h"
#include "tests/server/port_of.h"
#include "tuner.grpc.pb.h"
#include "tuner/server/service.h"

namespace espalier {
namespace {

using testing::HasSubstr;

constexpr char kSharedWord[] = "a-word-that-lets-in";

class GrpcSessions : public testing::Test {
 protected:
  void Start(const std::string& http, const std::string& token) {
    ServiceOptions options;
    options.grpc_address = "127.0.0.1:0";
    options.http_address = http;
    options.token = token;
    auto started = Service::Start(options);
    ASSERT_TRUE(started.ok()) << started.status();
    service_ = *std::move(started);
    channel_ = grpc::CreateChannel(service_->grpc_address(), grpc::InsecureChannelCredentials());
  }

  static void Show(grpc::ClientContext& context, const std::string& token) {
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  }
  grpc::Status CreateCode(const std::string& token, v1::LoginCode* made) {
    grpc::ClientContext context;
    Show(context, token);
    return v1::Sessions::NewStub(channel_)->CreateLoginCode(&context, {}, made);
  }
  std::string NewToken(const std::string& role) {
    grpc::ClientContext context;
    Show(context, kSharedWord);
    v1::CreateTokenRequest request;
    request.set_role(role);
    request.set_name(role);
    v1::Token made;
    EXPECT_TRUE(v1::Tuner::NewStub(channel_)->CreateToken(&context, request, &made).ok());
    return made.text();
  }

  std::unique_ptr<Service> service_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(GrpcSessions, ACodeLetsABrowserInAsWhoHasAskedForIt) {
  Start("127.0.0.1:0", kSharedWord);
  v1::LoginCode code;
  EXPECT_EQ(CreateCode("", &code).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(CreateCode(NewToken("agent"), &code).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(CreateCode(NewToken("view"), &code).ok());
  EXPECT_EQ(code.ends_in_s(), 60);
  const std::string address = service_->http_address();
  PatientClient browser(PortOf(address));
  const auto begun =
      browser.Post("/api/session", {{"Authorization", "Espalier-Code " + code.code()}}, "", "");
  ASSERT_EQ(begun->status, 200) << begun->body;
  const std::string set = begun->get_header_value("Set-Cookie");
  const httplib::Headers page = {{"Cookie", set.substr(0, set.find(';'))},
                                 {"Origin", "http://" + address},
                                 {"X-Espalier", "1"}};
  EXPECT_EQ(browser.Get("/api/studies", page)->status, 200);
  EXPECT_EQ(browser.Post("/api/studies/none/stop", page, "", "")->status, 403) << "it only looks";
}

TEST_F(GrpcSessions, WithoutATokenOrAPageThereIsNoCode) {
  v1::LoginCode code;
  Start("127.0.0.1:0", "");
  const grpc::Status own_user = CreateCode("", &code);
  EXPECT_EQ(own_user.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(own_user.error_message(), HasSubstr("which shows none"));
  service_.reset();
  Start("", kSharedWord);
  const grpc::Status no_page = CreateCode(kSharedWord, &code);
  EXPECT_EQ(no_page.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(no_page.error_message(), HasSubstr("has no page"));
}

}  // namespace
}  // namespace espalier
