#include "tuner/server/http/entity_tag.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/server/running_service.h"

namespace espalier {
namespace {

using testing::MatchesRegex;

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

TEST(EntityTag, WhatTheClientHasIsNotSentAgain) {
  RunningService running;
  httplib::Client client("127.0.0.1", running.http_port());
  for (const char* path : {"/", "/login", "/login.js", "/api/view/overview"}) {
    const auto first = client.Get(path);
    ASSERT_TRUE(first) << path;
    EXPECT_EQ(first->status, 200) << path;
    EXPECT_FALSE(first->body.empty()) << path;
    const std::string tag = first->get_header_value("ETag");
    const auto again = client.Get(path, {{"If-None-Match", tag}});
    ASSERT_TRUE(again) << path;
    EXPECT_EQ(again->status, 304) << path;
    EXPECT_EQ(again->get_header_value("ETag"), tag) << path;
    EXPECT_TRUE(again->body.empty()) << path;
  }
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
