#include "trial_runner/collectives/cuda/staged_operations.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>

#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "trial_runner/collectives/buffer_tensor.h"

namespace espalier {

StagedOperations::StagedOperations(Collectives& host, int device)
    : host_(host),
      copies_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true,
                                           static_cast<c10::DeviceIndex>(device))) {}

// Pinned memory for the operation, with the device's content where that matters.
at::Tensor StagedOperations::HostCopy(const StagedOperation& operation, const at::Tensor& device,
                                      c10::cuda::CUDAStream after, Waiting& waiting) {
  const CollectiveBuffer& buffer = operation.buffer;
  const bool sends = operation.kind == Kind::kSend;
  if (sends && sent_.host.defined() && sent_.start == buffer.start && sent_.count == buffer.count) {
    waiting.copied = sent_.copied;
    return sent_.host;
  }
  at::Tensor host = at::empty({buffer.count},
                              at::TensorOptions().dtype(device.scalar_type()).pinned_memory(true));
  if (operation.reads) {
    c10::Event ready(c10::DeviceType::CUDA);
    ready.record(after.unwrap());
    ready.block(copies_.unwrap());
    const c10::cuda::CUDAStreamGuard guard(copies_);
    host.copy_(device, /*non_blocking=*/true);
    waiting.copied = std::make_shared<c10::Event>(c10::DeviceType::CUDA);
    waiting.copied->record(copies_.unwrap());
  }
  if (sends) sent_ = {buffer.start, buffer.count, host, waiting.copied};
  return host;
}

void StagedOperations::Start(const StagedOperation& operation, c10::cuda::CUDAStream after) {
  Waiting waiting{.operation = operation, .copied = nullptr};
  if (operation.buffer.device != CollectiveBuffer::kHost) {
    const at::Tensor device = TensorOf(operation.buffer);
    const at::Tensor host = HostCopy(operation, device, after, waiting);
    if (operation.writes) returns_.push_back({device, host});
    waiting.operation.buffer.start = host.mutable_data_ptr();
    waiting.operation.buffer.device = CollectiveBuffer::kHost;
    // The device's memory is read until the copy has ended.
    waiting.operation.buffer.owner =
        std::make_shared<std::pair<at::Tensor, at::Tensor>>(device, host);
  }
  waiting_.push_back(std::move(waiting));
  BeginReady();
}

bool StagedOperations::IsReady(const Waiting& waiting) {
  return !waiting.copied || waiting.copied->query();
}

void StagedOperations::BeginReady() {
  while (!waiting_.empty() && IsReady(waiting_.front())) {
    StartOnHost(host_, waiting_.front().operation);
    waiting_.pop_front();
  }
}

absl::Status StagedOperations::WaitAll(c10::cuda::CUDAStream before, const Patience& patience) {
  sent_ = {};  // from here on the content may change
  while (!waiting_.empty()) {
    const Waiting& front = waiting_.front();
    ESPALIER_RETURN_IF_ERROR(patience([&] { return IsReady(front); }));
    BeginReady();
  }
  ESPALIER_RETURN_IF_ERROR(host_.WaitAll());
  const c10::cuda::CUDAStreamGuard guard(before);
  for (const Return& each : returns_) each.device.copy_(each.host, /*non_blocking=*/true);
  returns_.clear();
  return absl::OkStatus();
}

void StagedOperations::Clear() {
  waiting_.clear();
  returns_.clear();
  sent_ = {};
}

}  // namespace espalier
