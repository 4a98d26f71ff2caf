#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "trial_runner/agent/checkpoints/checkpoint_store.h"

namespace espalier {

inline constexpr int kCheckpointThreads = 3;  // fetches at a time
inline constexpr int kCopyThreads = 2;        // of those: copies that no replica waits for
inline constexpr std::size_t kMaxWaitingFetches = 4096;

// Fetches checkpoints on threads of its own, one at a time for each trial: first those that a
// replica waits for, then copies, first come first served. Methods may be called from any thread.
class CheckpointTransfers {
 public:
  // Step and replica are as the caller gave them.
  struct Done {
    FetchOrder order;
    std::int64_t step = 0;
    std::int64_t replica_id = 0;
    absl::StatusOr<std::string> path;  // where it lies now
    std::int64_t bytes = 0;            // that came over the network
  };

  // `done` is called from those threads when TakeDone has something. The store must outlive this.
  CheckpointTransfers(const CheckpointStore& store, std::function<void()> done);
  ~CheckpointTransfers();  // gives up what is under way; it is taken up where it stopped

  // RESOURCE_EXHAUSTED: too many orders wait.
  absl::Status Put(FetchOrder order, std::int64_t step, std::int64_t replica_id);
  std::vector<Done> TakeDone();

 private:
  struct Waiting {
    FetchOrder order;
    std::int64_t step = 0;
    std::int64_t replica_id = 0;  // 0: a copy
  };

  Done Obtain(Waiting taken);
  void Run();
  bool WaitFor(double seconds);
  std::deque<Waiting>::iterator Next();

  const CheckpointStore& store_;
  const std::function<void()> done_callback_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  std::set<std::int64_t> busy_;  // trials
  int copying_ = 0;              // threads
  std::vector<Done> done_;
  bool ending_ = false;
  std::vector<std::thread> threads_;  // begun by the first Put
};

}  // namespace espalier
