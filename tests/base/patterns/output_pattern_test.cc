#include "base/patterns/output_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;
using testing::Pair;

OutputPattern::Line LineOf(const std::string& pattern, const std::string& line,
                           const std::string& step = "") {
  const auto made = OutputPattern::Make(pattern, step);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? made->Read(line) : OutputPattern::Line{};
}

std::string PatternRefusal(const std::string& pattern, const std::string& step = "") {
  return std::string(OutputPattern::Make(pattern, step).status().message());
}

TEST(OutputPattern, FindsANumberAnywhereInTheLine) {
  const auto read = LineOf("val_loss=([0-9.e+-]+)", "epoch 3: loss=0.5 val_loss=2.5e-3 (best)");
  EXPECT_THAT(read.value, Optional(0.0025));
  EXPECT_FALSE(read.step);
  EXPECT_FALSE(LineOf("val_loss=([0-9.]+)", "loss=0.5").value);
}

TEST(OutputPattern, TakesWhatIsNotFiniteForAValue) {
  EXPECT_TRUE(std::isnan(*LineOf(R"(loss (\S+))", "loss nan").value));
  EXPECT_TRUE(std::isinf(*LineOf(R"(loss (\S+))", "loss -inf").value));
  EXPECT_TRUE(std::isinf(*LineOf(R"(loss (\S+))", "loss Infinity").value));
}

TEST(OutputPattern, HasTheStepInASecondGroupOrInOneOfThatName) {
  const auto second = LineOf(R"(loss (\S+) at (\d+))", "loss 0.5 at 12");
  EXPECT_THAT(second.value, Optional(0.5));
  EXPECT_THAT(second.step, Optional(12));
  const auto named = LineOf(R"(epoch (?P<step>\d+).*loss (\S+))", "epoch 12 of 20, loss 0.5");
  EXPECT_THAT(named.value, Optional(0.5));
  EXPECT_THAT(named.step, Optional(12));
}

TEST(OutputPattern, HasFiguresInGroupsOfTheirNames) {
  const std::vector<std::string> figures = {"latency", "step"};
  const auto pattern = OutputPattern::Make(
      R"((?P<latency>\S+) ms, (?P<step>\d+) steps, loss (\S+)(?: at (\d+))?)", "", figures);
  ASSERT_TRUE(pattern.ok()) << pattern.status();
  const OutputPattern::Line both = pattern->Read("12.5 ms, 7 steps, loss 0.5 at 3");
  EXPECT_THAT(both.value, Optional(0.5));
  EXPECT_THAT(both.step, Optional(3));
  EXPECT_THAT(both.figures, ElementsAre(Pair("latency", 12.5), Pair("step", 7)));
  const OutputPattern::Line none = pattern->Read("none ms, 7 steps, loss 0.5 at 3");
  EXPECT_THAT(none.value, Optional(0.5));
  EXPECT_THAT(none.figures, ElementsAre(Pair("step", 7)));
  const auto why_not = [](const std::string& value) {
    return std::string(
        OutputPattern::Make(value, "", std::vector<std::string>{"size"}).status().message());
  };
  EXPECT_THAT(why_not("loss (.*)"),
              HasSubstr("needs a group for \"size\", as in \"size=(?P<size>"));
  EXPECT_THAT(why_not("(?P<size>.*)"), HasSubstr("needs one group, for the value"));
  EXPECT_THAT(why_not("(?P<size>.)(.)(.)(.)"), HasSubstr("got 3"));
}

TEST(OutputPattern, HasTheStepInALineOfItsOwn) {
  const auto step = LineOf("loss (.+)", "Epoch 3/10", R"(Epoch (\d+))");
  EXPECT_FALSE(step.value);
  EXPECT_THAT(step.step, Optional(3));
}

TEST(OutputPattern, TellsWhatIsNoNumberAndNoStep) {
  const auto value = LineOf("loss=(.*)", "loss=None");
  EXPECT_FALSE(value.value);
  EXPECT_EQ(value.no_number, "\"None\" is no number");
  for (const char* step : {"-1", "1.5", "x", "1e300", ""}) {
    const auto read = LineOf("loss (.+) at (.*)", std::string("loss 1 at ") + step);
    EXPECT_FALSE(read.value) << step;
    EXPECT_THAT(read.no_number, HasSubstr("is no step"));
  }
}

TEST(OutputPattern, RefusesInRe2sWords) {
  EXPECT_EQ(PatternRefusal("loss=([0-9"), "missing ]: [0-9");
  EXPECT_THAT(PatternRefusal("(?=x)(y)"), HasSubstr("invalid perl operator"));
  EXPECT_THAT(PatternRefusal("loss=(.*)", "Epoch (["), HasSubstr("\"step\": missing ]"));
}

TEST(OutputPattern, RefusesOtherNumbersOfGroups) {
  EXPECT_THAT(PatternRefusal("loss="), HasSubstr("needs one group, for the value, as in "));
  EXPECT_THAT(PatternRefusal("(a)(b)(c)"), HasSubstr("got 3"));
  EXPECT_THAT(PatternRefusal("(?P<step>a)"), HasSubstr("named \"step\""));
  EXPECT_THAT(PatternRefusal("(a)(b)", "(c)"), HasSubstr("another pattern for it"));
  EXPECT_THAT(PatternRefusal("(a)", "c"), HasSubstr("\"step\": needs one group"));
  EXPECT_THAT(PatternRefusal(std::string(kMaxPattern_bytes + 1, 'a')),
              HasSubstr("at most 1024 bytes"));
}

}  // namespace
}  // namespace espalier
