#include <gmock/gmock.h>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

KeptToken Named(const std::string& id, const std::string& name) {
  return {id, "hash of " + id, "view", name, Time{}};
}

TEST_F(CoreTest, KeepsTokensByTheirHash) {
  ASSERT_TRUE(Step(AddToken{Named("1", "ada")}).status.ok());
  const KeptToken& kept = core_.state().tokens.at("1");
  EXPECT_EQ(kept.hash, "hash of 1");
  EXPECT_EQ(kept.created, now_);
  EXPECT_TRUE(absl::IsAlreadyExists(Step(AddToken{Named("2", "ada")}).status));
  EXPECT_TRUE(absl::IsAlreadyExists(Step(AddToken{Named("1", "bob")}).status));
  EXPECT_TRUE(absl::IsInvalidArgument(Step(AddToken{Named("3", "")}).status));
  EXPECT_TRUE(absl::IsInvalidArgument(Step(AddToken{Named("3", "a b")}).status));
}

TEST_F(CoreTest, ATokenIsNotNamedAsTheIdOfAnother) {
  ASSERT_TRUE(Step(AddToken{Named("0a1b2c3d", "ada")}).status.ok());
  const absl::Status refused = Step(AddToken{Named("4", "0a1b2c3d")}).status;
  EXPECT_TRUE(absl::IsAlreadyExists(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is the id of the token ada"));
}

TEST_F(CoreTest, ARemovedTokenIsRememberedAndItsNameFree) {
  ASSERT_TRUE(Step(AddToken{Named("1", "ada")}).status.ok());
  ASSERT_TRUE(Step(RemoveToken{"ada"}).status.ok());
  EXPECT_EQ(core_.state().tokens.at("1").removed, now_);
  const absl::Status twice = Step(RemoveToken{"ada"}).status;
  EXPECT_TRUE(absl::IsNotFound(twice));
  EXPECT_THAT(std::string(twice.message()), HasSubstr("\"ada\""));
  ASSERT_TRUE(Step(AddToken{Named("2", "ada")}).status.ok());
  ASSERT_TRUE(Step(RemoveToken{"2"}).status.ok());
}

TEST_F(CoreTest, AnExpiredTokenFreesItsName) {
  KeptToken brief = Named("1", "ada");
  brief.expires = After(now_, 60);
  ASSERT_TRUE(Step(AddToken{brief}).status.ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Step(AddToken{Named("2", "ada")}).status));
  Wait(61);
  EXPECT_TRUE(Step(AddToken{Named("2", "ada")}).status.ok());
  brief.id = "3";
  brief.name = "late";
  EXPECT_TRUE(absl::IsInvalidArgument(Step(AddToken{brief}).status));
}

// An agent speaks only for replicas it holds.
TEST_F(CoreTest, WhatAnotherNodesAgentSaysOfAReplicaChangesNothing) {
  Join(1);
  const NodeId other = Join("other", 1);
  ASSERT_TRUE(Step(CreateStudy{Spec(1)}).status.ok());
  ReplicaId replica;
  NodeId holder;
  const auto find = [&](ReplicaId wanted) {
    bool found = false;
    for (const NodeView& node : core_.Nodes()) {
      for (const ReplicaView& view : node.replicas) {
        if (wanted && view.replica != wanted) continue;
        found = true;
        replica = view.replica;
        holder = node.id;
      }
    }
    return found;
  };
  ASSERT_TRUE(find(ReplicaId()));
  const ReplicaId held = replica;
  const NodeId stranger = holder == other ? node_ : other;
  const NodeId owner = holder;
  Step(ReplicaExited{held, 1, 0, "", "", CheckpointFailure::kNone, stranger});
  EXPECT_TRUE(find(held));
  Step(FromReplica{held, ReplicaFinished{}, stranger});
  EXPECT_EQ(core_.state().trials.begin()->second.state, TrialState::kRunning);
  Step(ReplicaExited{held, 1, 0, "", "", CheckpointFailure::kNone, owner});
  EXPECT_FALSE(find(held));
}

}  // namespace
}  // namespace espalier
