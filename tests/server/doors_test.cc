// What guards the doors: addresses and tokens.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuner/server/listen_address.h"
#include "tuner/server/token.h"

namespace espalier {
namespace {

TEST(ListenAddress, ReadsHostAndPort) {
  EXPECT_EQ(ParseListenAddress("127.0.0.1:7077")->port, 7077);
  EXPECT_EQ(ParseListenAddress("[::1]:0")->host, "::1");
  EXPECT_EQ(ParseListenAddress("[::1]:5")->text(), "[::1]:5");
  for (const char* bad : {"", "7077", ":7077", "host:", "host:x", "host:70000", "host:-1", "::1:5",
                          "host:1 "}) {
    const auto parsed = ParseListenAddress(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << bad;
  }
}

TEST(ListenAddress, KnowsLoopback) {
  for (const char* near : {"127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1"}) {
    EXPECT_TRUE(ParseListenAddress(near)->loopback()) << near;
  }
  for (const char* far : {"0.0.0.0:1", "192.168.0.1:1", "example.org:1", "[::]:1"}) {
    EXPECT_FALSE(ParseListenAddress(far)->loopback()) << far;
  }
}

TEST(CheckFree, SaysWhichAddressIsNotOfThisMachine) {
  EXPECT_TRUE(CheckFree({"127.0.0.1", 0}).ok());
  const absl::Status status = CheckFree({"192.0.2.1", 7077});
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("192.0.2.1:7077"));
}

TEST(Token, OnlyTheWholeTokenOpens) {
  EXPECT_TRUE(ShowsToken("Bearer secret", "secret"));
  for (const char* shown : {"", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "secret",
                            "bearer secret", "Bearer secretsecret", "Bearer Secret"}) {
    EXPECT_FALSE(ShowsToken(shown, "secret")) << shown;
  }
}

}  // namespace
}  // namespace espalier
