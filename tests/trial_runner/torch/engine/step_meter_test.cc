#include "trial_runner/torch/engine/step_meter.h"

#include <optional>

#include "gtest/gtest.h"
#include "tests/trial_runner/torch/late_timer.h"

namespace espalier {
namespace {

constexpr ProfileKey kShape{1, 1, 4};

// Of two microbatches.
std::optional<double> TakeStep(StepMeter& meter, const std::optional<ProfileKey>& shape) {
  meter.BeginStep();
  meter.BeginMicrobatch(/*last=*/false);
  meter.EndMicrobatch();
  meter.BeginMicrobatch(/*last=*/true);
  meter.BeginSync();
  meter.EndSync();
  return meter.EndStep(shape, 8);
}

ReplicaProgress ReportOf(StepMeter& meter, const std::vector<ReplicaId>& members = {ReplicaId(7)}) {
  ReplicaProgress progress;
  meter.Report(members, progress);
  return progress;
}

TEST(StepMeter, KnowsAStepOnTheHostAtItsEnd) {
  StepMeter meter(nullptr);
  EXPECT_TRUE(TakeStep(meter, kShape).has_value());
  EXPECT_TRUE(ReportOf(meter).profile.empty());  // the first one of a shape is left out
  TakeStep(meter, kShape);
  TakeStep(meter, std::nullopt);
  const ReplicaProgress told = ReportOf(meter);
  ASSERT_EQ(told.profile.size(), 1U);
  EXPECT_EQ(told.profile.front().key, kShape);
  EXPECT_EQ(told.profile.front().optimizer_count, 1);
  EXPECT_EQ(told.profile.front().accumulation_count, 1);
  EXPECT_GE(told.profile.front().optimizer_time_s, told.profile.front().sync_time_s);
  EXPECT_TRUE(ReportOf(meter).profile.empty());
}

// The timer's clock goes on by a second at each look: 3 s the last microbatch, see DeviceStepTimes'
// test, and 1 s the other.
TEST(StepMeter, KnowsAStepOnADeviceOneStepLater) {
  StepMeter meter(std::make_unique<LateTimer>());
  EXPECT_FALSE(TakeStep(meter, kShape).has_value());
  EXPECT_EQ(meter.ComputeTime(), 0);
  const std::optional<double> took_s = TakeStep(meter, kShape);
  EXPECT_GT(took_s.value_or(0), 1);
  EXPECT_GT(meter.ComputeTime(), 1);
  EXPECT_EQ(meter.ComputeTime(), *took_s - 3);
  meter.DropStep();
  EXPECT_FALSE(TakeStep(meter, kShape).has_value());
}

TEST(StepMeter, TellsComputeTimesByMember) {
  StepMeter meter(nullptr);
  for (int step = 0; step < 2; ++step) {
    meter.AddComputeTime(0, 2, 1.5);
    meter.AddComputeTime(1, 2, 0.25);
  }
  const ReplicaProgress told = ReportOf(meter, {ReplicaId(7), ReplicaId(9)});
  ASSERT_EQ(told.replica_times.size(), 2U);
  EXPECT_EQ(told.replica_times[1],
            (ReplicaTime{.replica = ReplicaId(9), .steps = 2, .compute_time_s = 0.5}));
  EXPECT_TRUE(ReportOf(meter).replica_times.empty());
}

TEST(StepMeter, WhatAnotherHasReportedIsForgottenWithTheGroup) {
  for (const bool reported : {true, false}) {
    StepMeter meter(nullptr);
    TakeStep(meter, kShape);
    TakeStep(meter, kShape);
    meter.AddComputeTime(0, 1, 1);
    meter.StartGroup(reported, StepMeter::Clock::now());
    const ReplicaProgress told = ReportOf(meter);
    EXPECT_EQ(told.profile.empty(), !reported);
    EXPECT_TRUE(told.replica_times.empty());
  }
}

TEST(StepMeter, AReportIsDueAfterASecond) {
  StepMeter meter(nullptr);
  const auto start = StepMeter::Clock::now() - std::chrono::seconds(10);
  meter.StartPeriod(start);
  EXPECT_FALSE(meter.ReportDue(start + std::chrono::milliseconds(900)));
  EXPECT_TRUE(meter.ReportDue(start + std::chrono::seconds(1)));
  TakeStep(meter, kShape);
  EXPECT_GT(meter.Throughput(), 0);
  EXPECT_LE(meter.Throughput(), 0.8);  // 8 samples in 10 s or more
  meter.StartPeriod(start);
  EXPECT_EQ(meter.Throughput(), 0);
}

}  // namespace
}  // namespace espalier
