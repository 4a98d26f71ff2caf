#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "trial_runner/agent/gpus/gpus.h"

namespace espalier {

// Looks at some GPUs again and again and tells of each that has got into trouble or out of it. A
// driver in trouble may keep its callers waiting, for ever if need be: each look is on a thread of
// its own, which is left to itself beyond the limit, and the next look waits for its end.
class GpuWatch {
 public:
  struct Times {
    std::chrono::milliseconds period{60'000};  // between two looks
    // The time limit of a look; after it the GPUs count as in trouble. The driver initialises
    // unused GPUs at each look, which takes up to 3 s for each of them if nothing keeps the driver
    // loaded.
    std::chrono::milliseconds limit{60'000};
  };

  // Both are called on the watch's thread: `changed` with a GPU as it is now, and then `looked`
  // with the number of the last call of LookNow that has got its look.
  GpuWatch(
      std::unique_ptr<GpuDriver> driver, std::vector<Gpu> gpus, const Times& times,
      std::function<void(const Gpu&)> changed,
      std::function<void(std::int64_t)> looked = [](std::int64_t) {});
  ~GpuWatch();

  // Looks as soon as it can. Returns the number of the call, from 1. From any thread.
  std::int64_t LookNow();

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
  const std::function<void(std::int64_t)> looked_;
  std::thread thread_;
};

}  // namespace espalier
