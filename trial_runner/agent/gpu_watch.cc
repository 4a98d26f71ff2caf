#include "trial_runner/agent/gpu_watch.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace espalier {

struct GpuWatch::Looking {
  explicit Looking(std::unique_ptr<GpuDriver> of) : driver(std::move(of)) {}

  const std::unique_ptr<GpuDriver> driver;
  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false;         // the watch ends
  bool asked = true;         // for a look: it may take over from an agent that knew more
  bool under_way = false;    // a look
  std::optional<Seen> seen;  // by the last one
};

GpuWatch::GpuWatch(std::unique_ptr<GpuDriver> driver, std::vector<Gpu> gpus, const Times& times,
                   std::function<void(const Gpu&)> changed)
    : looking_(std::make_shared<Looking>(std::move(driver))),
      gpus_(std::move(gpus)),
      times_(times),
      changed_(std::move(changed)),
      thread_([this] { Run(); }) {}

GpuWatch::~GpuWatch() {
  {
    const std::lock_guard lock(looking_->mutex);
    looking_->stop = true;
  }
  looking_->changed.notify_all();
  thread_.join();
}

void GpuWatch::LookNow() {
  {
    const std::lock_guard lock(looking_->mutex);
    looking_->asked = true;
  }
  looking_->changed.notify_all();
}

void GpuWatch::Run() {
  std::unique_lock lock(looking_->mutex);
  while (true) {
    looking_->changed.wait_for(lock, times_.period,
                               [this] { return looking_->stop || looking_->asked; });
    if (looking_->stop) return;
    looking_->asked = false;
    if (!looking_->under_way) {
      looking_->under_way = true;
      looking_->seen.reset();
      std::thread([looking = looking_] {
        Seen seen = looking->driver->Look();
        const std::lock_guard done(looking->mutex);
        looking->seen = std::move(seen);
        looking->under_way = false;
        looking->changed.notify_all();
      }).detach();
    }
    looking_->changed.wait_for(lock, times_.limit,
                               [this] { return looking_->stop || !looking_->under_way; });
    if (looking_->stop) return;
    const Seen seen = looking_->under_way
                          ? Seen(absl::UnavailableError(absl::StrCat(
                                "the NVIDIA driver does not answer within ",
                                std::chrono::duration<double>(times_.limit).count(), " s")))
                          : *looking_->seen;
    lock.unlock();
    Compare(seen);
    lock.lock();
  }
}

void GpuWatch::Compare(const Seen& seen) {
  for (Gpu& gpu : gpus_) {
    std::string trouble;
    if (seen.ok()) {
      const auto same = std::find_if(seen->begin(), seen->end(), [&](const Gpu& now) {
        return now.index == gpu.index && (now.uuid == gpu.uuid || !now.trouble.empty());
      });
      trouble = same == seen->end() ? "is not there any more" : same->trouble;
    } else {
      trouble = std::string(seen.status().message());
    }
    if (trouble == gpu.trouble) continue;
    gpu.trouble = std::move(trouble);
    changed_(gpu);
  }
}

}  // namespace espalier
