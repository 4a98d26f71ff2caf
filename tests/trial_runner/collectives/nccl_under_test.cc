// The contract suite's rows over a stand-in for NCCL, which needs no GPU: device memory is the
// host's.

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/trial_runner/collectives/collectives_contract.h"
#include "tests/trial_runner/collectives/fake_nccl.h"
#include "tests/trial_runner/collectives/host_staging.h"
#include "trial_runner/collectives/device_collectives.h"
#include "trial_runner/collectives/gloo_collectives.h"
#include "tuner/base/status.h"

namespace espalier {
namespace {

// There from before the tests until after them; its end checks that no communicator is left.
class TheFakeNccl final : public testing::Environment {
 public:
  ~TheFakeNccl() override { delete nccl_; }
  void TearDown() override { delete std::exchange(nccl_, nullptr); }
  FakeNccl& nccl() { return *nccl_; }

 private:
  FakeNccl* nccl_ = new FakeNccl;
};

TheFakeNccl& The() {
  static auto* const the = new TheFakeNccl;  // GoogleTest's to delete
  static const auto* const added = testing::AddGlobalTestEnvironment(the);
  static_cast<void>(added);
  return *the;
}

absl::StatusOr<std::unique_ptr<Collectives>> MakeOverFake(CollectivesOptions options, int device,
                                                          std::int64_t gpu) {
  options.device = device;
  ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Collectives> host, MakeGlooCollectives(options));
  DeviceCollectives::Device made{.staging = std::make_unique<HostStaging>(*host),
                                 .group = {.nccl = The().nccl().api(),
                                           .make_stream = FakeNccl::MakeStream,
                                           .free_cached_memory = [] {},
                                           .usable = true,
                                           .gpu = {7, gpu},
                                           .formation_limit_s = 60}};
  return std::make_unique<DeviceCollectives>(std::move(host), options, std::move(made));
}

CollectivesUnderTest Row(
    std::string name,
    std::function<absl::StatusOr<std::unique_ptr<Collectives>>(const CollectivesOptions&, int)>
        make) {
  return {.name = std::move(name),
          .libtorch_computes = false,
          .make = std::move(make),
          .place = [](CollectiveBuffer::Type type, const std::vector<std::uint8_t>& bytes,
                      std::int64_t count, int member) -> CollectiveBuffer {
            auto owner = std::make_shared<std::vector<std::uint8_t>>(bytes);
            return {type, owner->data(), count, member, owner};
          },
          .read =
              [](const CollectiveBuffer& buffer) {
                return *static_cast<const std::vector<std::uint8_t>*>(buffer.owner.get());
              }};
}

}  // namespace

const std::vector<CollectivesUnderTest>& AllCollectivesUnderTest() {
  The();
  static const std::vector<CollectivesUnderTest> all = {
      Row("nccl", [](const CollectivesOptions& options,
                     int member) { return MakeOverFake(options, member, /*gpu=*/member); }),
      // Members that share a GPU cannot use NCCL.
      Row("device_memory_through_the_hosts", [](const CollectivesOptions& options, int member) {
        return MakeOverFake(options, member, /*gpu=*/0);
      })};
  return all;
}

}  // namespace espalier
