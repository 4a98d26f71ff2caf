#include "base/near_name.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace espalier {
namespace {

constexpr std::array<std::string_view, 4> kKnown = {"trials", "target", "max_step", "env"};

TEST(NearName, FindsASlip) {
  EXPECT_EQ(NearName("trails", kKnown), "trials");
  EXPECT_EQ(NearName("Trial", kKnown), "trials");
  EXPECT_EQ(NearName("max_steps", kKnown), "max_step");
  EXPECT_EQ(NearName("ENV", kKnown), "env");
}

TEST(NearName, IsEmptyForAnythingElse) {
  EXPECT_EQ(NearName("learning_rate", kKnown), "");
  EXPECT_EQ(NearName("x", kKnown), "");
  EXPECT_EQ(NearName(std::string(10000, 't'), kKnown), "");
}

}  // namespace
}  // namespace espalier
