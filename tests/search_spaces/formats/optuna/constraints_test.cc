#include "search_spaces/formats/optuna/constraints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsNan;

TEST(OptunaConstraints, AreTheListAndWhatIsNamed) {
  EXPECT_THAT(ConstraintsIn({}), IsEmpty());
  EXPECT_THAT(ConstraintsIn({{"constraint", "1"}, {"constraintss", "[1]"}, {"fixed_params", "{}"}}),
              IsEmpty());
  EXPECT_THAT(ConstraintsIn({{"constraints", "[-1, 0.5, 2]"}}), ElementsAre(-1, 0.5, 2));
  EXPECT_THAT(ConstraintsIn({{"constraints:b", "-2.5"}, {"constraints:a", "1e3"}}),
              ElementsAre(1000, -2.5));
  EXPECT_THAT(ConstraintsIn({{"constraints", "[1, 2]"},
                             {"constraints:1", "-7"},
                             {"constraints:2", "3"},
                             {"constraints:01", "4"}}),
              ElementsAre(1, -7, 4, 3));
  EXPECT_THAT(ConstraintsIn({{"constraints", "[]"}}), IsEmpty());
  EXPECT_THAT(ConstraintsIn({{"constraints", "null"}}), IsEmpty());
}

TEST(OptunaConstraints, AreNotKnownWhereTheyAreNoNumbers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(ConstraintsIn({{"constraints", "[NaN, Infinity, \"x\"]"}}),
              ElementsAre(IsNan(), kInfinity, IsNan()));
  EXPECT_THAT(ConstraintsIn({{"constraints", "[1"}}), ElementsAre(IsNan()));
  EXPECT_THAT(ConstraintsIn({{"constraints", "3"}}), ElementsAre(IsNan()));
  EXPECT_THAT(ConstraintsIn({{"constraints:a", "null"}, {"constraints:b", "-Infinity"}}),
              ElementsAre(IsNan(), -kInfinity));
}

TEST(OptunaConstraints, AreAddedWhereNoneIsTold) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::map<std::string, std::string> attributes;
  AddConstraints({}, attributes);
  EXPECT_THAT(attributes, IsEmpty());
  AddConstraints({0.1 + 0.2, -5, std::nan(""), kInfinity, -kInfinity}, attributes);
  EXPECT_EQ(attributes.at("constraints"), "[0.30000000000000004, -5, NaN, Infinity, -Infinity]");
  EXPECT_THAT(ConstraintsIn(attributes),
              ElementsAre(0.1 + 0.2, -5, IsNan(), kInfinity, -kInfinity));
  attributes = {{"constraints:a", "1"}};
  AddConstraints({2}, attributes);
  EXPECT_THAT(ConstraintsIn(attributes), ElementsAre(1));
}

TEST(OptunaConstraints, AreKeptToWhereNoneIsAboveZero) {
  EXPECT_TRUE(KeepsTo({}));
  EXPECT_TRUE(KeepsTo({0, -1}));
  EXPECT_FALSE(KeepsTo({-1, 1e-9}));
  EXPECT_FALSE(KeepsTo({-1, std::nan("")}));
}

TEST(OptunaConstraints, HaveTheirKeys) {
  EXPECT_TRUE(IsConstraintKey("constraints"));
  EXPECT_TRUE(IsConstraintKey("constraints:latency"));
  EXPECT_FALSE(IsConstraintKey("constraintsx"));
  EXPECT_FALSE(IsConstraintKey("constraint"));
}

}  // namespace
}  // namespace espalier
