#include "trial_runner/agent/ranks/rank_end.h"

#include <sys/wait.h>

#include <cerrno>

namespace espalier {

std::int64_t TimeOfRank_ns(const timespec& time) {
  constexpr std::int64_t kSecond_ns = 1'000'000'000;
  return time.tv_sec * kSecond_ns + time.tv_nsec;
}

std::int64_t RankClock_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return TimeOfRank_ns(now);
}

RankEnd ReapRank(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          .at_ns = RankClock_ns()};
}

}  // namespace espalier
