#include "tuner/web/view/lane_columns.h"

#include <gtest/gtest.h>

namespace espalier::view {
namespace {

Time At(double seconds) { return TimeFromSeconds(seconds); }

LaneSpans::Lane Span(int slot, double from, double to, std::int64_t trial = 1) {
  return {.slot = {NodeId(1), slot},
          .from = At(from),
          .to = to > 0 ? At(to) : Time{},
          .trial = TrialId(trial),
          .number = trial - 1,
          .study = StudyId(1)};
}

// A hundred columns of a second each.
const TimeColumns kColumns(At(1000), At(1100), 100);

TEST(LaneSpans, ThoseUnderAPixelAreOneWithACount) {
  LaneSpans spans(kColumns);
  for (int i = 0; i < 5; ++i) {
    spans.Add(Span(0, 1010 + 0.2 * i, 1010.1 + 0.2 * i, i + 1), At(1100));
  }
  spans.Add(Span(1, 1010.5, 1010.6), At(1100));  // of another slot
  spans.Add(Span(0, 1020, 1030, 9), At(1100));
  spans.Add(Span(0, 1099.9, 0, 10), At(1100));  // goes on, and is seen however short it is
  const auto all = spans.Sorted();
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].count, 5);
  EXPECT_EQ(all[0].from, At(1010));
  EXPECT_EQ(all[0].to, At(1010.9));
  EXPECT_EQ(all[1].trial, TrialId(9));
  EXPECT_EQ(all[1].count, 1);
  EXPECT_EQ(all[2].to, Time{});
  EXPECT_EQ(all[3].slot.index, 1);
}

TEST(LaneSpans, LeavesOutWhatIsNotInTheWindow) {
  LaneSpans spans(kColumns);
  spans.Add(Span(0, 900, 999), At(1100));
  spans.Add(Span(0, 1101, 1200), At(1200));
  EXPECT_TRUE(spans.Sorted().empty());
  spans.Add(Span(0, 900, 1001), At(1100));
  spans.Add(Span(0, 1099, 1200), At(1200));
  EXPECT_EQ(spans.Sorted().size(), 2U);
}

TEST(SlotUse, IsTheMeanOfEachColumn) {
  SlotUse use(TimeColumns(At(1000), At(1004), 4));
  use.Add(At(1000), At(1004));
  use.Add(At(1001.5), At(1003));
  use.Add(At(900), At(1000.25));
  use.Add(At(1003.75), At(2000));
  use.Add(At(1003.2), At(1003.3));
  const std::vector<double> mean = use.Mean();
  ASSERT_EQ(mean.size(), 4U);
  EXPECT_NEAR(mean[0], 1.25, 1e-6);
  EXPECT_NEAR(mean[1], 1.5, 1e-6);
  EXPECT_NEAR(mean[2], 2, 1e-6);
  EXPECT_NEAR(mean[3], 1.35, 1e-6);
}

}  // namespace
}  // namespace espalier::view
