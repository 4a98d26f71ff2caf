#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "trial_runner/agent/processes/launch.h"

namespace espalier {

// A command that runs a program in Python and nothing else: `python3 [-u] train.py ...` or
// `python3 [-u] -m module ...`.
struct PythonCommand {
  std::vector<std::string> options;  // of the interpreter
  bool is_module = false;
  std::size_t program = 0;  // the place of the script or of the module's name in the command
};

// nullopt: the command is something else, or what a zygote could not run in the same way as an
// interpreter of its own. Looks for the script on disk.
std::optional<PythonCommand> ReadPythonCommand(const LaunchOrder& order);

// Whether modules are looked for in a folder that is the trial's own, which no other trial's
// process may import from: its PYTHONPATH has relative parts, and its study names no folder to
// start in.
bool ImportsFromItsOwnFolder(const LaunchOrder& order);

// The order with the absolute paths that an interpreter makes of relative ones in its PYTHONPATH,
// by the folder in which it starts: a zygote starts in another.
LaunchOrder WithWholePaths(LaunchOrder order);

// What an interpreter that imports `modules` has read by the time they are imported, as one text:
// programs with the same one may be forked from the same zygote. All of the environment counts but
// what is known to be read by the program itself.
std::string ZygoteKey(const LaunchOrder& order, const PythonCommand& command,
                      const std::vector<std::string>& modules);

// The part of that key that describes the environment and the cores.
std::string EnvironmentKey(const LaunchOrder& order);

// The environment in which a zygote for this order imports its modules: without what makes a
// process a replica.
std::map<std::string, std::string> ZygoteEnvironment(const LaunchOrder& order);

}  // namespace espalier
