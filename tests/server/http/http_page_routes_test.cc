#include "tuner/server/http/http_page_routes.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/api/direct_tuner.h"
#include "tests/server/patient_client.h"
#include "tests/server/running_service.h"
#include "tuner/server/http/http_packing.h"
#include "tuner/server/http/http_routes.h"

namespace espalier {
namespace {

using testing::HasSubstr;

class HttpPageRoutesTest : public testing::Test {
 protected:
  HttpAnswer Get(const std::vector<HttpRoute>& routes, const std::string& target,
                 const std::string& accepted = "", const std::string& base = "") {
    const FoundRoute found = FindRoute(routes, "GET", target);
    if (found.route == nullptr) return {absl::NotFoundError(target), ""};
    const std::string no_body;
    return found.route->answer({.tuner = tuner_,
                                .path = found.path,
                                .query = {},
                                .request_key = {},
                                .body = no_body,
                                .service_url = {},
                                .accept_encoding = accepted,
                                .last_event_id = {},
                                .base = base,
                                .role = Role::kView});
  }
  static std::string Header(const HttpAnswer& answer, const std::string& name) {
    for (const auto& [key, value] : answer.headers) {
      if (key == name) return value;
    }
    return "";
  }

  DirectTuner tuner_;
  const std::string page_ = *PackGzip("<p>the page</p>");
  const std::string script_ = *PackGzip("run()");
  const std::vector<WebAsset> files_ = {
      {.path = "/", .type = "text/html; charset=utf-8", .br = "page br", .gzip = page_},
      {.path = "/ui-assets/app.12ab.js",
       .type = "text/javascript",
       .br = "js br",
       .gzip = script_}};
  const std::vector<HttpRoute> routes_ = PageRoutes("", files_);
};

TEST_F(HttpPageRoutesTest, EachAddressOfThePageIsThePage) {
  for (const char* target : {"/", "/ui", "/ui/", "/ui/studies/3", "/ui/studies/3/trials/7?x=time",
                             "/ui/compare?t=1,2"}) {
    const HttpAnswer answer = Get(routes_, target);
    EXPECT_EQ(answer.body, "<p>the page</p>") << target;
    EXPECT_STREQ(answer.type, "text/html; charset=utf-8");
    EXPECT_EQ(Header(answer, "Cache-Control"), "no-cache");
  }
  EXPECT_FALSE(Get(routes_, "/uix").status.ok());
}

TEST_F(HttpPageRoutesTest, WhoMayViewNothingIsAskedForAToken) {
  const FoundRoute found = FindRoute(routes_, "GET", "/ui/compare?t=1,2");
  const std::string no_body;
  const HttpAnswer answer = found.route->answer({.tuner = tuner_,
                                                 .path = found.path,
                                                 .query = {},
                                                 .request_key = {},
                                                 .body = no_body,
                                                 .service_url = {},
                                                 .base = "../",
                                                 .target = "/ui/compare?t=1,2"});
  EXPECT_EQ(answer.code, 303);
  EXPECT_EQ(Header(answer, "Location"), "../login?to=ui/compare%3ft%3d1%2c2");
}

TEST_F(HttpPageRoutesTest, FilesComeAsTheyAreAccepted) {
  const char* target = "/ui-assets/app.12ab.js";
  const HttpAnswer brotli = Get(routes_, target, "gzip, deflate, br");
  EXPECT_EQ(brotli.body, "js br");
  EXPECT_EQ(Header(brotli, "Content-Encoding"), "br");
  EXPECT_EQ(Header(brotli, "Vary"), "Accept-Encoding");
  EXPECT_THAT(Header(brotli, "Cache-Control"), HasSubstr("immutable"));
  EXPECT_STREQ(brotli.type, "text/javascript");
  const HttpAnswer gzip = Get(routes_, target, "gzip");
  EXPECT_EQ(gzip.body, script_);
  EXPECT_EQ(Header(gzip, "Content-Encoding"), "gzip");
  const HttpAnswer plain = Get(routes_, target);
  EXPECT_EQ(plain.body, "run()");
  EXPECT_EQ(Header(plain, "Content-Encoding"), "");
  EXPECT_EQ(Get(routes_, "/ui-assets/app.old.js").status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Get(routes_, "/ui-assets/..%2Fapp.12ab.js").status.code(), absl::StatusCode::kNotFound);
}

TEST_F(HttpPageRoutesTest, FilesAreFoundFromEachAddressOfThePage) {
  const std::string page = *PackGzip("<script src=\"/ui-assets/app.12ab.js\"></script>");
  const std::vector<WebAsset> files = {
      {.path = "/", .type = "text/html; charset=utf-8", .br = "", .gzip = page}};
  const std::vector<HttpRoute> routes = PageRoutes("", files);
  EXPECT_EQ(Get(routes, "/", "br, gzip").body, "<script src=\"ui-assets/app.12ab.js\"></script>");
  EXPECT_EQ(Get(routes, "/ui/studies/3", "br", "../../").body,
            "<script src=\"../../ui-assets/app.12ab.js\"></script>");
  EXPECT_THAT(Get(PageRoutes("", {}), "/ui/studies/3", "", "../../").body,
              HasSubstr("href=\"../../api/studies\""));
}

TEST_F(HttpPageRoutesTest, NothingForeignRunsInThePage) {
  for (const char* target : {"/", "/ui/cluster", "/ui-assets/app.12ab.js"}) {
    const HttpAnswer answer = Get(routes_, target);
    const std::string policy = Header(answer, "Content-Security-Policy");
    for (const char* part : {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'",
                             "require-trusted-types-for 'script'", "trusted-types 'none'"}) {
      EXPECT_THAT(policy, HasSubstr(part)) << target;
    }
    EXPECT_EQ(Header(answer, "Referrer-Policy"), "no-referrer");
    EXPECT_EQ(Header(answer, "Cross-Origin-Opener-Policy"), "same-origin");
    EXPECT_EQ(Header(answer, "Cross-Origin-Resource-Policy"), "same-origin");
  }
}

TEST_F(HttpPageRoutesTest, WithoutItsFilesItSaysHowToGetThem) {
  const std::vector<HttpRoute> routes = PageRoutes("http://here/dashboard", {});
  const HttpAnswer answer = Get(routes, "/");
  EXPECT_THAT(answer.body, HasSubstr("api/studies"));
  EXPECT_THAT(answer.body, HasSubstr("http://here/dashboard"));
  EXPECT_THAT(answer.body, HasSubstr("scripts/setup.sh"));
  EXPECT_EQ(Get(routes, "/links").body, answer.body);
  const std::string links = Get(PageRoutes("http://here/dashboard", files_), "/links").body;
  EXPECT_THAT(links, HasSubstr("http://here/dashboard"));
  EXPECT_THAT(links, testing::Not(HasSubstr("scripts/setup.sh")));
}

TEST(HttpPages, AreSentWithTheirHeadersAndApisAreNotKept) {
  RunningService running;
  PatientClient client(running.http_port());
  const auto page = client.Get("/ui/studies/1");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_THAT(page->get_header_value("Content-Type"), HasSubstr("text/html"));
  EXPECT_THAT(page->get_header_value("Content-Security-Policy"), HasSubstr("default-src 'none'"));
  EXPECT_EQ(page->get_header_value("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(client.Get("/api/studies")->get_header_value("Cache-Control"), "no-store");
}

TEST(HttpSites, WhatOtherPagesFetchIsRefused) {
  RunningService running;
  PatientClient client(running.http_port());
  const auto status = [&client](const std::string& site, const std::string& mode) {
    return client.Get("/api/studies", {{"Sec-Fetch-Site", site}, {"Sec-Fetch-Mode", mode}})->status;
  };
  EXPECT_EQ(status("same-origin", "cors"), 200);
  EXPECT_EQ(status("none", "navigate"), 200);
  EXPECT_EQ(status("cross-site", "navigate"), 200);  // a link somebody follows
  EXPECT_EQ(status("cross-site", "no-cors"), 403);
  EXPECT_EQ(status("same-site", "cors"), 403);  // another port of this host
  const auto written = client.Post(
      "/api/studies", {{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"}}, "{}",
      "application/json");
  EXPECT_EQ(written->status, 403);
  EXPECT_THAT(written->body, HasSubstr("Sec-Fetch-Site: cross-site"));
}

}  // namespace
}  // namespace espalier
