#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trial_runner/collectives/collectives.h"

namespace espalier {

// Some members of a group as a group of their own: its first `size` ones. What they compute
// together goes between each two of them, so that the others take no part in it and need not know
// of it. For what is done seldom: sums go through rank 0, one member's after the other's.
//
// The whole group is used by nobody else meanwhile, and must outlive this. Errors are its own.
class NarrowedCollectives final : public Collectives {
 public:
  NarrowedCollectives(Collectives& whole, int rank, int size)
      : whole_(whole), rank_(rank), size_(size) {}

  // For members of rank < size.
  void StartAllReduceSum(const CollectiveBuffer& buffer) override;
  void StartBroadcast(const CollectiveBuffer& buffer, int root) override;
  void StartSend(const CollectiveBuffer& buffer, int to) override { whole_.StartSend(buffer, to); }
  void StartReceive(const CollectiveBuffer& buffer, int from) override {
    whole_.StartReceive(buffer, from);
  }
  absl::Status WaitAll() override;
  absl::StatusOr<std::vector<std::vector<std::int64_t>>> AllGather(
      const std::vector<std::int64_t>& values) override;

  // The whole group's.
  std::string Address() const override { return whole_.Address(); }
  double Waiting_s() const override { return whole_.Waiting_s(); }
  absl::Status Form(const GroupPlan& plan) override { return whole_.Form(plan); }
  bool FromDeviceToDevice() const override { return whole_.FromDeviceToDevice(); }
  DeviceWay Way() const override { return whole_.Way(); }
  void Abandon(std::int64_t generation, double grace_s) override {
    whole_.Abandon(generation, grace_s);
  }
  void SetLeastGrace(double grace_s) override { whole_.SetLeastGrace(grace_s); }

 private:
  struct Begun {
    CollectiveBuffer buffer;
    int root = 0;
    bool sum = false;
  };

  absl::Status Sum(const CollectiveBuffer& buffer);
  absl::Status Spread(const CollectiveBuffer& buffer, int root);

  Collectives& whole_;
  const int rank_;
  const int size_;
  std::vector<Begun> begun_;  // since the last WaitAll
};

}  // namespace espalier
