#include "base/launch_kinds.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace espalier {
namespace {

// Its other rendezvous would take a second port; and what it would do after a rank has failed is
// done by us. Nodes may have unlike numbers of ranks. (torch/distributed/run.py)
std::vector<std::string> OptionsOfTorchrun(const RankPlace& place) {
  return std::vector<std::string>{absl::StrCat("--nnodes=", place.nodes()),
                                  absl::StrCat("--node-rank=", place.node_rank),
                                  absl::StrCat("--nproc-per-node=", place.here()),
                                  "--rdzv-backend=static",
                                  absl::StrCat("--master-addr=", place.address),
                                  absl::StrCat("--master-port=", place.port),
                                  "--max-restarts=0",
                                  absl::StrCat("--log-dir=", place.log_folder),
                                  "--no-python"};
}

// It divides the processes evenly among machines, and torchrun, which it is on each, counts those
// that there are: so each is told as many as there would be if all had as many as it has itself.
// With the options of DeepSpeed it is torchrun too, unless it is to start other machines by ssh.
std::vector<std::string> OptionsOfAccelerate(const RankPlace& place) {
  std::vector<std::string> options{absl::StrCat("--config_file=", place.config_file),
                                   absl::StrCat("--num_processes=", place.here() * place.nodes()),
                                   absl::StrCat("--num_machines=", place.nodes()),
                                   absl::StrCat("--machine_rank=", place.node_rank),
                                   absl::StrCat("--main_process_port=", place.port),
                                   absl::StrCat("--log_dir=", place.log_folder)};
  if (place.nodes() > 1) {
    options.push_back(absl::StrCat("--main_process_ip=", place.address));
    options.emplace_back("--same_network");
    options.emplace_back("--deepspeed_multinode_launcher=standard");
  }
  options.emplace_back("--no_python");
  return options;
}

// With its --cpu it starts one process, whatever it is told; "MULTI_GPU" starts all, also on
// machines without GPUs, where its programs then use Gloo. (accelerate/commands/launch.py)
std::string ConfigOfAccelerate(int ranks) {
  return absl::StrCat(R"({"compute_environment": "LOCAL_MACHINE", "distributed_type": ")",
                      ranks > 1 ? "MULTI_GPU" : "NO", R"(", "mixed_precision": "no"})", "\n");
}

// The part of DeepSpeed that its runner starts on each machine. The runner itself would read a
// hostfile and .deepspeed_env, and hand on no death by a signal. (deepspeed/launcher/launch.py)
std::vector<std::string> OptionsOfDeepSpeed(const RankPlace& place) {
  std::vector<std::string> nodes;
  for (const int ranks : place.ranks_of_nodes) {
    std::vector<int> numbers(static_cast<std::size_t>(ranks));
    std::iota(numbers.begin(), numbers.end(), 0);
    nodes.push_back(
        absl::StrCat("\"node", nodes.size(), "\": [", absl::StrJoin(numbers, ","), "]"));
  }
  const std::string world = absl::StrCat("{", absl::StrJoin(nodes, ", "), "}");
  return std::vector<std::string>{absl::StrCat("--world_info=", absl::Base64Escape(world)),
                                  absl::StrCat("--node_rank=", place.node_rank),
                                  absl::StrCat("--master_addr=", place.address),
                                  absl::StrCat("--master_port=", place.port),
                                  "--no_python",
                                  "--no_local_rank"};
}

constexpr LaunchKind kKinds[] = {{.name = "torchrun",
                                  .module = "torch.distributed.run",
                                  .package = "torch",
                                  .options = OptionsOfTorchrun},
                                 {.name = "accelerate",
                                  .module = "accelerate.commands.launch",
                                  .package = "accelerate",
                                  .options = OptionsOfAccelerate,
                                  .config = ConfigOfAccelerate,
                                  .cpu_variable = "ACCELERATE_USE_CPU"},
                                 {.name = "deepspeed",
                                  .module = "deepspeed.launcher.launch",
                                  .package = "deepspeed",
                                  .options = OptionsOfDeepSpeed,
                                  .rank_option = "--local_rank=",
                                  .no_rank_option = "--no_local_rank",
                                  .renames_gpus = true},
                                 {.name = "ranks"},
                                 {.name = "nodes", .one_a_node = true}};

}  // namespace

int RankPlace::first() const {
  return std::accumulate(ranks_of_nodes.begin(), ranks_of_nodes.begin() + node_rank, 0);
}

int RankPlace::all() const {
  return std::accumulate(ranks_of_nodes.begin(), ranks_of_nodes.end(), 0);
}

std::span<const LaunchKind> LaunchKinds() { return kKinds; }

const LaunchKind* FindLaunchKind(std::string_view name) {
  const auto* const found = std::ranges::find(kKinds, name, &LaunchKind::name);
  return found == std::end(kKinds) ? nullptr : found;
}

std::string NamesOfLaunchKinds() {
  return absl::StrJoin(kKinds, ", ", [](std::string* out, const LaunchKind& kind) {
    absl::StrAppend(out, "\"", std::string(kind.name), "\"");
  });
}

std::vector<std::string> LauncherCommand(const LaunchKind& kind, const std::string& interpreter,
                                         std::span<const std::string> launch,
                                         const RankPlace& place,
                                         std::span<const std::string> words) {
  std::vector<std::string> command = {interpreter, "-m", std::string(kind.module)};
  for (std::string& option : kind.options(place)) command.push_back(std::move(option));
  if (!launch.empty()) command.insert(command.end(), launch.begin() + 1, launch.end());
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

bool TakesRankOption(const LaunchKind& kind, std::span<const std::string> launch) {
  return !kind.rank_option.empty() &&
         std::ranges::find(launch, kind.no_rank_option) == launch.end();
}

bool IsPythonInterpreter(std::string_view program) {
  std::string_view name = program.substr(program.rfind('/') + 1);
  if (!name.starts_with("python")) return false;
  name.remove_prefix(6);
  if (name.empty() || name == "3") return true;
  if (!name.starts_with("3.") || name.size() == 2) return false;
  return std::all_of(name.begin() + 2, name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string InterpreterOf(std::span<const std::string> command) {
  return !command.empty() && IsPythonInterpreter(command[0]) ? command[0] : "python3";
}

}  // namespace espalier
