#include "base/environment.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(ParameterVariable, IsUpperCaseWithUnderscores) {
  EXPECT_EQ(ParameterVariable("conv1/lr.base"), "ESPALIER_PARAM_CONV1_LR_BASE");
}

}  // namespace
}  // namespace espalier
