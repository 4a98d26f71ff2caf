#include "trial_runner/elastic/batch_bounds.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ErrorOf(const DataLoaderOptions& options, std::int64_t dataset_size = 1000) {
  const auto bounds = BoundsOf(options, dataset_size, /*adaptive_batch=*/false);
  return bounds.ok() ? "" : std::string(bounds.status().message());
}

TEST(BoundsOf, FixedModeKeepsTheBatchAndAdaptiveModeMayGrowIt) {
  const DataLoaderOptions options{
      .batch_size = 32, .max_batch_size = 512, .min_atomic_batch_size = 4, .accumulation = false};
  const auto fixed = BoundsOf(options, 1000, /*adaptive_batch=*/false);
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_EQ(fixed->initial, 32);
  EXPECT_EQ(fixed->max_global, 32);
  EXPECT_EQ(fixed->max_atomic, 32);
  const auto adaptive = BoundsOf(options, 1000, /*adaptive_batch=*/true);
  ASSERT_TRUE(adaptive.ok()) << adaptive.status();
  EXPECT_EQ(adaptive->max_global, 512);
  EXPECT_EQ(adaptive->min_atomic, 4);
  EXPECT_EQ(adaptive->max_atomic, 512);
  EXPECT_FALSE(adaptive->accumulation);
}

TEST(BoundsOf, NoBatchGrowsBeyondTheDataSet) {
  const auto bounds = BoundsOf({.batch_size = 32, .max_batch_size = 512}, 100, true);
  ASSERT_TRUE(bounds.ok()) << bounds.status();
  EXPECT_EQ(bounds->max_global, 100);
}

TEST(BoundsOf, AShareLargerThanTheAtomicLimitIsAccumulated) {
  const auto bounds = BoundsOf({.batch_size = 24, .max_atomic_batch_size = 7}, 100, false);
  ASSERT_TRUE(bounds.ok()) << bounds.status();
  EXPECT_EQ(bounds->max_atomic, 7);
}

TEST(BoundsOf, NamesWhatIsWrongWithTheSizes) {
  EXPECT_THAT(ErrorOf({}, 0), HasSubstr("the data set has 0 samples"));
  EXPECT_THAT(ErrorOf({.batch_size = 0}), HasSubstr("batch_size is 0: want a positive number"));
  EXPECT_THAT(ErrorOf({.batch_size = 64}, 50),
              AllOf(HasSubstr("batch_size is 64"), HasSubstr("the data set, 50")));
  EXPECT_THAT(ErrorOf({.batch_size = 64, .max_batch_size = 63}),
              AllOf(HasSubstr("max_batch_size is 63"), HasSubstr("at least batch_size, 64")));
  EXPECT_THAT(ErrorOf({.max_batch_size = -1}), HasSubstr("max_batch_size is -1"));
  EXPECT_EQ(ErrorOf({.batch_size = 50}, 50), "");
}

TEST(BoundsOf, NamesWhatIsWrongWithTheAtomicLimits) {
  EXPECT_THAT(ErrorOf({.min_atomic_batch_size = 9, .max_atomic_batch_size = 8}),
              AllOf(HasSubstr("min_atomic_batch_size is 9"), HasSubstr("size, 8")));
  EXPECT_THAT(ErrorOf({.min_atomic_batch_size = -1}), HasSubstr("min_atomic_batch_size is -1"));
  EXPECT_THAT(ErrorOf({.max_atomic_batch_size = -8}), HasSubstr("max_atomic_batch_size is -8"));
  EXPECT_THAT(ErrorOf({.batch_size = 16, .max_batch_size = 64, .min_atomic_batch_size = 17}),
              AllOf(HasSubstr("min_atomic_batch_size is 17"), HasSubstr("batch_size, 16")));
  EXPECT_THAT(ErrorOf({.batch_size = 16, .max_atomic_batch_size = 15, .accumulation = false}),
              AllOf(HasSubstr("max_atomic_batch_size is 15"), HasSubstr("accumulation is off"),
                    HasSubstr("batch_size, 16")));
}

TEST(BoundsOf, NamesWhatIsWrongWithReadingAhead) {
  EXPECT_THAT(ErrorOf({.workers = -1}), HasSubstr("workers is -1: want 0 to 256"));
  EXPECT_THAT(ErrorOf({.workers = 257}), HasSubstr("workers is 257"));
  EXPECT_THAT(ErrorOf({.workers = 1, .prefetch = 0}), HasSubstr("prefetch is 0: want 1 to 64"));
  EXPECT_THAT(ErrorOf({.workers = 1, .prefetch = 65}), HasSubstr("prefetch is 65"));
  EXPECT_EQ(ErrorOf({.workers = 0, .prefetch = 0}), "");
  EXPECT_EQ(ErrorOf({.workers = 256, .prefetch = 64}), "");
}

}  // namespace
}  // namespace espalier
