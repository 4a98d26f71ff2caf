#include "trial_runner/agent/zygotes/zygotes.h"

#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "trial_runner/agent/processes/left_processes.h"
#include "trial_runner/agent/zygotes/native_command.h"
#include "trial_runner/agent/zygotes/python_command.h"

namespace espalier {
namespace {

constexpr const char* kNotAgain = "they are started without one from now on";

}  // namespace

std::optional<LaunchedProcess> Zygotes::Fork(std::int64_t replica_id, const LaunchOrder& order,
                                             const std::vector<std::string>& more_modules) {
  std::optional<ForkableCommand> command = Read(order, more_modules);
  if (!command) {
    NoteOwnFolder(order, more_modules);
    return std::nullopt;
  }
  const auto kind = kinds_.find(command->key);
  // What is built anew is to be run from now on.
  if (kind != kinds_.end() && command->native() && kind->second.zygote != nullptr &&
      RunsReplacedFiles(kind->second.zygote->pid())) {
    kind->second.zygote.reset();
  }
  if (kind == kinds_.end() || kind->second.zygote == nullptr) {
    if (MayStart(command->key) && candidates_.size() < kMaxZygoteCandidates) {
      candidates_.insert_or_assign(replica_id, *std::move(command));
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

bool Zygotes::Awaited(const LaunchOrder& order, const std::vector<std::string>& more_modules,
                      Clock::time_point now) {
  const std::optional<ForkableCommand> command = Read(order, more_modules);
  if (!command || !command->known) return false;
  const auto known = kinds_.find(command->key);
  if (known != kinds_.end() && known->second.was_late) return false;
  // One that others wait for makes no room, or two could take turns in ending each other's.
  if (MayStart(command->key) && !AllArePreparing()) Start(*command, now);
  const auto kind = kinds_.find(command->key);
  return kind != kinds_.end() && kind->second.preparing();
}

std::optional<ForkableCommand> Zygotes::Read(const LaunchOrder& order,
                                             const std::vector<std::string>& more_modules) const {
  std::vector<std::string> modules = options_.modules;
  // Ranks need nothing of ours.
  if (!order.rank_command.empty()) std::erase(modules, kElasticModule);
  modules.insert(modules.end(), more_modules.begin(), more_modules.end());
  return ReadForkableCommand(order, modules);
}

// Once: it is so for all trials of such a study.
void Zygotes::NoteOwnFolder(const LaunchOrder& order,
                            const std::vector<std::string>& more_modules) {
  if (said_own_folder_ || !ImportsFromItsOwnFolder(order) ||
      !Read(WithWholePaths(order), more_modules)) {
    return;
  }
  said_own_folder_ = true;
  spdlog::warn(
      "replicas of {} import all anew, each by itself: PYTHONPATH=\"{}\" has relative "
      "parts, which are of each trial's own folder; they are forked where its paths are "
      "whole, or the study has a \"directory\"",
      order.command[0], order.environment.at("PYTHONPATH"));
}

void Zygotes::Spoke(std::int64_t replica_id, Clock::time_point now, pid_t pid,
                    const std::optional<std::string>& fork_obstacle) {
  const auto candidate = candidates_.extract(replica_id);
  if (candidate.empty() || !MayStart(candidate.mapped().key)) return;
  const ForkableCommand& command = candidate.mapped();
  if (command.native()) {
    // Otherwise a program that it has started may have spoken.
    if (!fork_obstacle || !RunsProgram(pid, command.path)) return;
    if (!fork_obstacle->empty()) {
      NewKind(command.key, now).failures = kMaxZygoteFailures;
      spdlog::info("replicas of {} cannot be forked where they make their Trial: {}; {}",
                   command.path, *fork_obstacle, kNotAgain);
      return;
    }
  }
  Start(command, now);
}

bool Zygotes::MayStart(const std::string& key) const {
  const auto kind = kinds_.find(key);
  return kind == kinds_.end() ||
         (kind->second.zygote == nullptr && kind->second.failures < kMaxZygoteFailures);
}

// As many as there may be.
bool Zygotes::AllArePreparing() const {
  return std::count_if(kinds_.begin(), kinds_.end(), [](const auto& kind) {
           return kind.second.preparing();
         }) >= static_cast<std::ptrdiff_t>(kMaxZygotes);
}

void Zygotes::Start(const ForkableCommand& command, Clock::time_point now) {
  EndOldest(kMaxZygotes - 1);
  Kind& kind = NewKind(command.key, now);
  kind.patience = command.native() ? kMaxZygoteProgram : kMaxZygoteImport;
  auto started = Zygote::Start(command, options_.log_path);
  if (!started.ok()) return GiveUp(kind, std::string(started.status().message()));
  kind.zygote = *std::move(started);
  spdlog::info("process {} {} replicas of {} {}, for those to come", kind.zygote->pid(),
               command.native() ? "does what" : "imports what", command.zygote.command[0],
               command.native() ? "do before they make their Trial" : "import");
}

Zygotes::Kind& Zygotes::NewKind(const std::string& key, Clock::time_point now) {
  // What is known of those that have failed is forgotten first where it was learnt first.
  while (kinds_.size() >= kMaxZygoteKinds && !kinds_.contains(key)) {
    kinds_.erase(std::min_element(kinds_.begin(), kinds_.end(), [](const auto& a, const auto& b) {
      return a.second.used < b.second.used;
    }));
  }
  Kind& kind = kinds_[key];
  kind.used = now;
  return kind;
}

void Zygotes::EndOldest(std::size_t most) {
  while (size() > most) {
    auto oldest = kinds_.end();
    for (auto kind = kinds_.begin(); kind != kinds_.end(); ++kind) {
      if (kind->second.zygote == nullptr) continue;
      if (oldest == kinds_.end() || kind->second.GoesBefore(oldest->second)) oldest = kind;
    }
    kinds_.erase(oldest);
    news_ = true;
  }
}

void Zygotes::GiveUp(Kind& kind, const std::string& why) {
  // What a program does before its Trial is not to be done in vain again and again.
  const bool in_vain = kind.zygote != nullptr && kind.zygote->native() && !kind.zygote->was_ready();
  const bool refused = kind.zygote != nullptr && !kind.zygote->refusal().empty();
  kind.failures = refused || in_vain ? kMaxZygoteFailures : kind.failures + 1;
  kind.zygote.reset();
  news_ = true;
  spdlog::warn("a process that was to be forked into replicas is given up: {}; {}", why,
               kind.failures < kMaxZygoteFailures
                   ? "they are started without it, until there is another one"
                   : kNotAgain);
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

std::set<pid_t> Zygotes::pids() const {
  std::set<pid_t> all;
  for (const auto& [key, kind] : kinds_) {
    if (kind.zygote != nullptr) all.insert(kind.zygote->pid());
  }
  return all;
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
    news_ = true;
    if (kind.zygote->state() != Zygote::State::kEnded) continue;
    const std::string refusal = kind.zygote->refusal();
    const bool early = kind.zygote->native() && !kind.zygote->was_ready();
    GiveUp(kind, !refusal.empty() ? refusal
                 : early          ? "it has ended before it made a Trial"
                                  : "it has ended");
  }
  std::erase_if(strays_, [&](const auto& stray) {
    return fds[next++].revents != 0 && waitpid(stray.first, nullptr, WNOHANG) != 0;
  });
}

void Zygotes::KeepTime(Clock::time_point now) {
  for (auto kind = kinds_.begin(); kind != kinds_.end();) {
    const auto next = std::next(kind);
    Zygote* const zygote = kind->second.zygote.get();
    if (zygote != nullptr && now - kind->second.used >= Patience(kind->second)) {
      if (zygote->state() == Zygote::State::kPreparing) {
        kind->second.was_late = true;
        GiveUp(kind->second, zygote->native() ? "it does not come to make a Trial"
                                              : "it does not come to the end of its imports");
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
    if (kind.zygote != nullptr) next = std::min(next, kind.used + Patience(kind));
  }
  return next;
}

Zygotes::Clock::duration Zygotes::Patience(const Kind& kind) {
  return kind.zygote->state() == Zygote::State::kPreparing ? kind.patience : kMaxZygoteIdle;
}

void Zygotes::EndAll() {
  candidates_.clear();
  kinds_.clear();
}

}  // namespace espalier
