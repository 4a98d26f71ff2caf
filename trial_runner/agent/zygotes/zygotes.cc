#include "trial_runner/agent/zygotes/zygotes.h"

#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

// Those of the main thread, which are all that this process has adopted. Empty where the kernel
// does not say.
std::set<pid_t> AdoptedChildren() {
  std::ifstream file(absl::StrCat("/proc/self/task/", getpid(), "/children"));
  std::set<pid_t> children;
  for (pid_t child = 0; file >> child;) children.insert(child);
  return children;
}

Zygote::Clock::duration Patience(const Zygote& zygote) {
  return zygote.state() == Zygote::State::kImporting ? kMaxZygoteImport : kMaxZygoteIdle;
}

}  // namespace

std::optional<LaunchedProcess> Zygotes::Fork(std::int64_t replica_id, const LaunchOrder& order,
                                             const std::vector<std::string>& more_modules) {
  std::optional<PythonCommand> command = ReadPythonCommand(order);
  if (!command) return std::nullopt;
  std::vector<std::string> modules = options_.modules;
  modules.insert(modules.end(), more_modules.begin(), more_modules.end());
  std::string key = ZygoteKey(order, *command, modules);
  const auto kind = kinds_.find(key);
  if (kind == kinds_.end() || kind->second.zygote == nullptr) {
    const bool hopeless = kind != kinds_.end() && kind->second.failures >= kMaxZygoteFailures;
    if (!hopeless && candidates_.size() < kMaxZygoteCandidates) {
      candidates_.insert_or_assign(
          replica_id, Candidate{std::move(key), order, *std::move(command), std::move(modules)});
    }
    return std::nullopt;
  }
  Zygote& zygote = *kind->second.zygote;
  if (zygote.state() != Zygote::State::kReady) return std::nullopt;
  const std::set<pid_t> before = AdoptedChildren();
  absl::StatusOr<LaunchedProcess> forked = zygote.Fork(order, *command, options_.fork_within);
  NoteStrays(before, forked.ok() ? forked->pid : 0);
  if (!forked.ok()) {
    GiveUp(kind->second, std::string(forked.status().message()));
    return std::nullopt;
  }
  kind->second.used = Clock::now();
  return *std::move(forked);
}

void Zygotes::Spoke(std::int64_t replica_id, Clock::time_point now) {
  const auto candidate = candidates_.extract(replica_id);
  if (!candidate.empty()) Start(candidate.mapped(), now);
}

void Zygotes::Start(const Candidate& candidate, Clock::time_point now) {
  const auto known = kinds_.find(candidate.key);
  if (known != kinds_.end() &&
      (known->second.zygote != nullptr || known->second.failures >= kMaxZygoteFailures)) {
    return;
  }
  MakeRoom();
  Kind& kind = kinds_[candidate.key];
  kind.used = now;
  auto started =
      Zygote::Start(candidate.order, candidate.command, candidate.modules, options_.log_path);
  if (started.ok()) {
    kind.zygote = *std::move(started);
    spdlog::info("process {} imports what replicas of {} import, for those to come",
                 kind.zygote->pid(), candidate.order.command[0]);
  } else {
    GiveUp(kind, std::string(started.status().message()));
  }
}

void Zygotes::MakeRoom() {
  const auto by_use = [](const auto& a, const auto& b) { return a.second.used < b.second.used; };
  while (size() >= kMaxZygotes) {
    auto oldest = kinds_.end();
    for (auto kind = kinds_.begin(); kind != kinds_.end(); ++kind) {
      if (kind->second.zygote == nullptr) continue;
      if (oldest == kinds_.end() || by_use(*kind, *oldest)) oldest = kind;
    }
    kinds_.erase(oldest);
  }
  // What is known of those that have failed is forgotten first where it was learnt first.
  while (kinds_.size() >= kMaxZygoteKinds) {
    kinds_.erase(std::min_element(kinds_.begin(), kinds_.end(), by_use));
  }
}

void Zygotes::GiveUp(Kind& kind, const std::string& why) {
  const bool refused = kind.zygote != nullptr && !kind.zygote->refusal().empty();
  kind.failures = refused ? kMaxZygoteFailures : kind.failures + 1;
  kind.zygote.reset();
  spdlog::warn("a process that was to be forked into replicas is given up: {}; they are started {}",
               why,
               kind.failures < kMaxZygoteFailures ? "without it, until there is another one"
                                                  : "without one from now on");
}

// Of other processes whose parents have ended meanwhile.
void Zygotes::NoteStrays(const std::set<pid_t>& before, pid_t replica) {
  for (const pid_t child : AdoptedChildren()) {
    if (child == replica || before.contains(child)) continue;
    strays_.emplace_back(child,
                         FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, child, 0))));
  }
}

std::size_t Zygotes::size() const {
  return static_cast<std::size_t>(std::count_if(kinds_.begin(), kinds_.end(), [](const auto& kind) {
    return kind.second.zygote != nullptr;
  }));
}

void Zygotes::Watch(std::vector<pollfd>& fds) const {
  for (const auto& [key, kind] : kinds_) {
    fds.push_back({kind.zygote == nullptr ? -1 : kind.zygote->fd(), POLLIN, 0});
  }
  for (const auto& [pid, pidfd] : strays_) fds.push_back({pidfd.get(), POLLIN, 0});
}

void Zygotes::Hear(std::span<const pollfd> fds) {
  std::size_t next = 0;
  for (auto& [key, kind] : kinds_) {
    if (fds[next++].revents == 0) continue;
    kind.zygote->Hear();
    if (kind.zygote->state() != Zygote::State::kEnded) continue;
    const std::string refusal = kind.zygote->refusal();
    GiveUp(kind, refusal.empty() ? "it has ended" : refusal);
  }
  std::erase_if(strays_, [&](const auto& stray) {
    return fds[next++].revents != 0 && waitpid(stray.first, nullptr, WNOHANG) != 0;
  });
}

void Zygotes::KeepTime(Clock::time_point now) {
  for (auto kind = kinds_.begin(); kind != kinds_.end();) {
    const auto next = std::next(kind);
    Zygote* const zygote = kind->second.zygote.get();
    if (zygote != nullptr && now - kind->second.used >= Patience(*zygote)) {
      if (zygote->state() == Zygote::State::kImporting) {
        GiveUp(kind->second, "it does not come to the end of its imports");
      } else {
        kinds_.erase(kind);
      }
    }
    kind = next;
  }
}

Zygotes::Clock::time_point Zygotes::NextTime() const {
  Clock::time_point next = Clock::time_point::max();
  for (const auto& [key, kind] : kinds_) {
    if (kind.zygote != nullptr) next = std::min(next, kind.used + Patience(*kind.zygote));
  }
  return next;
}

void Zygotes::EndAll() {
  candidates_.clear();
  kinds_.clear();
}

}  // namespace espalier
