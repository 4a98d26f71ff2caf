#include "trial_runner/agent/held_exits.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace espalier {
namespace {

constexpr std::chrono::milliseconds kMostHeldForNotice{500};  // to reach the agent, too

// Also below a shell, which says so by its exit code.
bool DiedOf(const v1::ReplicaExited& exited, int signal) {
  return exited.signal() == signal || exited.exit_code() == 128 + signal;
}

}  // namespace

bool HeldExits::DiedOfNotice(const v1::ReplicaExited& exited) {
  // The end, Ctrl-C, the end of a session, what precedes the end (sbatch --signal).
  return DiedOf(exited, SIGTERM) || DiedOf(exited, SIGINT) || DiedOf(exited, SIGHUP) ||
         DiedOf(exited, SIGUSR1);
}

void HeldExits::HoldForNotice(v1::ReplicaExited exited, Clock::time_point now) {
  held_.push_back({std::nullopt, now + kMostHeldForNotice, std::move(exited)});
}

void HeldExits::HoldForGpus(v1::ReplicaExited exited, std::int64_t looks, Clock::time_point until) {
  held_.push_back({looks, until, std::move(exited)});
}

std::vector<v1::ReplicaExited> HeldExits::Take(const Known& known) {
  std::vector<v1::ReplicaExited> told;
  std::erase_if(held_, [&](Held& held) {
    const bool of_agent = !held.looks && (known.stopping || known.leaving);
    const bool looked = held.looks && (*held.looks <= known.looks || known.stopping);
    if (!of_agent && !looked && held.until > known.now) return false;
    if (of_agent) held.exited.set_agent_stops(true);
    told.push_back(std::move(held.exited));
    return true;
  });
  return told;
}

std::vector<v1::ReplicaExited> HeldExits::TakeAll(Known known) {
  for (Held& held : held_) held.until = known.now;
  return Take(known);
}

HeldExits::Clock::time_point HeldExits::NextTime() const {
  Clock::time_point next = Clock::time_point::max();
  for (const Held& held : held_) next = std::min(next, held.until);
  return next;
}

}  // namespace espalier
