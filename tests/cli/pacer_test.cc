#include "tuner/cli/pacer.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

const Time kStart = TimeFromSeconds(1000);

double PauseAfter(double took_s) {
  Pacer pacer(/*period_s=*/0.2);
  EXPECT_TRUE(pacer.Due(kStart));
  const Time end = After(kStart, took_s);
  pacer.Ran(kStart, end);
  EXPECT_FALSE(pacer.Due(end));
  return pacer.SecondsLeft(end);
}

TEST(Pacer, WhatTakesLongIsRunLessOften) {
  EXPECT_NEAR(PauseAfter(0.001), 0.2, 1e-5);
  EXPECT_NEAR(PauseAfter(0.1), 2, 1e-5);
}

TEST(Pacer, WhatHasWaitedForAMinuteIsRunAgainSoon) {
  EXPECT_NEAR(PauseAfter(60), Pacer::kMostPause_s, 1e-5);
}

}  // namespace
}  // namespace espalier
