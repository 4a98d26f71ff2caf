#include "tuner/cli/views/new_output.h"

#include <gtest/gtest.h>

#include <string>

namespace espalier {
namespace {

TEST(NewOutput, IsWhatHasBeenAdded) {
  EXPECT_EQ(NewOutput("", ""), "");
  EXPECT_EQ(NewOutput("", "one\n"), "one\n");
  EXPECT_EQ(NewOutput("one\ntw", "one\ntwo\n"), "o\n");
  EXPECT_EQ(NewOutput("one\n", "one\n"), "");
}

TEST(NewOutput, IsFoundWhereTheBeginningOrTheMiddleIsGone) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "line " + std::to_string(i) + "\n";
  EXPECT_EQ(NewOutput(lines, lines.substr(5000) + "new\n"), "new\n");
  const std::string cut = lines.substr(0, 100) + "[left out]\n" + lines.substr(5000);
  EXPECT_EQ(NewOutput(lines, cut + "new\n"), "new\n");
  EXPECT_EQ(NewOutput(lines, "all of it is new\n"), "all of it is new\n");
}

TEST(NewOutput, HasTheHeadingOfItsPlaceWhereThatChanges) {
  const std::string one = "==> replica 1 <==\na\n==> replica 2 <==\nb\n";
  EXPECT_EQ(NewOutput(one, one + "c\n"), "c\n");
  EXPECT_EQ(NewOutput(one, "==> replica 1 <==\na\nd\n==> replica 2 <==\nb\ne\n"),
            "==> replica 1 <==\nd\n==> replica 2 <==\ne\n");
  EXPECT_EQ(NewOutput("a\n", "==> replica 1 <==\na\n==> replica 2 <==\nb\n"),
            "==> replica 2 <==\nb\n");
  const std::string nodes = "==> node elm <==\na\n==> node oak <==\n";
  EXPECT_EQ(NewOutput("a\n", nodes + "b\n"), "==> node oak <==\nb\n");
  EXPECT_EQ(NewOutput(nodes + "b\n", nodes + "==> replica 2 <==\nb\n==> replica 3 <==\nc\n"),
            "==> node oak <==\n==> replica 3 <==\nc\n");
}

}  // namespace
}  // namespace espalier
