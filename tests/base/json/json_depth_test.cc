#include "base/json/json_depth.h"

#include <gtest/gtest.h>

#include <string>

#include "base/json/parse_json.h"
#include "tests/base/json/zero_bytes.h"

namespace espalier {
namespace {

std::string Lists(int depth) {
  const auto n = static_cast<std::size_t>(depth);
  return std::string(n, '[') + std::string(n, ']');
}

TEST(JsonDepth, CountsListsAndObjectsThatAreOpenTogether) {
  EXPECT_FALSE(NestsDeeper("", 0));
  EXPECT_FALSE(NestsDeeper("1", 0));
  EXPECT_TRUE(NestsDeeper("[]", 0));
  EXPECT_FALSE(NestsDeeper(R"([{"a": [1]}, [[2]], {}])", 3));
  EXPECT_TRUE(NestsDeeper(R"([{"a": [1]}, [[2]], {}])", 2));
  EXPECT_FALSE(NestsDeeper(Lists(64)));
  EXPECT_TRUE(NestsDeeper(Lists(65)));
  EXPECT_TRUE(NestsDeeper(std::string(65, '{')));
}

TEST(JsonDepth, BracketsInTextsAreNone) {
  EXPECT_FALSE(NestsDeeper(R"({"[[[": "{{{\"[[[\\"})", 1));
  EXPECT_TRUE(NestsDeeper(R"({"a\\": [[1]]})", 2));
  EXPECT_FALSE(NestsDeeper("\"" + Lists(100) + "\""));
  EXPECT_FALSE(NestsDeeper("\"\\"));
}

// A parser stops at what is no JSON: nothing that it would take may look shallower than it is.
TEST(JsonDepth, ClosingBracketsBeforeAreNoReserve) {
  const std::string closed(1000, ']');
  EXPECT_TRUE(ParseJson(closed + Lists(65)).is_discarded());
  EXPECT_TRUE(ParseJson("[" + Lists(63) + "]" + closed + Lists(70)).is_discarded());
}

TEST(JsonDepth, TheParserTakesWhatIsNotDeeper) {
  EXPECT_FALSE(ParseJson(Lists(64)).is_discarded());
  EXPECT_TRUE(ParseJson(Lists(65)).is_discarded());
  EXPECT_FALSE(ParseJson(Lists(65), kMaxRecordDepth).is_discarded());
  EXPECT_TRUE(ParseJson(Lists(1'000'000)).is_discarded());
  EXPECT_EQ(CheckJsonDepth(Lists(64)), absl::OkStatus());
  EXPECT_EQ(CheckJsonDepth(Lists(65)).message(), "values nest deeper than 64 levels");
}

// The library would take what stands before it for all.
TEST(ParseJson, AZeroByteIsNoEnd) {
  for (const char* text : {"1@", "{}@", "[1]@ garbage", "@", R"({"a": "@"})"}) {
    EXPECT_TRUE(ParseJson(WithZeroBytes(text)).is_discarded()) << text;
  }
  EXPECT_FALSE(ParseJson(R"("\u0000")").is_discarded()) << "one that is escaped";
}

}  // namespace
}  // namespace espalier
