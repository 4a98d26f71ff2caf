#include "tuner/server/engines/kubernetes_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/private_files.h"
#include "tests/server/engines/small_kubernetes.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/credentials/certificate.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const ApiCall kList{.method = "GET", .path = "/pods?labelSelector=espalier.dev%2Fpool%3Dvision"};
const ApiCall kDelete{.method = "DELETE", .path = "/pods/a", .body = "{}"};

std::string ErrorOf(const absl::StatusOr<std::string>& answer) {
  return std::string(answer.status().message());
}

TEST(KubernetesApi, ReadsItsTokenForEachCall) {
  SmallKubernetes kubernetes;
  KubernetesApi api(kubernetes.server(), 10);
  EXPECT_TRUE(api.Ask(kList).ok());
  const std::string old = TextOfFile(kubernetes.server().token_file);
  const std::string next = kubernetes.ExchangeToken();
  const auto refused = api.Ask(kList);
  EXPECT_TRUE(absl::IsUnauthenticated(refused.status())) << refused.status();
  EXPECT_THAT(ErrorOf(refused), AllOf(HasSubstr("does not take the token of"),
                                      HasSubstr(kubernetes.server().token_file)));
  EXPECT_THAT(ErrorOf(refused), ::testing::Not(HasSubstr(old.substr(0, old.find('\n')))));
  kubernetes.WriteToken(next);
  EXPECT_TRUE(api.Ask(kList).ok());
  kubernetes.WriteToken("");
  EXPECT_THAT(ErrorOf(api.Ask(kList)), HasSubstr("cannot be read or is empty"));
}

TEST(KubernetesApi, TellsWhatTheServerSaysAndWhatItMeans) {
  const struct {
    int code;
    const char* reason;
    absl::StatusCode expected;
  } kCases[] = {
      {403, "Forbidden", absl::StatusCode::kPermissionDenied},
      {404, "NotFound", absl::StatusCode::kNotFound},
      {409, "AlreadyExists", absl::StatusCode::kAlreadyExists},
      {409, "Conflict", absl::StatusCode::kAborted},
      {410, "Expired", absl::StatusCode::kOutOfRange},
      {422, "Invalid", absl::StatusCode::kInvalidArgument},
      {500, "InternalError", absl::StatusCode::kUnavailable},
      {504, "Timeout", absl::StatusCode::kDeadlineExceeded},
  };
  SmallKubernetes kubernetes;
  KubernetesApi api(kubernetes.server(), 10);
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.code);
    const std::string message = "User \"lab\" cannot list resource \"pods\"\nin the namespace";
    kubernetes.SetFault("GET /pods", {.code = c.code, .message = message, .reason = c.reason});
    const auto answer = api.Ask(kList);
    EXPECT_EQ(answer.status().code(), c.expected);
    EXPECT_EQ(ErrorOf(answer), "User \"lab\" cannot list resource \"pods\" in the namespace");
  }
}

TEST(KubernetesApi, LeavesAServerAloneForAsLongAsItAsks) {
  SmallKubernetes kubernetes;
  KubernetesApi api(kubernetes.server(), 10);
  kubernetes.SetFault("GET /pods", {.code = 429, .message = "too many", .retry_after = "3600"});
  EXPECT_TRUE(absl::IsResourceExhausted(api.Ask(kList).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(api.Ask(kDelete).status()));
  EXPECT_THAT(kubernetes.Requests(), SizeIs(1));
  // Where it does not say for how long, it is asked again when there is something to ask.
  KubernetesApi other(kubernetes.server(), 10);
  kubernetes.SetFault("GET /pods", {.code = 429, .message = "too many"});
  EXPECT_TRUE(absl::IsResourceExhausted(other.Ask(kList).status()));
  EXPECT_TRUE(other.Ask(kList).ok());
}

TEST(KubernetesApi, TrustsNoCertificateButThatOfItsFile) {
  const SmallKubernetes kubernetes;
  const ScratchFolder folder;
  ApiServer server = kubernetes.server();
  server.ca_file = folder.File("ca");
  ASSERT_TRUE(
      WritePrivateFile(server.ca_file, MakeCertificate("small.kubernetes", {"IP:127.0.0.1"})->pem)
          .ok());
  const auto refused = KubernetesApi(server, 10).Ask(kList);
  EXPECT_TRUE(absl::IsUnavailable(refused.status()));
  EXPECT_THAT(ErrorOf(refused), HasSubstr("/ca\" does not vouch"));
  server.ca_file = "";
  EXPECT_THAT(ErrorOf(KubernetesApi(server, 10).Ask(kList)), HasSubstr("(option \"ca\")"));
  // Nor one that is made out to somebody else.
  server = kubernetes.server();
  server.address.replace(server.address.find("127.0.0.1"), 9, "localhost");
  EXPECT_THAT(ErrorOf(KubernetesApi(server, 10).Ask(kList)), HasSubstr("does not vouch"));
  EXPECT_THAT(kubernetes.Requests(), SizeIs(0));
}

TEST(KubernetesApi, SaysWhetherACallMayHaveBeenDone) {
  const ApiServer server{.address = "https://127.0.0.1:1", .space = "lab"};  // nobody listens
  const auto away = KubernetesApi(server, 10).Ask(kDelete);
  EXPECT_TRUE(absl::IsUnavailable(away.status())) << away.status();
  EXPECT_EQ(ErrorOf(away), "the API server " + server.address + " cannot be reached");
}

TEST(FindApiServer, NamesTheOptionThatIsWrong) {
  const auto error = [](const ApiServer& given) {
    return std::string(FindApiServer(given).status().message());
  };
  EXPECT_EQ(error({}),
            "option \"server\" is needed outside of a cluster: the API server, https://HOST:PORT");
  for (const char* address : {"api:6443", "https://api", "http://api:6443", "ftp://127.0.0.1:1"}) {
    EXPECT_EQ(error({.address = address}),
              "option \"server\" needs https://HOST:PORT, or on this machine http://, got \"" +
                  std::string(address) + "\"");
  }
  EXPECT_EQ(error({.address = "https://api:6443", .ca_file = "/no/ca"}),
            "option \"ca\": the file \"/no/ca\" cannot be read");
  EXPECT_EQ(FindApiServer({.address = "http://127.0.0.1:8001"})->space, "default");
}

}  // namespace
}  // namespace espalier
