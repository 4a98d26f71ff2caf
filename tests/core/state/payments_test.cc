#include "tuner/core/state/payments.h"

#include <gtest/gtest.h>

#include "tuner/core/state/study_facts.h"

namespace espalier {
namespace {

constexpr NodeId kSpot(1);
constexpr NodeId kOwn(2);
constexpr double kHour = 3600;

Time At(double hours) { return TimeFromSeconds(1000 + hours * kHour); }

class PaymentsTest : public testing::Test {
 protected:
  PaymentsTest() {
    state_.Apply(NodeRegistered{kSpot, "pool-spot-1"});
    state_.Apply(NodeRegistered{kOwn, "own"});
    StudySpec spec;
    spec.name = "s";
    state_.Apply(StudyCreated{StudyId(1), spec, At(0)});
    state_.Apply(TrialCreated{TrialId(1), StudyId(1), 0, {}, At(0)});
  }

  void Terms(double hours, int slots, bool spot, double price) {
    state_.Apply(NodeTermsTold{kSpot,
                               {.since = At(hours),
                                .slots = slots,
                                .gpu_type = "T4",
                                .spot = spot,
                                .price_per_hour = price}});
  }
  void Hold(double hours, std::vector<Slot> slots) {
    state_.Apply(SlotsHeldChanged{TrialId(1), At(hours), std::move(slots)});
  }
  std::vector<Payment> Paid(double hours) {
    return PaymentsFor(state_, state_.trials.at(TrialId(1)), At(hours));
  }

  TunerState state_;
};

TEST_F(PaymentsTest, SlotsCostTheirShareOfTheirNode) {
  Terms(0, 4, true, 2);
  Hold(1, {{kSpot, 0}, {kSpot, 1}});
  Hold(2, {{kSpot, 0}, {kOwn, 0}});
  Hold(4, {});
  const std::vector<Payment> paid = Paid(9);
  ASSERT_EQ(paid.size(), 1u) << "what the other node costs, nobody has told";
  EXPECT_EQ(paid[0].node_template, "spot");
  EXPECT_EQ(paid[0].gpu_type, "T4");
  EXPECT_TRUE(paid[0].spot);
  EXPECT_DOUBLE_EQ(paid[0].slot_seconds, 4 * kHour);
  EXPECT_DOUBLE_EQ(paid[0].node_seconds, kHour);
  EXPECT_DOUBLE_EQ(paid[0].cost, 2);
  EXPECT_DOUBLE_EQ(SpentOn(state_, state_.studies.at(StudyId(1)), At(9)), 2);
}

TEST_F(PaymentsTest, APriceCountsFromWhenItWasTold) {
  Terms(1, 1, true, 1);
  Hold(0, {{kSpot, 0}});
  Terms(2, 1, false, 3);
  const std::vector<Payment> paid = Paid(4);
  ASSERT_EQ(paid.size(), 2u);
  EXPECT_FALSE(paid[0].spot);
  EXPECT_DOUBLE_EQ(paid[0].cost, 6) << "a span that lasts counts to now";
  EXPECT_TRUE(paid[1].spot);
  EXPECT_DOUBLE_EQ(paid[1].cost, 2) << "the first terms count for what was before them";
}

TEST_F(PaymentsTest, AStudysOwnPriceOfASlotStandsOverThoseOfNodes) {
  Terms(0, 1, true, 1);
  Hold(0, {{kSpot, 0}});
  Hold(1, {});
  Study study = state_.studies.at(StudyId(1));
  study.spec.slot_price_per_hour = 5;
  EXPECT_DOUBLE_EQ(SpentOn(state_, study, At(2)), 5);
  EXPECT_EQ(PaymentsFor(state_, study, At(2)).size(), 1u);
}

TEST_F(PaymentsTest, WithoutPricesThereIsNothingToTell) {
  Hold(0, {{kOwn, 0}});
  EXPECT_TRUE(Paid(1).empty());
  EXPECT_TRUE(PaymentsFor(state_, state_.studies.at(StudyId(1)), At(1)).empty());
  EXPECT_EQ(SpentOn(state_, state_.studies.at(StudyId(1)), At(1)), 0);
}

}  // namespace
}  // namespace espalier
