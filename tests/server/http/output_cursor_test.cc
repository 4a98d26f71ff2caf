#include "tuner/server/http/output_cursor.h"

#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace espalier {
namespace {

std::string Lines(int from, int to) {
  std::string lines;
  for (int i = from; i < to; ++i) lines += "line " + std::to_string(i) + "\n";
  return lines;
}

std::string CursorAfter(const std::string& text) { return FollowFrom("", text).next; }
std::optional<std::size_t> FindCursor(const std::string& cursor, const std::string& text) {
  const TextFromCursor from = FollowFrom(cursor, text);
  EXPECT_EQ(from.next, CursorAfter(text)) << "whatever it follows";
  return from.start;
}

TEST(OutputCursor, IsFoundInATextThatHasGrown) {
  for (const int lines : {0, 1, 3, 500}) {
    const std::string before = Lines(0, lines);
    const std::string cursor = CursorAfter(before);
    EXPECT_EQ(FindCursor(cursor, before), before.size());
    EXPECT_EQ(FindCursor(cursor, before + "more"), before.size());
  }
}

TEST(OutputCursor, IsFoundWhereTheBeginningIsLostOrAnotherOne) {
  const std::string cursor = CursorAfter(Lines(0, 500));
  EXPECT_EQ(FindCursor(cursor, Lines(300, 700)), Lines(300, 500).size());
  EXPECT_EQ(FindCursor(cursor, "==> replica 1 <==\n" + Lines(0, 600)), 18 + Lines(0, 500).size());
  EXPECT_EQ(FindCursor(cursor, Lines(480, 700)), std::nullopt) << "too little of it is left";
  EXPECT_EQ(FindCursor(cursor, Lines(600, 900)), std::nullopt);
  EXPECT_EQ(FindCursor(cursor, ""), std::nullopt);
}

TEST(OutputCursor, APlaceThatMayBeSeveralIsNone) {
  const std::string cursor = CursorAfter("head" + std::string(5000, '.'));
  EXPECT_EQ(FindCursor(cursor, std::string(4000, '.')), std::nullopt);
  EXPECT_EQ(FindCursor(cursor, "head" + std::string(6000, '.')), 5004) << "it has only grown";
}

TEST(OutputCursor, ATextOfTheSameLengthAndEndMayHaveLostItsBeginning) {
  const auto waiting = [](int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i) text += "waiting\n";
    return text;
  };
  const std::string cursor = CursorAfter(waiting(2000));
  EXPECT_EQ(FindCursor(cursor, waiting(1799) + "ERROR x\n" + waiting(200)), std::nullopt);
}

TEST(OutputCursor, WhatIsNoneIsToldApart) {
  const std::string text = Lines(0, 500);
  for (const char* cursor : {"", "-", "5", "5-5", "5--", "-5-5", "x-5-5", "5-x-5", "5-5-x",
                             "5-5-5-5", "18446744073709551616-1-1", "18446744073709551615-1-1"}) {
    EXPECT_EQ(FindCursor(cursor, text), std::nullopt) << cursor;
  }
}

}  // namespace
}  // namespace espalier
