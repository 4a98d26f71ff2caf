#include "trial_runner/collectives/cuda_collectives.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "trial_runner/collectives/bell.h"
#include "trial_runner/collectives/device_group_plan.h"
#include "trial_runner/collectives/nccl_communicator.h"
#include "trial_runner/collectives/staged_operations.h"
#include "tuner/base/check.h"
#include "tuner/base/status.h"

namespace espalier {
namespace {

using Kind = StagedOperations::Kind;

// Device work rings no bell: how often it is looked at.
constexpr std::chrono::microseconds kLook{20};
// A communicator takes a second or two to form. Beyond this, NCCL cannot, and Gloo does its work.
constexpr double kNcclFormationLimit_s = 60;

// LibTorch's messages go on with a stack.
std::string FirstLine(const std::exception& e) {
  const std::string message = e.what();
  return message.substr(0, message.find('\n'));
}

// Runs what may throw LibTorch's exceptions.
template <typename Body>
auto Caught(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& e) {
    return absl::UnavailableError(absl::StrCat("CUDA: ", FirstLine(e)));
  }
}

class CudaCollectives final : public Collectives {
 public:
  CudaCollectives(std::unique_ptr<Collectives> host, const CollectivesOptions& options,
                  DeviceTransport transport)
      : host_(std::move(host)), options_(options), transport_(transport) {
    if (!HasDevice()) return;
    staged_.emplace(*host_, options_.device);
    cudaDeviceProp properties;
    knows_gpu_ = cudaGetDeviceProperties(&properties, options_.device) == cudaSuccess;
    static_assert(sizeof(properties.uuid) == sizeof(gpu_));
    std::memcpy(gpu_.data(), &properties.uuid, sizeof(gpu_));
  }

  std::string Address() const override { return host_->Address(); }

  void Expect(std::int64_t generation, const std::string& secret) override {
    host_->Expect(generation, secret);
  }

  absl::Status Form(const GroupPlan& plan) override {
    GiveUp();
    begin_error_ = absl::OkStatus();
    plan_ = plan;
    through_host_ = true;
    ESPALIER_RETURN_IF_ERROR(host_->Form(plan));
    if (plan.size == 1) {
      communicator_.reset();
      return absl::OkStatus();
    }
    return Caught([&] { return FormDeviceGroup(); });
  }

  void StartAllReduceSum(const CollectiveBuffer& buffer) override {
    Start({.kind = Kind::kAllReduceSum, .buffer = buffer});
  }
  void StartBroadcast(const CollectiveBuffer& buffer, int root) override {
    const bool sends = root == plan_.rank;
    Start({.kind = Kind::kBroadcast,
           .buffer = buffer,
           .peer = root,
           .reads = sends,
           .writes = !sends});
  }
  void StartSend(const CollectiveBuffer& buffer, int to) override {
    Start({.kind = Kind::kSend, .buffer = buffer, .peer = to, .reads = true, .writes = false});
  }
  void StartReceive(const CollectiveBuffer& buffer, int from) override {
    Start({.kind = Kind::kReceive, .buffer = buffer, .peer = from, .reads = false});
  }

  absl::Status WaitAll() override {
    absl::Status status = std::exchange(begin_error_, absl::OkStatus());
    if (status.ok()) status = Caught([&] { return WaitForAll(); });
    if (!status.ok()) GiveUp();
    return status;
  }

  absl::StatusOr<std::vector<std::vector<std::int64_t>>> AllGather(
      const std::vector<std::int64_t>& values) override {
    ESPALIER_RETURN_IF_ERROR(WaitAll());  // in the order of the calls
    return host_->AllGather(values);
  }

  void Abandon(std::int64_t generation, double grace_s) override {
    bell_.Abandon(generation, grace_s);
    host_->Abandon(generation, grace_s);
  }

  double Waiting_s() const override { return std::max(bell_.Waiting_s(), host_->Waiting_s()); }

 private:
  bool HasDevice() const { return options_.device != CollectiveBuffer::kHost; }

  StagedOperations::Patience PatienceUpTo(double limit_s) {
    return [this, limit_s](const std::function<bool()>& done) {
      return bell_.WaitFor(
          {.generation = plan_.generation, .limit_s = limit_s, .done = done, .poll_every = kLook});
    };
  }

  c10::cuda::CUDAStream CurrentStream() const {
    return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(options_.device));
  }

  DeviceOffer Offer() const {
    DeviceOffer offer;
    offer.usable = knows_gpu_ && transport_ == DeviceTransport::kNccl && !nccl_failed_;
    offer.gpu = gpu_;
    if (communicator_) {
      offer.generation = communicator_plan_.generation;
      offer.rank = communicator_plan_.rank;
      offer.size = communicator_plan_.size;
      offer.broken = communicator_->broken();
    }
    return offer;
  }

  absl::Status FormDeviceGroup() {
    ESPALIER_ASSIGN_OR_RETURN(const auto told, host_->AllGather(Offer().ToNumbers()));
    std::vector<DeviceOffer> offers;
    for (const std::vector<std::int64_t>& numbers : told) {
      ESPALIER_ASSIGN_OR_RETURN(const DeviceOffer offer, DeviceOffer::FromNumbers(numbers));
      offers.push_back(offer);
    }
    const DeviceGroupPlan device_plan = PlanDeviceGroup(offers);
    switch (device_plan.kind) {
      case DeviceGroupPlan::Kind::kStaged:
        communicator_.reset();
        return absl::OkStatus();
      case DeviceGroupPlan::Kind::kKeep:
        through_host_ = false;
        return absl::OkStatus();
      case DeviceGroupPlan::Kind::kShrink:
        return Adopt(communicator_->Shrink(device_plan.excluded, device_plan.broken,
                                           PatienceUpTo(kNcclFormationLimit_s)));
      case DeviceGroupPlan::Kind::kInit:
        return InitCommunicator();
    }
    ESPALIER_CHECK(false, "unknown plan of a device group");
  }

  absl::Status InitCommunicator() {
    communicator_.reset();
    // Rank 0 tells an id of zeros if NCCL gives it none: the others wait to hear.
    std::vector<std::int64_t> id(NcclCommunicator::kIdNumbers);
    const std::vector<std::int64_t> none = id;
    if (plan_.rank == 0) id = NcclCommunicator::NewId().value_or(none);
    ESPALIER_ASSIGN_OR_RETURN(const auto ids, host_->AllGather(id));
    if (ids[0] == none) return Adopt(absl::UnavailableError("rank 0 has no id of NCCL's"));
    return Adopt(NcclCommunicator::Join(ids[0], plan_.rank, plan_.size, options_.device,
                                        PatienceUpTo(kNcclFormationLimit_s)));
  }

  // All take the new communicator, or none does.
  absl::Status Adopt(absl::StatusOr<std::unique_ptr<NcclCommunicator>> formed) {
    if (absl::IsAborted(formed.status())) return formed.status();
    ESPALIER_ASSIGN_OR_RETURN(const auto told, host_->AllGather({formed.ok() ? 1 : 0}));
    bool all = true;
    for (const std::vector<std::int64_t>& each : told) all = all && each[0] == 1;
    communicator_.reset();
    if (!all) {
      // Not tried again by this process: each try costs its limit.
      nccl_failed_ = true;
      return absl::OkStatus();
    }
    communicator_ = *std::move(formed);
    communicator_plan_ = plan_;
    through_host_ = false;
    return absl::OkStatus();
  }

  void Start(const StagedOperation& operation) {
    if (!begin_error_.ok()) return;
    const CollectiveBuffer& buffer = operation.buffer;
    const bool on_host = buffer.device == CollectiveBuffer::kHost;
    ESPALIER_CHECK(on_host || buffer.device == options_.device,
                   "buffer on another GPU than the one the collectives are for");
    if (!staged_) {
      StartOnHost(*host_, operation);
      return;
    }
    if (bell_.Abandoned(plan_.generation)) {
      begin_error_ = Bell::AbandonedStatus(plan_.generation);
    } else if (!on_host && plan_.size == 1) {
      // There is nobody to hear from.
    } else {
      begin_error_ = Caught([&] { return StartOnDevice(operation); });
    }
  }

  absl::Status StartOnDevice(const StagedOperation& operation) {
    const CollectiveBuffer& buffer = operation.buffer;
    if (through_host_ || buffer.device == CollectiveBuffer::kHost) {
      staged_->Start(operation, CurrentStream());
      return absl::OkStatus();
    }
    ESPALIER_CHECK(communicator_, "collective called on a group that is lost");
    const auto patience = PatienceUpTo(options_.collective_limit_s);
    switch (operation.kind) {
      case Kind::kAllReduceSum:
        return communicator_->AllReduceSum(buffer, CurrentStream(), patience);
      case Kind::kBroadcast:
        return communicator_->Broadcast(buffer, operation.peer, CurrentStream(), patience);
      case Kind::kSend:
      case Kind::kReceive:
        // One after the other on the stream, two that send to each other would wait for ever.
        transfers_.push_back({buffer, operation.peer, operation.kind == Kind::kSend});
        return absl::OkStatus();
    }
    ESPALIER_CHECK(false, "unknown operation");
  }

  absl::Status WaitForAll() {
    if (!staged_) return host_->WaitAll();
    const auto patience = PatienceUpTo(options_.collective_limit_s);
    if (communicator_ && !through_host_ && !transfers_.empty()) {
      ESPALIER_RETURN_IF_ERROR(communicator_->Exchange(transfers_, CurrentStream(), patience));
      transfers_.clear();
    }
    ESPALIER_RETURN_IF_ERROR(staged_->WaitAll(CurrentStream(), patience));
    if (communicator_ && !through_host_) return communicator_->WaitAll(patience);
    return absl::OkStatus();
  }

  // What is under way is ended or left to itself.
  void GiveUp() {
    if (communicator_ && communicator_->busy()) communicator_->Revoke();
    if (staged_) staged_->Clear();
    transfers_.clear();
  }

  const std::unique_ptr<Collectives> host_;
  const CollectivesOptions options_;
  const DeviceTransport transport_;
  bool knows_gpu_ = false;
  std::array<std::int64_t, 2> gpu_{};  // its UUID
  Bell bell_;
  GroupPlan plan_;
  absl::Status begin_error_;  // since the last WaitAll

  std::optional<StagedOperations> staged_;          // where there is a device
  bool through_host_ = true;                        // the present group's way for device memory
  std::unique_ptr<NcclCommunicator> communicator_;  // may be an older group's
  GroupPlan communicator_plan_;                     // of the group it was formed for
  std::vector<NcclCommunicator::Transfer> transfers_;
  bool nccl_failed_ = false;
};

absl::StatusOr<int> DeviceCount() {
  return Caught([]() -> absl::StatusOr<int> { return c10::cuda::device_count_ensure_non_zero(); });
}

absl::Status LimitMemory(int device, double share) {
  return Caught([&] {
    c10::cuda::CUDACachingAllocator::init(c10::cuda::device_count());
    c10::cuda::CUDACachingAllocator::setMemoryFraction(share,
                                                       static_cast<c10::DeviceIndex>(device));
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Collectives>> MakeCudaCollectives(std::unique_ptr<Collectives> host,
                                                                 const CollectivesOptions& options,
                                                                 DeviceTransport transport) {
  // NCCL is to use the interface of our address, and none whose name begins alike; what it was told
  // by its own variable stays.
  if (!options.interface.empty()) {
    setenv("NCCL_SOCKET_IFNAME", ("=" + options.interface).c_str(), /*overwrite=*/0);
  }
  return Caught([&]() -> absl::StatusOr<std::unique_ptr<Collectives>> {
    return std::make_unique<CudaCollectives>(std::move(host), options, transport);
  });
}

}  // namespace espalier

// What LoadCudaLibrary looks for.
extern "C" __attribute__((visibility("default"))) const espalier::CudaLibrary*
EspalierCudaLibrary() {
  static constexpr espalier::CudaLibrary kLibrary = {
      .make_collectives = espalier::MakeCudaCollectives,
      .limit_memory = espalier::LimitMemory,
      .device_count = espalier::DeviceCount};
  return &kLibrary;
}
