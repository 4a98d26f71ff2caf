#include "trial_runner/agent/checkpoints/checkpoint_transfers.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/guarded.h"

namespace espalier {

CheckpointTransfers::CheckpointTransfers(const CheckpointStore& store, std::function<void()> done)
    : store_(store), done_callback_(std::move(done)) {}

CheckpointTransfers::~CheckpointTransfers() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

absl::Status CheckpointTransfers::Put(FetchOrder order, std::int64_t step,
                                      std::int64_t replica_id) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMaxWaitingFetches) {
      return absl::ResourceExhaustedError(
          absl::StrCat(kMaxWaitingFetches, " checkpoints wait to be fetched already"));
    }
    waiting_.push_back({std::move(order), step, replica_id});
    while (std::ssize(threads_) < kCheckpointThreads) threads_.emplace_back([this] { Run(); });
  }
  changed_.notify_all();
  return absl::OkStatus();
}

std::vector<CheckpointTransfers::Done> CheckpointTransfers::TakeDone() {
  const std::lock_guard lock(mutex_);
  return std::exchange(done_, {});
}

std::deque<CheckpointTransfers::Waiting>::iterator CheckpointTransfers::Next() {
  const auto first = [this](bool copy) {
    return std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& waiting) {
      return (waiting.replica_id == 0) == copy && !busy_.contains(waiting.order.trial_id);
    });
  };
  const auto awaited = first(false);
  return awaited != waiting_.end() || copying_ >= kCopyThreads ? awaited : first(true);
}

bool CheckpointTransfers::WaitFor(double seconds) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                            [this] { return ending_; });
}

CheckpointTransfers::Done CheckpointTransfers::Obtain(Waiting taken) {
  Done done{.order = std::move(taken.order),
            .step = taken.step,
            .replica_id = taken.replica_id,
            .path = std::string(),
            .bytes = 0};
  const auto obtain = [this, &done] {
    done.path = store_.Obtain(
        done.order, [this](double seconds) { return WaitFor(seconds); },
        [this, &done](std::int64_t bytes) {
          done.bytes = bytes;
          const std::lock_guard lock(mutex_);
          return !ending_;
        });
  };
  const auto name = [&done] { return "checkpoint " + done.order.what.name; };
  if (const absl::Status guarded = Guarded(name, obtain); !guarded.ok()) done.path = guarded;
  return done;
}

void CheckpointTransfers::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || Next() != waiting_.end(); });
    if (ending_) return;
    const auto next = Next();
    Waiting taken = std::move(*next);
    waiting_.erase(next);
    busy_.insert(taken.order.trial_id);
    const int copies = taken.replica_id == 0 ? 1 : 0;
    copying_ += copies;
    lock.unlock();
    Done done = Obtain(std::move(taken));
    lock.lock();
    busy_.erase(done.order.trial_id);
    copying_ -= copies;
    done_.push_back(std::move(done));
    changed_.notify_all();
    if (!ending_) done_callback_();
  }
}

}  // namespace espalier
