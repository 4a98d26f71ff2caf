#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "absl/status/status.h"

namespace espalier {

// Shared by threads that wait in a group, threads that give the group up, and threads that complete
// what is waited for. Any thread may call any function.
class Bell {
 public:
  using Clock = std::chrono::steady_clock;

  // Groups older than `generation` are given up: see Collectives::Abandon.
  void Abandon(std::int64_t generation, double grace_s);
  // No wait ends sooner than this after a call of Abandon() with grace, until this is called again.
  void SetLeastGrace(double grace_s);
  // Whether a group of this generation has been given up without grace.
  bool Abandoned(std::int64_t generation) const;
  static absl::Status AbandonedStatus(std::int64_t generation);

  // Makes a change for which some thread may wait.
  void Ring(const std::function<void()>& change);

  struct Wait {
    std::int64_t generation = 0;
    double limit_s = 0;
    // Whether the wait is over; called with the bell's lock held, each time it rings.
    std::function<bool()> done;
    // `done` is also called this often, for changes that do not ring the bell.
    std::optional<std::chrono::microseconds> poll_every;
  };

  // OK if `done`, even if the group was given up at the same moment: other members may have acted
  // on it. Otherwise kAborted, or kDeadlineExceeded after the limit.
  absl::Status WaitFor(const Wait& wait);

  // How long a thread has been waiting now; 0: none is.
  double Waiting_s() const;

 private:
  // When a wait that began at `start` ends at the latest.
  Clock::time_point EndOf(const Wait& wait, Clock::time_point start) const;

  mutable std::mutex mutex_;
  std::optional<Clock::time_point> waiting_since_;
  std::condition_variable rung_;
  std::int64_t abandoned_below_ = 0;
  // Groups older than this are to be abandoned by threads that wait for longer than `grace_`
  // and `least_grace_`.
  std::int64_t fading_below_ = 0;
  Clock::time_point fading_since_;
  Clock::duration grace_{};
  Clock::duration least_grace_{};
};

}  // namespace espalier
