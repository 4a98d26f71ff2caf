#include "allocator/pool/islands.h"

#include <gtest/gtest.h>

#include "tests/allocator/random_pools.h"

namespace espalier {
namespace {

Pool PoolOf(int nodes) {
  Pool pool;
  for (int n = 1; n <= nodes; ++n) pool.nodes.push_back({NodeId(n), 2});
  return pool;
}

std::vector<int> IslandsOf(const Pool& pool) {
  std::vector<int> islands;
  for (const NodeCapacity& node : pool.nodes) islands.push_back(node.island);
  return islands;
}

TEST(Islands, AllNodesAreTogetherWhereAllCanTalk) {
  Pool pool = PoolOf(3);
  pool.nodes[1].island = 7;
  AssignIslands(pool, {});
  EXPECT_EQ(IslandsOf(pool), (std::vector{0, 0, 0}));
}

TEST(Islands, ANodeThatNobodyReachesIsAlone) {
  Pool pool = PoolOf(4);
  AssignIslands(pool, {{NodeId(1), NodeId(2)}, {NodeId(1), NodeId(3)}, {NodeId(1), NodeId(4)}});
  EXPECT_EQ(IslandsOf(pool), (std::vector{1, 0, 0, 0}));
}

TEST(Islands, TwoHalvesThatCannotTalkAreTwoIslands) {
  Pool pool = PoolOf(4);
  AssignIslands(pool, {{NodeId(1), NodeId(3)},
                       {NodeId(1), NodeId(4)},
                       {NodeId(2), NodeId(3)},
                       {NodeId(2), NodeId(4)}});
  EXPECT_EQ(IslandsOf(pool), (std::vector{0, 0, 1, 1}));
}

TEST(Islands, NodesThatATrialSpansStayTogether) {
  Pool pool = PoolOf(3);
  pool.jobs.emplace_back().current = {{NodeId(2), 1}, {NodeId(3), 1}};
  AssignIslands(pool, {{NodeId(1), NodeId(2)}});
  EXPECT_EQ(pool.nodes[1].island, pool.nodes[2].island) << "though node 1 can talk to node 3";
  EXPECT_NE(pool.nodes[0].island, pool.nodes[1].island);
}

TEST(Islands, NoPairIsEverOnOneIsland) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    Pool pool = RandomPool(random);
    pool.jobs.clear();
    std::set<NodePair> apart;
    for (const NodeCapacity& a : pool.nodes) {
      for (const NodeCapacity& b : pool.nodes) {
        if (a.id < b.id && random.Below(3) == 0) apart.insert(PairOf(b.id, a.id));
      }
    }
    AssignIslands(pool, apart);
    std::map<int, Placement> islands;
    for (const NodeCapacity& node : pool.nodes) islands[node.island][node.id] = 1;
    for (const auto& [island, nodes] : islands) EXPECT_FALSE(SpansAny(nodes, apart));
  }
}

}  // namespace
}  // namespace espalier
