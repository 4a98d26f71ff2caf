#include "tuner/core/pool/contacts.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

using Ids = std::vector<ReplicaId>;

const ReplicaId kA(1), kB(2), kC(3), kD(4);

NodeFault Fault(std::int64_t from, std::int64_t to) {
  return {NodeId(from), NodeId(to), "10.0.0.2:4711", Contact::kRefused, "Connection refused",
          {},           {}};
}

TEST(WhoGoesOn, AJoinerGivesWayWhoeverSaysSo) {
  EXPECT_EQ(WhoGoesOn({{kA, 3}, {kB, 0}}, {{kA, kB}}), Ids{kA});
  EXPECT_EQ(WhoGoesOn({{kA, 0}, {kB, 3}}, {{kA, kB}}), Ids{kB}) << "whatever its rank";
  EXPECT_EQ(WhoGoesOn({{kA, 3}, {kB, 0}, {kC, 0}, {kD, 0}}, {{kA, kB}, {kA, kC}, {kA, kD}}),
            Ids{kA})
      << "however many joiners reach one another";
}

TEST(WhoGoesOn, WhoAllReachGoesOnWithThem) {
  EXPECT_EQ(WhoGoesOn({{kA, 3}, {kB, 3}, {kC, 0}, {kD, 0}}, {{kB, kC}}), (Ids{kA, kB, kD}));
}

TEST(WhoGoesOn, TheLargerPartOfATrainedGroupThenTheFirstRank) {
  EXPECT_EQ(WhoGoesOn({{kA, 3}, {kB, 3}, {kC, 3}}, {{kA, kB}, {kA, kC}}), (Ids{kB, kC}));
  EXPECT_EQ(WhoGoesOn({{kA, 3}, {kB, 3}}, {{kA, kB}}), Ids{kA});
  EXPECT_EQ(WhoGoesOn({{kA, 2}, {kB, 3}}, {{kA, kB}}), Ids{kB}) << "who is further";
}

TEST(WhoGoesOn, KeepsRanks) {
  EXPECT_EQ(WhoGoesOn({{kD, 0}, {kA, 3}, {kC, 0}, {kB, 3}}, {{kA, kC}}), (Ids{kD, kA, kB}));
}

TEST(NodeFaults, APairIsApartUntilItIsTriedAgain) {
  NodeFaults faults;
  const Time now{1'000'000};
  faults.Note(now, Fault(2, 1));
  faults.Note(After(now, 1), Fault(1, 2));
  const std::set<NodePair> apart = {{NodeId(1), NodeId(2)}};
  EXPECT_EQ(faults.Apart(After(now, 599)), apart) << "both sides saying so is one time";
  EXPECT_EQ(faults.Present(now).front().from, NodeId(1)) << "the latest word";
  EXPECT_TRUE(faults.Apart(After(now, 601)).empty());
  const Time later = After(now, 700);
  faults.Note(later, Fault(1, 2));
  EXPECT_EQ(faults.Apart(After(later, 1'199)), apart) << "twice as long";
  EXPECT_TRUE(faults.Apart(After(later, 1'201)).empty());
}

TEST(NodeFaults, IsForgottenWhereItWorksAndWithANewHello) {
  NodeFaults faults;
  const Time now{1'000'000};
  faults.Note(now, Fault(1, 2));
  faults.Note(now, Fault(1, 3));
  faults.WorkTogether({NodeId(1), NodeId(2), NodeId(4)});
  EXPECT_EQ(faults.Apart(now), (std::set<NodePair>{{NodeId(1), NodeId(3)}}));
  faults.ForgetThoseOf(NodeId(3));
  EXPECT_TRUE(faults.Apart(now).empty());
}

}  // namespace
}  // namespace espalier
