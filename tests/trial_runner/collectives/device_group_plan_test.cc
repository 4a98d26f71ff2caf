#include "trial_runner/collectives/device_group_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

using Kind = DeviceGroupPlan::Kind;
using ::testing::ElementsAre;

DeviceOffer NewMember(std::int64_t gpu) { return {.usable = true, .gpu = {7, gpu}}; }

// One that was `rank` in a communicator of `size`.
DeviceOffer OldMember(std::int64_t rank, std::int64_t size, std::int64_t generation = 3) {
  DeviceOffer offer = NewMember(rank);
  offer.generation = generation;
  offer.rank = rank;
  offer.size = size;
  return offer;
}

TEST(DeviceGroupPlan, NewMembersFormACommunicator) {
  EXPECT_EQ(PlanDeviceGroup({NewMember(1), NewMember(2)}).kind, Kind::kInit);
  EXPECT_EQ(PlanDeviceGroup({OldMember(0, 2), OldMember(1, 2), NewMember(5)}).kind, Kind::kInit);
}

TEST(DeviceGroupPlan, TwoOnOneGpuGoThroughTheHost) {
  EXPECT_EQ(PlanDeviceGroup({NewMember(1), NewMember(2), NewMember(1)}).kind, Kind::kStaged);
}

TEST(DeviceGroupPlan, OneMemberWithoutUsableGpuTakesAllThroughTheHost) {
  EXPECT_EQ(PlanDeviceGroup({NewMember(1), DeviceOffer{}}).kind, Kind::kStaged);
}

TEST(DeviceGroupPlan, SameMembersKeepTheirCommunicator) {
  EXPECT_EQ(PlanDeviceGroup({OldMember(0, 2), OldMember(1, 2)}).kind, Kind::kKeep);
}

TEST(DeviceGroupPlan, BrokenCommunicatorOfTheSameMembersIsReplaced) {
  std::vector<DeviceOffer> offers = {OldMember(0, 2), OldMember(1, 2)};
  offers[1].broken = true;
  EXPECT_EQ(PlanDeviceGroup(offers).kind, Kind::kInit);
}

TEST(DeviceGroupPlan, PartOfTheOldGroupShrinksItsCommunicator) {
  std::vector<DeviceOffer> offers = {OldMember(0, 5), OldMember(2, 5), OldMember(3, 5)};
  DeviceGroupPlan plan = PlanDeviceGroup(offers);
  EXPECT_EQ(plan.kind, Kind::kShrink);
  EXPECT_THAT(plan.excluded, ElementsAre(1, 4));
  EXPECT_FALSE(plan.broken);
  offers[2].broken = true;  // one had operations under way: all must know
  plan = PlanDeviceGroup(offers);
  EXPECT_EQ(plan.kind, Kind::kShrink);
  EXPECT_TRUE(plan.broken);
}

TEST(DeviceGroupPlan, OtherOrderOrOtherCommunicatorCannotBeShrunk) {
  EXPECT_EQ(PlanDeviceGroup({OldMember(2, 3), OldMember(0, 3)}).kind, Kind::kInit);
  EXPECT_EQ(PlanDeviceGroup({OldMember(0, 3, 4), OldMember(2, 3, 5)}).kind, Kind::kInit);
}

TEST(DeviceOffer, SurvivesTheWayToTheOthers) {
  DeviceOffer offer = OldMember(2, 5);
  offer.broken = true;
  const auto told = DeviceOffer::FromNumbers(offer.ToNumbers());
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->ToNumbers(), offer.ToNumbers());
  EXPECT_EQ(told->gpu[1], 2);
  EXPECT_TRUE(told->usable && told->broken);
  EXPECT_FALSE(DeviceOffer::FromNumbers({1, 2}).ok());
}

}  // namespace
}  // namespace espalier
