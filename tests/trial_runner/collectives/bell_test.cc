#include "trial_runner/collectives/bell.h"

#include <future>

#include "gtest/gtest.h"

namespace espalier {
namespace {

constexpr double kLong_s = 3600;

Bell::Wait WaitOf(std::int64_t generation, const bool& done) {
  return {.generation = generation,
          .limit_s = kLong_s,
          .done = [&done] { return done; },
          .poll_every = {}};
}

TEST(Bell, WakesWhoWaitsForWhatIsRung) {
  Bell bell;
  bool done = false;
  auto waiting = std::async(std::launch::async, [&] { return bell.WaitFor(WaitOf(1, done)); });
  bell.Ring([&] { done = true; });
  EXPECT_TRUE(waiting.get().ok());
}

TEST(Bell, LooksItselfForWhatRingsNoBell) {
  Bell bell;
  int looks = 0;
  EXPECT_TRUE(bell.WaitFor({.generation = 1,
                            .limit_s = kLong_s,
                            .done = [&] { return ++looks == 10; },
                            .poll_every = std::chrono::microseconds(10)})
                  .ok());
}

TEST(Bell, AbandonWakesOlderGenerationsAlone) {
  Bell bell;
  bool done = false;
  auto old = std::async(std::launch::async, [&] { return bell.WaitFor(WaitOf(1, done)); });
  auto present = std::async(std::launch::async, [&] { return bell.WaitFor(WaitOf(2, done)); });
  bell.Abandon(2, /*grace_s=*/0);
  EXPECT_TRUE(absl::IsAborted(old.get()));
  bell.Ring([&] { done = true; });
  EXPECT_TRUE(present.get().ok());
}

TEST(Bell, WhatIsDoneCountsThoughTheWordHasCome) {
  Bell bell;
  bell.Abandon(5, /*grace_s=*/0);
  EXPECT_TRUE(bell.Abandoned(4));
  EXPECT_FALSE(bell.Abandoned(5));
  const bool done = true;
  EXPECT_TRUE(bell.WaitFor(WaitOf(1, done)).ok());
}

TEST(Bell, LimitTellsItselfFromGrace) {
  const bool done = false;
  Bell bell;
  Bell::Wait wait = WaitOf(7, done);
  wait.limit_s = 0.02;
  const absl::Status late = bell.WaitFor(wait);
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_NE(late.message().find("generation 7: waited 0.02 s"), absl::string_view::npos) << late;
  bell.Abandon(8, /*grace_s=*/0.01);
  EXPECT_TRUE(absl::IsAborted(bell.WaitFor(WaitOf(7, done))));
}

TEST(Bell, LeastGraceHoldsUntilItIsTakenBack) {
  const bool done = false;
  Bell bell;
  bell.SetLeastGrace(kLong_s);
  bell.Abandon(8, /*grace_s=*/0.01);
  Bell::Wait wait = WaitOf(7, done);
  wait.limit_s = 0.05;
  EXPECT_TRUE(absl::IsDeadlineExceeded(bell.WaitFor(wait)));
  bell.SetLeastGrace(0);
  EXPECT_TRUE(absl::IsAborted(bell.WaitFor(WaitOf(7, done))));
  bell.SetLeastGrace(kLong_s);
  bell.Abandon(9, /*grace_s=*/0);
  EXPECT_TRUE(absl::IsAborted(bell.WaitFor(WaitOf(7, done))));
}

}  // namespace
}  // namespace espalier
