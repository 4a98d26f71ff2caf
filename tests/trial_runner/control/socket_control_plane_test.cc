#include "trial_runner/control/socket_control_plane.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <string>
#include <vector>

#include "base/protocol.h"
#include "control.pb.h"
#include "gtest/gtest.h"
#include "trial_runner/control/group_progress.h"
#include "trial_runner/control/standalone_control_plane.h"

namespace espalier {
namespace {

// The agent's end of a control socket.
class Agent {
 public:
  Agent() {
    int sockets[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    socket_ = sockets[0];
    replica_socket_ = sockets[1];
  }
  ~Agent() { close(socket_); }

  int socket() const { return socket_; }
  int replica_socket() const { return replica_socket_; }

  v1::ReplicaMessage Receive() const {
    unsigned char prefix[4];
    EXPECT_EQ(recv(socket_, prefix, 4, MSG_WAITALL), 4);
    const int size = prefix[0] | prefix[1] << 8 | prefix[2] << 16;
    std::string body(static_cast<std::size_t>(size), '\0');
    EXPECT_EQ(recv(socket_, body.data(), body.size(), MSG_WAITALL),
              static_cast<ssize_t>(body.size()));
    v1::ReplicaMessage message;
    EXPECT_TRUE(message.ParseFromString(body));
    return message.has_greeting() ? Receive() : message;
  }

  void SendRegroup(std::int64_t generation, bool abandon) const {
    v1::ReplicaCommand command;
    command.mutable_regroup()->set_generation(generation);
    command.mutable_regroup()->set_abandon(abandon);
    v1::Member& member = *command.mutable_regroup()->add_members();
    member.set_replica_id(7);
    member.set_node_id(2);
    member.set_address("host:1");
    SendBytes(command.SerializeAsString());
  }

  void SendBytes(const std::string& body) const {
    std::string message{static_cast<char>(body.size()), 0, 0, 0};
    message += body;
    // In two parts: the reader has to put them together.
    EXPECT_EQ(send(socket_, message.data(), 3, 0), 3);
    EXPECT_EQ(send(socket_, message.data() + 3, message.size() - 3, 0),
              static_cast<ssize_t>(message.size() - 3));
  }

 private:
  int socket_ = -1;
  int replica_socket_ = -1;
};

TEST(SocketControlPlane, GreetsFirst) {
  const Agent agent;
  const auto control = MakeSocketControlPlane(agent.replica_socket(), {.lease_s = 0.004});
  unsigned char prefix[4];
  ASSERT_EQ(recv(agent.socket(), prefix, 4, MSG_WAITALL), 4);
  std::string body(prefix[0], '\0');
  ASSERT_EQ(recv(agent.socket(), body.data(), body.size(), MSG_WAITALL),
            static_cast<ssize_t>(body.size()));
  v1::ReplicaMessage message;
  ASSERT_TRUE(message.ParseFromString(body));
  EXPECT_EQ(message.greeting().protocol(), ProtocolText());
}

TEST(SocketControlPlane, SendsMessagesInOrder) {
  const Agent agent;
  const auto control = MakeSocketControlPlane(agent.replica_socket());
  control->Send(ReplicaReady{"host:9", {.initial = 32, .max_global = 64, .max_unsplit = 16}, 5});
  const v1::Ready ready = agent.Receive().ready();
  EXPECT_EQ(ready.batch().max_batch_size(), 64);
  EXPECT_EQ(ready.batch().max_unsplit_batch_size(), 16);
  control->Send(ReplicaReport{2, 0.5, 10, {{"loss", 1.5}}});
  const v1::ReplicaMessage report = agent.Receive();
  EXPECT_EQ(report.report().value(), 0.5);
  EXPECT_EQ(report.report().extra().at("loss"), 1.5);
  ReplicaProgress progress;
  progress.profile.push_back({.key = {1, 2, 16}, .optimizer_count = 4});
  control->Send(progress);
  EXPECT_EQ(agent.Receive().progress().profile(0).atomic_batch_size(), 16);
  control->Send(ReplicaRegrouped{.generation = 4, .step = 9, .pause_s = 0.25});
  EXPECT_EQ(agent.Receive().regrouped().pause_s(), 0.25);
  control->Send(ReplicaCheckpoint{"/a/b.pt", 9});
  EXPECT_EQ(agent.Receive().checkpoint().path(), "/a/b.pt");
  control->Send(ReplicaFinished{std::nullopt, "the loss is not finite"});
  const v1::Finished finished = agent.Receive().finished();
  EXPECT_FALSE(finished.has_value());
  EXPECT_EQ(finished.failure(), "the loss is not finite");
  control->Send(ReplicaStuck{4, 12.5});
  EXPECT_EQ(agent.Receive().stuck().waited_s(), 12.5);
}

TEST(SocketControlPlane, TellsWhatMovesWhileItMoves) {
  const Agent agent;
  const auto control = MakeSocketControlPlane(agent.replica_socket());
  GroupProgress& progress = control->progress();
  progress.Begin(GroupPhase::kHandingOver, 4);
  progress.Expect(2000);
  progress.Add(GroupPhase::kHandingOver, 500);
  progress.Add(GroupPhase::kSaving, 9);
  v1::Forming told;
  while (told.bytes() == 0) told = agent.Receive().forming();
  EXPECT_EQ(told.generation(), 4);
  EXPECT_EQ(told.phase(), v1::Forming::HANDING_OVER);
  EXPECT_EQ(told.bytes(), 500);
  EXPECT_EQ(told.bytes_total(), 2000);
  progress.Add(GroupPhase::kHandingOver, 500);
  EXPECT_EQ(agent.Receive().forming().bytes(), 1000);
  progress.End();
  progress.Begin(GroupPhase::kSaving, 5);
  EXPECT_EQ(agent.Receive().forming().phase(), v1::Forming::SAVING);
}

TEST(SocketControlPlane, KeepsTheHighestGenerationAndWakesWhoWaits) {
  const Agent agent;
  const auto control = MakeSocketControlPlane(agent.replica_socket());
  EXPECT_EQ(control->LatestGeneration(), 0);
  auto waiting = std::async(std::launch::async, [&] { return control->WaitAbove(4); });
  agent.SendRegroup(3, false);
  agent.SendRegroup(6, true);
  agent.SendRegroup(5, false);  // late: not newer
  const Membership membership = waiting.get();
  EXPECT_EQ(membership.generation, 6);
  EXPECT_TRUE(membership.abandon);
  EXPECT_EQ(membership.members, (std::vector<Member>{{ReplicaId(7), NodeId(2), "host:1"}}));
  agent.SendRegroup(8, false);
  EXPECT_EQ(control->WaitAbove(7).generation, 8);
  EXPECT_EQ(control->LatestGeneration(), 8);
}

TEST(SocketControlPlane, ListenerHearsTheLatestAndThenEachNewer) {
  const Agent agent;
  const auto control = MakeSocketControlPlane(agent.replica_socket());
  agent.SendRegroup(1, false);
  control->WaitAbove(0);
  std::vector<std::int64_t> heard;
  control->Listen([&](const Membership& m) { heard.push_back(m.generation); });
  agent.SendRegroup(2, false);
  control->WaitAbove(1);
  control->Listen({});
  agent.SendRegroup(3, false);
  control->WaitAbove(2);
  EXPECT_EQ(heard, (std::vector<std::int64_t>{1, 2}));
}

TEST(SocketControlPlane, BeatsFromTheStartAndWhileItHearsCommands) {
  const Agent agent;
  const auto control = MakeSocketControlPlane(agent.replica_socket(), {.lease_s = 0.04});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(agent.Receive().has_heartbeat());
  control->Send(ReplicaReady{"host:9", {}, 5});
  v1::ReplicaMessage message = agent.Receive();
  while (message.has_heartbeat()) message = agent.Receive();
  EXPECT_EQ(message.ready().address(), "host:9");
  agent.SendRegroup(1, false);
  EXPECT_EQ(control->WaitAbove(0).generation, 1);
  EXPECT_TRUE(agent.Receive().has_heartbeat());
}

TEST(SocketControlPlane, HearsCommandsThoughNobodyReadsItsHeartbeats) {
  const Agent agent;
  const auto control = MakeSocketControlPlane(agent.replica_socket(), {.lease_s = 0.004});
  agent.SendRegroup(1, false);
  EXPECT_EQ(control->WaitAbove(0).generation, 1);
  // Until its buffer is full: from then on the heartbeats have no room, and must not wait for any.
  int waiting = 0;
  int before = -1;
  while (waiting != before) {
    before = waiting;
    poll(nullptr, 0, 50);
    ASSERT_EQ(ioctl(agent.socket(), FIONREAD, &waiting), 0);
  }
  agent.SendRegroup(2, false);
  EXPECT_EQ(control->WaitAbove(1).generation, 2);
}

TEST(SocketControlPlane, IgnoresACommandItDoesNotKnow) {
  const Agent agent;
  const auto control = MakeSocketControlPlane(agent.replica_socket());
  agent.SendBytes("");
  agent.SendRegroup(1, false);
  EXPECT_EQ(control->WaitAbove(0).generation, 1);
}

TEST(SocketControlPlane, ParksUntilItIsAdopted) {
  const Agent agent;
  const auto control = MakeSocketControlPlane(agent.replica_socket(), {.spares = true});
  agent.SendRegroup(4, false);
  control->WaitAbove(0);
  for (const std::int64_t id : {9, 12}) {
    auto parked = std::async(std::launch::async, [&] { return control->Park(/*device_bytes=*/7); });
    EXPECT_EQ(agent.Receive().parked().device_memory_bytes(), 7);
    // This is of the old replica's group, and known before the adoption: it is not about the new
    // one.
    agent.SendRegroup(id, false);
    v1::ReplicaCommand command;
    command.mutable_adopt()->set_replica_id(id);
    command.mutable_adopt()->set_checkpoint("/c/7.pt");
    agent.SendBytes(command.SerializeAsString());
    const std::optional<Adopted> adopted = parked.get();
    ASSERT_TRUE(adopted.has_value());
    EXPECT_EQ(adopted->as, (Adoption{ReplicaId(id), "/c/7.pt"}));
    EXPECT_EQ(adopted->generation, id);
  }
}

TEST(SocketControlPlane, DoesNotParkWhereSparesAreNotKept) {
  const Agent agent;
  EXPECT_FALSE(MakeSocketControlPlane(agent.replica_socket())->Park(0).has_value());
  EXPECT_FALSE(MakeStandaloneControlPlane(ReplicaId(1))->Park(0).has_value());
}

TEST(SocketControlPlaneDeathTest, EndsTheProcessWhenTheAgentIsGone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        auto agent = std::make_unique<Agent>();
        const auto control = MakeSocketControlPlane(agent->replica_socket());
        agent.reset();
        control->WaitAbove(0);
      },
      ::testing::ExitedWithCode(kAgentGoneExitCode), "the agent is gone");
}

TEST(StandaloneControlPlane, IsAGroupOfOneAsSoonAsReady) {
  const auto control = MakeStandaloneControlPlane(ReplicaId(1));
  EXPECT_EQ(control->LatestGeneration(), 0);
  control->Send(ReplicaReady{"127.0.0.1:5", {}, 3});
  const Membership membership = control->WaitAbove(0);
  EXPECT_EQ(membership.RankOf(ReplicaId(1)), 0);
  EXPECT_EQ(membership.members.size(), 1u);
}

TEST(StandaloneControlPlane, PrintsReports) {
  const auto control = MakeStandaloneControlPlane(ReplicaId(1));
  ::testing::internal::CaptureStdout();
  control->Send(ReplicaReport{2, 0.75, 10, {{"loss", 0.5}}});
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "report step=2 value=0.75 loss=0.5\n");
}

}  // namespace
}  // namespace espalier
