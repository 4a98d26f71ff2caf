#include "allocator/simulator/step_times.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

// Four nodes with known sums, and a tetrahedron over (nodes, replicas, batch) beyond them.
StepTimes Measured() {
  const std::vector<RingMeasurement> rings = {
      {"12", 8, {1, 0.5}}, {"12", 16, {3, 0.5}}, {"21", 8, {2, 1}}, {"4", 8, {4, 1}}};
  const std::vector<ScaleMeasurement> scales = {
      {6, 6, 8, {10, 1}}, {10, 10, 8, {14, 1}}, {6, 14, 8, {18, 1}}, {6, 6, 24, {26, 3}}};
  // Corners 0 to 3 are (1, 4, 8), (2, 3, 8), (2, 3, 16) of the rings and then the scales.
  auto times = StepTimes::Make(rings, scales, {{3, 4, 5, 6}});
  EXPECT_TRUE(times.ok()) << times.status();
  return *std::move(times);
}

TEST(StepTimes, InterpolatesBetweenBatchesOfAMeasuredRing) {
  const auto time = Measured().At({1, 2}, 12);
  ASSERT_TRUE(time.ok()) << time.status();
  EXPECT_DOUBLE_EQ(time->step_s, 2);
  EXPECT_DOUBLE_EQ(time->sync_s, 0.5);
}

TEST(StepTimes, ReadsARingFromAnyOfItsNodes) {
  EXPECT_DOUBLE_EQ(Measured().At({2, 1}, 16)->step_s, 3);
}

TEST(StepTimes, InterpolatesWithinATetrahedronElsewhere) {
  // A quarter of the way from corner 3 along each edge: 10 + (4 + 8 + 16) / 4.
  const auto time = Measured().At({2, 2, 1, 1, 1, 1, 1}, 12);
  ASSERT_TRUE(time.ok()) << time.status();
  EXPECT_DOUBLE_EQ(time->step_s, 17);
  EXPECT_DOUBLE_EQ(time->sync_s, 1.5);
}

TEST(StepTimes, TakesTheFirstTetrahedronThatHoldsAPoint) {
  const std::vector<RingMeasurement> rings = {{"1", 8, {1, 0}}};
  std::vector<ScaleMeasurement> scales = {{6, 6, 8, {10, 1}},
                                          {10, 10, 8, {14, 1}},
                                          {6, 14, 8, {18, 1}},
                                          {6, 6, 24, {26, 3}},
                                          {6, 6, 25, {100, 3}}};
  const auto first = StepTimes::Make(rings, scales, {{1, 2, 3, 4}, {1, 2, 3, 5}});
  const auto second = StepTimes::Make(rings, scales, {{1, 2, 3, 5}, {1, 2, 3, 4}});
  const std::vector<int> ring = {1, 1, 1, 1, 1, 1};
  EXPECT_DOUBLE_EQ(first->At(ring, 16)->step_s, 18);
  EXPECT_GT(second->At(ring, 16)->step_s, 50);
}

TEST(StepTimes, NamesWhatLiesBeyondTheMeasurements) {
  const auto beyond = Measured().At({1, 2}, 40);
  EXPECT_EQ(beyond.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(beyond.status().message()),
              ::testing::HasSubstr("ring 12 with an atomic batch of 40"));
  EXPECT_FALSE(Measured().At({3}, 8).ok());
}

TEST(StepTimes, RefusesACornerThatIsNotThere) {
  const auto times = StepTimes::Make({{"1", 8, {1, 0}}}, {}, {{0, 1, 2, 3}});
  EXPECT_THAT(std::string(times.status().message()),
              ::testing::HasSubstr("names corner 1; there are 0 to 0"));
}

}  // namespace
}  // namespace espalier
