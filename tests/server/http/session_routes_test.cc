#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/api/direct_tuner.h"
#include "tests/server/patient_client.h"
#include "tests/server/port_of.h"
#include "tuner/credentials/access_token.h"
#include "tuner/credentials/hexadecimal.h"
#include "tuner/server/access/browser_sessions.h"
#include "tuner/server/http/event_streams.h"
#include "tuner/server/http/http_routes.h"
#include "tuner/server/http/http_server.h"

namespace espalier {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A service that lets nobody in without a token, and a browser.
class SessionRoutesTest : public testing::Test {
 protected:
  SessionRoutesTest() {
    auto started = HttpServer::Start({{"127.0.0.1", 0}}, {}, access_,
                                     OwnRoutes("", [](Tuner&) { return std::string("metrics"); },
                                               {.streams = &streams_, .sessions = &sessions_}),
                                     tuner_, metrics_, {}, &sessions_);
    EXPECT_TRUE(started.ok()) << started.status();
    http_ = *std::move(started);
    host_ = http_->address();
    browser_ = std::make_unique<PatientClient>(PortOf(host_));
  }
  ~SessionRoutesTest() override {
    http_->Stop();
    streams_.Stop();
  }

  AccessToken Keep(const std::string& role) {
    const AccessToken token = NewAccessToken("");
    kept_ = {.id = token.id,
             .hash = HashOf(token.secret),
             .role = role,
             .name = "ada",
             .created = Time{1}};
    access_.Take({TokenKept{kept_}});
    return token;
  }
  // The cookie that the browser sends from then on.
  std::string LogIn(const std::string& role) {
    const auto begun =
        browser_->Post("/api/session", {{"Authorization", "Bearer " + Keep(role).text()}}, "", "");
    EXPECT_EQ(begun->status, 200) << begun->body;
    const std::string cookie = begun->get_header_value("Set-Cookie");
    return cookie.substr(0, cookie.find(';'));
  }
  int Get(const std::string& path, const std::string& cookie) {
    return browser_->Get(path, {{"Cookie", cookie}})->status;
  }
  // 404: it was let in.
  int Stop(const httplib::Headers& headers) {
    return browser_->Post("/api/studies/absent/stop", headers, "{}", "application/json")->status;
  }

  DirectTuner tuner_;
  Metrics metrics_;
  RevisionLog log_{"a1"};
  AccessControl access_{{.no_loopback_trust = true}};
  EventStreams streams_{log_, tuner_, {.rights_ms = 20}};
  BrowserSessions sessions_{access_.CookieName(), false};
  KeptToken kept_;
  std::unique_ptr<HttpServer> http_;
  std::string host_;
  std::unique_ptr<PatientClient> browser_;
};

TEST_F(SessionRoutesTest, ATokenThatIsShownOnceOpensAllThatItsRoleMay) {
  const std::string cookie = LogIn("view");
  EXPECT_THAT(cookie, StartsWith("espalier-" + access_.CookieName()));
  EXPECT_EQ(Get("/api/studies", cookie), 200);
  EXPECT_EQ(Get("/api/session", cookie), 200);
  EXPECT_EQ(Get("/api/studies", ""), 401);
  EXPECT_EQ(Get("/api/session", ""), 401);
  EXPECT_EQ(Get("/api/studies", cookie + "00"), 401);
  EXPECT_EQ(Stop({{"Cookie", cookie}, {"Origin", "http://" + host_}, {"X-Espalier", "1"}}), 403);
}

TEST_F(SessionRoutesTest, WithoutAGoodTokenThereIsNone) {
  for (const char* token : {"", "Bearer ", "Bearer secret", "Basic abc"}) {
    const auto refused = browser_->Post("/api/session", {{"Authorization", token}}, "", "");
    EXPECT_EQ(refused->status, 401) << token;
    EXPECT_EQ(refused->get_header_value("Set-Cookie"), "");
  }
}

TEST_F(SessionRoutesTest, ACodeBeginsOneSessionAndDoesNothingElse) {
  const std::string code = "Espalier-Code " + sessions_.NewCode(Keep("view").text());
  const auto begin = [&](httplib::Headers headers) {
    headers.emplace("Authorization", code);
    return browser_->Post("/api/session", headers, "", "");
  };
  EXPECT_EQ(browser_->Get("/api/studies", {{"Authorization", code}})->status, 401);
  EXPECT_EQ(browser_->Get("/api/session", {{"Authorization", code}})->status, 401);
  EXPECT_EQ(begin({{"Origin", "http://127.0.0.1:1"}})->status, 403) << "another site's page";
  EXPECT_EQ(begin({{"Sec-Fetch-Site", "cross-site"}})->status, 403);
  const auto begun = begin({{"Origin", "http://" + host_}, {"X-Espalier", "1"}});
  ASSERT_EQ(begun->status, 200) << begun->body;
  const std::string set = begun->get_header_value("Set-Cookie");
  const std::string cookie = set.substr(0, set.find(';'));
  EXPECT_EQ(Get("/api/studies", cookie), 200);
  EXPECT_EQ(Stop({{"Cookie", cookie}, {"Origin", "http://" + host_}, {"X-Espalier", "1"}}), 403);
  const auto again = begin({});
  EXPECT_EQ(again->status, 401);
  EXPECT_EQ(again->get_header_value("Set-Cookie"), "");
  EXPECT_THAT(again->body, HasSubstr("this code begins no session: it is used"));
  EXPECT_EQ(begun->body, "{}") << "and shows no token";
}

TEST_F(SessionRoutesTest, ACodeIsAsGoodAsItsToken) {
  const std::string code = "Espalier-Code " + sessions_.NewCode(Keep("agent").text());
  EXPECT_EQ(browser_->Post("/api/session", {{"Authorization", code}}, "", "")->status, 403);
  const std::string ended = "Espalier-Code " + sessions_.NewCode(Keep("view").text());
  kept_.removed = Time{2};
  access_.Take({TokenKept{kept_}});
  const auto refused = browser_->Post("/api/session", {{"Authorization", ended}}, "", "");
  EXPECT_EQ(refused->status, 401);
  EXPECT_THAT(refused->body, HasSubstr("was ended"));
}

TEST_F(SessionRoutesTest, ChangesByACookieAreOfThePagesOfTheService) {
  const std::string cookie = LogIn("submit");
  const std::string own = "http://" + host_;
  EXPECT_EQ(Stop({{"Cookie", cookie}, {"Origin", own}, {"X-Espalier", "1"}}), 404);
  EXPECT_EQ(Stop({{"Cookie", cookie}, {"Origin", own}}), 403);
  EXPECT_EQ(Stop({{"Cookie", cookie}, {"X-Espalier", "1"}}), 403);
  EXPECT_EQ(Stop({{"Cookie", cookie}, {"Origin", "http://127.0.0.1:1"}, {"X-Espalier", "1"}}), 403);
  // Programs show tokens, and need neither.
  EXPECT_EQ(Stop({{"Authorization", "Bearer " + Keep("submit").text()}}), 404);
}

TEST_F(SessionRoutesTest, EndsWithItsTokenAndWhenItsUserSaysSo) {
  const std::string cookie = LogIn("view");
  kept_.removed = Time{2};
  access_.Take({TokenKept{kept_}});
  EXPECT_EQ(Get("/api/studies", cookie), 401);
  const std::string other = LogIn("view");
  bool said_hello = false;
  PatientClient page(PortOf(host_));
  page.Get("/api/view/events", {{"Cookie", other}}, [&](const char*, std::size_t) {
    if (!std::exchange(said_hello, true)) {
      const auto ended = browser_->Delete(
          "/api/session", {{"Cookie", other}, {"Origin", "http://" + host_}, {"X-Espalier", "1"}});
      EXPECT_EQ(ended->status, 200);
      EXPECT_THAT(ended->get_header_value("Set-Cookie"), HasSubstr("Max-Age=0"));
    }
    return true;
  });
  EXPECT_TRUE(said_hello);  // and the stream has ended
  EXPECT_EQ(Get("/api/studies", other), 401);
}

TEST_F(SessionRoutesTest, NobodySaysByHimselfThatASessionLetsHimIn) {
  const auto token = Keep("submit").text();
  EXPECT_EQ(Stop({{"Authorization", "Bearer " + token}, {"Espalier-By-Session", "1"}}), 404);
  EXPECT_EQ(
      Stop({{"Espalier-By-Session", "1"}, {"Origin", "http://" + host_}, {"X-Espalier", "1"}}),
      401);
}

TEST_F(SessionRoutesTest, ThePageThatAsksForATokenIsForEverybody) {
  const auto page = browser_->Get("/login?to=ui/cluster");
  EXPECT_EQ(page->status, 200);
  EXPECT_THAT(page->body, HasSubstr("<form>"));
  EXPECT_THAT(page->get_header_value("Content-Security-Policy"), HasSubstr("default-src 'none'"));
  const auto script = browser_->Get("/login.js");
  EXPECT_EQ(script->get_header_value("Content-Type"), "text/javascript");
  EXPECT_THAT(script->body, HasSubstr("api/session"));
}

TEST(Sessions, TheOwnUserNeedsNoneAndAnOldCookieDoesNotHurt) {
  DirectTuner tuner;
  Metrics metrics;
  const AccessControl access{{}};
  BrowserSessions sessions(access.CookieName(), false);
  const auto http = HttpServer::Start({{"127.0.0.1", 0}}, {}, access, SessionRoutes(&sessions),
                                      tuner, metrics, {}, &sessions);
  ASSERT_TRUE(http.ok()) << http.status();
  const std::string host = (*http)->address();
  PatientClient browser(PortOf(host));
  const std::string old = sessions.Begin("a token of another time");
  EXPECT_EQ(browser.Get("/api/session", {{"Cookie", old.substr(0, old.find(';'))}})->status, 200);
  EXPECT_EQ(browser.Post("/api/session")->get_header_value("Set-Cookie"), "");
  (*http)->Stop();
}

}  // namespace
}  // namespace espalier
