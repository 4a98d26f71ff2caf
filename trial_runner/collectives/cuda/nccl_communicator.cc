#include "trial_runner/collectives/cuda/nccl_communicator.h"

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"

namespace espalier {
namespace {

// NCCL starts an operation on a thread of its own, within a few tens of microseconds: sleeping
// takes longer than that.
constexpr std::chrono::microseconds kSpin{200};

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

absl::StatusOr<std::vector<std::int64_t>> NcclCommunicator::NewId(const NcclApi& nccl) {
  static_assert(sizeof(ncclUniqueId) % sizeof(std::int64_t) == 0);
  ncclUniqueId id;
  if (const ncclResult_t result = nccl.get_unique_id(&id); result != ncclSuccess) {
    return absl::UnavailableError(absl::StrCat("NCCL gives no id: ", nccl.last_error(nullptr)));
  }
  std::vector<std::int64_t> numbers(kIdNumbers);
  std::memcpy(numbers.data(), &id, sizeof(id));
  return numbers;
}

std::unique_ptr<NcclCommunicator> NcclCommunicator::Begin(
    const NcclApi& nccl, std::unique_ptr<CommunicatorStream> stream,
    const std::vector<std::int64_t>& id, int rank, int size) {
  ncclUniqueId unique;
  ESPALIER_CHECK(id.size() * sizeof(std::int64_t) == sizeof(unique), "not an id of NCCL's");
  std::memcpy(&unique, id.data(), sizeof(unique));
  std::unique_ptr<NcclCommunicator> begun(new NcclCommunicator(nccl, std::move(stream)));
  ncclConfig_t config = NonBlocking();
  begun->joining_ = nccl.init_rank(begun->comm_.get(), size, unique, rank, &config);
  return begun;
}

absl::StatusOr<bool> NcclCommunicator::Joined() {
  if (joining_ == ncclInProgress) {
    const ncclResult_t asked = nccl_.get_async_error(*comm_, &joining_);
    if (asked != ncclSuccess) joining_ = asked;
  }
  if (joining_ == ncclInProgress) return false;
  if (joining_ != ncclSuccess) return Fail(joining_);
  return true;
}

NcclCommunicator::~NcclCommunicator() {
  std::thread([&nccl = nccl_, stream = std::move(stream_), comm = comm_, linger_s = linger_s_,
               in_use = std::move(in_use_)]() mutable {
    std::this_thread::sleep_for(std::chrono::duration<double>(linger_s));
    // Also in the middle of an operation or of joining: it ends these. Whether it succeeds or not,
    // nothing writes to the buffers afterwards.
    if (*comm != nullptr) static_cast<void>(nccl.abort(*comm));
    stream->Synchronize();
    in_use.clear();
  }).detach();
}

absl::Status NcclCommunicator::AllReduceSum(const CollectiveBuffer& buffer,
                                            const Patience& patience) {
  return Enqueue(
      [&] {
        return nccl_.all_reduce(buffer.start, buffer.start, CountOf(buffer),
                                DataTypeOf(buffer.type), ncclSum, *comm_, stream_->handle());
      },
      {buffer}, patience);
}

absl::Status NcclCommunicator::Broadcast(const CollectiveBuffer& buffer, int root,
                                         const Patience& patience) {
  return Enqueue(
      [&] {
        return nccl_.broadcast(buffer.start, buffer.start, CountOf(buffer), DataTypeOf(buffer.type),
                               root, *comm_, stream_->handle());
      },
      {buffer}, patience);
}

absl::Status NcclCommunicator::Exchange(const std::vector<Transfer>& transfers,
                                        const Patience& patience) {
  std::vector<CollectiveBuffer> buffers;
  for (const Transfer& transfer : transfers) buffers.push_back(transfer.buffer);
  return Enqueue(
      [&] {
        nccl_.group_start();
        for (const auto& [buffer, peer, send] : transfers) {
          const ncclDataType_t type = DataTypeOf(buffer.type);
          if (send) {
            nccl_.send(buffer.start, CountOf(buffer), type, peer, *comm_, stream_->handle());
          } else {
            nccl_.receive(buffer.start, CountOf(buffer), type, peer, *comm_, stream_->handle());
          }
        }
        return nccl_.group_end();  // tells the errors of the calls before, too
      },
      buffers, patience);
}

absl::Status NcclCommunicator::Enqueue(const std::function<ncclResult_t()>& start,
                                       const std::vector<CollectiveBuffer>& buffers,
                                       const Patience& patience) {
  stream_->FollowCurrent();
  for (const CollectiveBuffer& buffer : buffers) in_use_.push_back(buffer.owner);
  return Settle(start(), patience);
}

absl::Status NcclCommunicator::WaitAll(const Patience& patience,
                                       const std::function<void()>& follow) {
  if (follow) {
    stream_->LeadCurrent();
    follow();
    stream_->MarkCurrent();
  } else {
    stream_->Mark();
  }
  ncclResult_t state = ncclSuccess;
  ESPALIER_RETURN_IF_ERROR(patience([&] {
    if (nccl_.get_async_error(*comm_, &state) != ncclSuccess) state = ncclInternalError;
    return stream_->Passed() || (state != ncclSuccess && state != ncclInProgress);
  }));
  if (state != ncclSuccess && state != ncclInProgress) return Fail(state);
  in_use_.clear();
  return absl::OkStatus();
}

absl::Status NcclCommunicator::Settle(ncclResult_t result, const Patience& patience) {
  if (result == ncclInProgress) {
    const auto settled = [&] {
      const ncclResult_t asked = nccl_.get_async_error(*comm_, &result);
      if (asked != ncclSuccess) result = asked;
      return result != ncclInProgress;
    };
    const auto end = std::chrono::steady_clock::now() + kSpin;
    bool done = settled();
    while (!done && std::chrono::steady_clock::now() < end) done = settled();
    if (!done) ESPALIER_RETURN_IF_ERROR(patience(settled));
  }
  return result == ncclSuccess ? absl::OkStatus() : Fail(result);
}

absl::Status NcclCommunicator::Fail(ncclResult_t result) {
  failed_ = true;
  return absl::UnavailableError(
      absl::StrCat("NCCL: ", nccl_.error_string(result), ": ", nccl_.last_error(*comm_)));
}

}  // namespace espalier
