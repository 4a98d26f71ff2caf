// A whole service that other machines may reach: its certificate, its tokens, and who gets in
// where.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/base/machine_needs.h"
#include "tests/server/patient_client.h"
#include "tests/server/port_of.h"
#include "tests/server/running_service.h"
#include "tuner/credentials/access_token.h"
#include "tuner/credentials/pinned_certificate.h"

namespace espalier {
namespace {

using testing::HasSubstr;

constexpr uid_t kNobody = 65534;

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

class GuardedService : public testing::Test {
 protected:
  GuardedService() {
    folder_ = testing::TempDir() + "/espalier_guarded_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    options_.grpc_address = "0.0.0.0:0";
    options_.http_address = "0.0.0.0:0";
    options_.database = folder_ + "/pool.db";
    options_.credentials_folder = folder_ + "/credentials";
  }

  void Start() {
    service_.reset();
    auto started = Service::Start(options_);
    ASSERT_TRUE(started.ok()) << started.status();
    service_ = *std::move(started);
  }

  static std::string OnLoopback(const std::string& address) {
    return HostPort{"127.0.0.1", PortOf(address)}.text();
  }

  // A stub for whoever knows the service by its token.
  std::unique_ptr<v1::Tuner::Stub> Stub(const std::string& token) const {
    const std::string address = OnLoopback(service_->grpc_address());
    const auto pinned = PinService(address, PinOf(token));
    EXPECT_TRUE(pinned.ok()) << pinned.status();
    if (!pinned.ok()) return nullptr;
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride(pinned->name);
    return v1::Tuner::NewStub(grpc::CreateCustomChannel(
        address, grpc::SslCredentials({pinned->certificate, "", ""}), arguments));
  }

  std::string NewToken(v1::Tuner::Stub& stub, const std::string& token, const std::string& role) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token);
    v1::CreateTokenRequest request;
    request.set_role(role);
    request.set_name("a-" + role);
    v1::Token made;
    const grpc::Status status = stub.CreateToken(&context, request, &made);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return made.text();
  }

  static grpc::Status CreateStudy(v1::Tuner::Stub& stub, const std::string& token) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token);
    v1::CreateStudyRequest request;
    request.set_study_json("{}");
    v1::Study study;
    return stub.CreateStudy(&context, request, &study);
  }

  std::string folder_;
  ServiceOptions options_;
  std::unique_ptr<Service> service_;
};

TEST_F(GuardedService, MakeTheirOwnCertificateAndKeepWhatIsSecret) {
  Start();
  const ServiceCredentials& credentials = service_->credentials();
  EXPECT_EQ(PinOf(credentials.join_token), credentials.certificate_hash);
  EXPECT_EQ(FirstLine(credentials.join_token_file), credentials.join_token);
  EXPECT_EQ(service_->scheme(service_->http_address()), "https://");
  for (const auto& entry : std::filesystem::directory_iterator(options_.credentials_folder)) {
    struct stat about {};
    ASSERT_EQ(stat(entry.path().c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600u) << entry.path();
  }
  // All of it is the same after a restart: agents join again with what they have.
  const std::string join = credentials.join_token;
  Start();
  EXPECT_EQ(service_->credentials().join_token, join);
  // The database holds no secret.
  std::ifstream file(options_.database, std::ios::binary);
  std::ifstream log(options_.database + "-wal", std::ios::binary);
  std::ostringstream all;
  all << file.rdbuf() << log.rdbuf();
  EXPECT_EQ(all.str().find(ParseAccessToken(join)->secret), std::string::npos);
  EXPECT_NE(all.str().find(ParseAccessToken(join)->id), std::string::npos);
}

TEST_F(GuardedService, EachRoleGetsAsFarAsItMay) {
  options_.http_address.clear();
  options_.token = "a word";  // with which the kernel's word lets nobody in, as from elsewhere
  Start();
  const std::string administer = FirstLine(service_->credentials().administer_token_file);
  const auto stub = Stub(administer);
  ASSERT_NE(stub, nullptr);
  const std::string view = NewToken(*stub, administer, "view");
  const std::string submit = NewToken(*stub, administer, "submit");
  // An empty study is bad input, which only who is let in is told.
  EXPECT_EQ(CreateStudy(*stub, submit).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(CreateStudy(*stub, administer).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const grpc::Status small = CreateStudy(*stub, view);
  EXPECT_EQ(small.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(small.error_message(), HasSubstr("needs submit"));
  EXPECT_EQ(CreateStudy(*stub, service_->credentials().join_token).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  const grpc::Status other = CreateStudy(*stub, NewAccessToken("").text());
  EXPECT_EQ(other.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(other.error_message(), HasSubstr("another pool"));
}

TEST_F(GuardedService, HttpOverTlsKeepsConnectionsAndKnowsRoles) {
  Start();
  const std::string address = OnLoopback(service_->http_address());
  Patient<httplib::SSLClient> client(PortOf(address));
  client.set_ca_cert_path((options_.credentials_folder + "/certificate.pem").c_str());
  client.set_keep_alive(true);
  const auto health = client.Get("/healthz");
  ASSERT_TRUE(health) << httplib::to_string(health.error());
  EXPECT_EQ(health->status, 200);
  // From loopback, and of the service's own user.
  EXPECT_EQ(client.Get("/api/studies")->status, 200);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client.Get("/api/pool")->status, 200);
  EXPECT_EQ(client.Post("/api/studies", std::string(300'000, ' '), "application/json")->status,
            400);
}

TEST_F(GuardedService, StreamsOfEventsGoOverTlsToo) {
  Start();
  const std::string address = OnLoopback(service_->http_address());
  const int port = PortOf(address);
  const auto client = [&] {
    auto made = std::make_unique<Patient<httplib::SSLClient>>(port);
    made->set_ca_cert_path((options_.credentials_folder + "/certificate.pem").c_str());
    return made;
  };
  const auto writer = client();
  std::string events;
  int studies = 0;
  client()->Get("/api/view/events", [&](const char* text, std::size_t size) {
    events.append(text, size);
    const std::string awaited =
        studies == 0 ? "event: hello" : "\"studies\":[" + std::to_string(studies) + "]";
    if (events.find(awaited) == std::string::npos) return true;
    if (studies == 3) return false;  // the client leaves
    const std::string name = "s" + std::to_string(++studies);
    const std::string study = R"json({"ask_and_tell": true, "name": ")json" + name + "\"}";
    EXPECT_EQ(writer->Post("/api/studies", study, "application/json")->status, 201);
    return true;
  });
  EXPECT_THAT(events, HasSubstr("event: hello"));
  EXPECT_THAT(events, HasSubstr("\"studies\":[3]"));
}

TEST_F(GuardedService, AWordAloneIsToBeShownAlsoByTheOwnUser) {
  options_.token = "secret";
  Start();
  const std::string address = OnLoopback(service_->http_address());
  Patient<httplib::SSLClient> client(PortOf(address));
  client.enable_server_certificate_verification(false);
  EXPECT_EQ(client.Get("/api/studies")->status, 401);
  EXPECT_EQ(client.Get("/api/studies", {{"Authorization", "Bearer secret"}})->status, 200);
  const std::string join = service_->credentials().join_token;
  EXPECT_EQ(client.Get("/api/studies", {{"Authorization", "Bearer " + join}})->status, 403);
  EXPECT_EQ(client.Get("/api/studies", {{"Espalier-Own-User", "1"}})->status, 401);
}

TEST_F(GuardedService, PlaintextIsPlaintext) {
  options_.plaintext = true;
  Start();
  EXPECT_EQ(service_->scheme(service_->grpc_address()), "http://");
  EXPECT_EQ(PinOf(service_->credentials().join_token), "");
  EXPECT_FALSE(service_->credentials().join_token.empty());
}

// What an HTTP request of another user of this machine is answered with: only system calls, as the
// process has threads.
int StatusForNobody(int port, const std::string& request) {
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(1);
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<in_port_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) _exit(2);
    if (write(socket, request.data(), request.size()) < 0) _exit(3);
    std::array<char, 64> answer{};
    if (read(socket, answer.data(), 12) != 12) _exit(4);
    _exit((answer[9] - '0') * 10 + (answer[10] - '0'));  // of "HTTP/1.1 401" the 40
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status) * 10;
}

TEST(Loopback, AnotherUserOfTheMachineNeedsAToken) {
  if (NotTestedHere(NoOtherUser())) return;
  RunningService running;
  const auto request = [](const std::string& more) {
    return "GET /api/studies HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n";
  };
  EXPECT_EQ(StatusForNobody(running.http_port(), request("")), 400);  // 40x
  EXPECT_EQ(StatusForNobody(running.http_port(), request("Espalier-Own-User: 1\r\n")), 400);
  grpc::ClientContext context;
  v1::CreateTokenRequest wanted;
  wanted.set_role("view");
  wanted.set_name("nobody");
  v1::Token token;
  ASSERT_TRUE(running.stub->CreateToken(&context, wanted, &token).ok());
  EXPECT_EQ(StatusForNobody(running.http_port(),
                            request("Authorization: Bearer " + token.text() + "\r\n")),
            200);

  ServiceOptions open;
  open.open_loopback = true;
  RunningService everybody(open);
  EXPECT_EQ(StatusForNobody(everybody.http_port(), request("")), 200);
}

TEST(Loopback, WithoutTrustEvenTheOwnUserShowsAToken) {
  ServiceOptions options;
  options.no_loopback_trust = true;
  EXPECT_THAT(std::string(Service::Start(options).status().message()),
              HasSubstr("neither a folder to make one in nor a shared one"));
  options.credentials_folder = testing::TempDir() + "/espalier_no_loopback_trust";
  std::filesystem::remove_all(options.credentials_folder);
  options.open_loopback = true;
  EXPECT_THAT(std::string(Service::Start(options).status().message()),
              HasSubstr("leave one of them out"));
  options.open_loopback = false;
  RunningService running(options);
  v1::StudyDetails details;
  EXPECT_EQ(running.Get("none", &details).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  const std::string token = FirstLine(running.service->credentials().administer_token_file);
  EXPECT_EQ(running.Get("none", &details, token).error_code(), grpc::StatusCode::NOT_FOUND);
  PatientClient http(running.http_port());
  EXPECT_EQ(http.Get("/api/studies")->status, 401);
  EXPECT_EQ(http.Get("/api/studies", {{"Authorization", "Bearer " + token}})->status, 200);
  EXPECT_EQ(http.Get("/healthz")->status, 200);
  std::filesystem::remove_all(options.credentials_folder);
}

TEST(Tokens, AreMadeListedAndEnded) {
  RunningService running;
  v1::CreateTokenRequest wanted;
  wanted.set_role("submit");
  wanted.set_name("ada");
  wanted.set_expires_in_s(3600);
  v1::Token token;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(running.stub->CreateToken(&context, wanted, &token).ok());
  }
  EXPECT_GT(token.expires_s(), token.created_s() + 3599);
  {
    grpc::ClientContext context;
    v1::Token again;
    EXPECT_EQ(running.stub->CreateToken(&context, wanted, &again).error_code(),
              grpc::StatusCode::ALREADY_EXISTS);
  }
  for (const auto& [role, name] : std::vector<std::pair<std::string, std::string>>{
           {"root", "x"}, {"view", ""}, {"view", "two words"}}) {
    grpc::ClientContext context;
    v1::CreateTokenRequest bad;
    bad.set_role(role);
    bad.set_name(name);
    v1::Token none;
    EXPECT_EQ(running.stub->CreateToken(&context, bad, &none).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT)
        << role << name;
  }
  {
    grpc::ClientContext context;
    v1::RemoveTokenRequest gone;
    gone.set_token("ada");
    v1::Token removed;
    ASSERT_TRUE(running.stub->RemoveToken(&context, gone, &removed).ok());
    EXPECT_GT(removed.removed_s(), 0);
  }
  grpc::ClientContext context;
  v1::ListTokensResponse list;
  ASSERT_TRUE(running.stub->ListTokens(&context, {}, &list).ok());
  ASSERT_EQ(list.tokens_size(), 1);
  EXPECT_EQ(list.tokens(0).name(), "ada");
  EXPECT_EQ(list.tokens(0).text(), "");
}

}  // namespace
}  // namespace espalier
