#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "trial_runner/agent/processes/launch.h"

namespace espalier {

// A command whose processes may be forked from a zygote.
struct ForkableCommand {
  std::string key;     // of its kind: those of one kind may be forked from one zygote
  LaunchOrder zygote;  // starts one; where it logs is yet to be said
  // "script" or "module" in Python, or "program" in C++; "ranks" is any program that supervises
  // ranks in Python: it is executed, and has a zygote of its own beside it (Zygote::Own).
  std::string runs;
  std::size_t program = 0;  // the place of the script or module in the command
  std::string path;         // of a program's file
  // Known before it has run to have use for a zygote: what calls the functions of `espalier.tune`,
  // what is expected to be an elastic program in Python, and ranks, for which the study asks.
  bool known = false;

  bool native() const { return runs == "program"; }
};

inline constexpr const char* kRanksOfZygote = "ranks";

// nullopt: there can be no zygote for it. `modules` are for Python to import.
std::optional<ForkableCommand> ReadForkableCommand(const LaunchOrder& order,
                                                   const std::vector<std::string>& modules);

}  // namespace espalier
