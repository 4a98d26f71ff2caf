#include "trial_runner/agent/outbox.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

v1::AgentMessage ReportOf(std::int64_t replica, std::int64_t step) {
  v1::AgentMessage event;
  event.mutable_from_replica()->set_replica_id(replica);
  event.mutable_from_replica()->mutable_message()->mutable_report()->set_step(step);
  return event;
}

v1::AgentMessage ProgressOf(std::int64_t replica, std::int64_t step, std::int64_t count) {
  v1::AgentMessage event;
  event.mutable_from_replica()->set_replica_id(replica);
  v1::Progress& progress = *event.mutable_from_replica()->mutable_message()->mutable_progress();
  progress.set_step(step);
  v1::ProfileEntry& entry = *progress.add_profile();
  entry.set_replicas(2);
  entry.set_optimizer_count(count);
  return event;
}

v1::AgentMessage ExitOf(std::int64_t replica) {
  v1::AgentMessage event;
  event.mutable_exited()->set_replica_id(replica);
  return event;
}

std::vector<std::int64_t> SendAll(Outbox& outbox) {
  std::vector<std::int64_t> sequences;
  while (const v1::AgentMessage* event = outbox.NextToSend()) {
    sequences.push_back(event->sequence());
    outbox.MarkSent();
  }
  return sequences;
}

TEST(Outbox, SendsUnacknowledgedAgainInOrder) {
  Outbox outbox;
  for (int step = 1; step <= 4; ++step) outbox.Add(ReportOf(1, step));
  EXPECT_EQ(SendAll(outbox), (std::vector<std::int64_t>{1, 2, 3, 4}));
  outbox.Acknowledge(2);
  outbox.SendAllAgain();
  EXPECT_EQ(SendAll(outbox), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(SendAll(outbox), std::vector<std::int64_t>{});
  outbox.Acknowledge(4);
  EXPECT_TRUE(outbox.empty());
}

TEST(Outbox, TellsWhoseExitWasAcknowledged) {
  Outbox outbox;
  outbox.Add(ReportOf(1, 1));
  outbox.Add(ExitOf(1));
  outbox.Add(ExitOf(2));
  SendAll(outbox);
  EXPECT_EQ(outbox.Acknowledge(1), std::vector<std::int64_t>{});
  EXPECT_EQ(outbox.Acknowledge(2), std::vector<std::int64_t>{1});
  EXPECT_EQ(outbox.Acknowledge(3), std::vector<std::int64_t>{2});
}

TEST(Outbox, ProgressTakesOverAnOlderUnsentOneWithItsProfile) {
  Outbox outbox;
  outbox.Add(ProgressOf(1, 10, 5));
  outbox.Add(ReportOf(1, 1));
  outbox.Add(ProgressOf(2, 70, 1));
  outbox.Add(ProgressOf(1, 20, 7));
  ASSERT_EQ(outbox.size(), 3U);
  outbox.MarkSent();  // the report
  outbox.MarkSent();  // replica 2
  const v1::AgentMessage* last = outbox.NextToSend();
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(last->sequence(), 4);
  const v1::Progress& progress = last->from_replica().message().progress();
  EXPECT_EQ(progress.step(), 20);
  ASSERT_EQ(progress.profile_size(), 1);
  EXPECT_EQ(progress.profile(0).optimizer_count(), 12);
}

TEST(Outbox, LeavesASentProgressAlone) {
  Outbox outbox;
  outbox.Add(ProgressOf(1, 10, 5));
  SendAll(outbox);
  outbox.Add(ProgressOf(1, 20, 7));
  EXPECT_EQ(outbox.size(), 2U);
  outbox.SendAllAgain();
  EXPECT_EQ(SendAll(outbox), (std::vector<std::int64_t>{1, 2}));
}

TEST(Outbox, StaysSmallUnderProgressAndIsFullAtItsLimit) {
  Outbox outbox;
  for (int step = 1; step <= 1000; ++step) outbox.Add(ProgressOf(1, step, 1));
  EXPECT_EQ(outbox.size(), 1U);
  while (outbox.size() + 1 < kMaxWaitingEvents) outbox.Add(ReportOf(1, 1));
  EXPECT_FALSE(outbox.full());
  outbox.Add(ReportOf(1, 1));
  EXPECT_TRUE(outbox.full());
}

TEST(Outbox, IsFullByBytesToo) {
  Outbox outbox;
  v1::AgentMessage large = ExitOf(1);
  large.mutable_exited()->set_last_output(std::string(kMaxWaitingBytes, 'x'));
  outbox.Add(large);
  EXPECT_TRUE(outbox.full());
  SendAll(outbox);
  outbox.Acknowledge(1);
  EXPECT_FALSE(outbox.full());
}

}  // namespace
}  // namespace espalier
