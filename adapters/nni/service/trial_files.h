#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tuner/api/tuner.h"

namespace espalier::nni {

inline constexpr std::size_t kMaxFileBytes = 1 << 20;  // of the end of a file

// Where a trial's logs are, copied from the core.
struct TrialFolder {
  std::string node;
  std::string path;    // empty: its agent has not told, or is not here
  bool local = false;  // on this machine
};
std::vector<TrialFolder> FoldersOf(const Trial& trial, const Study& study, const View& view);

// What the trial's processes printed, those of all its starts in their order. NOT_FOUND names node
// and path where this machine cannot read them.
absl::StatusOr<std::string> ReadOutput(const std::vector<TrialFolder>& folders);

// What was decided for the trial, a line each.
std::string DecisionsOf(const Trial& trial, const Study& study);

}  // namespace espalier::nni
