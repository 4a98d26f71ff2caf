#include "trial_runner/agent/handover.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/protocol.h"
#include "trial_runner/agent/outbox.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string PathOf(const FileDescriptor& file) {
  return "/proc/self/fd/" + std::to_string(file.get());
}

v1::AgentMessage Exit(std::int64_t replica) {
  v1::AgentMessage event;
  event.mutable_exited()->set_replica_id(replica);
  return event;
}

TEST(Handover, ArrivesAsItWasWritten) {
  v1::AgentHandover handover;
  handover.set_format(kHandoverFormat);
  handover.set_node_name("n1");
  handover.add_ended(7);
  FileDescriptor file = *WriteHandover(handover);
  EXPECT_NE(fcntl(file.get(), F_GETFD) & FD_CLOEXEC, 0);
  const absl::StatusOr<v1::AgentHandover> read = ReadHandover(PathOf(file));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->SerializeAsString(), handover.SerializeAsString());
  const std::string path = PathOf(file);
  ForgetHandover(path);
  EXPECT_FALSE(ReadHandover(path).ok());
  file.Release();
}

TEST(Handover, OfAFormatThatIsNotReadIsRefusedByBothReleases) {
  v1::AgentHandover handover;
  handover.set_format(kHandoverFormat + 1);
  handover.set_release("9.8.7");
  const FileDescriptor file = *WriteHandover(handover);
  EXPECT_THAT(std::string(ReadHandover(PathOf(file)).status().message()),
              HasSubstr("the running agent (release 9.8.7) hands over in format " +
                        std::to_string(kHandoverFormat + 1) + ", this program (release " +
                        Release() + ") reads"));
}

TEST(Handover, WhatIsNoneIsRefused) {
  EXPECT_THAT(std::string(ReadHandover("/dev/null").status().message()),
              HasSubstr("\"/dev/null\" is not what an agent hands over"));
  EXPECT_FALSE(ReadHandover("/proc/self/fd/absent").ok());
}

TEST(Handover, NamesEachDescriptorThatIsNeeded) {
  v1::AgentHandover handover;
  handover.set_lock(3);
  handover.add_running()->set_pidfd(4);
  handover.mutable_running(0)->set_control(5);
  handover.add_spares()->set_pidfd(6);
  handover.mutable_spares(0)->set_control(-1);
  EXPECT_THAT(DescriptorsOf(handover), ElementsAre(3, 4, 5, 6));
}

TEST(Handover, AnOutboxGoesOnWithItsNumbers) {
  Outbox before;
  for (const std::int64_t replica : {1, 2, 3}) before.Add(Exit(replica));
  before.MarkSent();
  before.MarkSent();
  before.Acknowledge(1);
  v1::AgentHandover handover;
  before.HandOver(handover);
  Outbox after;
  after.TakeOver(handover);
  after.Add(Exit(4));
  ASSERT_EQ(after.size(), 3U);
  EXPECT_EQ(after.NextToSend()->sequence(), 2);
  // What was sent by the one before it may be confirmed; what was not cannot be.
  EXPECT_THAT(after.Acknowledge(4), ElementsAre(2));
  EXPECT_EQ(after.NextToSend()->sequence(), 3);
  after.MarkSent();
  EXPECT_EQ(after.NextToSend()->sequence(), 4);
  EXPECT_EQ(after.NextToSend()->exited().replica_id(), 4);
}

}  // namespace
}  // namespace espalier
