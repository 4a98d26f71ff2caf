#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "trial_runner/control/group_progress.h"
#include "trial_runner/elastic/control_plane.h"

namespace espalier {

// The half that all control planes share: the highest membership seen, shared between the thread
// that receives memberships and those that wait for them. The listener runs under the lock.
class ControlPlaneBase : public ControlPlane {
 public:
  std::int64_t LatestGeneration() const override {
    return generation_.load(std::memory_order_acquire);
  }

  Membership Latest() const override {
    const std::lock_guard lock(mutex_);
    return latest_;
  }

  Membership WaitAbove(std::int64_t generation) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return latest_.generation > generation; });
    return latest_;
  }

  std::optional<Membership> WaitAboveFor(std::int64_t generation, double patience_s) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::duration<double>(patience_s),
                           [&] { return latest_.generation > generation; })) {
      return std::nullopt;
    }
    return latest_;
  }

  void Listen(std::function<void(const Membership&)> listener) override {
    const std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
    if (listener_ && latest_.generation > 0) listener_(latest_);
  }

  GroupProgress& progress() override { return progress_; }

 protected:
  // A membership that is not newer than the latest is ignored.
  void Announce(Membership membership) {
    {
      const std::lock_guard lock(mutex_);
      if (membership.generation <= latest_.generation) return;
      latest_ = std::move(membership);
      generation_.store(latest_.generation, std::memory_order_release);
      if (listener_) listener_(latest_);
    }
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Membership latest_;
  std::function<void(const Membership&)> listener_;
  std::atomic<std::int64_t> generation_{0};
  GroupProgress progress_;
};

}  // namespace espalier
