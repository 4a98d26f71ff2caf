#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "trial_runner/agent/gpus.h"

namespace espalier {

// Looks at some GPUs again and again and tells of each that has got into trouble or out of it. A
// driver in trouble may keep its callers waiting, for ever if need be: each look is on a thread of
// its own, which is left to itself beyond the limit, and the next look waits for its end.
class GpuWatch {
 public:
  struct Times {
    std::chrono::milliseconds period{60'000};  // between two looks
    std::chrono::milliseconds limit{5'000};    // of a look; then the GPUs are in trouble
  };

  // `changed` is called on the watch's thread, with the GPU as it is now.
  GpuWatch(std::unique_ptr<GpuDriver> driver, std::vector<Gpu> gpus, const Times& times,
           std::function<void(const Gpu&)> changed);
  ~GpuWatch();

  // Looks as soon as it can. From any thread.
  void LookNow();

 private:
  using Seen = absl::StatusOr<std::vector<Gpu>>;
  // What a look shares with the watch, which it may outlive.
  struct Looking;

  void Run();
  void Compare(const Seen& seen);

  const std::shared_ptr<Looking> looking_;
  std::vector<Gpu> gpus_;
  const Times times_;
  const std::function<void(const Gpu&)> changed_;
  std::thread thread_;
};

}  // namespace espalier
