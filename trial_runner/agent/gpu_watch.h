#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "trial_runner/agent/gpus.h"

namespace espalier {

inline constexpr std::chrono::seconds kGpuCheckPeriod{60};

// Looks at some GPUs again and again, on a thread of its own because a driver in trouble may keep
// its callers waiting, and tells of each that has got into trouble or out of it.
class GpuWatch {
 public:
  // `changed` is called on that thread, with the GPU as it is now.
  GpuWatch(std::unique_ptr<GpuDriver> driver, std::vector<Gpu> gpus,
           std::chrono::milliseconds period, std::function<void(const Gpu&)> changed);
  ~GpuWatch();

 private:
  void Run();
  void Look();

  const std::unique_ptr<GpuDriver> driver_;
  std::vector<Gpu> gpus_;
  const std::chrono::milliseconds period_;
  const std::function<void(const Gpu&)> changed_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace espalier
