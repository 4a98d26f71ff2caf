// Which of the replicas that want a checkpoint fetched is served first.

#include <gtest/gtest.h>

#include <future>
#include <utility>

#include "trial_runner/agent/checkpoints/checkpoint_transfers.h"

namespace espalier {
namespace {

constexpr std::int64_t kQuickTrial = 100;

// Its checkpoints take until they are let go, but for one trial's.
class SlowStore final : public CheckpointStore {
 public:
  bool shared() const override { return false; }
  std::string FolderOf(const std::string&, std::int64_t) const override { return ""; }
  absl::StatusOr<std::string> Obtain(const FetchOrder& order, const std::function<bool(double)>&,
                                     const FetchNote&) const override {
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

}  // namespace
}  // namespace espalier
