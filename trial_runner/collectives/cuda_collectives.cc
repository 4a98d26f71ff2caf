#include "trial_runner/collectives/cuda_collectives.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "trial_runner/collectives/bell.h"
#include "trial_runner/collectives/device_group.h"
#include "trial_runner/collectives/nccl_api.h"
#include "trial_runner/collectives/staged_operations.h"
#include "tuner/base/check.h"
#include "tuner/base/status.h"

namespace espalier {
namespace {

using Kind = StagedOperations::Kind;

// Device work rings no bell: how often it is looked at.
constexpr std::chrono::microseconds kLook{20};
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

// What NCCL tells hosts apart by (its manual: NCCL_HOSTID), as a number.
std::int64_t HostNumber() {
  std::string host;
  if (const char* given = std::getenv("NCCL_HOSTID"); given != nullptr && *given != '\0') {
    host = given;
  } else {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) == 0) host = name.data();
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    host += boot;
  }
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a: the same in every process
  for (const char c : host) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return static_cast<std::int64_t>(hash);
}

class TorchStream final : public CommunicatorStream {
 public:
  explicit TorchStream(c10::DeviceIndex device)
      : device_(device), stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device)) {}

  cudaStream_t handle() const override { return stream_.stream(); }
  void FollowCurrent() override {
    const c10::cuda::CUDAGuard guard(device_);
    c10::Event ready(c10::DeviceType::CUDA);
    ready.record(c10::cuda::getCurrentCUDAStream(device_).unwrap());
    ready.block(stream_.unwrap());
  }
  void Mark() override {
    const c10::cuda::CUDAGuard guard(device_);
    mark_.emplace(c10::DeviceType::CUDA);
    mark_->record(stream_.unwrap());
  }
  bool Passed() const override { return mark_->query(); }
  void Synchronize() override {
    // From NCCL's thread; errors were told to callers that wait for the stream.
    static_cast<void>(cudaSetDevice(device_));
    static_cast<void>(cudaStreamSynchronize(stream_.stream()));
  }

 private:
  const c10::DeviceIndex device_;
  const c10::cuda::CUDAStream stream_;
  std::optional<c10::Event> mark_;
};

class CudaCollectives final : public Collectives {
 public:
  CudaCollectives(std::unique_ptr<Collectives> host, const CollectivesOptions& options,
                  DeviceTransport transport)
      : host_(std::move(host)), options_(options) {
    if (!HasDevice()) return;
    staged_.emplace(*host_, options_.device);
    cudaDeviceProp properties{};
    const bool known = cudaGetDeviceProperties(&properties, options_.device) == cudaSuccess;
    const std::int64_t place = (static_cast<std::int64_t>(properties.pciDomainID) << 32) |
                               (static_cast<std::int64_t>(properties.pciBusID) << 8) |
                               properties.pciDeviceID;
    const auto index = static_cast<c10::DeviceIndex>(options_.device);
    group_.emplace(*host_,
                   DeviceGroup::Options{
                       .nccl = LinkedNccl(),
                       .make_stream = [index] { return std::make_unique<TorchStream>(index); },
                       .free_cached_memory = [] { c10::cuda::CUDACachingAllocator::emptyCache(); },
                       .usable = known && transport == DeviceTransport::kNccl,
                       .gpu = {HostNumber(), place}});
  }

  std::string Address() const override { return host_->Address(); }

  void Expect(std::int64_t generation, const std::string& secret) override {
    host_->Expect(generation, secret);
  }

  absl::Status Form(const GroupPlan& plan) override {
    GiveUp();
    begin_error_ = absl::OkStatus();
    lost_ = false;
    plan_ = plan;
    ESPALIER_RETURN_IF_ERROR(host_->Form(plan));
    if (!group_) return absl::OkStatus();
    return Caught([&] {
      const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(options_.device));
      return group_->Form(plan, [this](double limit_s, const std::function<bool()>& done) {
        return PatienceUpTo(limit_s)(done);
      });
    });
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
    if (!status.ok()) {
      lost_ = true;
      GiveUp();
    }
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

  bool FromDeviceToDevice() const override { return group_ && group_->communicator() != nullptr; }
  std::string DeviceWay() const override { return group_ ? group_->way() : ""; }

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
    ESPALIER_CHECK(!lost_, "collective called on a group that is lost");
    const CollectiveBuffer& buffer = operation.buffer;
    NcclCommunicator* const communicator = group_->communicator();
    if (communicator == nullptr || buffer.device == CollectiveBuffer::kHost) {
      staged_->Start(operation, CurrentStream());
      return absl::OkStatus();
    }
    const auto patience = PatienceUpTo(options_.collective_limit_s);
    switch (operation.kind) {
      case Kind::kAllReduceSum:
        return communicator->AllReduceSum(buffer, patience);
      case Kind::kBroadcast:
        return communicator->Broadcast(buffer, operation.peer, patience);
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
    NcclCommunicator* const communicator = group_->communicator();
    if (communicator != nullptr && !transfers_.empty()) {
      ESPALIER_RETURN_IF_ERROR(communicator->Exchange(transfers_, patience));
      transfers_.clear();
    }
    ESPALIER_RETURN_IF_ERROR(staged_->WaitAll(CurrentStream(), patience));
    return communicator != nullptr ? communicator->WaitAll(patience) : absl::OkStatus();
  }

  // What is under way is ended or left to itself.
  void GiveUp() {
    if (group_) group_->GiveUp();
    if (staged_) staged_->Clear();
    transfers_.clear();
  }

  const std::unique_ptr<Collectives> host_;
  const CollectivesOptions options_;
  Bell bell_;
  GroupPlan plan_;
  absl::Status begin_error_;  // since the last WaitAll
  bool lost_ = false;         // the present group

  // Where there is a device.
  std::optional<StagedOperations> staged_;
  std::optional<DeviceGroup> group_;
  std::vector<NcclCommunicator::Transfer> transfers_;
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
