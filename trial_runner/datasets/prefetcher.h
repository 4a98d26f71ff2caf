#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "trial_runner/datasets/prepared_batch.h"

namespace espalier {

// Threads that prepare batches in the order in which they were asked for. Each thread starts the
// next batch that none has started, so memory is bounded by what the user asks for ahead, and by
// one dropped batch per thread. Its methods are for one thread.
class Prefetcher {
 public:
  // Starts one thread for each of `prepare`.
  explicit Prefetcher(std::vector<PrepareBatch> prepare);
  // Waits for the batches that are being prepared, and starts no others.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  void Request(BatchRequest request);
  // How many batches were asked for and not taken yet.
  std::size_t size() const { return requested_.size(); }
  const Microbatch& front() const { return requested_.front()->request.microbatch; }
  // Drops all that was asked for. Does not wait.
  void Clear();

  // Returns the earliest batch that was asked for, or its error; throws what preparing it threw.
  // Waits until it is ready. Requires size() > 0.
  absl::StatusOr<PreparedBatch> Take();

 private:
  // Guarded by mutex_, except for `request`, which does not change.
  struct Order {
    BatchRequest request;
    bool done = false;
    absl::StatusOr<PreparedBatch> batch;
    std::exception_ptr thrown;
  };

  void Work(const PrepareBatch& prepare);

  std::deque<std::shared_ptr<Order>> requested_;  // the user's thread only

  std::mutex mutex_;
  std::condition_variable asked_;
  std::condition_variable prepared_;
  std::deque<std::shared_ptr<Order>> waiting_;  // guarded by mutex_: not started
  bool ending_ = false;                         // guarded by mutex_

  std::vector<std::thread> threads_;
};

}  // namespace espalier
