#include "tuner/core/promise/replay.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/core/promise/studies_of_curves.h"

namespace espalier {
namespace {

Time At(double seconds) { return TimeFromSeconds(1000 + seconds); }

// Trials side by side: each reports step s at second s.
class Past {
 public:
  explicit Past(const WholeCurves& whole) {
    for (const std::vector<double>& values : whole) {
      points_.emplace_back();
      std::int64_t step = 0;
      for (const double value : values) {
        ++step;
        points_.back().push_back({step, value, 0, At(static_cast<double>(step)), 0});
      }
    }
    for (const auto& points : points_) {
      trials_.push_back({points, At(0), points.back().at, true});
    }
  }

  std::vector<IntermediateValue>& points(std::size_t i) { return points_[i]; }
  PastTrial& trial(std::size_t i) { return trials_[i]; }
  std::vector<Prediction> Replay(int moments = kReplayMoments) const {
    return ReplayPromise(Direction::kMinimize, trials_, {1, 0}, moments);
  }

 private:
  std::vector<std::vector<IntermediateValue>> points_;
  std::vector<PastTrial> trials_;
};

const WholeCurves kThree = {{0.9, 0.5, 0.3, 0.2}, {0.9, 0.6, 0.5, 0.5}, {0.9, 0.8, 0.8, 0.8}};

TEST(ReplayPromise, TellsOfLiveTrialsAtEachMoment) {
  const std::vector<Prediction> all = Past(kThree).Replay();
  // Nine reports before the last moment, at which all have ended.
  ASSERT_EQ(all.size(), 27u);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].happened, i % 3 == 0);
  EXPECT_GT(all[24].probability, all[25].probability);
  EXPECT_EQ(Past(kThree).Replay(3).size(), 9u);
}

TEST(ReplayPromise, KnowsNothingOfLaterValues) {
  Past other(kThree);
  other.points(1)[3].value = 0.7;
  other.points(2)[3].value = 0.3;  // still not the best
  const std::vector<Prediction> a = Past(kThree).Replay();
  const std::vector<Prediction> b = other.Replay();
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].probability, b[i].probability) << i;
}

TEST(ReplayPromise, TrialsComeAndGo) {
  Past past(kThree);
  past.trial(2).created = At(2.5);
  for (IntermediateValue& point : past.points(2)) point.at = After(point.at, 2.5);
  past.trial(2).ended = At(5);  // pruned at its second value, the last it reported
  past.trial(2).complete = false;
  past.trial(2).points = past.trial(2).points.first(2);
  int told = 0;
  for (const Prediction& prediction : past.Replay()) {
    told += 1;
    EXPECT_GE(prediction.probability, 0);
  }
  // Moments 1, 1, 2, 2, 3, 3 with two trials, 3.5 with three, 4 and 4 with the third alone.
  EXPECT_EQ(told, 6 * 2 + 3 + 2 * 1);
}

TEST(ReplayPromise, NothingWithoutACompleteTrial) {
  Past past(kThree);
  for (std::size_t i = 0; i < 3; ++i) past.trial(i).complete = false;
  EXPECT_TRUE(past.Replay().empty());
  EXPECT_TRUE(ReplayPromise(Direction::kMinimize, {}, {1, 0}).empty());
}

TEST(ReplayPromise, IsCalibratedOnWholeStudies) {
  for (const CurveFamily& family : CurveFamilies()) {
    std::vector<Prediction> all;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const Past past(family.draw(seed, 12));
      const std::vector<Prediction> told = past.Replay(8);
      all.insert(all.end(), told.begin(), told.end());
    }
    const Reliability reliability = MeasureReliability(all);
    EXPECT_LT(reliability.expected_calibration_error, 0.05) << family.name;
    EXPECT_LT(reliability.brier, reliability.base_brier) << family.name;
  }
}

}  // namespace
}  // namespace espalier
