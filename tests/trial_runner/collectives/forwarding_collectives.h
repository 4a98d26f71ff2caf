#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trial_runner/collectives/collectives.h"

namespace espalier {

// Does as others do. For tests that watch or change some of it.
class ForwardingCollectives : public Collectives {
 public:
  explicit ForwardingCollectives(std::unique_ptr<Collectives> inner) : inner_(std::move(inner)) {}

  std::string Address() const override { return inner_->Address(); }
  double Waiting_s() const override { return inner_->Waiting_s(); }
  void Expect(std::int64_t generation, const std::string& secret) override {
    inner_->Expect(generation, secret);
  }
  void Prepare(const GroupPlan& plan) override { inner_->Prepare(plan); }
  bool Prepared(std::int64_t generation) const override { return inner_->Prepared(generation); }
  absl::Status Form(const GroupPlan& plan) override { return inner_->Form(plan); }
  void StartAllReduceSum(const CollectiveBuffer& b) override { inner_->StartAllReduceSum(b); }
  void StartBroadcast(const CollectiveBuffer& b, int root) override {
    inner_->StartBroadcast(b, root);
  }
  void StartSend(const CollectiveBuffer& b, int to) override { inner_->StartSend(b, to); }
  void StartReceive(const CollectiveBuffer& b, int from) override { inner_->StartReceive(b, from); }
  absl::Status WaitAll() override { return inner_->WaitAll(); }
  absl::Status WaitAllInTurn(const EachDone& each) override { return inner_->WaitAllInTurn(each); }
  absl::Status WaitAllAnd(const std::function<void()>& follow) override {
    return inner_->WaitAllAnd(follow);
  }
  absl::StatusOr<std::vector<std::vector<std::int64_t>>> AllGather(
      const std::vector<std::int64_t>& values) override {
    return inner_->AllGather(values);
  }
  bool FromDeviceToDevice() const override { return inner_->FromDeviceToDevice(); }
  DeviceWay Way() const override { return inner_->Way(); }
  void Abandon(std::int64_t generation, double grace_s) override {
    inner_->Abandon(generation, grace_s);
  }
  void SetLeastGrace(double grace_s) override { inner_->SetLeastGrace(grace_s); }

 private:
  const std::unique_ptr<Collectives> inner_;
};

}  // namespace espalier
