#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <iostream>

#include "base/status.h"
#include "tests/trial_runner/collectives/collectives_contract.h"
#include "trial_runner/collectives/cuda/cuda_library.h"
#include "trial_runner/collectives/gloo/gloo_collectives.h"

namespace espalier {
namespace {

constexpr int kMostMembers = 4;  // of any test; NCCL wants a GPU for each

CollectiveBuffer PlaceInHostMemory(CollectiveBuffer::Type type,
                                   const std::vector<std::uint8_t>& bytes, std::int64_t count,
                                   int /*member*/) {
  auto owner = std::make_shared<std::vector<std::uint8_t>>(bytes);
  return {type, owner->data(), count, CollectiveBuffer::kHost, owner};
}

std::vector<std::uint8_t> ReadHostMemory(const CollectiveBuffer& buffer) {
  return *static_cast<const std::vector<std::uint8_t>*>(buffer.owner.get());
}

CollectiveBuffer PlaceOnGpu(CollectiveBuffer::Type type, const std::vector<std::uint8_t>& bytes,
                            std::int64_t count, int gpu) {
  auto owner = std::make_shared<at::Tensor>(at::empty(
      {static_cast<std::int64_t>(bytes.size())},
      at::TensorOptions().dtype(at::kByte).device(at::kCUDA, static_cast<c10::DeviceIndex>(gpu))));
  owner->copy_(at::from_blob(const_cast<std::uint8_t*>(bytes.data()),
                             {static_cast<std::int64_t>(bytes.size())}, at::kByte));
  return {type, owner->mutable_data_ptr(), count, gpu, owner};
}

std::vector<std::uint8_t> ReadGpu(const CollectiveBuffer& buffer) {
  const at::Tensor host = static_cast<const at::Tensor*>(buffer.owner.get())->cpu();
  const auto* bytes = host.const_data_ptr<std::uint8_t>();
  return {bytes, bytes + host.nbytes()};
}

absl::StatusOr<std::unique_ptr<Collectives>> MakeOver(const CudaLibrary& cuda,
                                                      CollectivesOptions options, int device,
                                                      DeviceTransport transport) {
  options.device = device;
  ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Collectives> host, MakeGlooCollectives(options));
  return cuda.make_collectives(std::move(host), options, transport);
}

void AddOfCuda(const CudaLibrary& cuda, std::vector<CollectivesUnderTest>& all) {
  // Without any GPU, what the CUDA part hands on to the host's can still be tested.
  all.push_back({.name = "cuda_host_memory",
                 .make =
                     [&cuda](const CollectivesOptions& options, int) {
                       return MakeOver(cuda, options, CollectiveBuffer::kHost,
                                       DeviceTransport::kNccl);
                     },
                 .place = PlaceInHostMemory,
                 .read = ReadHostMemory});
  const absl::StatusOr<int> gpus = cuda.device_count();
  if (!gpus.ok()) {
    std::cerr << "not tested: device memory, by NCCL or through the host: " << gpus.status()
              << "\n";
    return;
  }
  all.push_back(
      {.name = "gloo_device_memory",
       .make = [&cuda](const CollectivesOptions& options,
                       int) { return MakeOver(cuda, options, 0, DeviceTransport::kThroughHost); },
       .place = [](auto type, auto& bytes, auto count,
                   int) { return PlaceOnGpu(type, bytes, count, 0); },
       .read = ReadGpu});
  if (*gpus < kMostMembers) {
    std::cerr << "not tested: NCCL: it needs " << kMostMembers << " GPUs, here are " << *gpus
              << "\n";
    return;
  }
  all.push_back({.name = "nccl",
                 .make =
                     [&cuda](const CollectivesOptions& options, int member) {
                       return MakeOver(cuda, options, member, DeviceTransport::kNccl);
                     },
                 .place = PlaceOnGpu,
                 .read = ReadGpu});
}

std::vector<CollectivesUnderTest> FindAll() {
  std::vector<CollectivesUnderTest> all = {
      {.name = "gloo",
       .make = [](const CollectivesOptions& options, int) { return MakeGlooCollectives(options); },
       .place = PlaceInHostMemory,
       .read = ReadHostMemory}};
  if (const auto cuda = LoadCudaLibrary(); cuda.ok()) {
    AddOfCuda(**cuda, all);
  } else {
    std::cerr << "not tested: device memory: " << cuda.status() << "\n";
  }
  return all;
}

}  // namespace

const std::vector<CollectivesUnderTest>& AllCollectivesUnderTest() {
  static const std::vector<CollectivesUnderTest> all = FindAll();
  return all;
}

}  // namespace espalier
