#include "trial_runner/agent/host_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

using ::testing::HasSubstr;

TEST(HostAddress, IsLoopbackForAServiceOnThisMachine) {
  for (const char* peer : {"ipv4:127.0.0.1:7077", "ipv6:[::1]:7077", "ipv6:%5B::1%5D:7077",
                           "unix:/run/espalier.sock"}) {
    const auto host = AddressTowards(peer);
    ASSERT_TRUE(host.ok()) << peer << ": " << host.status();
    EXPECT_EQ(host->address, "127.0.0.1") << peer;
    EXPECT_TRUE(host->loopback());
  }
}

// Whatever networks this machine has: towards its own addresses it is reached at these.
TEST(HostAddress, TowardsAnAddressOfThisMachineIsThatAddress) {
  for (const HostAddress& own : OwnAddresses()) {
    if (own.loopback()) continue;
    const bool ipv6 = own.address.find(':') != std::string::npos;
    const auto host =
        AddressTowards(ipv6 ? "ipv6:[" + own.address + "]:7077" : "ipv4:" + own.address + ":7077");
    ASSERT_TRUE(host.ok()) << host.status();
    EXPECT_EQ(*host, own);
  }
}

TEST(HostAddress, PeerThatIsNoneIsAnErrorThatQuotesIt) {
  for (const char* peer : {"", "vsock:1:2", "ipv4:nonsense"}) {
    EXPECT_FALSE(AddressTowards(peer).ok()) << peer;
  }
  EXPECT_THAT(std::string(AddressTowards("vsock:1:2").status().message()), HasSubstr("vsock:1:2"));
}

TEST(HostAddress, NamedByTheUserMustBeThisMachines) {
  const auto own = FindOwnAddress("127.0.0.1");
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->interface, "lo");
  for (const char* address : {"192.0.2.1", "oak", "0.0.0.0"}) {
    const auto other = FindOwnAddress(address);
    ASSERT_EQ(other.status().code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(std::string(other.status().message()), HasSubstr(address));
    EXPECT_THAT(std::string(other.status().message()), HasSubstr("127.0.0.1 (lo)"));
  }
}

TEST(HostAddress, OfAnInterfaceThatIsNotThereListsThoseThatAre) {
  const auto lo = AddressOfInterface("lo", false);
  ASSERT_TRUE(lo.ok()) << lo.status();
  EXPECT_EQ(lo->address, "127.0.0.1");
  const auto none = AddressOfInterface("nosuch0", false);
  ASSERT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("--interface nosuch0"));
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("127.0.0.1 (lo)"));
}

TEST(HostAddress, TheUsersWordComesFirst) {
  AgentOptions options;
  EXPECT_EQ(ChooseHostAddress(options, "ipv4:127.0.0.1:1")->address, "127.0.0.1");
  options.interface = "lo";
  EXPECT_EQ(ChooseHostAddress(options, "ipv4:192.0.2.1:1")->interface, "lo");
  options.interface.clear();
  options.host_address = "127.0.0.1";
  EXPECT_EQ(ChooseHostAddress(options, "ipv4:192.0.2.1:1")->address, "127.0.0.1");
}

}  // namespace
}  // namespace espalier
