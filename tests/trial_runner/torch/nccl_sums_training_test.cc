// Gradients by NCCL beside those by Gloo: where a GPU's replicas take themselves for hosts of their
// own, as NCCL tells hosts, several share it. Without a GPU both ways are Gloo.

#include "tests/trial_runner/torch/elastic_training.h"

namespace espalier {
namespace {

class SumsByTwoWays : public ElasticTraining, public ::testing::WithParamInterface<int> {
 protected:
  // The parameters after some steps of so many replicas. `step_ms`: how long each takes at least.
  std::vector<double> Trained(const std::string& name, const std::string& collectives,
                              int step_ms) {
    const std::string run = NewRun(name);
    const auto harness = Harness(
        run, {"samples=600", "batch_size=60", "epochs=50", "compute_ms=" + std::to_string(step_ms)},
        {{"ESPALIER_COLLECTIVES", collectives},
         {"NCCL_SOCKET_IFNAME", "=lo"},
         {"NCCL_NET", "Socket"},
         {"NCCL_MNNVL_ENABLE", "0"},
         {"NCCL_RAS_ENABLE", "0"}});
    std::vector<std::int64_t> members;
    for (int i = 0; i < GetParam(); ++i) {
      members.push_back(harness->Start({{"NCCL_HOSTID", std::to_string(i)}}));
    }
    for (const std::int64_t member : members) harness->AwaitReady(member);
    harness->Regroup(members);
    for (const std::int64_t member : members) EXPECT_EQ(harness->AwaitExit(member), 0);
    return FinalParameters(run);
  }
};

TEST_P(SumsByTwoWays, LeadToTheSameParameters) {
  const char* device = std::getenv("ESPALIER_TEST_DEVICE");
  const bool on_gpu = device != nullptr && std::string(device) == "cuda";
  const std::vector<double> by_gloo = Trained("gloo", "gloo", 0);
  // The first steps go through the host's memory, until NCCL's communicator is formed.
  const std::vector<double> by_nccl = Trained("nccl", on_gpu ? "nccl" : "gloo", on_gpu ? 10 : 0);
  ExpectClose(by_gloo, by_nccl);
  // Of two numbers there is one sum.
  if (GetParam() == 2) {
    EXPECT_EQ(by_gloo, by_nccl);
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, SumsByTwoWays, ::testing::Values(2, 3),
                         [](const auto& replicas) { return std::to_string(replicas.param); });

}  // namespace
}  // namespace espalier
