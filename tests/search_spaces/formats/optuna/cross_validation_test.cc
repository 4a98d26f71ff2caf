#include "search_spaces/formats/optuna/cross_validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace espalier {
namespace {

using ::testing::IsNan;

double ErrorOfScores(const std::string& scores) {
  return CrossValidationError({{"terminator:cv_scores", scores}});
}

TEST(CrossValidationError, IsOfTheMeanOfTheFolds) {
  EXPECT_DOUBLE_EQ(ErrorOfScores("[1, 2, 3, 4]"), std::sqrt((1 / 4. + 1 / 3.) * 1.25));
  EXPECT_DOUBLE_EQ(ErrorOfScores("[0.5, 0.5]"), 0);
}

TEST(CrossValidationError, IsUnknownWhereScoresAreNot) {
  EXPECT_THAT(CrossValidationError({}), IsNan());
  EXPECT_THAT(CrossValidationError({{"cv_scores", "[1, 2]"}}), IsNan());
  for (const char* scores : {"[]", "[1]", "[1, \"x\"]", "[1, null]", "[1, NaN]", "[1, Infinity]",
                             "[1e300, -1e300]", "[1, 2", "3", "null", "{\"a\": 1}", ""}) {
    EXPECT_THAT(ErrorOfScores(scores), IsNan()) << scores;
  }
}

}  // namespace
}  // namespace espalier
