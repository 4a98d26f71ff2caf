#include "base/launch_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;

TEST(LaunchKinds, AreFoundByTheirNames) {
  for (const LaunchKind& kind : LaunchKinds()) EXPECT_EQ(FindLaunchKind(kind.name), &kind);
  EXPECT_EQ(FindLaunchKind("mpirun"), nullptr);
  EXPECT_EQ(FindLaunchKind(""), nullptr);
  EXPECT_EQ(NamesOfLaunchKinds(), R"("torchrun", "accelerate", "deepspeed", "ranks", "nodes")");
}

TEST(LaunchKinds, PutTheLauncherBeforeWhatEachRankRuns) {
  const RankPlace place{
      .ranks_of_nodes = {2}, .port = 7100, .config_file = "/t/c.json", .log_folder = "/t/c"};
  const std::vector<std::string> words = {"runner", "--", "python3", "train.py"};
  const auto command = [&](const char* name, std::vector<std::string> launch) {
    return LauncherCommand(*FindLaunchKind(name), "/v/bin/python3", launch, place, words);
  };
  EXPECT_THAT(
      command("torchrun", {"torchrun", "--numa-binding=node"}),
      ElementsAre("/v/bin/python3", "-m", "torch.distributed.run", "--nnodes=1", "--node-rank=0",
                  "--nproc-per-node=2", "--rdzv-backend=static", "--master-addr=127.0.0.1",
                  "--master-port=7100", "--max-restarts=0", "--log-dir=/t/c", "--no-python",
                  "--numa-binding=node", "runner", "--", "python3", "train.py"));
  const auto accelerate = command("accelerate", {"accelerate"});
  EXPECT_THAT(accelerate, Contains("--config_file=/t/c.json")) << "and not its user's";
  EXPECT_THAT(accelerate, Contains("--num_processes=2"));
  EXPECT_THAT(accelerate, Contains("--main_process_port=7100"));
  EXPECT_THAT(accelerate, Contains("--log_dir=/t/c"));
  const auto deepspeed = command("deepspeed", {"deepspeed"});
  EXPECT_EQ(deepspeed[2], "deepspeed.launcher.launch") << "no runner, which reads a hostfile";
  // {"node0": [0,1]}
  EXPECT_THAT(deepspeed, Contains("--world_info=eyJub2RlMCI6IFswLDFdfQ=="));
  EXPECT_THAT(deepspeed, Contains("--master_port=7100"));
}

TEST(LaunchKinds, TellTheLauncherOfEachNodeItsPart) {
  const RankPlace place{.ranks_of_nodes = {1, 3},
                        .node_rank = 1,
                        .address = "10.0.0.1",
                        .port = 7100,
                        .config_file = "/t/c.json"};
  EXPECT_EQ(place.first(), 1);
  EXPECT_EQ(place.here(), 3);
  EXPECT_EQ(place.all(), 4);
  const auto options = [&](const char* name) { return FindLaunchKind(name)->options(place); };
  EXPECT_THAT(options("torchrun"),
              IsSupersetOf({"--nnodes=2", "--node-rank=1", "--nproc-per-node=3",
                            "--master-addr=10.0.0.1", "--master-port=7100"}));
  EXPECT_THAT(options("accelerate"),
              IsSupersetOf({"--num_processes=6", "--num_machines=2", "--machine_rank=1",
                            "--main_process_ip=10.0.0.1", "--main_process_port=7100",
                            "--same_network", "--deepspeed_multinode_launcher=standard"}))
      << "which starts a half of the processes here";
  // {"node0": [0], "node1": [0,1,2]}
  EXPECT_THAT(options("deepspeed"),
              IsSupersetOf({"--world_info=eyJub2RlMCI6IFswXSwgIm5vZGUxIjogWzAsMSwyXX0=",
                            "--node_rank=1", "--master_addr=10.0.0.1", "--master_port=7100"}));
}

TEST(LaunchKinds, OneRankIsNotSeveralToAccelerate) {
  const LaunchKind& accelerate = *FindLaunchKind("accelerate");
  EXPECT_THAT(accelerate.config(2), testing::HasSubstr(R"("distributed_type": "MULTI_GPU")"));
  EXPECT_THAT(accelerate.config(1), testing::HasSubstr(R"("distributed_type": "NO")"));
}

TEST(LaunchKinds, ProgramsForDeepSpeedTakeTheirRankUnlessTheStudySaysNot) {
  const auto takes = [](const std::vector<std::string>& launch) {
    return TakesRankOption(*FindLaunchKind(launch[0]), launch);
  };
  EXPECT_TRUE(takes({"deepspeed"}));
  EXPECT_FALSE(takes({"deepspeed", "--no_local_rank"}));
  EXPECT_FALSE(takes({"torchrun"}));
  EXPECT_FALSE(takes({"ranks"}));
}

TEST(LaunchKinds, RunByTheCommandsOwnInterpreter) {
  const auto of = [](const std::vector<std::string>& command) { return InterpreterOf(command); };
  EXPECT_EQ(of({"/opt/venv/bin/python", "train.py"}), "/opt/venv/bin/python");
  EXPECT_EQ(of({"python3.12", "-m", "train"}), "python3.12");
  EXPECT_EQ(of({"./train"}), "python3");
  EXPECT_EQ(of({"python3.", "x"}), "python3");
  EXPECT_EQ(of({"pythonic"}), "python3");
  EXPECT_EQ(of({}), "python3");
}

}  // namespace
}  // namespace espalier
