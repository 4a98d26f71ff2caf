#include "trial_runner/datasets/prefetcher.h"

#include <utility>

#include "base/check.h"

namespace espalier {

Prefetcher::Prefetcher(std::vector<PrepareBatch> prepare) {
  for (PrepareBatch& one : prepare) {
    threads_.emplace_back([this, own = std::move(one)] { Work(own); });
  }
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  asked_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Prefetcher::Request(BatchRequest request) {
  auto order = std::make_shared<Order>();
  order->request = std::move(request);
  requested_.push_back(order);
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(order));
  }
  asked_.notify_one();
}

void Prefetcher::Clear() {
  {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
  }
  requested_.clear();
}

absl::StatusOr<PreparedBatch> Prefetcher::Take() {
  ESPALIER_CHECK(!requested_.empty(), "there is a request to wait for");
  const std::shared_ptr<Order> order = std::move(requested_.front());
  requested_.pop_front();
  std::unique_lock lock(mutex_);
  prepared_.wait(lock, [&] { return order->done; });
  if (order->thrown) std::rethrow_exception(order->thrown);
  return std::move(order->batch);
}

void Prefetcher::Work(const PrepareBatch& prepare) {
  std::unique_lock lock(mutex_);
  while (true) {
    asked_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    std::shared_ptr<Order> order = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    absl::StatusOr<PreparedBatch> batch;
    std::exception_ptr thrown;
    try {
      batch = prepare(order->request);
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    order->batch = std::move(batch);
    order->thrown = std::move(thrown);
    order->done = true;
    prepared_.notify_one();
    lock.unlock();
    order.reset();  // the last to know of it, if it was dropped
    lock.lock();
  }
}

}  // namespace espalier
