#include "trial_runner/agent/processes/leftovers.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "trial_runner/agent/processes/left_processes.h"

namespace espalier {

namespace {

constexpr char kReplicaVariable[] = "ESPALIER_REPLICA_ID=";

}  // namespace

Leftovers::Leftovers(std::string mark) : mark_(std::move(mark)) {
  prctl(PR_GET_CHILD_SUBREAPER, &adopted_before_, 0, 0, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

Leftovers::~Leftovers() {
  prctl(PR_SET_CHILD_SUBREAPER, adopted_before_, 0, 0, 0);
  for (const pid_t pid : AdoptedChildren()) {
    if (StatusOf(pid).state == 'Z') waitpid(pid, nullptr, WNOHANG);
  }
}

std::set<pid_t> Leftovers::Adopted(const std::set<pid_t>& ours) const {
  std::set<pid_t> children = AdoptedChildren();
  for (const pid_t pid : ours) children.erase(pid);
  return children;
}

Leftovers::Orphan Leftovers::Look(pid_t pid) const {
  // In this order: one without variables is then known to be ending.
  const std::vector<std::string> variables = VariablesOf(pid);
  const ProcessStatus status = StatusOf(pid);
  Orphan orphan{.state = status.state, .group = status.group, .ending = status.ending};
  if (status.state == 0 || status.state == 'Z') return orphan;
  orphan.marked = CarriesOneOf(variables, {mark_});
  for (const std::string& variable : variables) {
    if (variable.starts_with(kReplicaVariable) &&
        !absl::SimpleAtoi(variable.substr(sizeof kReplicaVariable - 1), &orphan.replica)) {
      orphan.replica = 0;
    }
  }
  return orphan;
}

void Leftovers::Reap(pid_t pid) {
  if (waitpid(pid, nullptr, WNOHANG) == 0) return;
  killed_.erase(pid);
  seen_.erase(pid);
  zombies_.erase(pid);
}

void Leftovers::Kill(const std::set<pid_t>& roots) {
  const std::set<pid_t> killed = KillWithDescendants(roots);
  killed_.insert(killed.begin(), killed.end());
}

bool Leftovers::Gone(const EndedReplica& ended, const std::set<pid_t>& ours) {
  bool gone = true;
  std::set<pid_t> roots;
  const std::set<pid_t> adopted = Adopted(ours);
  for (const pid_t pid : adopted) {
    const Orphan orphan = Look(pid);
    if (orphan.state == 'Z') {
      if (orphan.group == ended.leader || killed_.contains(pid)) Reap(pid);
    } else if (orphan.group == ended.leader || killed_.contains(pid) || orphan.ending) {
      // It dies. Whose it was cannot be told any more, and what it has started is adopted after it.
      gone = false;
    } else if (orphan.marked &&
               (orphan.replica != 0 ? ended.ids.contains(orphan.replica) : !seen_.contains(pid))) {
      roots.insert(pid);
    } else if (orphan.marked && orphan.replica == 0) {
      seen_.insert(pid);
    }
  }
  // What one of them had started that has ended meanwhile is adopted by now.
  if (roots.empty()) return gone && std::ranges::includes(adopted, Adopted(ours));
  Kill(roots);
  return false;
}

bool Leftovers::Sweep(const std::set<std::int64_t>& alive, const std::set<pid_t>& ours) {
  const std::set<pid_t> adopted = Adopted(ours);
  std::set<pid_t> roots;
  std::set<pid_t> zombies;
  for (const pid_t pid : adopted) {
    const Orphan orphan = Look(pid);
    if (orphan.state == 'Z') {
      // Whoever has started it would have seen its end meanwhile.
      killed_.contains(pid) || zombies_.contains(pid) ? Reap(pid) : void(zombies.insert(pid));
    } else if (!killed_.contains(pid) && orphan.marked) {
      if (orphan.replica == 0) {
        seen_.insert(pid);
      } else if (!alive.contains(orphan.replica)) {
        roots.insert(pid);
      }
    }
  }
  zombies_ = std::move(zombies);
  std::erase_if(seen_, [&](pid_t pid) { return !adopted.contains(pid); });
  std::erase_if(killed_, [&](pid_t pid) { return !adopted.contains(pid); });
  if (!roots.empty()) Kill(roots);
  return !adopted.empty();
}

}  // namespace espalier
