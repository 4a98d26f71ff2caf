#include "allocator/pool/transition.h"

#include "gtest/gtest.h"
#include "tests/allocator/pools.h"

namespace espalier {
namespace {

Pool TwoFullNodes() {
  return {{Node(1, 1), Node(2, 1)},
          {RunningJob(1, {{NodeId(1), 1}}, 0.5), RunningJob(2, {{NodeId(2), 1}}, 0.5)}};
}

TEST(KeepMovesPossible, LetsNobodyWaitForWhoWaitsForHim) {
  const Pool pool = TwoFullNodes();
  const Board board(pool);
  std::vector<Shares> planned = {{{1, 1}}, {{0, 1}}};
  KeepMovesPossible(board, planned);
  EXPECT_EQ(planned, (std::vector<Shares>{{{0, 1}}, {{1, 1}}}));
}

TEST(KeepMovesPossible, AllowsARingThatHasAFreeSlot) {
  Pool pool = TwoFullNodes();
  pool.nodes[0].slots = 2;
  const Board board(pool);
  const std::vector<Shares> wanted = {{{1, 1}}, {{0, 1}}};
  std::vector<Shares> planned = wanted;
  KeepMovesPossible(board, planned);
  EXPECT_EQ(planned, wanted);
}

TEST(KeepMovesPossible, AllowsAChainBehindAPause) {
  const Pool pool = TwoFullNodes();
  const Board board(pool);
  const std::vector<Shares> wanted = {{{1, 1}}, {}};
  std::vector<Shares> planned = wanted;
  KeepMovesPossible(board, planned);
  EXPECT_EQ(planned, wanted);
}

TEST(KeepMovesPossible, TakesBackWhatThenHasNoRoom) {
  // The first two change places, which the third one's growth onto the second node went by.
  Pool pool{
      {Node(1, 1), Node(2, 2)},
      {RunningJob(1, {{NodeId(1), 1}}, 0.5), RunningJob(2, {{NodeId(2), 2}}, 0.5), WaitingJob(3)}};
  const Board board(pool);
  std::vector<Shares> planned = {{{1, 1}}, {{0, 1}}, {{1, 1}}};
  KeepMovesPossible(board, planned);
  EXPECT_EQ(planned, (std::vector<Shares>{{{0, 1}}, {{1, 2}}, {}}));
}

}  // namespace
}  // namespace espalier
