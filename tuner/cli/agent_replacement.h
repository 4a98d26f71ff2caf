#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace espalier {

// The words that this process was started with, less those that concern a hand-over.
std::vector<std::string> OwnArguments();

// The program by which the agent of this node and directory is to be replaced: as `tuner agent
// --replace` has asked, or else the one that lies where this one was started from.
std::string ProgramToBecome(const std::string& directory, const std::string& node);

// Replaces the agent that runs there by this very program, and waits until that agent says that it
// was replaced, or why not. NOT_FOUND: no agent runs there.
absl::Status ReplaceRunningAgent(const std::string& directory, const std::string& node);

}  // namespace espalier
