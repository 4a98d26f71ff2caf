// What the CUDA part sets for NCCL, which reads it when a communicator is made: no GPU is needed.

#include "trial_runner/collectives/cuda/cuda_library.h"

#include <cstdlib>
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "trial_runner/collectives/gloo/gloo_collectives.h"

namespace espalier {
namespace {

constexpr char kInterface[] = "NCCL_SOCKET_IFNAME";

// The variable as it is after collectives were made with this interface, where it was `before`.
std::optional<std::string> InterfaceAfterMaking(const std::string& interface,
                                                const char* before = nullptr) {
  unsetenv(kInterface);
  if (before != nullptr) setenv(kInterface, before, /*overwrite=*/1);
  CollectivesOptions options;
  options.interface = interface;
  options.device = CollectiveBuffer::kHost;
  auto host = MakeGlooCollectives({});
  const auto cuda = LoadCudaLibrary();
  EXPECT_TRUE(host.ok() && cuda.ok()) << host.status() << cuda.status();
  EXPECT_TRUE((*cuda)->make_collectives(*std::move(host), options, DeviceTransport::kNccl).ok());
  const char* after = std::getenv(kInterface);
  std::optional<std::string> set;
  if (after != nullptr) set = after;
  unsetenv(kInterface);
  return set;
}

TEST(CudaLibrary, HasNcclUseTheInterfaceAndNoneWhoseNameBeginsAlike) {
  EXPECT_EQ(InterfaceAfterMaking("lo"), "=lo");
}

TEST(CudaLibrary, LeavesNcclsInterfaceAsTheUserHasSetIt) {
  EXPECT_EQ(InterfaceAfterMaking("lo", "^docker0"), "^docker0");
}

TEST(CudaLibrary, WithoutAnInterfaceLeavesTheChoiceToNccl) {
  EXPECT_EQ(InterfaceAfterMaking(""), std::nullopt);
}

}  // namespace
}  // namespace espalier
