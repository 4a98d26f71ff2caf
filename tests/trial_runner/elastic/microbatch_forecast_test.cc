#include "trial_runner/elastic/microbatch_forecast.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace espalier {
namespace {

TEST(MicrobatchForecast, StartsWithThePresentMicrobatchAndGoesOnIntoTheNextEpochs) {
  MicrobatchForecast forecast({.epoch = 3,
                               .epochs = 5,
                               .cursor = 90,
                               .microbatch = 1,
                               .epoch_size = 100,
                               .batch_size = 8,
                               .rank = 1,
                               .replicas = 2,
                               .max_atomic = 2});
  EXPECT_EQ(forecast.Next(), (Microbatch{3, {96, 2}}));  // the second half of 94..97
  EXPECT_EQ(forecast.Next(), (Microbatch{3, {99, 1}}));  // two are left of the epoch
  EXPECT_EQ(forecast.Next(), (Microbatch{4, {4, 2}}));
}

TEST(MicrobatchForecast, ForetellsEverySampleOfTheEpochsThatAreMeant) {
  constexpr std::int64_t kSize = 37;
  std::set<std::pair<std::int64_t, std::int64_t>> dealt;
  for (int rank = 0; rank < 3; ++rank) {
    MicrobatchForecast forecast({.epochs = 2,
                                 .epoch_size = kSize,
                                 .batch_size = 10,
                                 .rank = rank,
                                 .replicas = 3,
                                 .max_atomic = 2});
    while (const auto next = forecast.Next()) {
      for (std::int64_t i = 0; i < next->slice.size; ++i) {
        EXPECT_TRUE(dealt.emplace(next->epoch, next->slice.begin + i).second);
      }
    }
  }
  EXPECT_EQ(dealt.size(), static_cast<std::size_t>(2 * kSize));
}

TEST(MicrobatchForecast, PassesOverStepsWithFewerSamplesThanReplicas) {
  MicrobatchForecast forecast({.epochs = 2,
                               .cursor = 8,
                               .epoch_size = 10,
                               .batch_size = 4,
                               .rank = 3,
                               .replicas = 4,
                               .max_atomic = 4});
  EXPECT_EQ(forecast.Next(), (Microbatch{1, {3, 1}}));
}

TEST(MicrobatchForecast, EndsWithTheLastEpochAndStaysThere) {
  MicrobatchForecast forecast({.epoch = 1, .epochs = 2, .cursor = 9, .epoch_size = 10});
  EXPECT_EQ(forecast.Next(), (Microbatch{1, {9, 1}}));
  EXPECT_EQ(forecast.Next(), std::nullopt);
  EXPECT_EQ(forecast.Next(), std::nullopt);
  EXPECT_EQ(MicrobatchForecast().Next(), std::nullopt);
}

}  // namespace
}  // namespace espalier
