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

constexpr std::int64_t kSecond_us = 1'000'000;
constexpr std::int64_t kHour_us = 3600 * kSecond_us;

// A machine whose clocks the test moves, and the time that follows them.
struct Machine {
  Machine() { clock.Read(readings); }

  // Read each second, as a service does, or seldom.
  void Run(std::int64_t seconds, std::int64_t each_s = 1) {
    for (std::int64_t at = 0; at < seconds; at += each_s) {
      readings.wall_us += each_s * kSecond_us;
      readings.running_us += each_s * kSecond_us;
      const Time before = now;
      now = clock.Read(readings);
      EXPECT_GE(now, before) << "time never steps back";
      EXPECT_GE(2 * (now.us - before.us), each_s * kSecond_us) << "and never stands still";
    }
  }
  void SetWall(std::int64_t by_us) {
    readings.wall_us += by_us;
    const Time before = now;
    now = clock.Read(readings);
    EXPECT_GE(now, before);
  }
  std::int64_t behind_us() const { return readings.wall_us - now.us; }

  ClockReadings readings{.wall_us = kNow.us, .running_us = 5 * kSecond_us};
  FollowedClock clock;
  Time now = kNow;
};

TEST(FollowedClock, RunsWithTheWallClock) {
  for (const std::int64_t each_s : {1, 7, 86'400}) {
    Machine machine;
    machine.Run(10 * each_s, each_s);
    EXPECT_EQ(machine.now.us, kNow.us + 10 * each_s * kSecond_us);
    EXPECT_EQ(machine.behind_us(), 0);
  }
}

TEST(FollowedClock, CountsASuspendAtOnce) {
  for (const std::int64_t asleep_us : {3 * kSecond_us, 8 * kHour_us, 1000 * kHour_us}) {
    Machine machine;
    machine.readings.running_us += asleep_us;
    machine.SetWall(asleep_us);
    EXPECT_EQ(machine.now.us, kNow.us + asleep_us);
    machine.Run(5);
    EXPECT_EQ(machine.behind_us(), 0);
  }
}

TEST(FollowedClock, JumpsFarForwardAtOnce) {
  for (const std::int64_t by_us :
       {FollowedClock::kMaxFollowed_us + 1, 24 * kHour_us, 50 * (8766 * kHour_us)}) {
    Machine machine;
    machine.SetWall(by_us);
    EXPECT_EQ(machine.behind_us(), 0);
    machine.Run(5);
    EXPECT_EQ(machine.now.us, kNow.us + by_us + 5 * kSecond_us);
  }
}

TEST(FollowedClock, CatchesUpWithinTheTimeByWhichItWasSetForward) {
  for (const std::int64_t by_s : {1, 61, 3600}) {
    Machine machine;
    machine.SetWall(by_s * kSecond_us);
    EXPECT_EQ(machine.now, kNow) << "nothing has passed";
    machine.Run(by_s - 1);
    EXPECT_EQ(machine.behind_us(), kSecond_us);
    machine.Run(1);
    EXPECT_EQ(machine.behind_us(), 0);
  }
}

TEST(FollowedClock, WaitsAtHalfSpeedWhereItWasSetBack) {
  for (const std::int64_t by_s : {1, 61, 86'400}) {
    Machine machine;
    machine.SetWall(-by_s * kSecond_us);
    EXPECT_EQ(machine.now, kNow);
    machine.Run(2 * by_s - 1);
    EXPECT_EQ(machine.behind_us(), -kSecond_us / 2);
    machine.Run(1);
    EXPECT_EQ(machine.behind_us(), 0);
  }
}

// The rate of a wall clock that is corrected little by little differs by 0.05 % at the most.
TEST(FollowedClock, FollowsADriftWithoutALag) {
  for (const std::int64_t drift_us : {-500, 500}) {
    Machine machine;
    for (int i = 0; i < 1000; ++i) {
      machine.readings.wall_us += drift_us;
      machine.Run(1);
      EXPECT_EQ(machine.behind_us(), 0);
    }
  }
}

TEST(FollowedClock, ReadingsThatDoNotMoveChangeNothing) {
  Machine machine;
  machine.SetWall(-kSecond_us);
  machine.readings.running_us -= kSecond_us;  // no such clock, but no harm either
  machine.SetWall(0);
  EXPECT_EQ(machine.now, kNow);
}

TEST(FollowedClock, TheMachinesOwnNeverStepsBack) {
  Time before = Now();
  for (int i = 0; i < 1000; ++i) {
    const Time now = Now();
    EXPECT_GE(now, before);
    before = now;
  }
}

}  // namespace
}  // namespace espalier
