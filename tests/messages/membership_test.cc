#include "tuner/messages/membership.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(Membership, RanksMembersInOrderAndCountsTheirNodes) {
  const Membership group{3,
                         {{ReplicaId(7), NodeId(2), "a:1"},
                          {ReplicaId(5), NodeId(1), "b:1"},
                          {ReplicaId(9), NodeId(2), "a:2"}},
                         false};
  EXPECT_EQ(group.RankOf(ReplicaId(5)), 1);
  EXPECT_EQ(group.RankOf(ReplicaId(9)), 2);
  EXPECT_EQ(group.RankOf(ReplicaId(6)), std::nullopt);
  EXPECT_EQ(group.Nodes(), 2);
  EXPECT_EQ(Membership{}.Nodes(), 0);
}

}  // namespace
}  // namespace espalier
