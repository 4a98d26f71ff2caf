#include "trial_runner/collectives/nccl_communicator.h"

#include <c10/core/Event.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/base/check.h"
#include "tuner/base/status.h"

namespace espalier {
namespace {

ncclDataType_t DataTypeOf(CollectiveBuffer::Type type) {
  switch (type) {
    case CollectiveBuffer::Type::kFloat:
      return ncclFloat32;
    case CollectiveBuffer::Type::kDouble:
      return ncclFloat64;
    case CollectiveBuffer::Type::kInt64:
      return ncclInt64;
    case CollectiveBuffer::Type::kByte:
      return ncclUint8;
  }
  ESPALIER_CHECK(false, "unknown buffer type");
}

ncclConfig_t NonBlocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

std::size_t CountOf(const CollectiveBuffer& buffer) {
  return static_cast<std::size_t>(buffer.count);
}

}  // namespace

absl::StatusOr<std::vector<std::int64_t>> NcclCommunicator::NewId() {
  static_assert(sizeof(ncclUniqueId) % sizeof(std::int64_t) == 0);
  ncclUniqueId id;
  if (const ncclResult_t result = ncclGetUniqueId(&id); result != ncclSuccess) {
    return absl::UnavailableError(absl::StrCat("NCCL gives no id: ", ncclGetLastError(nullptr)));
  }
  std::vector<std::int64_t> numbers(kIdNumbers);
  std::memcpy(numbers.data(), &id, sizeof(id));
  return numbers;
}

absl::StatusOr<std::unique_ptr<NcclCommunicator>> NcclCommunicator::Join(
    const std::vector<std::int64_t>& id, int rank, int size, int device, const Patience& patience) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
  std::unique_ptr<NcclCommunicator> joined(new NcclCommunicator(
      device, c10::cuda::getStreamFromPool(/*isHighPriority=*/true,
                                           static_cast<c10::DeviceIndex>(device))));
  ncclUniqueId unique;
  ESPALIER_CHECK(id.size() * sizeof(std::int64_t) == sizeof(unique), "not an id of NCCL's");
  std::memcpy(&unique, id.data(), sizeof(unique));
  ncclConfig_t config = NonBlocking();
  const ncclResult_t result =
      ncclCommInitRankConfig(joined->comm_.get(), size, unique, rank, &config);
  ESPALIER_RETURN_IF_ERROR(joined->Settle(result, patience));
  return joined;
}

absl::StatusOr<std::unique_ptr<NcclCommunicator>> NcclCommunicator::Shrink(
    std::vector<int> excluded, bool broken, const Patience& patience) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device_));
  ESPALIER_RETURN_IF_ERROR(Settle(ncclInProgress, patience));  // after Revoke
  unborn_ = std::make_shared<ncclComm_t>(nullptr);
  ncclConfig_t config = NonBlocking();
  const ncclResult_t result =
      ncclCommShrink(*comm_, excluded.data(), static_cast<int>(excluded.size()), unborn_.get(),
                     &config, broken ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT);
  // Progress on the new one is told by the old one.
  ESPALIER_RETURN_IF_ERROR(Settle(result, patience));
  std::unique_ptr<NcclCommunicator> rest(new NcclCommunicator(device_, stream_));
  rest->comm_ = std::move(unborn_);
  ESPALIER_RETURN_IF_ERROR(rest->Settle(ncclInProgress, patience));
  return rest;
}

NcclCommunicator::~NcclCommunicator() {
  std::thread([comm = std::move(comm_), unborn = std::move(unborn_), device = device_,
               stream = stream_.stream(), in_use = std::move(in_use_)] {
    // Whether these succeed or not: afterwards nothing writes to the buffers any more.
    static_cast<void>(cudaSetDevice(device));
    if (*comm != nullptr) ncclCommAbort(*comm);
    if (unborn && *unborn != nullptr) ncclCommAbort(*unborn);
    static_cast<void>(cudaStreamSynchronize(stream));
  }).detach();
}

absl::Status NcclCommunicator::AllReduceSum(const CollectiveBuffer& buffer,
                                            c10::cuda::CUDAStream after, const Patience& patience) {
  return Enqueue(
      [&] {
        return ncclAllReduce(buffer.start, buffer.start, CountOf(buffer), DataTypeOf(buffer.type),
                             ncclSum, *comm_, stream_.stream());
      },
      {buffer}, after, patience);
}

absl::Status NcclCommunicator::Broadcast(const CollectiveBuffer& buffer, int root,
                                         c10::cuda::CUDAStream after, const Patience& patience) {
  return Enqueue(
      [&] {
        return ncclBroadcast(buffer.start, buffer.start, CountOf(buffer), DataTypeOf(buffer.type),
                             root, *comm_, stream_.stream());
      },
      {buffer}, after, patience);
}

absl::Status NcclCommunicator::Exchange(const std::vector<Transfer>& transfers,
                                        c10::cuda::CUDAStream after, const Patience& patience) {
  std::vector<CollectiveBuffer> buffers;
  for (const Transfer& transfer : transfers) buffers.push_back(transfer.buffer);
  return Enqueue(
      [&] {
        ncclGroupStart();
        for (const auto& [buffer, peer, send] : transfers) {
          const ncclDataType_t type = DataTypeOf(buffer.type);
          if (send) {
            ncclSend(buffer.start, CountOf(buffer), type, peer, *comm_, stream_.stream());
          } else {
            ncclRecv(buffer.start, CountOf(buffer), type, peer, *comm_, stream_.stream());
          }
        }
        return ncclGroupEnd();  // tells the errors of the calls before, too
      },
      buffers, after, patience);
}

absl::Status NcclCommunicator::Enqueue(const std::function<ncclResult_t()>& start,
                                       const std::vector<CollectiveBuffer>& buffers,
                                       c10::cuda::CUDAStream after, const Patience& patience) {
  ESPALIER_CHECK(!broken_, "collective called on a group that is lost");
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device_));
  c10::Event ready(c10::DeviceType::CUDA);
  ready.record(after.unwrap());
  ready.block(stream_.unwrap());
  for (const CollectiveBuffer& buffer : buffers) in_use_.push_back(buffer.owner);
  return Settle(start(), patience);
}

absl::Status NcclCommunicator::WaitAll(const Patience& patience) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device_));
  c10::Event done(c10::DeviceType::CUDA);
  done.record(stream_.unwrap());
  ncclResult_t state = ncclSuccess;
  ESPALIER_RETURN_IF_ERROR(patience([&] {
    if (ncclCommGetAsyncError(*comm_, &state) != ncclSuccess) state = ncclInternalError;
    return done.query() || (state != ncclSuccess && state != ncclInProgress);
  }));
  if (state != ncclSuccess && state != ncclInProgress) return ErrorOf(state);
  in_use_.clear();
  return absl::OkStatus();
}

void NcclCommunicator::Revoke() {
  if (broken_) return;
  broken_ = true;
  // Should it fail, the abort that follows ends the operations.
  static_cast<void>(ncclCommRevoke(*comm_, NCCL_REVOKE_DEFAULT));
}

absl::Status NcclCommunicator::Settle(ncclResult_t result, const Patience& patience) const {
  if (result == ncclInProgress) {
    ESPALIER_RETURN_IF_ERROR(patience([&] {
      return ncclCommGetAsyncError(*comm_, &result) != ncclSuccess || result != ncclInProgress;
    }));
  }
  return result == ncclSuccess ? absl::OkStatus() : ErrorOf(result);
}

absl::Status NcclCommunicator::ErrorOf(ncclResult_t result) const {
  return absl::UnavailableError(
      absl::StrCat("NCCL: ", ncclGetErrorString(result), ": ", ncclGetLastError(*comm_)));
}

}  // namespace espalier
