#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tuner/base/status.h"

namespace espalier {

// Each run of an agent has a mark, which is in the environment of all that its trials start: of
// what a replica starts in its turn, too, in whatever session or process group, whoever its parent
// is by now. What was started within a trial of another agent carries both marks.
inline constexpr const char* kRunMarkVariable = "ESPALIER_AGENT_RUN";

// 128 random bits as text.
std::string NewRunMark();

// The variable's value for what an agent starts that was itself started with `inherited`.
std::string RunMarks(const std::map<std::string, std::string>& inherited, const std::string& mark);

// Kills every process of this user that carries one of the marks, and all that descend from one,
// and waits until they are gone. Never this process, those above it, or who carries no mark and
// descends from nobody who does: a mark is looked up in the process itself, and the process is held
// by a descriptor when it is killed, so numbers that are used again harm nobody. Returns how many
// it killed; fails if some were still there after `within`, with their numbers.
//
// Not found: who has cleared its environment and has lost its parent.
absl::StatusOr<std::size_t> EndMarkedProcesses(const std::vector<std::string>& marks,
                                               std::chrono::milliseconds within);

}  // namespace espalier
