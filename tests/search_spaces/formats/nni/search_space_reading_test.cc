#include "search_spaces/formats/nni/search_space_reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search_spaces/json_places.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(SearchSpaceReading, FindsAllThatIsWrongWithItsPlaces) {
  const SearchSpaceReading reading = ReadSearchSpace(R"({
  "lr": {"_type": "loguniform", "_value": [0, 1]},
  "a/b": {
    "_type": "uniform",
    "_value": ["1", 2, null]
  },
  "n": {"_type": "choice", "_value": [
    {"_name": "A",
     "p": {"_type": "quniform",
           "_value": [0, 1, 0]},
     "~": 5},
    {"_name": "A"}
  ]},
  "good": {"_type": "randint", "_value": [0, 3]},
  "t": {"_type": "mutable_layer", "_value": {}}
})");
  std::vector<std::string> texts;
  for (const SpaceFlaw& flaw : reading.flaws) texts.push_back(flaw.Text());
  EXPECT_THAT(
      texts, ElementsAre(
                 StartsWith("line 2, /lr/_value/0: search space \"lr\": loguniform needs low > 0"),
                 StartsWith("line 5, /a~1b/_value: search space \"a/b\": uniform needs 2 values"),
                 StartsWith("line 5, /a~1b/_value/0: search space \"a/b\": uniform needs numbers"),
                 StartsWith("line 5, /a~1b/_value/2: search space \"a/b\": uniform needs numbers"),
                 StartsWith("line 10, /n/_value/0/p/_value/2: search space \"n/A/p\": quniform"),
                 StartsWith("line 11, /n/_value/0/~0: search space \"n/A/~\": expected an object"),
                 StartsWith("line 12, /n/_value/1: search space \"n\": choice needs options of"),
                 StartsWith("line 15, /t/_type: search space \"t\": \"mutable_layer\" describes")));
  EXPECT_THAT(reading.space.dimensions(), IsEmpty());
  EXPECT_EQ(std::string(reading.status().message()),
            "search space \"lr\": loguniform needs low > 0, got 0 (/lr/_value/0, line 2); and 7 "
            "more, which `tuner space check` shows");
}

TEST(SearchSpaceReading, KnowsItsPlaceInADocument) {
  const std::string document =
      "{\n \"name\": \"s\",\n \"search_space\": {\n  \"x\": {\"_type\": "
      "\"uniform\", \"_value\": [2, 1]}}}";
  const SearchSpaceReading reading = ReadSearchSpace(document, "/search_space");
  ASSERT_EQ(reading.flaws.size(), 1u);
  EXPECT_EQ(reading.flaws[0].pointer, "/search_space/x");
  EXPECT_EQ(reading.flaws[0].line, 4u);
  EXPECT_THAT(ReadSearchSpace("{}", "/search_space").flaws[0].message,
              HasSubstr("expected a JSON object"));
}

TEST(SearchSpaceReading, NamesLineAndColumnOfTextThatIsNoJson) {
  EXPECT_THAT(ReadSearchSpace("{\n \"x\": ,}").status().message(),
              HasSubstr("malformed JSON at line 2, column 7"));
  const SearchSpaceReading twice = ReadSearchSpace("{\n \"x\": 1,\n\n \"x\": 2}");
  ASSERT_EQ(twice.flaws.size(), 1u);
  EXPECT_EQ(twice.flaws[0].Text(),
            "line 4, /x: search space: key \"x\" appears twice in one object");
}

TEST(JsonPlaces, FindsEveryValue) {
  const JsonPlaces places("{\"a\": [1,\n 2, {\"b\\n\": \"x\\\"]\"}],\n\n\"c\":\n{}}");
  EXPECT_EQ(places.LineOf(""), 1u);
  EXPECT_EQ(places.LineOf("/a/0"), 1u);
  EXPECT_EQ(places.LineOf("/a/1"), 2u);
  EXPECT_EQ(places.LineOf("/a/2/b\n"), 2u);
  EXPECT_EQ(places.LineOf("/c"), 5u);
  EXPECT_EQ(places.LineOf("/c/absent/deep"), 5u);
  EXPECT_EQ(places.LineOf("/nowhere"), 1u);
}

TEST(JsonPlaces, TakesTextThatIsNoJsonAsFarAsItGoes) {
  for (const char* text : {"", "{", "{\"a\"", "{\"a\": [1, ", "\"", "{\"a\\", "[[[", "]", "\"\\"}) {
    EXPECT_EQ(JsonPlaces(text).LineOf("/a/0/b"), 1u) << text;
  }
  EXPECT_EQ(JsonPlaces(std::string(100000, '[')).LineOf(""), 1u);
}

}  // namespace
}  // namespace espalier
