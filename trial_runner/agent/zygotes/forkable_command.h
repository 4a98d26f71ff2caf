#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "trial_runner/agent/processes/launch.h"

namespace espalier {

// A command whose processes may be forked from a zygote.
struct ForkableCommand {
  std::string key;          // of its kind: those of one kind may be forked from one zygote
  LaunchOrder zygote;       // starts one; where it logs is yet to be said
  std::string runs;         // "script" or "module" in Python, or "program" in C++
  std::size_t program = 0;  // the place of the script or module in the command
  std::string path;         // of a program's file
  // Known before it has run to be one of Espalier's: what calls the functions of `espalier.tune`.
  bool of_espalier = false;

  bool native() const { return runs == "program"; }
};

// nullopt: there can be no zygote for it. `modules` are for Python to import.
std::optional<ForkableCommand> ReadForkableCommand(const LaunchOrder& order,
                                                   const std::vector<std::string>& modules);

}  // namespace espalier
