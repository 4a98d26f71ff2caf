#include "base/check_scope.h"

#include "base/check.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

TEST(CheckScope, NestedOnesEndInTurn) {
  EXPECT_EQ(CheckScope::Text(), "");
  int step = 6;
  const auto outer = [&step] { return "step " + std::to_string(step); };
  const CheckScope in_step(outer);
  step = 7;
  EXPECT_EQ(CheckScope::Text(), "step 7") << "as it is when it is asked for";
  {
    const auto inner = [] { return std::string("a plan"); };
    const CheckScope in_plan(inner);
    EXPECT_EQ(CheckScope::Text(), "a plan");
  }
  EXPECT_EQ(CheckScope::Text(), "step 7");
}

TEST(CheckScope, ACheckThatFailsSaysWhatItsThreadWasAt) {
  const auto name = [] { return std::string("DeleteStudy study=7"); };
  const CheckScope scope(name);
  EXPECT_DEATH(ESPALIER_CHECK(1 > 2, "one is less"),
               "CHECK.1 > 2. failed: one is less\n.*: while at DeleteStudy study=7");
}

}  // namespace
}  // namespace espalier
