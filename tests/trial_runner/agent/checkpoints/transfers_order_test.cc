// Which of the replicas that want a checkpoint fetched is served first.

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "trial_runner/agent/checkpoints/checkpoint_transfers.h"

namespace espalier {
namespace {

constexpr std::int64_t kQuickTrial = 100;
constexpr std::int64_t kBrokenTrial = 101;

// Its checkpoints take until they are let go, but for one trial's.
class SlowStore final : public CheckpointStore {
 public:
  bool shared() const override { return false; }
  std::string FolderOf(const std::string&, std::int64_t) const override { return ""; }
  absl::StatusOr<std::string> Obtain(const FetchOrder& order, const std::function<bool(double)>&,
                                     const FetchNote&) const override {
    if (order.trial_id == kBrokenTrial) throw std::runtime_error("no such device");
    if (order.trial_id != kQuickTrial) let_go_.wait();
    return std::string("here");
  }

  std::promise<void> go;

 private:
  const std::shared_future<void> let_go_ = go.get_future().share();
};

FetchOrder OrderOfTrial(std::int64_t trial) { return {trial, {"mnist", trial, ""}, "", {}}; }

TEST(TransfersOrder, AStartDoesNotWaitForCopies) {
  SlowStore store;
  std::promise<void> done;
  bool told = false;
  CheckpointTransfers transfers(store, [&] {
    if (!std::exchange(told, true)) done.set_value();
  });
  for (std::int64_t copy = 1; copy <= std::int64_t{2} * kCheckpointThreads; ++copy) {
    ASSERT_TRUE(transfers.Put(OrderOfTrial(copy), 0, /*replica_id=*/0).ok());
  }
  ASSERT_TRUE(transfers.Put(OrderOfTrial(kQuickTrial), 0, /*replica_id=*/7).ok());
  done.get_future().wait();
  const std::vector<CheckpointTransfers::Done> first = transfers.TakeDone();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].replica_id, 7);
  store.go.set_value();
}

TEST(TransfersOrder, WhatThrowsFailsThatTransferAlone) {
  SlowStore store;
  std::mutex mutex;
  std::condition_variable changed;
  int count = 0;
  CheckpointTransfers transfers(store, [&] {
    const std::lock_guard lock(mutex);
    ++count;
    changed.notify_all();
  });
  std::map<std::int64_t, absl::Status> ended;
  for (const std::int64_t trial : {kBrokenTrial, kQuickTrial}) {
    ASSERT_TRUE(transfers.Put(OrderOfTrial(trial), 0, /*replica_id=*/7).ok());
  }
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return count == 2; });
  }
  for (const auto& done : transfers.TakeDone()) ended[done.order.trial_id] = done.path.status();
  EXPECT_TRUE(ended.at(kQuickTrial).ok());
  EXPECT_TRUE(absl::IsInternal(ended.at(kBrokenTrial))) << ended.at(kBrokenTrial);
  EXPECT_NE(ended.at(kBrokenTrial).message().find("no such device"), std::string::npos);
  store.go.set_value();
}

}  // namespace
}  // namespace espalier
