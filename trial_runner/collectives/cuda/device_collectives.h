#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trial_runner/collectives/bell.h"
#include "trial_runner/collectives/collectives.h"
#include "trial_runner/collectives/cuda/device_group.h"
#include "trial_runner/collectives/cuda/device_staging.h"

namespace espalier {

// Collectives for the memory of GPU `options.device`, over `host`, which carries what lies in host
// memory and through which the members agree. Device memory goes by NCCL where each member has a
// GPU of its own, and otherwise through the host's memory.
//
// A group works while its communicator is being formed, and changes over between two WaitAll, at
// the same on all members: these sum how far they are before the first all-reduce of device memory
// after each.
//
// A member whose group is given up while operations are under way aborts its communicator on a
// thread, and the next group forms a new one.
class DeviceCollectives final : public Collectives {
 public:
  // What belongs to the device; `staging` may refer to `host`. Without: host memory only.
  struct Device {
    std::unique_ptr<DeviceStaging> staging;
    DeviceGroup::Options group;
  };

  DeviceCollectives(std::unique_ptr<Collectives> host, CollectivesOptions options,
                    std::optional<Device> device);

  std::string Address() const override { return host_->Address(); }
  void Expect(std::int64_t generation, const std::string& secret) override {
    host_->Expect(generation, secret);
  }
  void Prepare(const GroupPlan& plan) override { host_->Prepare(plan); }
  bool Prepared(std::int64_t generation) const override { return host_->Prepared(generation); }
  absl::Status Form(const GroupPlan& plan) override;
  void StartAllReduceSum(const CollectiveBuffer& buffer) override;
  void StartBroadcast(const CollectiveBuffer& buffer, int root) override;
  void StartSend(const CollectiveBuffer& buffer, int to) override;
  void StartReceive(const CollectiveBuffer& buffer, int from) override;
  absl::Status WaitAll() override { return WaitAllAnd(nullptr); }
  absl::Status WaitAllAnd(const std::function<void()>& follow) override;
  absl::StatusOr<std::vector<std::vector<std::int64_t>>> AllGather(
      const std::vector<std::int64_t>& values) override;
  void Abandon(std::int64_t generation, double grace_s) override;
  void SetLeastGrace(double grace_s) override;
  bool FromDeviceToDevice() const override { return group_ && group_->meant_for_nccl(); }
  DeviceWay Way() const override { return group_ ? group_->way() : DeviceWay(); }
  double Waiting_s() const override;

 private:
  DeviceStaging::Patience PatienceUpTo(double limit_s);
  void Start(const StagedOperation& operation);
  absl::Status StartOnDevice(const StagedOperation& operation);
  // Sums the group's votes, where they are due.
  void Speak();
  absl::Status WaitForAll(const std::function<void()>& follow);
  // What is under way is ended or left to itself.
  void GiveUp();
  // The present group, with the host's connections: perhaps nobody has waited for anything there.
  void Lose();

  const std::unique_ptr<Collectives> host_;
  const CollectivesOptions options_;
  Bell bell_;
  GroupPlan plan_;
  absl::Status begin_error_;  // since the last WaitAll
  bool lost_ = false;         // the present group

  // Where there is a device.
  const std::unique_ptr<DeviceStaging> staging_;
  std::optional<DeviceGroup> group_;
  std::vector<NcclCommunicator::Transfer> transfers_;
  std::shared_ptr<std::vector<std::int64_t>> vote_;  // summed until WaitAll; null: none is
};

}  // namespace espalier
