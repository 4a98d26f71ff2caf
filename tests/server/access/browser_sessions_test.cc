#include "tuner/server/access/browser_sessions.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// As a browser sends it back, beside cookies of others on this host.
std::string Sent(const std::string& set) {
  return "theme=dark; " + set.substr(0, set.find(';')) + "; espalier-other=12";
}

class BrowserSessionsTest : public testing::Test {
 protected:
  Time now_ = TimeFromSeconds(1000);
  BrowserSessions sessions_{"ab12", true, [this] { return now_; }};
};

TEST_F(BrowserSessionsTest, ACookieStandsForItsToken) {
  const std::string ada = sessions_.Begin("token of ada");
  const std::string bob = sessions_.Begin("token of bob");
  EXPECT_EQ(sessions_.TokenOf(Sent(ada)), "token of ada");
  EXPECT_EQ(sessions_.TokenOf(Sent(bob)), "token of bob");
  for (const char* cookies :
       {"", "__Host-espalier-ab12=", "__Host-espalier-ab12=ff", ";;=;", "espalier-ab12"}) {
    EXPECT_EQ(sessions_.TokenOf(cookies), "") << cookies;
  }
}

TEST_F(BrowserSessionsTest, CookiesAreForThisServiceAloneAndForNoScript) {
  const std::string cookie = sessions_.Begin("token");
  EXPECT_THAT(cookie, StartsWith("__Host-espalier-ab12="));
  EXPECT_THAT(cookie, HasSubstr("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure"));
  BrowserSessions plain("ab12", false);
  EXPECT_THAT(plain.Begin("token"), StartsWith("espalier-ab12="));
  EXPECT_EQ(plain.Begin("token").find("Secure"), std::string::npos);
  EXPECT_EQ(plain.TokenOf(Sent(cookie)), "");
}

TEST_F(BrowserSessionsTest, EndWhenTheirTimeIsOverOrTheirUserSaysSo) {
  const std::string first = sessions_.Begin("token");
  const std::string second = sessions_.Begin("token");
  EXPECT_THAT(sessions_.End(Sent(first)), HasSubstr("ab12=; Path=/; Max-Age=0"));
  EXPECT_EQ(sessions_.TokenOf(Sent(first)), "");
  EXPECT_EQ(sessions_.TokenOf(Sent(second)), "token");
  now_ = After(now_, kSession_s);
  EXPECT_EQ(sessions_.TokenOf(Sent(second)), "");
}

TEST_F(BrowserSessionsTest, ACodeBeginsOneSessionWithinItsTime) {
  const std::string code = sessions_.NewCode("token of ada");
  EXPECT_EQ(sessions_.TokenOf("__Host-espalier-ab12=" + code), "") << "it is no session";
  EXPECT_EQ(*sessions_.TokenOfCode(code), "token of ada");
  EXPECT_EQ(*sessions_.TokenOfCode(code), "token of ada") << "to ask what it stands for is no use";
  const absl::StatusOr<std::string> cookie = sessions_.BeginByCode(code);
  ASSERT_TRUE(cookie.ok()) << cookie.status();
  EXPECT_EQ(sessions_.TokenOf(Sent(*cookie)), "token of ada");
  const std::string late = sessions_.NewCode("token");
  now_ = After(now_, kLoginCode_s);
  for (const std::string& none : {code, late, std::string(), std::string("ff")}) {
    EXPECT_TRUE(absl::IsUnauthenticated(sessions_.TokenOfCode(none).status())) << none;
    EXPECT_THAT(sessions_.BeginByCode(none).status().message(), HasSubstr("`tuner open`")) << none;
  }
}

TEST_F(BrowserSessionsTest, BeyondTheirMostTheOldestCodeEnds) {
  const std::string first = sessions_.NewCode("first");
  const std::string second = sessions_.NewCode("second");
  for (std::size_t i = 2; i <= kMaxLoginCodes; ++i) sessions_.NewCode("more");
  EXPECT_FALSE(sessions_.TokenOfCode(first).ok());
  EXPECT_TRUE(sessions_.BeginByCode(second).ok());
}

TEST_F(BrowserSessionsTest, BeyondTheirMostTheOldestEnds) {
  const std::string first = sessions_.Begin("first");
  const std::string second = sessions_.Begin("second");
  for (std::size_t i = 2; i <= kMaxSessions; ++i) sessions_.Begin("more");
  EXPECT_EQ(sessions_.TokenOf(Sent(first)), "");
  EXPECT_EQ(sessions_.TokenOf(Sent(second)), "second");
}

}  // namespace
}  // namespace espalier
