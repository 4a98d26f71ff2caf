#include "trial_runner/collectives/bell.h"

#include <sys/prctl.h>

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

Bell::Clock::duration DurationOf(double seconds) {
  return std::chrono::duration_cast<Bell::Clock::duration>(std::chrono::duration<double>(seconds));
}

// The system rounds a sleep up by 50 us, unless a thread asks for better: twice as long as the
// looks at a device are apart.
class PreciseSleeps {
 public:
  PreciseSleeps() : before_(prctl(PR_GET_TIMERSLACK)) { prctl(PR_SET_TIMERSLACK, 1UL); }
  ~PreciseSleeps() { prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(before_)); }
  PreciseSleeps(const PreciseSleeps&) = delete;
  PreciseSleeps& operator=(const PreciseSleeps&) = delete;

 private:
  const int before_;  // ns
};

}  // namespace

void Bell::Abandon(std::int64_t generation, double grace_s) {
  Ring([&] {
    if (grace_s <= 0) {
      abandoned_below_ = std::max(abandoned_below_, generation);
    } else if (generation > fading_below_) {
      fading_below_ = generation;
      fading_since_ = Clock::now();
      grace_ = DurationOf(grace_s);
    }
  });
}

void Bell::SetLeastGrace(double grace_s) {
  Ring([&] { least_grace_ = DurationOf(grace_s); });
}

bool Bell::Abandoned(std::int64_t generation) const {
  const std::lock_guard lock(mutex_);
  return abandoned_below_ > generation;
}

absl::Status Bell::AbandonedStatus(std::int64_t generation) {
  return absl::AbortedError(absl::StrCat("generation ", generation, " was abandoned"));
}

void Bell::Ring(const std::function<void()>& change) {
  {
    const std::lock_guard lock(mutex_);
    change();
  }
  rung_.notify_all();
}

Bell::Clock::time_point Bell::EndOf(const Wait& wait, Clock::time_point start) const {
  const Clock::time_point limit = start + DurationOf(wait.limit_s);
  if (fading_below_ <= wait.generation) return limit;
  return std::min(limit, std::max(start, fading_since_) + std::max(grace_, least_grace_));
}

absl::Status Bell::WaitFor(const Wait& wait) {
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(mutex_);
  waiting_since_ = start;
  const absl::Cleanup no_more = [this] { waiting_since_.reset(); };  // before the lock is let go
  std::optional<PreciseSleeps> precise;
  if (wait.poll_every) precise.emplace();
  while (!wait.done()) {
    const Clock::time_point now = Clock::now();
    const Clock::time_point end = EndOf(wait, start);
    if (abandoned_below_ > wait.generation) return AbandonedStatus(wait.generation);
    if (now >= end) {
      if (now < start + DurationOf(wait.limit_s)) return AbandonedStatus(wait.generation);
      return absl::DeadlineExceededError(absl::StrCat("generation ", wait.generation, ": waited ",
                                                      wait.limit_s, " s for the other members"));
    }
    rung_.wait_until(lock, wait.poll_every ? std::min(end, now + *wait.poll_every) : end);
  }
  return absl::OkStatus();
}

double Bell::Waiting_s() const {
  const std::lock_guard lock(mutex_);
  if (!waiting_since_) return 0;
  return std::chrono::duration<double>(Clock::now() - *waiting_since_).count();
}

}  // namespace espalier
