#include "allocator/goodput/goodput.h"

#include <cmath>

#include "gtest/gtest.h"

namespace espalier {
namespace {

constexpr ThroughputParams kParams{.alpha_c = 0.05,
                                   .beta_c = 0.001,
                                   .alpha_n = 0.15,
                                   .beta_n = 0.007,
                                   .alpha_r = 0.03,
                                   .beta_r = 0.002,
                                   .gamma = 1.8};
constexpr BatchBounds kBounds{
    .initial = 128, .max_global = 4096, .min_atomic = 16, .max_atomic = 256, .accumulation = true};

TEST(Goodput, EfficiencyFollowsTheNoiseScale) {
  const GoodputModel model(kParams, {.sqr = 1, .var = 3}, kBounds);
  const double phi = 128 * 3.0;
  EXPECT_DOUBLE_EQ(model.Efficiency(128), 1);
  EXPECT_NEAR(model.Efficiency(512), (phi + 128) / (phi + 512), 1e-12);
  EXPECT_DOUBLE_EQ(model.Efficiency(64), 1);
}

TEST(Goodput, WithoutNoiseMeasuredEveryBatchIsAsGood) {
  const GoodputModel model(kParams, {}, kBounds);
  EXPECT_DOUBLE_EQ(model.Efficiency(4096), 1);
}

TEST(Goodput, WithoutGradientVarianceLargerBatchesAreWasted) {
  const GoodputModel model(kParams, {.sqr = 1, .var = 0}, kBounds);
  EXPECT_DOUBLE_EQ(model.Efficiency(256), 0.5);
  EXPECT_EQ(model.Optimize(1, 1).global(), 128);
}

TEST(Goodput, IsNothingBelowTheInitialBatch) {
  const GoodputModel model(kParams, {}, kBounds);
  EXPECT_EQ(model.Goodput(1, 2, 63, 0), 0);
  EXPECT_GT(model.Goodput(1, 2, 64, 0), 0);
}

TEST(Goodput, OptimizeBeatsEveryAllowedBatch) {
  for (const double var : {0.1, 1.0, 10.0, 100.0}) {
    const GoodputModel model(kParams, {.sqr = 1, .var = var}, kBounds);
    for (const int replicas : {2, 3, 8}) {
      const BatchChoice choice = model.Optimize(1, replicas);
      EXPECT_GE(choice.global(), 128);
      EXPECT_LE(choice.global(), 4096 + replicas * (choice.accumulation_steps + 1));
      EXPECT_LE(choice.atomic_batch_size, 256);
      EXPECT_DOUBLE_EQ(choice.goodput, model.Goodput(1, replicas, choice.atomic_batch_size,
                                                     choice.accumulation_steps));
      for (std::int64_t s = 0; s < 4; ++s) {
        for (std::int64_t m = 16; m <= 256; m += 4) {
          if (replicas * m * (s + 1) > 4096) continue;
          EXPECT_LE(model.Goodput(1, replicas, m, s), choice.goodput * 1.02);
        }
      }
    }
  }
}

TEST(Goodput, OptimizeGrowsTheBatchWithTheNoise) {
  const auto batch = [](double var) {
    return GoodputModel(kParams, {.sqr = 1, .var = var}, kBounds).Optimize(1, 4).global();
  };
  EXPECT_LT(batch(0.1), batch(10));
  EXPECT_LT(batch(10), batch(1000));
}

TEST(Goodput, LoneReplicaAccumulatesOnceItsBatchChanges) {
  const GoodputModel model(kParams, {.sqr = 1, .var = 1000}, kBounds);
  const BatchChoice choice = model.Optimize(1, 1);
  EXPECT_GT(choice.global(), 128);
  EXPECT_GE(choice.accumulation_steps, 1);
}

TEST(Goodput, OptimizeSaysWhereNoBatchFits) {
  BatchBounds bounds = kBounds;
  bounds.accumulation = false;
  bounds.max_atomic = 32;
  const GoodputModel model(kParams, {}, bounds);
  EXPECT_EQ(model.Optimize(1, 2).goodput, 0);
  EXPECT_GT(model.Optimize(1, 4).goodput, 0);
  bounds.max_global = 128;
  EXPECT_EQ(GoodputModel(kParams, {}, bounds).Optimize(1, 9).goodput, 0);
}

TEST(Goodput, RoundingUpToTheLeastMicrobatchStaysBelowTheMost) {
  // 130 samples on two replicas are 65 each: two microbatches, if 33 were not below the least one.
  const BatchBounds bounds{.initial = 64, .max_global = 130, .min_atomic = 50, .max_atomic = 64};
  const ThroughputParams slow_network{.alpha_c = 0.001,
                                      .beta_c = 0.0001,
                                      .alpha_n = 0.05,
                                      .beta_n = 0,
                                      .alpha_r = 0.05,
                                      .beta_r = 0,
                                      .gamma = 1};
  const GoodputModel model(slow_network, {.sqr = 1, .var = 1e6}, bounds);
  const BatchChoice choice = model.Optimize(1, 2);
  EXPECT_EQ(choice.global(), 128);
  EXPECT_EQ(choice.atomic_batch_size, 64);
  EXPECT_LE(model.NearlyOptimalGoodput(1, 2), choice.goodput);
}

TEST(Goodput, FixedBatchIsSplitAndAccumulated) {
  const GoodputModel model(kParams, {.sqr = 1, .var = 1}, kBounds);
  const BatchChoice one = model.AtFixedGlobalBatch(1, 1, 1024);
  EXPECT_EQ(one.atomic_batch_size, 256);
  EXPECT_EQ(one.accumulation_steps, 3);
  EXPECT_EQ(one.global(), 1024);
  const BatchChoice three = model.AtFixedGlobalBatch(1, 3, 1024);
  EXPECT_EQ(three.atomic_batch_size, 171);
  EXPECT_EQ(three.accumulation_steps, 1);
  EXPECT_DOUBLE_EQ(three.goodput, 1024 / IterationTime(kParams, 1, 3, 171, 1));
  EXPECT_GT(three.goodput, one.goodput);
}

TEST(Goodput, FixedBatchNeedsASampleForEachReplica) {
  BatchBounds bounds = kBounds;
  bounds.min_atomic = 1;
  const GoodputModel model(kParams, {}, bounds);
  EXPECT_GT(model.AtFixedGlobalBatch(1, 4, 4).goodput, 0);
  EXPECT_EQ(model.AtFixedGlobalBatch(1, 5, 4).goodput, 0);
  EXPECT_EQ(GoodputModel(kParams, {}, kBounds).AtFixedGlobalBatch(1, 9, 128).goodput, 0);
}

TEST(Goodput, FixedBatchWithoutAccumulationMustFit) {
  BatchBounds bounds = kBounds;
  bounds.accumulation = false;
  const GoodputModel model(kParams, {}, bounds);
  EXPECT_EQ(model.AtFixedGlobalBatch(1, 1, 512).goodput, 0);
  EXPECT_GT(model.AtFixedGlobalBatch(1, 2, 512).goodput, 0);
}

TEST(Goodput, ALoneReplicaSplitsWhatIsAboveItsLimit) {
  BatchBounds bounds = kBounds;
  bounds.max_unsplit = 64;
  const GoodputModel model(kParams, {}, bounds);
  const BatchChoice one = model.AtFixedGlobalBatch(1, 1, 128);
  EXPECT_EQ(one.atomic_batch_size, 64);
  EXPECT_EQ(one.accumulation_steps, 1);
  EXPECT_DOUBLE_EQ(one.goodput, 128 / IterationTime(kParams, 1, 1, 64, 1));
  EXPECT_EQ(model.AtFixedGlobalBatch(1, 1, 64).accumulation_steps, 0);
  EXPECT_EQ(model.AtFixedGlobalBatch(1, 2, 128).accumulation_steps, 0);
  EXPECT_GE(model.Optimize(1, 1).accumulation_steps, 1) << "the initial batch too";
  EXPECT_EQ(GoodputModel(kParams, {}, kBounds).AtFixedGlobalBatch(1, 1, 128).accumulation_steps, 0);

  bounds.min_atomic = 65;
  EXPECT_EQ(GoodputModel(kParams, {}, bounds).AtFixedGlobalBatch(1, 1, 128).accumulation_steps, 0);
  bounds = kBounds;
  bounds.max_unsplit = 64;
  bounds.accumulation = false;
  EXPECT_EQ(GoodputModel(kParams, {}, bounds).AtFixedGlobalBatch(1, 1, 128).accumulation_steps, 0);
}

TEST(BatchBounds, AFixedBatchIsSplitAloneIntoHalvesThatMayBe) {
  BatchBounds bounds = {
      .initial = 64, .max_global = 64, .min_atomic = 20, .max_atomic = 64, .max_unsplit = 32};
  EXPECT_TRUE(bounds.SplitsFixedAlone(64));
  EXPECT_TRUE(bounds.SplitsFixedAlone(39)) << "into 20 and 19: the larger half counts";
  EXPECT_FALSE(bounds.SplitsFixedAlone(38)) << "its halves are too small";
  EXPECT_FALSE(bounds.SplitsFixedAlone(32)) << "not above what stays whole";
  bounds.max_unsplit = 0;
  EXPECT_FALSE(bounds.SplitsFixedAlone(128)) << "this trial does not tell what stays whole";
  EXPECT_TRUE(bounds.SplitsAlone(128)) << "where a model chooses the batch it does split";
  bounds.max_unsplit = 32;
  bounds.accumulation = false;
  EXPECT_FALSE(bounds.SplitsFixedAlone(64));
}

TEST(GoodputModel, FindsNearlyTheBestBatchWithFewerLooks) {
  for (const std::int64_t max_atomic : {64, 256, 1024}) {
    for (const double noise : {0.5, 5.0, 50.0}) {
      const GoodputModel model({0.05, 0.001, 0.08, 0.005, 0.02, 0.001, 1.8}, {1.0, noise},
                               {.initial = 128, .max_global = 8192, .max_atomic = max_atomic});
      for (const int replicas : {1, 2, 3, 4, 8, 16, 32}) {
        const double best = model.Optimize(2, replicas).goodput;
        const double nearly = model.NearlyOptimalGoodput(2, replicas);
        EXPECT_LE(nearly, best * (1 + 1e-9));
        EXPECT_GE(nearly, best * 0.98);
      }
    }
  }
}

}  // namespace
}  // namespace espalier
