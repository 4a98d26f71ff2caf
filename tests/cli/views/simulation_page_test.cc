#include "tuner/cli/views/simulation_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tuner/cli/report/page.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int> SlotsOf(const v1::SlotSpan& span) {
  std::vector<int> slots;
  for (const v1::Slot& slot : span.slots()) slots.push_back(slot.index());
  return slots;
}

Timeline Small() {
  Timeline timeline;
  timeline.slots = 4;
  timeline.rows = {{"cifar", 0, 30, "complete", 1, {{0, 10, 2, 1}, {10, 30, 3, 1}}},
                   {"bert", 0, 20, "complete", 0, {{0, 10, 2, 1}, {10, 20, 1, 1}}}};
  timeline.decisions = {{0, "cifar", 0, 2, "is first"}, {10, "bert", 2, 1, "gives one"}};
  return timeline;
}

TEST(SimulationPage, RowsKeepTheirSlotsAndNeverShareOne) {
  const v1::StudyDetails details = DetailsOf("jobs", Small());
  ASSERT_EQ(details.trials_size(), 2);
  EXPECT_THAT(SlotsOf(details.trials(0).spans(0)), ElementsAre(0, 1));
  EXPECT_THAT(SlotsOf(details.trials(1).spans(0)), ElementsAre(2, 3));
  EXPECT_THAT(SlotsOf(details.trials(1).spans(1)), ElementsAre(2));
  EXPECT_THAT(SlotsOf(details.trials(0).spans(1)), ElementsAre(0, 1, 3));
}

TEST(SimulationPage, DecisionsNameTheirRow) {
  const v1::StudyDetails details = DetailsOf("jobs", Small());
  ASSERT_EQ(details.decisions_size(), 2);
  EXPECT_EQ(details.decisions(1).trial_number(), 1);
  EXPECT_EQ(details.decisions(1).kind(), "shrink");
  const absl::StatusOr<std::string> page = ReportPage(details, details.study().ended_at());
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page, HasSubstr("2 decisions"));
}

TEST(SimulationPage, OnePolicyKeepsTheFileName) {
  EXPECT_EQ(SimulationPagePath("out/page.html", "fixed", 1), "out/page.html");
  EXPECT_EQ(SimulationPagePath("out/page.html", "fixed", 2), "out/page-fixed.html");
}

}  // namespace
}  // namespace espalier
