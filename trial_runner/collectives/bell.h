#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "absl/status/status.h"

namespace espalier {

// What those who wait in a group share with those who give it up and with those who complete what
// is waited for. Any thread calls anything.
class Bell {
 public:
  using Clock = std::chrono::steady_clock;

  // Groups older than `generation` are given up: see Collectives::Abandon.
  void Abandon(std::int64_t generation, double grace_s);
  // Whether the word, without grace, has come for a group of this generation.
  bool Abandoned(std::int64_t generation) const;
  static absl::Status AbandonedStatus(std::int64_t generation);

  // Makes a change that somebody may wait for.
  void Ring(const std::function<void()>& change);

  struct Wait {
    std::int64_t generation = 0;
    double limit_s = 0;
    // Whether the wait is over; called with the bell's lock held, each time it rings.
    std::function<bool()> done;
    // Also called this often, for what rings no bell.
    std::optional<std::chrono::microseconds> poll_every;
  };

  // OK if `done`, even if the word came in the same moment: other members may have acted on it.
  // Otherwise kAborted, or kDeadlineExceeded after the limit.
  absl::Status WaitFor(const Wait& wait);

  // How long somebody has been waiting now; 0: nobody is.
  double Waiting_s() const;

 private:
  // When a wait that began at `start` ends at the latest.
  Clock::time_point EndOf(const Wait& wait, Clock::time_point start) const;

  mutable std::mutex mutex_;
  std::optional<Clock::time_point> waiting_since_;
  std::condition_variable rung_;
  std::int64_t abandoned_below_ = 0;
  // To be abandoned by those who wait for longer than `grace_`.
  std::int64_t fading_below_ = 0;
  Clock::time_point fading_since_;
  Clock::duration grace_{};
};

}  // namespace espalier
