#include "tuner/server/http/entity_tag.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/server/http/raw_connection.h"
#include "tests/server/patient_client.h"
#include "tests/server/running_service.h"

namespace espalier {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

TEST(EntityTag, IsOfTheText) {
  EXPECT_THAT(EntityTag("one"), MatchesRegex("W/\"[0-9a-f]{24}\""));
  EXPECT_EQ(EntityTag("one"), EntityTag("one"));
  EXPECT_NE(EntityTag("one"), EntityTag("other"));
}

TEST(EntityTag, IsFoundAmongThoseThatAreNamed) {
  const std::string tag = EntityTag("one");
  EXPECT_TRUE(NamesTag(tag, tag));
  EXPECT_TRUE(NamesTag(tag.substr(2), tag)) << "as some proxies make of it";
  EXPECT_TRUE(NamesTag("\"other\" , " + tag, tag));
  EXPECT_TRUE(NamesTag("*", tag));
  EXPECT_FALSE(NamesTag("", tag));
  EXPECT_FALSE(NamesTag(EntityTag("other"), tag));
}

// The line of a header, with the one before it; empty: the answer has none.
std::string LineOf(const httplib::Result& answer, const std::string& name) {
  const std::string value = answer->get_header_value(name);
  return value.empty() ? "" : "\r\n" + name + ": " + value + "\r\n";
}

TEST(EntityTag, WhatTheClientHasIsNotSentAgain) {
  RunningService running;
  PatientClient client(running.http_port());
  int varied = 0;
  for (const std::string path : {"/", "/login", "/login.js", "/api/view/overview"}) {
    const auto first = client.Get(path);
    ASSERT_TRUE(first) << path;
    EXPECT_EQ(first->status, 200) << path;
    EXPECT_FALSE(first->body.empty()) << path;
    RawConnection again(running.http_port());
    again.Send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: " +
               first->get_header_value("ETag") + "\r\n\r\n");
    const std::string head = again.ReadUntil("\r\n\r\n");
    EXPECT_TRUE(head.starts_with("HTTP/1.1 304 Not Modified\r\n")) << head;
    for (const char* kept : {"ETag", "Cache-Control", "Vary"}) {
      EXPECT_THAT(head, HasSubstr(LineOf(first, kept)));
    }
    varied += first->has_header("Vary") ? 1 : 0;
    // The length would be taken for the body's, which the client has.
    EXPECT_THAT(head, Not(HasSubstr("\r\nContent-Length")));
    EXPECT_THAT(head, Not(HasSubstr("\r\nContent-Type")));
    again.Send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_TRUE(again.ReadUntil("ok\n").starts_with("HTTP/1.1 200 OK")) << "nothing is between";
  }
  EXPECT_GT(varied, 0);
  const std::string before = client.Get("/api/view/overview")->get_header_value("ETag");
  ASSERT_EQ(
      client.Post("/api/studies", R"({"name": "s", "ask_and_tell": true})", "application/json")
          ->status,
      201);
  const auto changed = client.Get("/api/view/overview", {{"If-None-Match", before}});
  EXPECT_EQ(changed->status, 200) << "there is a study now";
}

}  // namespace
}  // namespace espalier
