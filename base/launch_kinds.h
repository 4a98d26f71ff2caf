#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

// Where the ranks of a trial are to be started, of which one machine starts its own.
struct RankPlace {
  std::vector<int> ranks_of_nodes{1};  // how many each node has, by their ranks
  int node_rank = 0;                   // this one among them
  // Where they meet, on the node with rank 0.
  std::string address = "127.0.0.1";
  int port = 0;
  std::string config_file{};  // the path of a file with LaunchKind::config
  // Of torchrun's own files, which would be left in a new folder of the system's for temporary
  // ones.
  std::string log_folder{};

  int nodes() const { return static_cast<int>(ranks_of_nodes.size()); }
  int here() const { return ranks_of_nodes[static_cast<std::size_t>(node_rank)]; }
  int first() const;  // the lowest rank here
  int all() const;    // on all nodes
};

// A value of a study's key "launch": what starts the ranks of a trial, each of which runs the
// study's command.
struct LaunchKind {
  std::string_view name;
  // Run as `PYTHON -m MODULE`, and the package that pip installs it with. Empty: `tuner` itself
  // starts the ranks.
  std::string_view module{};
  std::string_view package{};
  // What comes before the words that each rank runs, whatever these are. The study's own options of
  // the launcher follow, and may say otherwise.
  std::vector<std::string> (*options)(const RankPlace& place) = nullptr;
  // A file that takes the place of the one that the launcher would find in its user's folder.
  std::string (*config)(int ranks) = nullptr;
  // What its programs take at the end of their words, with the rank on the machine; and the option
  // of the launcher by which a study says that its program does not.
  std::string_view rank_option{};
  std::string_view no_rank_option{};
  // Without this variable, as "true", its programs each train alone where there are no GPUs.
  const char* cpu_variable = nullptr;
  // It numbers GPUs in CUDA_VISIBLE_DEVICES by itself.
  bool renames_gpus = false;
  // One process for all slots of a node, which starts its own ranks; else one a slot.
  bool one_a_node = false;
};

// Pure, as all that is here.
std::span<const LaunchKind> LaunchKinds();

// nullptr: none has that name.
const LaunchKind* FindLaunchKind(std::string_view name);

// "accelerate", "deepspeed", ...: for messages.
std::string NamesOfLaunchKinds();

// The launcher's whole command, by an interpreter in which it is installed: `launch` is the study's
// key, the name and options of the launcher; `words` are what each rank runs.
std::vector<std::string> LauncherCommand(const LaunchKind& kind, const std::string& interpreter,
                                         std::span<const std::string> launch,
                                         const RankPlace& place,
                                         std::span<const std::string> words);

// Whether the command's last word is to be followed by the rank.
bool TakesRankOption(const LaunchKind& kind, std::span<const std::string> launch);

// python, python3, python3.12, with or without a folder.
bool IsPythonInterpreter(std::string_view program);

// The interpreter that runs the launcher: the command's own, or where it is no program in Python,
// the one that PATH has.
std::string InterpreterOf(std::span<const std::string> command);

}  // namespace espalier
