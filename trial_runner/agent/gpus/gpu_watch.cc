#include "trial_runner/agent/gpus/gpu_watch.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/guarded.h"

namespace espalier {

struct GpuWatch::Looking {
  explicit Looking(std::unique_ptr<GpuDriver> of) : driver(std::move(of)) {}

  const std::unique_ptr<GpuDriver> driver;
  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false;         // the watch ends
  bool due = true;           // a look: it may take over from an agent that knew more
  std::int64_t asked = 0;    // how often a look was asked for
  bool under_way = false;    // a look
  std::optional<Seen> seen;  // by the last one
};

namespace {

// GPUs change their places when others come or go. One that does not even tell its UUID is the one
// that has had its place.
const Gpu* TheSame(const Gpu& gpu, const std::vector<Gpu>& seen) {
  const Gpu* in_its_place = nullptr;
  for (const Gpu& now : seen) {
    if (!now.uuid.empty() && now.uuid == gpu.uuid) return &now;
    if (now.uuid.empty() && now.index == gpu.index) in_its_place = &now;
  }
  return in_its_place;
}

}  // namespace

GpuWatch::GpuWatch(std::unique_ptr<GpuDriver> driver, std::vector<Gpu> gpus, const Times& times,
                   std::function<void(const Gpu&)> changed,
                   std::function<void(std::int64_t)> looked)
    : looking_(std::make_shared<Looking>(std::move(driver))),
      gpus_(std::move(gpus)),
      times_(times),
      changed_(std::move(changed)),
      looked_(std::move(looked)),
      thread_([this] { Run(); }) {}

GpuWatch::~GpuWatch() {
  {
    const std::lock_guard lock(looking_->mutex);
    looking_->stop = true;
  }
  looking_->changed.notify_all();
  thread_.join();
}

std::int64_t GpuWatch::LookNow() {
  const std::lock_guard lock(looking_->mutex);
  looking_->due = true;
  looking_->changed.notify_all();
  return ++looking_->asked;
}

void GpuWatch::Run() {
  std::unique_lock lock(looking_->mutex);
  while (true) {
    looking_->changed.wait_for(lock, times_.period,
                               [this] { return looking_->stop || looking_->due; });
    if (looking_->stop) return;
    looking_->due = false;
    const std::int64_t asked = looking_->asked;
    if (!looking_->under_way) {
      looking_->under_way = true;
      looking_->seen.reset();
      std::thread([looking = looking_] {
        Seen seen;
        const absl::Status looked = Guarded([] { return std::string("a look at the GPUs"); },
                                            [&] { seen = looking->driver->Look(); });
        if (!looked.ok()) seen = looked;
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
    looked_(asked);
    lock.lock();
  }
}

void GpuWatch::Compare(const Seen& seen) {
  for (Gpu& gpu : gpus_) {
    std::string trouble;
    if (seen.ok()) {
      const Gpu* const now = TheSame(gpu, *seen);
      trouble = now == nullptr ? "is not there any more" : now->trouble;
    } else {
      trouble = std::string(seen.status().message());
    }
    if (trouble == gpu.trouble) continue;
    gpu.trouble = std::move(trouble);
    changed_(gpu);
  }
}

}  // namespace espalier
