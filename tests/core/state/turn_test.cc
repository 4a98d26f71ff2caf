#include "tuner/core/state/turn.h"

#include <gtest/gtest.h>

#include <vector>

namespace espalier {
namespace {

TEST(Turn, TellsItsObserverOfEachChangeOnceItIsApplied) {
  std::vector<std::size_t> nodes;
  const Turn* seen = nullptr;
  Turn turn({}, [&](const Change&) { nodes.push_back(seen->state().nodes.size()); });
  seen = &turn;
  turn.Emit(NodeRegistered{NodeId(1), "a"});
  turn.Emit(NodeRegistered{NodeId(2), "b"});
  EXPECT_EQ(nodes, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(turn.Finish().changes.size(), 2);
}

TEST(TurnDeathTest, AnObserverMayNotEmit) {
  Turn* emitting = nullptr;
  Turn turn({}, [&](const Change&) { emitting->Emit(NodeRegistered{NodeId(2), "b"}); });
  emitting = &turn;
  EXPECT_DEATH(turn.Emit(NodeRegistered{NodeId(1), "a"}), "an observer emits no change");
}

}  // namespace
}  // namespace espalier
