#include "trial_runner/agent/held_exits.h"

#include <gtest/gtest.h>

#include <csignal>

namespace espalier {
namespace {

using std::chrono::milliseconds;

class HeldExitsTest : public testing::Test {
 protected:
  static v1::ReplicaExited DiedOf(int signal) {
    v1::ReplicaExited exited;
    exited.set_signal(signal);
    return exited;
  }
  HeldExits::Known After(int ms) const {
    HeldExits::Known known;
    known.now = begun_ + milliseconds(ms);
    return known;
  }

  const HeldExits::Clock::time_point begun_{std::chrono::hours(1)};
  HeldExits held_;
};

TEST_F(HeldExitsTest, KnowsWhatASystemSendsToAllProcesses) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
    EXPECT_TRUE(HeldExits::DiedOfNotice(DiedOf(signal))) << signal;
    v1::ReplicaExited of_shell;
    of_shell.set_exit_code(128 + signal);
    EXPECT_TRUE(HeldExits::DiedOfNotice(of_shell)) << signal;
  }
  for (const int signal : {0, SIGKILL, SIGSEGV, SIGUSR2}) {
    EXPECT_FALSE(HeldExits::DiedOfNotice(DiedOf(signal))) << signal;
  }
}

TEST_F(HeldExitsTest, ANoticeIsTheAgentsWhereThatWasSignalledAsWell) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
    for (const bool stopping : {false, true}) {
      held_.HoldForNotice(DiedOf(signal), begun_);
      EXPECT_TRUE(held_.Take(After(100)).empty());
      HeldExits::Known known = After(200);
      known.stopping = stopping;
      known.leaving = !stopping;
      const auto told = held_.Take(known);
      ASSERT_EQ(told.size(), 1u);
      EXPECT_TRUE(told[0].agent_stops());
    }
  }
  EXPECT_TRUE(held_.empty());
}

TEST_F(HeldExitsTest, OneThatNobodyElseGotIsToldInTheEnd) {
  held_.HoldForNotice(DiedOf(SIGTERM), begun_);
  EXPECT_EQ(held_.NextTime(), begun_ + milliseconds(500));
  EXPECT_TRUE(held_.Take(After(499)).empty());
  const auto told = held_.Take(After(500));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_FALSE(told[0].agent_stops());
  EXPECT_EQ(held_.NextTime(), HeldExits::Clock::time_point::max());
}

TEST_F(HeldExitsTest, ThoseOfGpusWaitForALook) {
  held_.HoldForGpus(DiedOf(SIGSEGV), 7, begun_ + milliseconds(5000));
  held_.HoldForGpus(DiedOf(SIGSEGV), 8, begun_ + milliseconds(5000));
  HeldExits::Known known = After(100);
  known.looks = 6;
  known.leaving = true;
  EXPECT_TRUE(held_.Take(known).empty());
  known.looks = 7;
  const auto told = held_.Take(known);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_FALSE(told[0].agent_stops());
  EXPECT_EQ(held_.TakeAll(After(200)).size(), 1u);
}

}  // namespace
}  // namespace espalier
