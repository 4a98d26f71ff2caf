#include "tuner/api/pool_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

NodeView Node(const std::string& name, bool connected = true) {
  NodeView node{};
  node.name = name;
  node.connected = connected;
  return node;
}

TEST(PoolWarnings, ANodeThatOthersDoNotReachIsNamedWithWhatToDo) {
  const auto warnings = PoolWarnings({Node("a"), Node("b"), Node("c")},
                                     {{"a", "127.0.0.1"}, {"b", "10.0.0.2"}, {"c", "::1"}});
  EXPECT_THAT(
      warnings,
      ElementsAre(HasSubstr("replicas of node a are reached at 127.0.0.1, by its own machine "
                            "alone, and node b is on another (10.0.0.2): have its agent "
                            "join by the machine's address (tuner agent --join HOST:PORT"),
                  HasSubstr("replicas of node c are reached at ::1")));
}

TEST(PoolWarnings, OfOneMachineOrOfAddressesThereIsNothingToSay) {
  EXPECT_THAT(PoolWarnings({Node("a"), Node("b")}, {{"a", "127.0.0.1"}, {"b", "127.0.0.1"}}),
              IsEmpty());
  EXPECT_THAT(PoolWarnings({Node("a"), Node("b")}, {{"a", "10.0.0.1"}, {"b", "fd00::2"}}),
              IsEmpty());
  EXPECT_THAT(PoolWarnings({Node("a"), Node("b")}, {{"a", "127.0.0.1"}}), IsEmpty())
      << "not known yet";
  EXPECT_THAT(PoolWarnings({Node("a"), Node("b", false)}, {{"a", "127.0.0.1"}, {"b", "10.0.0.2"}}),
              IsEmpty())
      << "it has gone";
}

}  // namespace
}  // namespace espalier
