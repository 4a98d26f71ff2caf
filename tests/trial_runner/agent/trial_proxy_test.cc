#include "trial_runner/agent/trial_proxy.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <string>

#include "trial_runner/agent/handover.h"
#include "tuner/forwarding/loopback_listener.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string PinnedToken() {
  return "esp1.01234567." + std::string(64, 'a') + "." + std::string(64, 'b');
}

AgentOptions Joining(const std::string& service, const std::string& http = "") {
  AgentOptions options;
  options.service_address = service;
  options.http_address = http;
  return options;
}

ServiceAccess AccessOf(const AgentOptions& options) {
  const absl::StatusOr<TrialProxy> proxy = TrialProxy::Open(options, nullptr);
  EXPECT_TRUE(proxy.ok()) << proxy.status();
  return proxy->access();
}

TEST(TrialProxy, BesideAServiceInTheClearThereAreNone) {
  for (const std::string address : {"127.0.0.1:7077", "localhost:7077", "[::1]:7077"}) {
    AgentOptions options = Joining(address, "http://127.0.0.1:7078");
    options.tls_ca_file = "/ca.pem";
    const ServiceAccess access = AccessOf(options);
    EXPECT_FALSE(access.forwarded);
    EXPECT_EQ(access.service, address);
    EXPECT_EQ(access.http, "http://127.0.0.1:7078");
    EXPECT_EQ(access.tls_ca_file, "/ca.pem");
  }
}

TEST(TrialProxy, AServiceElsewhereIsBehindTwoPortsOfLoopback) {
  AgentOptions options = Joining("10.0.0.1:7077", "https://oak:7078/pool");
  options.token = PinnedToken();
  const ServiceAccess access = AccessOf(options);
  EXPECT_TRUE(access.forwarded);
  EXPECT_THAT(access.service, StartsWith("127.0.0.1:"));
  EXPECT_THAT(access.http, StartsWith("http://127.0.0.1:"));
  EXPECT_THAT(access.http, HasSubstr("/pool"));
  EXPECT_EQ(access.tls_ca_file, "");
  // In the clear too: one rule for trials, whatever the service speaks.
  EXPECT_TRUE(AccessOf(Joining("10.0.0.1:7077")).forwarded);
  EXPECT_EQ(AccessOf(Joining("10.0.0.1:7077")).http, "");
}

TEST(TrialProxy, AServiceBesideThatSpeaksTlsIsBehindThemToo) {
  AgentOptions options = Joining("127.0.0.1:7077", "http://127.0.0.1:7078");
  options.token = PinnedToken();
  const ServiceAccess access = AccessOf(options);
  EXPECT_THAT(access.service, StartsWith("127.0.0.1:"));
  EXPECT_NE(access.service, "127.0.0.1:7077");
  EXPECT_EQ(access.http, "http://127.0.0.1:7078");
}

TEST(TrialProxy, AnHttpsServiceWithoutATrustOfOursStaysAsItIs) {
  EXPECT_EQ(AccessOf(Joining("10.0.0.1:7077", "https://oak")).http, "https://oak");
}

TEST(TrialProxy, AnAddressThatIsNoneIsNamed) {
  const absl::Status bad =
      TrialProxy::Open(Joining("10.0.0.1:7077", "ftp://oak:7078"), nullptr).status();
  EXPECT_THAT(std::string(bad.message()), HasSubstr("ftp://oak:7078"));
}

TEST(TrialProxy, ASuccessorKeepsThePorts) {
  AgentOptions options = Joining("10.0.0.1:7077", "http://10.0.0.1:7078");
  absl::StatusOr<TrialProxy> proxy = TrialProxy::Open(options, nullptr);
  ASSERT_TRUE(proxy.ok()) << proxy.status();
  const ServiceAccess before = proxy->access();
  v1::AgentHandover handover;
  proxy->HandOver(handover);
  EXPECT_THAT(DescriptorsOf(handover),
              ::testing::IsSupersetOf({handover.service_listener(), handover.http_listener()}));
  // Stands for the exec, which closes nothing that is handed over.
  handover.set_service_listener(dup(handover.service_listener()));
  handover.set_http_listener(dup(handover.http_listener()));
  { const TrialProxy ended = *std::move(proxy); }
  const absl::StatusOr<TrialProxy> successor = TrialProxy::Open(options, &handover);
  ASSERT_TRUE(successor.ok()) << successor.status();
  EXPECT_EQ(successor->access().service, before.service);
  EXPECT_EQ(successor->access().http, before.http);
  // One of an older release hands none over.
  const v1::AgentHandover older;
  EXPECT_TRUE(TrialProxy::Open(options, &older).ok());
}

}  // namespace
}  // namespace espalier
