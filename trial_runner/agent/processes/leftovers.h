#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>

namespace espalier {

// A replica whose first process has ended, with its process group.
struct EndedReplica {
  pid_t leader = 0;              // also the number of the group
  std::set<std::int64_t> ids{};  // that it has had, as a spare that was adopted has several
};

// What replicas start in sessions of their own outlives their process group. When its parent has
// ended this process adopts it, and ends it with the replica: by the variables that every process
// of a trial carries, or, where it carries the agent's alone, by having been orphaned just then.
// Processes without the agent's mark are never killed. Used by the agent's owner thread alone.
class Leftovers {
 public:
  // `mark`: of this run of the agent. From now on this process adopts the orphans below it.
  explicit Leftovers(std::string mark);
  ~Leftovers();  // adopts no more, unless it did before
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;

  // Kills what the replica has left, and reaps what has ended. True once nothing is left. `ours`:
  // processes that the agent knows and waits for itself, here and below.
  bool Gone(const EndedReplica& ended, const std::set<pid_t>& ours);

  // The same of replicas and spares that ended unseen, and of orphans that ended by themselves:
  // `alive` are the ids of those that live. To be called now and then. False: it knows no others.
  bool Sweep(const std::set<std::int64_t>& alive, const std::set<pid_t>& ours);

 private:
  struct Orphan {
    char state = 0;
    pid_t group = 0;
    bool ending = false;
    bool marked = false;
    std::int64_t replica = 0;  // 0: it carries none
  };

  std::set<pid_t> Adopted(const std::set<pid_t>& ours) const;
  Orphan Look(pid_t pid) const;
  // With all that descends from them.
  void Kill(const std::set<pid_t>& roots);
  void Reap(pid_t pid);

  const std::string mark_;
  int adopted_before_ = 0;
  std::set<pid_t> killed_;
  std::set<pid_t> seen_;     // that carry no replica, and live on
  std::set<pid_t> zombies_;  // that nobody here has killed, of the last sweep
};

}  // namespace espalier
