#pragma once

#include <cstddef>
#include <string>

namespace espalier {

// The newest of what the trial's replicas have printed, in the order in which they were started,
// with a line between those of several; at most so many bytes. Empty: nothing, or no such folder.
std::string TrialOutput(const std::string& trial_folder, std::size_t most);

}  // namespace espalier
