#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trial_runner/agent/zygotes/zygote.h"

namespace espalier {

// The most zygotes at once; beyond that, the one that forked longest ago is ended.
inline constexpr std::size_t kMaxZygotes = 4;
// A zygote that forks nothing for this long is ended.
inline constexpr std::chrono::minutes kMaxZygoteIdle{10};
// A zygote that has not imported its modules by then is given up, and a program that has not made
// its Trial.
inline constexpr std::chrono::minutes kMaxZygoteImport{5};
inline constexpr std::chrono::minutes kMaxZygoteProgram{1};
// A kind of zygote that has come to grief so often is not tried again, nor is one that says that it
// cannot be forked, nor a program that has not come to its Trial.
inline constexpr int kMaxZygoteFailures = 3;
// How many kinds are remembered for that.
inline constexpr std::size_t kMaxZygoteKinds = 64;
// Replicas whose programs may turn out to want a zygote.
inline constexpr std::size_t kMaxZygoteCandidates = 1024;

// What elastic programs in Python import.
inline constexpr const char* kElasticModule = "espalier.torch";

struct ZygoteOptions {
  std::string log_path;
  std::vector<std::string> modules = {"torch", "torch._dynamo", kElasticModule};
  // How long the replicas of others may wait for a fork; in vain, and the zygote is given up.
  std::chrono::milliseconds fork_within{2000};
};

// An agent's zygotes: one for each kind of program. In Python that is each interpreter, set of
// modules and environment that these are imported in, in C++ each command and environment. The
// first program of a kind is started as others are. When it speaks as a replica, it has shown that
// it is one of Espalier's, and that its interpreter can import what is to be imported, or says
// whether it could have been forked itself: then a zygote is started beside it, for those that come
// after. So programs that have no use for one pay nothing. Those that call functions of
// `espalier.tune` are known beforehand, and so are programs of a study that expects elastic ones,
// and ranks whose study names modules to import: their first replicas wait for the zygote, so that
// a node imports once. Belongs to the agent's owner thread; blocks only in Fork.
class Zygotes {
 public:
  using Clock = Zygote::Clock;

  explicit Zygotes(ZygoteOptions options) : options_(std::move(options)) {}

  // Starts a replica. nullopt: there is no zygote for it, or it is of no use, and the replica is to
  // be started by Launch; nothing of it has run.
  std::optional<LaunchedProcess> Fork(std::int64_t replica_id, const LaunchOrder& order,
                                      const std::vector<std::string>& more_modules);
  // True: the replica is to wait, because its program is one that is known beforehand, and its
  // zygote, which this starts if there is none, is on its way. To be asked again after news.
  bool Awaited(const LaunchOrder& order, const std::vector<std::string>& more_modules,
               Clock::time_point now);
  // Whether zygotes have become ready, or have ended, since the last call.
  bool TakeNews() { return std::exchange(news_, false); }
  // A replica that was not forked has spoken, or has ended. A program in C++ says what would have
  // kept it from being forked (fork_point.h).
  void Spoke(std::int64_t replica_id, Clock::time_point now, pid_t pid = 0,
             const std::optional<std::string>& fork_obstacle = std::nullopt);
  void Ended(std::int64_t replica_id) { candidates_.erase(replica_id); }

  // For the owner's poll, in the order in which Hear takes them back.
  void Watch(std::vector<pollfd>& fds) const;
  void Hear(std::span<const pollfd> fds);
  void KeepTime(Clock::time_point now);
  // The next moment at which KeepTime has something to do; max: there is none.
  Clock::time_point NextTime() const;

  void EndAll();

  std::size_t size() const;  // those that run
  std::set<pid_t> pids() const;

 private:
  struct Kind {
    std::unique_ptr<Zygote> zygote;
    Clock::time_point used;      // last
    Clock::duration patience{};  // until it is ready
    int failures = 0;
    bool was_late = false;  // nobody waits for another one

    bool preparing() const {
      return zygote != nullptr && zygote->state() == Zygote::State::kPreparing;
    }
    // Where there are too many. Replicas may wait for one that is on its way.
    bool GoesBefore(const Kind& other) const {
      return std::pair(preparing(), used) < std::pair(other.preparing(), other.used);
    }
  };

  std::optional<ForkableCommand> Read(const LaunchOrder& order,
                                      const std::vector<std::string>& more_modules) const;
  void NoteOwnFolder(const LaunchOrder& order, const std::vector<std::string>& more_modules);
  bool MayStart(const std::string& key) const;
  bool AllArePreparing() const;
  void Start(const ForkableCommand& command, Clock::time_point now);
  Kind& NewKind(const std::string& key, Clock::time_point now);
  void EndOldest(std::size_t most);
  static Clock::duration Patience(const Kind& kind);
  void GiveUp(Kind& kind, const std::string& why);
  void NoteStrays(const std::set<pid_t>& before, pid_t replica);

  const ZygoteOptions options_;
  bool news_ = false;
  bool said_own_folder_ = false;
  std::map<std::string, Kind> kinds_;                     // by key
  std::map<std::int64_t, ForkableCommand> candidates_;    // by replica
  std::vector<std::pair<pid_t, FileDescriptor>> strays_;  // orphans adopted beside a replica
};

}  // namespace espalier
