#include "trial_runner/collectives/cuda/cuda_collectives.h"

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
#include "trial_runner/collectives/cuda/cuda_gradient_kernel.h"
#include "trial_runner/collectives/cuda/device_collectives.h"
#include "trial_runner/collectives/cuda/nccl_api.h"
#include "trial_runner/collectives/cuda/staged_operations.h"

namespace espalier {
namespace {

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
  void FollowCurrent() override { Order(c10::cuda::getCurrentCUDAStream(device_), stream_); }
  void LeadCurrent() override { Order(stream_, c10::cuda::getCurrentCUDAStream(device_)); }
  void Mark() override { MarkOn(stream_); }
  void MarkCurrent() override { MarkOn(c10::cuda::getCurrentCUDAStream(device_)); }
  bool Passed() const override { return mark_->query(); }
  void Synchronize() override {
    // From NCCL's thread; errors were told to callers that wait for the stream.
    static_cast<void>(cudaSetDevice(device_));
    static_cast<void>(cudaStreamSynchronize(stream_.stream()));
  }

 private:
  // What `second` is given from now on comes after what `first` holds.
  void Order(const c10::cuda::CUDAStream& first, const c10::cuda::CUDAStream& second) {
    const c10::cuda::CUDAGuard guard(device_);
    c10::Event reached(c10::DeviceType::CUDA);
    reached.record(first.unwrap());
    reached.block(second.unwrap());
  }
  void MarkOn(const c10::cuda::CUDAStream& stream) {
    const c10::cuda::CUDAGuard guard(device_);
    mark_.emplace(c10::DeviceType::CUDA);
    mark_->record(stream.unwrap());
  }

  const c10::DeviceIndex device_;
  const c10::cuda::CUDAStream stream_;
  std::optional<c10::Event> mark_;
};

class TorchStaging final : public DeviceStaging {
 public:
  TorchStaging(Collectives& host, c10::DeviceIndex device)
      : device_(device), operations_(host, device) {}

  absl::Status OnDevice(const std::function<absl::Status()>& body) override {
    return Caught([&] {
      const c10::cuda::CUDAGuard guard(device_);
      return body();
    });
  }
  void Start(const StagedOperation& operation) override {
    operations_.Start(operation, c10::cuda::getCurrentCUDAStream(device_));
  }
  absl::Status WaitAll(const Patience& patience) override {
    return operations_.WaitAll(c10::cuda::getCurrentCUDAStream(device_), patience);
  }
  void Clear() override { operations_.Clear(); }

 private:
  const c10::DeviceIndex device_;
  StagedOperations operations_;
};

DeviceCollectives::Device DeviceOf(Collectives& host, int device, DeviceTransport transport) {
  cudaDeviceProp properties{};
  const bool known = cudaGetDeviceProperties(&properties, device) == cudaSuccess;
  const std::int64_t place = (static_cast<std::int64_t>(properties.pciDomainID) << 32) |
                             (static_cast<std::int64_t>(properties.pciBusID) << 8) |
                             properties.pciDeviceID;
  const auto index = static_cast<c10::DeviceIndex>(device);
  return {.staging = std::make_unique<TorchStaging>(host, index),
          .group = {.nccl = LinkedNccl(),
                    .make_stream = [index] { return std::make_unique<TorchStream>(index); },
                    .free_cached_memory = [] { c10::cuda::CUDACachingAllocator::emptyCache(); },
                    .usable = known && transport == DeviceTransport::kNccl,
                    .gpu = {HostNumber(), place}}};
}

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
  // All its connections while a communicator is formed, when nobody waits, and not in the first
  // operation by it.
  setenv("NCCL_RUNTIME_CONNECT", "0", /*overwrite=*/0);
  return Caught([&]() -> absl::StatusOr<std::unique_ptr<Collectives>> {
    std::optional<DeviceCollectives::Device> device;
    if (options.device != CollectiveBuffer::kHost) {
      device.emplace(DeviceOf(*host, options.device, transport));
    }
    return std::make_unique<DeviceCollectives>(std::move(host), options, std::move(device));
  });
}

}  // namespace espalier

// What LoadCudaLibrary looks for.
extern "C" __attribute__((visibility("default"))) const espalier::CudaLibrary*
EspalierCudaLibrary() {
  static constexpr espalier::CudaLibrary kLibrary = {
      .make_collectives = espalier::MakeCudaCollectives,
      .limit_memory = espalier::LimitMemory,
      .device_count = espalier::DeviceCount,
      .gradient_kernel = espalier::CudaGradientKernel};
  return &kLibrary;
}
