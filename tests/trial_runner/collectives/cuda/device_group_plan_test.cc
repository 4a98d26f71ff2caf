#include "trial_runner/collectives/cuda/device_group_plan.h"

#include "gtest/gtest.h"

namespace espalier {
namespace {

using Kind = DeviceGroupPlan::Kind;

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

TEST(DeviceGroupPlan, MembersThatHaveChangedFormANewCommunicator) {
  EXPECT_EQ(PlanDeviceGroup({OldMember(0, 3), OldMember(2, 3)}).kind, Kind::kInit) << "one left";
  EXPECT_EQ(PlanDeviceGroup({OldMember(0, 3), OldMember(1, 3)}).kind, Kind::kInit) << "the last";
  EXPECT_EQ(PlanDeviceGroup({OldMember(1, 2), OldMember(0, 2)}).kind, Kind::kInit) << "places";
  EXPECT_EQ(PlanDeviceGroup({OldMember(0, 2, 4), OldMember(1, 2, 5)}).kind, Kind::kInit);
  EXPECT_EQ(PlanDeviceGroup({OldMember(0, 2), NewMember(1)}).kind, Kind::kInit)
      << "one had to give it up";
}

TEST(DeviceOffer, SurvivesTheWayToTheOthers) {
  DeviceOffer offer = OldMember(2, 5);
  const auto told = DeviceOffer::FromNumbers(offer.ToNumbers());
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->ToNumbers(), offer.ToNumbers());
  EXPECT_EQ(told->gpu[1], 2);
  EXPECT_TRUE(told->usable);
  EXPECT_FALSE(DeviceOffer::FromNumbers({1, 2}).ok());
}

}  // namespace
}  // namespace espalier
