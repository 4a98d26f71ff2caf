// What the service hears of GPUs in trouble.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/trial_runner/agent/agent_fixture.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

constexpr char kFirst[] = "Tester 3000|GPU-aaaa|8589934592\n";
constexpr char kSecond[] = "Tester 3000|GPU-bbbb|8589934592\n";

// Four slots on two GPUs, by the stand-in for NVIDIA's library.
class AgentGpus : public AgentTest {
 protected:
  AgentGpus() {
    setenv("ESPALIER_NVML", FAKE_NVML, 1);
    setenv("FAKE_NVML_GPUS", Path("gpus").c_str(), 1);
    WriteFile("gpus", std::string(kFirst) + kSecond);
  }
  ~AgentGpus() override {
    agent_.reset();
    unsetenv("ESPALIER_NVML");
    unsetenv("FAKE_NVML_GPUS");
  }

  void StartAgentOnGpus() {
    AgentOptions options = Options();
    options.gpus = *(*GpuDriver::Open())->Look();
    options.slots_per_gpu = 2;
    options.spare_memory_bytes = std::int64_t{1} << 30;
    auto agent = Agent::Start(options);
    ASSERT_TRUE(agent.ok()) << agent.status();
    agent_ = *std::move(agent);
    ASSERT_TRUE(agent_->WaitConnected(60));
  }

  // By slot, as the agent said last.
  using Unusable = std::map<int, std::string>;
  static std::optional<Unusable> LastTold(const ScriptedService::Events& events) {
    std::optional<Unusable> unusable;
    for (const v1::AgentMessage& event : events) {
      if (!event.has_unusable()) continue;
      unusable.emplace();
      for (const auto& slot : event.unusable().slots()) (*unusable)[slot.slot()] = slot.reason();
    }
    return unusable;
  }
  // A replica fails, whose GPU it may have been.
  void FailAReplica(std::int64_t id) { service_.Start(Shell(id, "exit 1")); }
};

TEST_F(AgentGpus, ThoseInTroubleAreToldWhenAReplicaFailsAndWhenTheyWorkAgain) {
  StartAgentOnGpus();
  EXPECT_EQ(service_.hellos().at(0).unusable().slots_size(), 0);
  WriteFile("gpus", std::string(kFirst) + "lost\n");
  FailAReplica(1);
  ASSERT_TRUE(service_.Await([](const auto& events) { return LastTold(events).has_value(); }));
  const Unusable lost = *LastTold(service_.events());
  ASSERT_EQ(lost.size(), 2U);
  EXPECT_THAT(lost.at(1), HasSubstr("GPU 1 (Tester 3000): GPU is lost"));
  EXPECT_EQ(lost.at(3), lost.at(1)) << "slots take GPUs in turns";

  WriteFile("gpus", std::string(kFirst) + kSecond);
  FailAReplica(2);
  EXPECT_TRUE(service_.Await([](const auto& events) { return LastTold(events)->empty(); }));
}

TEST_F(AgentGpus, AServiceThatComesBackIsToldWithHello) {
  StartAgentOnGpus();
  WriteFile("gpus", "lost\n" + std::string(kSecond));
  FailAReplica(1);
  ASSERT_TRUE(service_.Await([](const auto& events) { return LastTold(events).has_value(); }));
  service_.Close();
  service_.Open();
  for (int i = 0; service_.hellos().size() < 2; ++i) ASSERT_TRUE(service_.AwaitHeartbeats(i));
  const v1::Hello hello = service_.hellos().back();
  ASSERT_EQ(hello.unusable().slots_size(), 2);
  EXPECT_EQ(hello.unusable().slots(0).slot(), 0);
  EXPECT_EQ(hello.unusable().slots(1).slot(), 2);
}

TEST_F(AgentGpus, HowAReplicaEndedIsToldOnceItsGpuHasBeenLookedAt) {
  StartAgentOnGpus();
  for (std::int64_t id = 1; id <= 8; ++id) {
    WriteFile("gpus",
              id % 2 == 1 ? "lost\n" + std::string(kSecond) : kFirst + std::string(kSecond));
    FailAReplica(id);
    service_.AwaitExit(id);
    const ScriptedService::Events events = service_.events();
    const auto exit = std::find_if(events.begin(), events.end(), [id](const auto& event) {
      return event.exited().replica_id() == id;
    });
    const auto told = LastTold({events.begin(), exit});
    ASSERT_TRUE(told.has_value()) << "the service would blame the trial";
    EXPECT_EQ(told->size(), id % 2 == 1 ? 2U : 0U);
  }
}

TEST_F(AgentGpus, ADriverThatHangsHoldsNoExitForLong) {
  StartAgentOnGpus();
  WriteFile("gpus", "hang\n");
  FailAReplica(1);
  EXPECT_EQ(service_.AwaitExit(1).exit_code(), 1);
  EXPECT_FALSE(LastTold(service_.events()).has_value()) << "it may only be slow";
  WriteFile("gpus", std::string(kFirst) + kSecond);
}

TEST_F(AgentGpus, SparesEndWhereAClientIsGivenTheirGpu) {
  StartAgentOnGpus();
  v1::ReplicaMessage message;
  message.mutable_parked();
  WriteFrame("parked", message);
  std::vector<int> pids;
  for (const int slot : {0, 1}) {
    v1::StartReplica start = Shell(slot + 1, "cat parked >&3; head -c 1 <&3");
    start.set_slot(slot);
    service_.Start(start);
    pids.push_back(AwaitPid(slot + 1));
    EXPECT_EQ(service_.AwaitExit(slot + 1).exit_code(), 0);
  }
  v1::ServiceMessage given;
  given.mutable_end_spares()->set_slot(2);
  service_.Send(given);
  EXPECT_TRUE(AwaitProcessEnd(pids[0]));
  EXPECT_EQ(kill(pids[1], 0), 0) << "it is on the other GPU";
}

TEST_F(AgentGpus, ReplicasRunOnCpusNearTheirGpu) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int near = 0;
  while (!CPU_ISSET(near, &allowed)) ++near;
  ASSERT_LT(near, 64);
  WriteFile("gpus",
            "Tester 3000|GPU-aaaa|8589934592 cpus=" + std::to_string(1UL << near) + "\n" + kSecond);
  StartAgentOnGpus();
  const auto runs_on = [this](std::int64_t id, int slot) {
    v1::StartReplica start =
        Shell(id, "grep Cpus_allowed_list /proc/self/status > cpus-" + std::to_string(id));
    start.set_slot(slot);
    service_.Start(start);
    service_.AwaitExit(id);
    return ReadFile("cpus-" + std::to_string(id));
  };
  EXPECT_EQ(runs_on(1, 0), "Cpus_allowed_list:\t" + std::to_string(near) + "\n");
  EXPECT_EQ(runs_on(2, 1), [] {
    std::string line;
    std::ifstream status("/proc/self/status");
    while (std::getline(status, line) && !line.starts_with("Cpus_allowed_list")) continue;
    return line + "\n";
  }()) << "the driver does not tell what is near this one";
}

}  // namespace
}  // namespace espalier
