#include "allocator/pool/slot_ledger.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/pools.h"

namespace espalier {
namespace {

TEST(SlotLedger, PlacesOnTheNodeWithMostFreeSlots) {
  SlotLedger ledger({{Node(1, 2), Node(2, 4), Node(3, 4)}, {}}, false);
  EXPECT_EQ(*ledger.Place(3), (Placement{{NodeId(2), 3}}));
  EXPECT_EQ(*ledger.Place(6), (Placement{{NodeId(2), 4}, {NodeId(3), 2}}));
  EXPECT_FALSE(ledger.Place(11));
}

TEST(SlotLedger, KeepsSpanningJobsApartUnlessTold) {
  const Pool pool{{Node(1, 4), Node(2, 4)}, {}};
  for (const bool share : {false, true}) {
    SlotLedger ledger(pool, share);
    ledger.Take({{NodeId(1), 2}, {NodeId(2), 3}});
    EXPECT_EQ(ledger.Place(2).has_value(), true);
    EXPECT_EQ(ledger.Place(3).has_value(), share);
  }
}

TEST(SlotLedger, PlacesNothingOnDrainingNodesAndMixesNoTypes) {
  Pool pool{{Node(1, 8), Node(2, 2), Node(3, 3)}, {}};
  pool.nodes[0].draining = true;
  pool.nodes[1].gpu_type = "a";
  pool.nodes[2].gpu_type = "b";
  SlotLedger ledger(pool, false);
  EXPECT_EQ(ledger.usable(), 5);
  EXPECT_EQ(*ledger.Place(3), (Placement{{NodeId(3), 3}}));
  EXPECT_FALSE(ledger.Place(4));
}

TEST(SlotLedger, SaysWhatAJobHasLost) {
  Pool pool{{Node(1, 1)}, {RunningJob(1, {{NodeId(1), 2}}, 0.5)}};
  pool.nodes[0].name = "box";
  const SlotLedger ledger(pool, false);
  EXPECT_EQ(ledger.Loss(RunningJob(1, {{NodeId(2), 1}}, 0.5)), "node 2 is lost");
  EXPECT_EQ(ledger.Loss(RunningJob(1, {{NodeId(1), 2}}, 0.5)),
            "box has fewer slots than were held");
  EXPECT_FALSE(ledger.MayKeep(RunningJob(1, {{NodeId(1), 2}}, 0.5)));
  EXPECT_TRUE(ledger.MayKeep(RunningJob(1, {{NodeId(1), 1}}, 0.5)));
}

}  // namespace
}  // namespace espalier
