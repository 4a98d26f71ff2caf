#include "base/machine_address.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(MachineAddress, ANameThatLeadsToThisMachineAloneIsNone) {
  const std::string own = NameForOtherMachines("localhost");
  const std::string debian = NameForOtherMachines("127.0.1.1");
  if (own == "localhost") {  // where this machine has no route to others, it has no better name
    EXPECT_EQ(debian, "127.0.1.1");
    return;
  }
  EXPECT_FALSE(own.starts_with("127.")) << own;
  EXPECT_NE(own, "[::1]");
  EXPECT_EQ(debian, own);
  EXPECT_EQ(NameForOtherMachines("no-such-host.invalid"), own);
}

TEST(MachineAddress, ANameThatLeadsElsewhereIsKept) {
  EXPECT_EQ(NameForOtherMachines("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(NameForOtherMachines("2001:db8::7"), "2001:db8::7");
}

}  // namespace
}  // namespace espalier
