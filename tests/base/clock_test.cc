#include "base/clock.h"

#include <gtest/gtest.h>

#include <cmath>

namespace espalier {
namespace {

constexpr Time kNow{1'700'000'000'000'000};

TEST(Clock, AfterAddsSeconds) {
  EXPECT_EQ(After(kNow, 1.5), Time{kNow.us + 1'500'000});
  EXPECT_EQ(After(kNow, -1.5), Time{kNow.us - 1'500'000});
  EXPECT_EQ(TimeFromSeconds(0.25), Time{250'000});
}

TEST(Clock, AfterEndsAtTheLastMomentThatItCanHold) {
  const Time last = After(kNow, HUGE_VAL);
  for (const double seconds : {9.2e12, 1e13, 1e300}) {
    EXPECT_GT(After(kNow, seconds), After(kNow, kMaxTime_s));
  }
  EXPECT_EQ(After(kNow, 1e300), last);
  EXPECT_EQ(After(last, 1), last);
  EXPECT_LT(After(kNow, -1e300), Time{});
  EXPECT_EQ(After(After(kNow, -1e300), -1), After(kNow, -HUGE_VAL));
}

}  // namespace
}  // namespace espalier
