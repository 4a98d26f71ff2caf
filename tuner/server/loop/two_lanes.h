#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tuner/api/tuner.h"

namespace espalier {

// callers that can wait do so while so many items wait
inline constexpr std::size_t kMaxQueue = 4096;
inline constexpr std::size_t kMaxOpenCalls = 65536;  // callers that cannot are refused at so many

// Clients wait for answers to their calls; agents and the service's own threads go on meanwhile.
enum class QueueLane { kClients, kOthers };

constexpr QueueLane Other(QueueLane lane) {
  return lane == QueueLane::kClients ? QueueLane::kOthers : QueueLane::kClients;
}

// What waits for one owner's thread. In each lane what comes first is taken first; where something
// waits in both, they take turns, so that neither waits for all that has come to the other.
// Put and Stop may be called from any thread, all else by the owner.
template <typename Item>
class TwoLanes {
 public:
  enum class IfFull { kWait, kRefuse, kPass };

  // `item` is untouched where it is not taken: UNAVAILABLE once it takes no more,
  // RESOURCE_EXHAUSTED where it is full and the caller does not wait.
  absl::Status Put(Item& item, QueueLane lane, IfFull if_full) {
    std::unique_lock lock(mutex_);
    if (if_full == IfFull::kWait) {
      not_full_.wait(lock, [this] { return waiting() < kMaxQueue || closed_; });
    }
    if (closed_) return ShuttingDown();
    if (if_full == IfFull::kRefuse && waiting() >= kMaxOpenCalls) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the tuner service is overloaded: ", kMaxOpenCalls, " calls wait; try again later"));
    }
    of(lane).push_back(std::move(item));
    not_empty_.notify_one();
    return absl::OkStatus();
  }

  // Takes no more. The owner does not wait for more.
  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      stopping_ = true;
    }
    not_empty_.notify_all();
    not_full_.notify_all();
  }

  // Waits at most so long for an item. True: it is stopped, and no more come.
  bool Await(double most_s) {
    std::unique_lock lock(mutex_);
    not_empty_.wait_for(lock, std::chrono::duration<double>(most_s),
                        [this] { return waiting() > 0 || stopping_; });
    return stopping_;
  }

  // Whose turn it is; none: nothing waits.
  std::optional<QueueLane> TakeTurn() {
    const std::lock_guard lock(mutex_);
    if (waiting() == 0) return std::nullopt;
    if (!of(Other(last_turn_)).empty()) last_turn_ = Other(last_turn_);
    return last_turn_;
  }

  // None: the lane is empty.
  std::optional<Item> Take(QueueLane lane) {
    const std::lock_guard lock(mutex_);
    std::deque<Item>& items = of(lane);
    if (items.empty()) return std::nullopt;
    std::optional<Item> item(std::move(items.front()));
    items.pop_front();
    if (waiting() < kMaxQueue) not_full_.notify_one();
    return item;
  }

  // Takes no more, and hands over all that waits.
  std::deque<Item> Close() {
    std::deque<Item> rest;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      for (std::deque<Item>& items : lanes_) {
        std::move(items.begin(), items.end(), std::back_inserter(rest));
        items.clear();
      }
    }
    not_full_.notify_all();
    return rest;
  }

  // From any thread, too.
  std::size_t size(QueueLane lane) const {
    const std::lock_guard lock(mutex_);
    return lanes_[static_cast<std::size_t>(lane)].size();
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return waiting();
  }

 private:
  std::size_t waiting() const { return lanes_[0].size() + lanes_[1].size(); }
  std::deque<Item>& of(QueueLane lane) { return lanes_[static_cast<std::size_t>(lane)]; }

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable not_empty_;
  std::condition_variable not_full_;
  std::array<std::deque<Item>, 2> lanes_;
  QueueLane last_turn_ = QueueLane::kOthers;
  bool closed_ = false;
  bool stopping_ = false;
};

}  // namespace espalier
