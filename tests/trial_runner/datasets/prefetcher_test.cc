#include "trial_runner/datasets/prefetcher.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

using ::testing::Property;
using ::testing::StrEq;
using ::testing::Throws;

Microbatch At(std::int64_t begin) { return {0, {begin, 4}}; }

PreparedBatch BatchOf(std::int64_t value) { return std::make_shared<std::int64_t>(value); }

std::int64_t ValueOf(const absl::StatusOr<PreparedBatch>& batch) {
  EXPECT_TRUE(batch.ok()) << batch.status();
  return batch.ok() ? *std::static_pointer_cast<std::int64_t>(*batch) : -1;
}

// Lets threads through only when the test says so, and counts who has come so far.
class Gate {
 public:
  void Pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void AwaitArrived(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ >= count; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  bool open_ = false;
};

TEST(Prefetcher, GivesBatchesInTheOrderInWhichTheyWereAskedFor) {
  const PrepareBatch prepare = [](const BatchRequest& request) {
    return BatchOf(request.indices.front());
  };
  Prefetcher prefetcher({prepare, prepare, prepare});
  for (std::int64_t i = 0; i < 200; ++i) prefetcher.Request({At(4 * i), {i}});
  for (std::int64_t i = 0; i < 200; ++i) {
    EXPECT_EQ(prefetcher.front(), At(4 * i));
    EXPECT_EQ(ValueOf(prefetcher.Take()), i);
  }
  EXPECT_EQ(prefetcher.size(), 0u);
}

TEST(Prefetcher, PreparesOnEveryThreadAtTheSameTime) {
  Gate gate;
  const PrepareBatch prepare = [&](const BatchRequest& request) {
    gate.Pass();
    return BatchOf(request.microbatch.slice.begin);
  };
  Prefetcher prefetcher({prepare, prepare});
  prefetcher.Request({At(0), {}});
  prefetcher.Request({At(4), {}});
  gate.AwaitArrived(2);  // the second has not waited for the first
  gate.Open();
  EXPECT_EQ(ValueOf(prefetcher.Take()), 0);
  EXPECT_EQ(ValueOf(prefetcher.Take()), 4);
}

TEST(Prefetcher, ThrowsWhatPreparingThrewWithTheBatchThatItWasFor) {
  const PrepareBatch prepare = [](const BatchRequest& request) {
    if (request.microbatch == At(4)) throw std::out_of_range("image 17 is damaged");
    return BatchOf(request.microbatch.slice.begin);
  };
  Prefetcher prefetcher({prepare});
  for (const std::int64_t begin : {0, 4, 8}) prefetcher.Request({At(begin), {}});
  EXPECT_EQ(ValueOf(prefetcher.Take()), 0);
  EXPECT_THAT(
      [&] { prefetcher.Take().IgnoreError(); },
      Throws<std::out_of_range>(Property(&std::out_of_range::what, StrEq("image 17 is damaged"))));
  EXPECT_EQ(ValueOf(prefetcher.Take()), 8);
}

TEST(Prefetcher, HandsOnTheErrorOfPreparing) {
  Prefetcher prefetcher({[](const BatchRequest&) -> absl::StatusOr<PreparedBatch> {
    return absl::InvalidArgumentError("the stream ended");
  }});
  prefetcher.Request({At(0), {}});
  EXPECT_EQ(prefetcher.Take().status().message(), "the stream ended");
}

TEST(Prefetcher, ClearedRequestsAreNotPreparedAndDoNotHoldUpLaterOnes) {
  Gate gate;
  std::mutex mutex;
  std::set<std::int64_t> prepared;
  std::weak_ptr<void> dropped;
  const PrepareBatch prepare = [&](const BatchRequest& request) {
    const std::int64_t begin = request.microbatch.slice.begin;
    if (begin == 0) gate.Pass();
    PreparedBatch batch = BatchOf(begin);
    const std::lock_guard lock(mutex);
    prepared.insert(begin);
    if (begin == 0) dropped = batch;
    return batch;
  };
  Prefetcher prefetcher({prepare});
  for (const std::int64_t begin : {0, 4, 8}) prefetcher.Request({At(begin), {}});
  gate.AwaitArrived(1);
  prefetcher.Clear();
  EXPECT_EQ(prefetcher.size(), 0u);
  prefetcher.Request({At(100), {}});
  gate.Open();
  EXPECT_EQ(ValueOf(prefetcher.Take()), 100);
  const std::lock_guard lock(mutex);
  EXPECT_THAT(prepared, ::testing::ElementsAre(0, 100));
  EXPECT_TRUE(dropped.expired());  // nobody holds what nobody wants
}

TEST(Prefetcher, EndsWithRequestsOpenOnceTheBatchUnderWayIsPrepared) {
  Gate gate;
  bool finished = false;
  auto prefetcher =
      std::make_unique<Prefetcher>(std::vector<PrepareBatch>{[&](const BatchRequest& request) {
        gate.Pass();
        finished = true;
        return BatchOf(request.microbatch.slice.begin);
      }});
  for (std::int64_t i = 0; i < 50; ++i) prefetcher->Request({At(4 * i), {}});
  gate.AwaitArrived(1);
  std::thread opener([&] { gate.Open(); });
  prefetcher.reset();
  EXPECT_TRUE(finished);
  opener.join();
}

}  // namespace
}  // namespace espalier
