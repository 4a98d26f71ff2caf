// The contract suite's rows over a stand-in for NCCL, which needs no GPU: device memory is the
// host's.

#include <string>
#include <utility>

#include "base/status.h"
#include "gtest/gtest.h"
#include "tests/trial_runner/collectives/collectives_contract.h"
#include "tests/trial_runner/collectives/cuda/fake_nccl.h"
#include "tests/trial_runner/collectives/cuda/host_staging.h"
#include "tests/trial_runner/collectives/forwarding_collectives.h"
#include "trial_runner/collectives/cuda/device_collectives.h"
#include "trial_runner/collectives/gloo/gloo_collectives.h"

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

// Its groups are there when NCCL's communicator is, or never will be: so the suite's few operations
// go by NCCL.
class FormedAtOnce final : public ForwardingCollectives {
 public:
  FormedAtOnce(std::unique_ptr<Collectives> inner, int device)
      : ForwardingCollectives(std::move(inner)), device_(device) {}

  absl::Status Form(const GroupPlan& plan) override {
    ESPALIER_RETURN_IF_ERROR(ForwardingCollectives::Form(plan));
    while (Way().transport == GradientTransport::kHostUntilNccl) {
      CollectiveBuffer buffer = CollectiveBuffer::Of(std::make_shared<std::vector<float>>(1));
      buffer.device = device_;
      ESPALIER_RETURN_IF_ERROR(AllReduceSum(buffer));
    }
    return absl::OkStatus();
  }

 private:
  const int device_;
};

absl::StatusOr<std::unique_ptr<Collectives>> MakeOverFake(CollectivesOptions options, int device,
                                                          std::int64_t gpu, bool at_once) {
  options.device = device;
  ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Collectives> host, MakeGlooCollectives(options));
  DeviceCollectives::Device made{.staging = std::make_unique<HostStaging>(*host),
                                 .group = {.nccl = The().nccl().api(),
                                           .make_stream = FakeNccl::MakeStream,
                                           .free_cached_memory = [] {},
                                           .usable = true,
                                           .gpu = {7, gpu}}};
  std::unique_ptr<Collectives> collectives =
      std::make_unique<DeviceCollectives>(std::move(host), options, std::move(made));
  if (at_once) collectives = std::make_unique<FormedAtOnce>(std::move(collectives), device);
  return collectives;
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
      Row("nccl",
          [](const CollectivesOptions& options, int member) {
            return MakeOverFake(options, member, /*gpu=*/member, /*at_once=*/true);
          }),
      // As in training: the communicator is there in the middle of the suite's operations, or
      // later.
      Row("nccl_that_forms_meanwhile",
          [](const CollectivesOptions& options, int member) {
            return MakeOverFake(options, member, /*gpu=*/member, /*at_once=*/false);
          }),
      // Members that share a GPU cannot use NCCL.
      Row("device_memory_through_the_hosts", [](const CollectivesOptions& options, int member) {
        return MakeOverFake(options, member, /*gpu=*/0, /*at_once=*/false);
      })};
  return all;
}

}  // namespace espalier
