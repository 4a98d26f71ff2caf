#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"

namespace espalier {

// Each run of an agent has a mark, which is in the environment of every process that its trials
// start. That includes what a replica starts in its turn, in whatever session or process group, and
// whatever process is its parent by now. What was started within a trial of another agent carries
// both marks.
inline constexpr const char* kRunMarkVariable = "ESPALIER_AGENT_RUN";

// 128 random bits as text.
std::string NewRunMark();

// The variable's value for what an agent starts that was itself started with `inherited`.
std::string RunMarks(const std::map<std::string, std::string>& inherited, const std::string& mark);

// Its variables, NAME=VALUE. Another user's cannot be read, and are none here; so are a zombie's.
std::vector<std::string> VariablesOf(pid_t pid);

// Whether one of the marks is in a process's variables.
bool CarriesOneOf(const std::vector<std::string>& variables, const std::vector<std::string>& marks);

// What the kernel says of a process; a state of 0: there is none of that number.
struct ProcessStatus {
  char state = 0;  // 'Z': it has ended, and its parent has not seen it yet
  pid_t parent = 0;
  pid_t group = 0;
  bool ending = false;  // it has given back its memory, or does: it has no variables any more
};
ProcessStatus StatusOf(pid_t pid);

// The children of the first thread, which are all that this process has adopted. Empty where the
// kernel does not say.
std::set<pid_t> AdoptedChildren();

// Kills every process of this user that carries one of the marks, and all that descend from one,
// and waits until they are gone. It never kills this process, its ancestors, or a process that
// carries no mark and descends from none that does. The mark is looked up in the process itself,
// which is held by a descriptor when it is killed, so that reused process ids do no harm. Returns
// how many it killed; fails, with their ids, if some were still there after `within`.
//
// A process that has cleared its environment and lost its parent is not found.
absl::StatusOr<std::size_t> EndMarkedProcesses(const std::vector<std::string>& marks,
                                               std::chrono::milliseconds within);

// Sends SIGKILL to these processes and all that descend from them, as they are now. Returns whom.
std::set<pid_t> KillWithDescendants(const std::set<pid_t>& roots);

}  // namespace espalier
