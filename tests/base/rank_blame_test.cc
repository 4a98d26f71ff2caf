#include "base/rank_blame.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <limits>
#include <vector>

namespace espalier {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

RankEnd Exited(int code, std::int64_t ms) {
  return {.exit_code = code, .signal = 0, .at_ns = ms * kMs};
}
RankEnd Killed(int signal, std::int64_t ms) {
  return {.exit_code = -1, .signal = signal, .at_ns = ms * kMs};
}

int Blamed(const std::vector<RankEnd>& ends, std::int64_t told_ns = kNever) {
  return RankToBlame(ends, told_ns);
}

TEST(RankToBlame, IsTheFirstThatFailed) {
  EXPECT_EQ(Blamed({Exited(0, 1), Exited(0, 2)}), -1);
  EXPECT_EQ(Blamed({Exited(0, 1), Exited(3, 2)}), 1);
  EXPECT_EQ(Blamed({Exited(1, 20), Exited(1, 10), Exited(2, 30)}), 1);
  EXPECT_EQ(Blamed({Exited(1, 500), Killed(SIGSEGV, 10)}), 1);
}

TEST(RankToBlame, IsNoneOfThoseThatWereToldToEnd) {
  EXPECT_EQ(Blamed({Killed(SIGTERM, 20), Exited(0, 1)}, 10 * kMs), -1);
  EXPECT_EQ(Blamed({Killed(SIGTERM, 20), Exited(1, 9)}, 10 * kMs), 1);
}

TEST(RankToBlame, AKilledOneIsSeenALittleAfterThoseThatItBreaks) {
  EXPECT_EQ(Blamed({Exited(1, 10), Killed(SIGKILL, 15)}), 1);
  EXPECT_EQ(Blamed({Exited(1, 10), Killed(SIGKILL, 15), Killed(SIGSEGV, 12)}), 2);
  EXPECT_EQ(Blamed({Exited(1, 10), Killed(SIGKILL, 400)}), 0) << "this is too late for it";
  EXPECT_EQ(Blamed({Exited(1, 10), Killed(SIGABRT, 15)}), 0) << "libraries abort where others fail";
  EXPECT_EQ(Blamed({Exited(1, 10), Killed(SIGTERM, 15)}), 0);
}

TEST(RankToBlame, WhatANoteSaysIsTheTime) {
  RankEnd noted = Exited(1, 5);
  noted.noted = true;
  EXPECT_EQ(Blamed({Exited(1, 10), noted}), 1);
  EXPECT_EQ(Blamed({noted, Killed(SIGKILL, 9)}), 0);
}

TEST(PutInOrder, TheSystemsOrderGoesBeforeWhenItWasNoticed) {
  RankEnd early = Exited(3, 30);
  early.nth = 1;
  RankEnd late = Exited(4, 10);
  late.nth = 2;
  std::vector<RankEnd> ends{late, early};
  EXPECT_EQ(Blamed(ends), 0);
  PutInOrder(ends);
  EXPECT_EQ(Blamed(ends), 1);
  EXPECT_EQ(ends[0].at_ns, 10 * kMs);
  EXPECT_LT(ends[1].at_ns, 10 * kMs);

  late.exit_code = 0;
  ends = {early, late, Exited(1, 5)};
  PutInOrder(ends);
  EXPECT_EQ(RankThatHadLeft(ends, 0), -1) << "it ended after it";
  EXPECT_EQ(ends[2].at_ns, 5 * kMs) << "of whom nothing is known but that";
}

TEST(PutInOrder, ANoteKeepsItsTime) {
  RankEnd noted = Exited(1, 20);
  noted.noted = true;
  noted.nth = 1;
  RankEnd other = Exited(1, 10);
  other.nth = 2;
  std::vector<RankEnd> ends{noted, other, {.exit_code = 0, .nth = 3}};
  PutInOrder(ends);
  EXPECT_EQ(ends[0].at_ns, 20 * kMs);
  EXPECT_EQ(ends[2].at_ns, 0) << "nobody has said how it ended";
  EXPECT_EQ(Blamed(ends), 1);

  other = noted;
  other.nth = 0;
  EXPECT_EQ(Blamed({other, noted}), 1) << "at one tick of the clock";
}

TEST(HowEnded, IsToldWithTheRankThatHadLeft) {
  EXPECT_EQ(HowEnded(Exited(3, 1)), "exited with code 3");
  EXPECT_EQ(HowEndedAfter(Killed(SIGKILL, 1), 5),
            "was killed by signal 9 after rank 5 had ended with 0");
}

TEST(RankThatHadLeft, IsTheFirstThatEndedWellBefore) {
  EXPECT_EQ(RankThatHadLeft(std::vector{Exited(1, 10), Exited(0, 5), Exited(0, 4)}, 0), 2);
  EXPECT_EQ(RankThatHadLeft(std::vector{Exited(1, 10), Exited(0, 11)}, 0), -1);
  EXPECT_EQ(RankThatHadLeft(std::vector{Exited(1, 10), Killed(SIGSEGV, 4)}, 0), -1);
  EXPECT_EQ(RankThatHadLeft(std::vector{Exited(1, 10), RankEnd{.exit_code = 0}}, 0), -1)
      << "it has not ended";
}

}  // namespace
}  // namespace espalier
