#pragma once

#include "trial_runner/collectives/cuda/device_staging.h"

namespace espalier {

// A device whose memory is the host's.
class HostStaging final : public DeviceStaging {
 public:
  explicit HostStaging(Collectives& host) : host_(host) {}

  absl::Status OnDevice(const std::function<absl::Status()>& body) override { return body(); }
  void Start(const StagedOperation& operation) override {
    StagedOperation on_host = operation;
    on_host.buffer.device = CollectiveBuffer::kHost;
    StartOnHost(host_, on_host);
  }
  absl::Status WaitAll(const Patience&) override { return host_.WaitAll(); }
  void Clear() override {}

 private:
  Collectives& host_;
};

}  // namespace espalier
