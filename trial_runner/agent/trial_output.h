#pragma once

#include <cstddef>
#include <string>

namespace espalier {

// The newest of what the trial's replicas have printed, in the order in which they were started,
// with a line between those of several; at most so many bytes. Of a trial with ranks, what that one
// has printed: rank 0's is its replica's. Empty: nothing, or no such folder.
std::string TrialOutput(const std::string& trial_folder, std::size_t most, int rank = 0);

}  // namespace espalier
