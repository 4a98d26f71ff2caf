#include "base/host_port.h"

#include <string>

#include "gtest/gtest.h"

namespace espalier {
namespace {

TEST(HostPort, IsReadAndWrittenAlike) {
  for (const char* text : {"127.0.0.1:7077", "oak:0", "[::1]:7077", "[fd00::2]:65535"}) {
    const auto address = ParseHostPort(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->text(), text);
  }
  EXPECT_EQ(ParseHostPort("[::1]:7077")->host, "::1");
}

TEST(HostPort, WhatIsNoneIsAnErrorThatQuotesIt) {
  for (const char* text :
       {"", "7077", ":7077", "oak", "oak:", "oak:x", "oak:70777", "oak:-1", "::1:7077", "[]:1"}) {
    const auto address = ParseHostPort(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_NE(address.status().message().find(text), std::string::npos);
    EXPECT_NE(address.status().message().find("HOST:PORT is needed"), std::string::npos);
  }
}

TEST(CheckServiceAddress, RefusesUrlsAndHostsWithoutAPort) {
  EXPECT_TRUE(CheckServiceAddress("--join", "oak:7077").ok());
  EXPECT_EQ(CheckServiceAddress("--join", "http://oak:7077").message(),
            "--join \"http://oak:7077\": must be HOST:PORT, not a URL, e.g. 127.0.0.1:7077");
  EXPECT_EQ(CheckServiceAddress("service", "oak").message(),
            "service \"oak\": must be HOST:PORT, e.g. 127.0.0.1:7077");
}

// As gRPC 1.51 says them.
TEST(LossOf, TellsHowFarACallHasCome) {
  const std::string none =
      "failed to connect to all addresses; last error: UNKNOWN: ipv4:1.2.3.4:5: ";
  EXPECT_EQ(LossOf(none + "Failed to connect to remote host: Connection refused"),
            CallLoss::kNotConnected);
  EXPECT_EQ(LossOf("DNS resolution failed for oak:7077"), CallLoss::kNotConnected);
  EXPECT_EQ(LossOf(none + "Handshake read failed"), CallLoss::kBrokenOff);
  EXPECT_EQ(LossOf(none + "Socket closed"), CallLoss::kBrokenOff);
  EXPECT_EQ(LossOf(none + "recvmsg:Connection reset by peer"), CallLoss::kBrokenOff);
  EXPECT_EQ(LossOf("Socket closed"), CallLoss::kUnanswered);
  EXPECT_EQ(LossOf("GOAWAY received"), CallLoss::kUnanswered);
}

}  // namespace
}  // namespace espalier
