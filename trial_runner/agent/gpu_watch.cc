#include "trial_runner/agent/gpu_watch.h"

#include <algorithm>
#include <utility>

namespace espalier {

GpuWatch::GpuWatch(std::unique_ptr<GpuDriver> driver, std::vector<Gpu> gpus,
                   std::chrono::milliseconds period, std::function<void(const Gpu&)> changed)
    : driver_(std::move(driver)),
      gpus_(std::move(gpus)),
      period_(period),
      changed_(std::move(changed)),
      thread_([this] { Run(); }) {}

GpuWatch::~GpuWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

void GpuWatch::Run() {
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, period_, [this] { return stop_; })) {
    lock.unlock();
    Look();
    lock.lock();
  }
}

void GpuWatch::Look() {
  const absl::StatusOr<std::vector<Gpu>> now = driver_->Look();
  for (Gpu& gpu : gpus_) {
    std::string trouble;
    if (now.ok()) {
      const auto same = std::find_if(now->begin(), now->end(), [&](const Gpu& seen) {
        return seen.index == gpu.index && (seen.uuid == gpu.uuid || !seen.trouble.empty());
      });
      trouble = same == now->end() ? "is not there any more" : same->trouble;
    } else {
      trouble = std::string(now.status().message());
    }
    if (trouble == gpu.trouble) continue;
    gpu.trouble = std::move(trouble);
    changed_(gpu);
  }
}

}  // namespace espalier
