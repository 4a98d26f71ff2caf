#include "trial_runner/datasets/batch_feed.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trial_runner/datasets/dataset.h"

namespace espalier {
namespace {

constexpr std::int64_t kSize = 100;
constexpr std::uint64_t kSeed = 11;

using Batch = std::vector<std::int64_t>;

struct Place {
  std::int64_t cursor = 0;
  int rank = 0;
  int replicas = 1;
  std::int64_t epoch = 0;
};

MicrobatchForecast ForecastFrom(const Place& place) {
  return MicrobatchForecast({.epoch = place.epoch,
                             .epochs = 2,
                             .cursor = place.cursor,
                             .epoch_size = kSize,
                             .batch_size = 8,
                             .rank = place.rank,
                             .replicas = place.replicas,
                             .max_atomic = 4});
}

// Plays the loader: walks through the forecast of the place it is at.
class Walker {
 public:
  explicit Walker(int threads, int ahead = 2)
      : feed_(threads, ahead, SampleOrder(kSize, kSeed), [this] {
          return [this](const BatchRequest& request) -> absl::StatusOr<PreparedBatch> {
            ++prepared_;
            return std::make_shared<Batch>(request.indices);
          };
        }) {}

  void GoTo(const Place& place) {
    place_ = place;
    forecast_ = ForecastFrom(place);
  }
  // The next microbatch and its batch, as long as there is one.
  bool Step() {
    const auto next = forecast_.Next();
    if (!next) return false;
    const auto batch = feed_.Next(*next, [&] {
      ++mispredicted_;
      MicrobatchForecast here = ForecastFrom(place_);
      for (MicrobatchForecast next_is = here; next_is.Next() != next;) here = next_is;
      return here;
    });
    EXPECT_TRUE(batch.ok()) << batch.status();
    SampleOrder order(kSize, kSeed);
    const auto expected = order.Slice(next->epoch, next->slice);
    EXPECT_THAT(*std::static_pointer_cast<Batch>(*batch),
                ::testing::ElementsAreArray(expected.begin(), expected.end()));
    return true;
  }
  int mispredicted() const { return mispredicted_; }
  int prepared() const { return prepared_; }

 private:
  Place place_;
  MicrobatchForecast forecast_;
  int mispredicted_ = 0;
  std::atomic<int> prepared_{0};
  BatchFeed feed_;
};

TEST(BatchFeed, WithoutThreadsPreparesWhatIsWantedAndNoMore) {
  Walker walker(0);
  walker.GoTo({});
  ASSERT_TRUE(walker.Step());
  EXPECT_EQ(walker.prepared(), 1);
  walker.GoTo({.cursor = 48, .rank = 1, .replicas = 3});
  while (walker.Step()) {
  }
  EXPECT_EQ(walker.mispredicted(), 0);
}

TEST(BatchFeed, WithThreadsForetellsWholeEpochsOnce) {
  Walker walker(3);
  walker.GoTo({});
  int steps = 0;
  while (walker.Step()) ++steps;
  EXPECT_EQ(steps, 2 * kSize / 4);
  EXPECT_EQ(walker.prepared(), steps);
  EXPECT_EQ(walker.mispredicted(), 1);  // the beginning
}

TEST(BatchFeed, DropsWhatWasForetoldWhenTheGroupChanges) {
  Walker walker(2, 3);
  walker.GoTo({});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(walker.Step());
  walker.GoTo({.cursor = 24, .rank = 2, .replicas = 3});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(walker.Step());
  EXPECT_EQ(walker.mispredicted(), 2);
  walker.GoTo({.cursor = 16});  // and back
  while (walker.Step()) {
  }
  EXPECT_EQ(walker.mispredicted(), 3);
}

TEST(BatchFeed, IsNoFurtherAheadThanItMayBe) {
  constexpr int kThreads = 2;
  constexpr int kAhead = 3;
  Walker walker(kThreads, kAhead);
  walker.GoTo({});
  for (int taken = 1; taken <= 20; ++taken) {
    ASSERT_TRUE(walker.Step());
    EXPECT_LE(walker.prepared(), taken + kThreads * kAhead);
  }
}

TEST(BatchFeed, GoesOnAfterAnExceptionWithTheSameMicrobatch) {
  std::atomic<bool> failing{true};
  BatchFeed feed(1, 2, std::nullopt, [&] {
    return [&](const BatchRequest& request) -> absl::StatusOr<PreparedBatch> {
      EXPECT_TRUE(request.indices.empty());
      if (failing) throw std::runtime_error("the disk is away");
      return std::make_shared<std::int64_t>(request.microbatch.slice.begin);
    };
  });
  const auto forecast = [] { return ForecastFrom({}); };
  const Microbatch first{0, {0, 4}};
  EXPECT_THROW(feed.Next(first, forecast).IgnoreError(), std::runtime_error);
  failing = false;
  const auto batch = feed.Next(first, forecast);
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(*std::static_pointer_cast<std::int64_t>(*batch), 0);
}

TEST(SampleSeed, DependsOnTrialEpochAndSampleAndNothingElse) {
  const std::vector<std::int64_t> indices{5, 9, 5};
  const SampleSelection samples{.indices = indices, .epoch = 3, .trial_seed = kSeed};
  EXPECT_EQ(samples.SeedOf(0), samples.SeedOf(2));
  EXPECT_NE(samples.SeedOf(0), samples.SeedOf(1));
  EXPECT_EQ(samples.SeedOf(1), SampleSeed(kSeed, 3, 9));
  EXPECT_NE(SampleSeed(kSeed, 4, 9), SampleSeed(kSeed, 3, 9));
  EXPECT_NE(SampleSeed(kSeed + 1, 3, 9), SampleSeed(kSeed, 3, 9));
}

}  // namespace
}  // namespace espalier
