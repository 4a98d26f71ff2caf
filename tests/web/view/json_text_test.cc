#include "tuner/web/view/json_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tuner/web/view/column.h"

namespace espalier::view {
namespace {

TEST(JsonText, WritesWhatJsonHas) {
  JsonText json;
  json.Object([&] {
    json.Member("a\"b", "c\n\xff");
    json.Member("whole", 4503599627370496.0);
    json.Member("part", 0.1);
    json.Member("none", std::nan(""));
    json.Member("endless", HUGE_VAL);
    json.Member("at", TimeFromSeconds(1.25));
    json.Member("never", Time{});
    json.Member("absent", std::optional<int>());
    json.Member("yes", true);
    json.Values("list", std::vector<int>{1, -2});
    json.Key("empty");
    json.Array([] {});
    json.Member("last", 7);
  });
  EXPECT_EQ(json.Take(),
            "{\"a\\\"b\":\"c\\n\\ufffd\",\"whole\":4503599627370496,\"part\":0.1,\"none\":null,"
            "\"endless\":null,\"at\":1.25,\"never\":null,\"absent\":null,\"yes\":true,"
            "\"list\":[1,-2],\"empty\":[],\"last\":7}");
}

TEST(Column, TurnsIntoOneOfWordsWithTheFirstWord) {
  Column column;
  column.Add(0.5);
  column.FillTo(2);
  column.Add(16);
  EXPECT_FALSE(column.has_words());
  column.Add(std::string_view("auto"));
  column.Add(0.5);
  ASSERT_TRUE(column.has_words());
  EXPECT_EQ(column.words(), (std::vector<std::string>{"0.5", "16.0", "auto"}));
  EXPECT_EQ(column.cells()[0], 0);
  EXPECT_TRUE(std::isnan(column.cells()[1]));
  EXPECT_EQ(column.cells()[3], 2);
  EXPECT_EQ(column.cells()[4], 0);
}

}  // namespace
}  // namespace espalier::view
