#include "tuner/api/client_slots.h"

#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/api/direct_tuner.h"
#include "tests/base/no_room.h"
#include "tuner/api/operations.h"

namespace espalier {
namespace {

using testing::HasSubstr;

// A node of two slots on two GPUs, and a study whose trials its clients run.
class ClientSlotsOperations : public testing::Test {
 protected:
  void SetUp() override {
    StudySpec spec;
    spec.name = "clients";
    spec.kind = StudyKind::kByClients;
    study_ = tuner_.Post(CreateStudy{spec, false}).study();
    tuner_.gpus["oak"] = {{"H200", "GPU-0", 100}, {"H200", "GPU-1", 100}};
    ASSERT_TRUE(tuner_.Post(AgentHello{"oak", 3, {}}).status.ok());
  }

  TrialId NewTrial() { return tuner_.Post(CreateTrial{study_, nullptr}).trial(); }

  // None: no answer yet.
  using Answer = std::shared_ptr<std::optional<absl::StatusOr<v1::HeldSlots>>>;
  Answer Acquire(TrialId trial, int slots, double wait_s = 0) {
    v1::AcquireSlotsRequest request;
    request.set_trial_id(trial.value);
    request.set_slots(slots);
    request.set_wait_s(wait_s);
    Answer answer = std::make_shared<std::optional<absl::StatusOr<v1::HeldSlots>>>();
    api::AcquireSlots(tuner_, request, [answer](const auto& held) { *answer = held; });
    return answer;
  }

  DirectTuner tuner_;
  StudyId study_;
};

TEST_F(ClientSlotsOperations, SlotsAreNamedWithTheGpuThatTheyAreOn) {
  const Answer answer = Acquire(NewTrial(), 3);
  ASSERT_TRUE(answer->has_value() && (*answer)->ok());
  const v1::HeldSlots& held = ***answer;
  ASSERT_EQ(held.slots_size(), 3);
  EXPECT_EQ(held.slots(0).node(), "oak");
  EXPECT_EQ(held.slots(1).gpu().uuid(), "GPU-1");
  EXPECT_EQ(held.slots(2).gpu().uuid(), "GPU-0") << "round again, as agents do";
  EXPECT_EQ(held.lease_s(), 60);
  const v1::Pool pool = *api::GetPool(tuner_, {});
  EXPECT_EQ(pool.slots_held(), 3);
  ASSERT_EQ(pool.nodes(0).holders_size(), 3);
  EXPECT_EQ(pool.nodes(0).holders(0).replica_id(), 0);
  EXPECT_EQ(pool.nodes(0).holders(0).study(), "clients");
}

TEST_F(ClientSlotsOperations, WhatThrowsIsTheAnswerOfThatClientAlone) {
  constexpr std::size_t kMany = 1 << 20;
  tuner_.gpus["oak"][1].name = std::string(kMany, 'x');
  const Answer well = Acquire(NewTrial(), 1);
  const TrialId trial = NewTrial();
  {
    const NoRoomFor no_room(kMany);
    const Answer answer = Acquire(trial, 1);
    ASSERT_TRUE(answer->has_value());
    EXPECT_EQ((*answer)->status(), absl::InternalError("the slots of a client: std::bad_alloc"));
  }
  EXPECT_TRUE((*well)->ok());
  const Answer again = Acquire(trial, 1);
  ASSERT_TRUE(again->has_value() && (*again)->ok()) << (*again)->status();
  EXPECT_EQ((**again)->slots(0).gpu().name().size(), kMany);
}

TEST_F(ClientSlotsOperations, TheAnswerComesWithTheSlots) {
  const TrialId first = NewTrial();
  const TrialId second = NewTrial();
  Acquire(first, 3);
  const Answer answer = Acquire(second, 2, 30);
  EXPECT_FALSE(answer->has_value());
  v1::TrialSlotsRequest back;
  back.set_trial_id(first.value);
  std::optional<absl::Status> released;
  api::ReleaseSlots(tuner_, back, [&released](const absl::Status& status) { released = status; });
  EXPECT_EQ(released, absl::OkStatus());
  ASSERT_TRUE(answer->has_value() && (*answer)->ok());
  EXPECT_EQ((**answer)->slots_size(), 2);
  v1::TrialSlotsRequest renew;
  renew.set_trial_id(second.value);
  std::optional<absl::StatusOr<v1::HeldSlots>> renewed;
  api::RenewSlots(tuner_, renew, [&renewed](const auto& held) { renewed = held; });
  ASSERT_TRUE(renewed && renewed->ok());
  EXPECT_EQ((*renewed)->slots_size(), 2);
}

TEST_F(ClientSlotsOperations, WhatIsWaitedForIsSaid) {
  Acquire(NewTrial(), 3);
  const Answer answer = Acquire(NewTrial(), 1);
  ASSERT_TRUE(answer->has_value() && (*answer)->ok());
  EXPECT_EQ((**answer)->slots_size(), 0);
  EXPECT_THAT((**answer)->waits_for(), HasSubstr("hold 3 of the 3 slots"));
  EXPECT_TRUE(absl::IsNotFound((*Acquire(TrialId(77), 1))->status()));
}

}  // namespace
}  // namespace espalier
