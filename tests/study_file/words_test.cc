#include "tuner/study_file/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> Split(std::string_view line) {
  absl::StatusOr<std::vector<std::string>> words = SplitWords(line);
  EXPECT_TRUE(words.ok()) << words.status();
  return words.ok() ? *words : std::vector<std::string>{"(error)"};
}

std::string WordsRefusal(std::string_view line) {
  const absl::StatusOr<std::vector<std::string>> words = SplitWords(line);
  EXPECT_FALSE(words.ok()) << line;
  return std::string(words.status().message());
}

TEST(SplitWords, PartsAtBlanks) {
  EXPECT_THAT(Split("  python3\ttrain.py --lr=*  "), ElementsAre("python3", "train.py", "--lr=*"));
  EXPECT_THAT(Split(" \n"), IsEmpty());
}

TEST(SplitWords, KeepsWhatIsQuoted) {
  EXPECT_THAT(Split(R"('a b' "c d" e\ f g'h 'i"j ")"), ElementsAre("a b", "c d", "e f", "gh ij "));
  EXPECT_THAT(Split(R"('$HOME | \' "\"\\\$ \n" \$)"), ElementsAre("$HOME | \\", "\"\\$ \\n", "$"));
}

TEST(SplitWords, KeepsEmptyWords) { EXPECT_THAT(Split(R"(a '' "")"), ElementsAre("a", "", "")); }

TEST(SplitWords, RefusesWhatOnlyAShellUnderstands) {
  for (const char* line :
       {"a | b", "a > b", "a < b", "a && b", "a; b", "a $B", "a `b`", "a \"$B\""}) {
    EXPECT_THAT(WordsRefusal(line), HasSubstr(R"(["sh", "-c", "..."])"));
  }
}

TEST(SplitWords, RefusesOpenQuotes) {
  EXPECT_THAT(WordsRefusal("a 'b"), HasSubstr("closing"));
  EXPECT_THAT(WordsRefusal("a \"b"), HasSubstr("closing"));
  EXPECT_THAT(WordsRefusal("a \\"), HasSubstr("backslash"));
}

}  // namespace
}  // namespace espalier
