#include "allocator/goodput/throughput_model.h"

#include <cmath>

#include "gtest/gtest.h"

namespace espalier {
namespace {

constexpr ThroughputParams kModelParams{.alpha_c = 0.1,
                                        .beta_c = 0.01,
                                        .alpha_n = 0.5,
                                        .beta_n = 0.05,
                                        .alpha_r = 0.2,
                                        .beta_r = 0.02,
                                        .gamma = 2};

TEST(ThroughputModel, GradTimeIsLinearInTheBatch) {
  EXPECT_DOUBLE_EQ(GradTime(kModelParams, 10), 0.2);
}

TEST(ThroughputModel, SyncTimeDependsOnWhereReplicasAre) {
  EXPECT_LT(SyncTime(kModelParams, 1, 1), 1e-7);
  EXPECT_NEAR(SyncTime(kModelParams, 1, 2), 0.2, 1e-6);
  EXPECT_NEAR(SyncTime(kModelParams, 1, 4), 0.24, 1e-6);
  EXPECT_NEAR(SyncTime(kModelParams, 2, 2), 0.5, 1e-6);
  EXPECT_NEAR(SyncTime(kModelParams, 2, 5), 0.65, 1e-6);
}

TEST(ThroughputModel, GammaOverlapsTheAllReduce) {
  ThroughputParams p = kModelParams;
  EXPECT_NEAR(OptimTime(p, 1, 2, 20), std::hypot(0.3, 0.2), 1e-6);
  p.gamma = 1;
  EXPECT_NEAR(OptimTime(p, 1, 2, 20), 0.5, 1e-6);
  p.gamma = 10;
  EXPECT_NEAR(OptimTime(p, 1, 2, 20), 0.3, 1e-3);
}

TEST(ThroughputModel, AccumulationAddsMicrobatchesWithoutAllReduce) {
  EXPECT_NEAR(IterationTime(kModelParams, 1, 2, 20, 3), 3 * 0.3 + std::hypot(0.3, 0.2), 1e-6);
  EXPECT_NEAR(Throughput(kModelParams, 1, 2, 20, 3), 160 / (0.9 + std::hypot(0.3, 0.2)), 1e-3);
}

TEST(ThroughputModel, StaysFiniteForTinyAndHugeTimes) {
  const ThroughputParams p{1e-8, 1e-8, 1e6, 1e6, 1e6, 1e6, 10};
  EXPECT_TRUE(std::isfinite(OptimTime(p, 2, 64, 1)));
  EXPECT_GT(OptimTime(p, 2, 64, 1), 0);
}

}  // namespace
}  // namespace espalier
