// What throws in the agent ends its step, and not the process that holds other replicas.

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/base/no_room.h"
#include "tests/trial_runner/agent/agent_fixture.h"

namespace espalier {
namespace {

constexpr std::size_t kMany = 1 << 20;

// The service of one call, in this process: what it says is in the agent's hands without a copy.
class OneCall {
 public:
  ServiceDialer Dial() {
    return [this]() -> absl::StatusOr<std::unique_ptr<ServiceCall>> {
      return std::make_unique<Call>(*this);
    };
  }

  // From the opening of the call on, no memory of so many bytes can be had.
  void LeaveNoRoom() { no_room_at_once_ = true; }
  // From when the agent has this message on.
  void SayWithoutRoom(v1::ServiceMessage message) {
    const std::lock_guard lock(mutex_);
    last_ = std::move(message);
    changed_.notify_all();
  }
  void Say(v1::ServiceMessage message) {
    const std::lock_guard lock(mutex_);
    says_.push_back(std::move(message));
    changed_.notify_all();
  }

  v1::ReplicaExited AwaitExit(std::int64_t replica_id) {
    std::unique_lock lock(mutex_);
    const bool exited = changed_.wait_for(lock, std::chrono::minutes(1), [&] {
      return !exits_.empty() && exits_.back().replica_id() == replica_id;
    });
    EXPECT_TRUE(exited) << "replica " << replica_id;
    return exited ? exits_.back() : v1::ReplicaExited();
  }

 private:
  class Call final : public ServiceCall {
   public:
    explicit Call(OneCall& of) : of_(of) {}
    void Open() override {
      if (of_.no_room_at_once_) of_.no_room_.emplace(kMany);
    }
    bool Read(v1::ServiceMessage* message) override { return of_.Read(message); }
    bool Write(const v1::AgentMessage& message) override { return of_.Take(message); }
    std::string peer() const override { return "ipv4:127.0.0.1:1"; }
    void Cancel() override {
      const std::lock_guard lock(of_.mutex_);
      of_.over_ = true;
      of_.changed_.notify_all();
    }
    absl::Status Finish() override { return absl::CancelledError("cancelled"); }

   private:
    OneCall& of_;
  };

  bool Read(v1::ServiceMessage* message) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_ || last_ || !says_.empty(); });
    if (over_) return false;
    if (!says_.empty()) {
      *message = std::move(says_.front());
      says_.pop_front();
      return true;
    }
    *message = *std::exchange(last_, std::nullopt);
    no_room_.emplace(kMany);
    return true;
  }

  bool Take(const v1::AgentMessage& message) {
    const std::lock_guard lock(mutex_);
    if (message.has_hello()) says_.emplace_back().mutable_welcome()->set_lease_s(60);
    if (message.has_exited()) exits_.push_back(message.exited());
    changed_.notify_all();
    return true;
  }

  bool no_room_at_once_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<v1::ServiceMessage> says_;
  std::optional<v1::ServiceMessage> last_;
  std::vector<v1::ReplicaExited> exits_;
  std::optional<NoRoomFor> no_room_;
  bool over_ = false;
};

TEST_F(AgentTest, ATurnThatThrowsEndsTheAgentWithTheReason) {
  OneCall service;
  service.LeaveNoRoom();
  AgentOptions options = Options();
  options.dial = service.Dial();
  options.gpu_type = std::string(kMany, 'x');  // which its Hello has a copy of
  const auto agent = Agent::Make(options);
  ASSERT_TRUE(agent.ok()) << agent.status();
  EXPECT_EQ((*agent)->Run(), absl::InternalError("the agent: std::bad_alloc"));
}

TEST_F(AgentTest, AnOrderThatThrowsFailsThatReplicaAlone) {
  OneCall service;
  AgentOptions options = Options();
  options.dial = service.Dial();
  auto agent = Agent::Start(options);
  ASSERT_TRUE(agent.ok()) << agent.status();
  agent_ = *std::move(agent);
  ASSERT_TRUE(agent_->WaitConnected(60));
  v1::ServiceMessage order;
  *order.mutable_start() = Shell(1, "exit 0");
  order.mutable_start()->set_parameters_json(std::string(kMany, ' '));
  service.SayWithoutRoom(std::move(order));
  EXPECT_EQ(service.AwaitExit(1).error(), "start: std::bad_alloc");
  v1::ServiceMessage next;
  *next.mutable_start() = Shell(2, "exit 3");
  service.Say(std::move(next));
  EXPECT_EQ(service.AwaitExit(2).exit_code(), 3);
  agent_.reset();  // before its service
}

TEST_F(AgentTest, AReplicaWhoseWordsThrowIsEndedAlone) {
  StartAgent();
  v1::ReplicaMessage long_one;
  long_one.mutable_ready()->set_address(std::string(kMany - 100, 'x'));
  WriteFrame("frame", long_one);
  service_.Start(
      Shell(1, "while [ ! -e go ]; do sleep 0.01; done; cat frame >&3; exec sleep 1000"));
  service_.Start(Shell(2, "while [ ! -e end ]; do sleep 0.01; done; exit 3"));
  ASSERT_GT(AwaitPid(1), 0);
  ASSERT_GT(AwaitPid(2), 0);
  {
    const NoRoomFor no_room(kMany / 2);
    WriteFile("go", "");
    EXPECT_EQ(service_.AwaitExit(1).signal(), SIGKILL);
  }
  for (const v1::AgentMessage& event : service_.events()) {
    EXPECT_FALSE(event.has_from_replica()) << "it has been read";
  }
  WriteFile("end", "");
  EXPECT_EQ(service_.AwaitExit(2).exit_code(), 3);
}

}  // namespace
}  // namespace espalier
