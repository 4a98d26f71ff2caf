#include "trial_runner/agent/ranks/held_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>

namespace espalier {
namespace {

// As PyTorch's store listens.
bool MayListenAt(int port) {
  const FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
         listen(listener.get(), 1) == 0;
}

TEST(HeldPort, IsNobodyElsesButMayBeListenedAt) {
  const auto held = HeldPort::In({});
  ASSERT_TRUE(held.ok()) << held.status();
  const int port = held->number();
  EXPECT_GT(port, 0);
  EXPECT_TRUE(MayListenAt(port));
  const PortRange same{port, port};
  EXPECT_THAT(std::string(HeldPort::In(same).status().message()),
              testing::AllOf(testing::HasSubstr(same.text()), testing::HasSubstr("--port-range")));
}

TEST(HeldPort, IsFreeAgainAfterwards) {
  std::optional<PortRange> range;
  {
    const auto first = HeldPort::In({});
    ASSERT_TRUE(first.ok());
    range = PortRange{first->number(), first->number()};
  }
  const auto again = HeldPort::In(*range);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->number(), range->low);
}

}  // namespace
}  // namespace espalier
