#include "tuner/simulator/process_starts.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

Time At(double s) { return After(Time{1'000'000'000}, s); }

// Seconds until the next start is done.
double Until(const ProcessStarts& starts, double now_s) {
  return SecondsBetween(At(now_s), *starts.NextDone());
}

TEST(ProcessStarts, OneTakesItsProcessorTime) {
  ProcessStarts starts({.cpu_s = 0.5, .cores = 2});
  EXPECT_FALSE(starts.NextDone().has_value());
  starts.Begin(ReplicaId(1), At(3));
  EXPECT_NEAR(Until(starts, 3), 0.5, 2e-6);
  EXPECT_TRUE(starts.TakeDone(At(3.4)).empty());
  EXPECT_EQ(starts.TakeDone(*starts.NextDone()), std::vector<ReplicaId>{ReplicaId(1)});
  EXPECT_FALSE(starts.NextDone().has_value());
}

TEST(ProcessStarts, ManyShareTheCores) {
  ProcessStarts starts({.cpu_s = 0.5, .cores = 2});
  for (int i = 1; i <= 8; ++i) starts.Begin(ReplicaId(i), At(0));
  EXPECT_NEAR(Until(starts, 0), 2, 2e-6);
  EXPECT_EQ(starts.TakeDone(*starts.NextDone()).size(), 8u);
}

TEST(ProcessStarts, NoneHasMoreThanOneCore) {
  ProcessStarts starts({.cpu_s = 0.5, .cores = 16});
  for (int i = 1; i <= 8; ++i) starts.Begin(ReplicaId(i), At(0));
  EXPECT_NEAR(Until(starts, 0), 0.5, 2e-6);
  ProcessStarts unlimited({.cpu_s = 0.5, .cores = 0});
  for (int i = 1; i <= 8; ++i) unlimited.Begin(ReplicaId(i), At(0));
  EXPECT_NEAR(Until(unlimited, 0), 0.5, 2e-6);
}

TEST(ProcessStarts, ALaterOneDelaysThoseUnderWay) {
  ProcessStarts starts({.cpu_s = 1, .cores = 1});
  starts.Begin(ReplicaId(1), At(0));
  starts.Begin(ReplicaId(2), At(0.5));  // from now on half a core each
  EXPECT_NEAR(Until(starts, 0.5), 1, 2e-6);
  EXPECT_EQ(starts.TakeDone(At(1.5)), std::vector<ReplicaId>{ReplicaId(1)});
  EXPECT_NEAR(Until(starts, 1.5), 0.5, 2e-6);  // alone again
}

TEST(ProcessStarts, WhoGivesUpLeavesItsCoreToTheOthers) {
  ProcessStarts starts({.cpu_s = 1, .cores = 1});
  starts.Begin(ReplicaId(1), At(0));
  starts.Begin(ReplicaId(2), At(0));
  starts.GiveUp(ReplicaId(1), At(1));
  starts.GiveUp(ReplicaId(7), At(1));
  EXPECT_NEAR(Until(starts, 1), 0.5, 2e-6);
  EXPECT_EQ(starts.TakeDone(At(1.5)), std::vector<ReplicaId>{ReplicaId(2)});
}

TEST(ProcessStarts, SpreadIsDrawnByTheSeed) {
  const StartLoad load{.cpu_s = 1, .cores = 0, .spread = 0.2, .seed = 1};
  ProcessStarts a(load);
  ProcessStarts b(load);
  StartLoad other = load;
  other.seed = 2;
  ProcessStarts c(other);
  for (ProcessStarts* starts : {&a, &b, &c}) starts->Begin(ReplicaId(1), At(0));
  EXPECT_EQ(a.NextDone(), b.NextDone());
  EXPECT_NE(a.NextDone(), c.NextDone());
  for (int i = 2; i <= 100; ++i) a.Begin(ReplicaId(i), At(0));
  EXPECT_TRUE(a.TakeDone(At(0.7999)).empty());
  EXPECT_EQ(a.TakeDone(At(1.2001)).size(), 100u);
}

}  // namespace
}  // namespace espalier
