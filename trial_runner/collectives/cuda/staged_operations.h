#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "trial_runner/collectives/cuda/staged_operation.h"

namespace espalier {

// Operations on device memory by way of the host's memory: copied to pinned memory, done there by
// `host`, copied back. All operations, also those on host memory, begin in the order of the calls,
// since all members must begin them in one order, whatever the order in which copies end. One
// thread; `host` outlives it.
class StagedOperations {
 public:
  using Kind = StagedOperation::Kind;
  using Patience = std::function<absl::Status(const std::function<bool()>& done)>;

  StagedOperations(Collectives& host, int device);

  // `after`: the stream that will have made the content.
  void Start(const StagedOperation& operation, c10::cuda::CUDAStream after);
  // Ends with the copies back enqueued on `before`.
  absl::Status WaitAll(c10::cuda::CUDAStream before, const Patience& patience);
  // What was begun may still use its buffers; `host` keeps those.
  void Clear();

 private:
  struct Waiting {
    StagedOperation operation;
    std::shared_ptr<c10::Event> copied;  // null: nothing had to be
  };
  // What was copied last to be sent, since the next member is often sent the same.
  struct Sent {
    const void* start = nullptr;
    std::int64_t count = 0;
    at::Tensor host;
    std::shared_ptr<c10::Event> copied;
  };

  at::Tensor HostCopy(const StagedOperation& operation, const at::Tensor& device,
                      c10::cuda::CUDAStream after, Waiting& waiting);

  static bool IsReady(const Waiting& waiting);
  void BeginReady();

  Collectives& host_;
  const c10::cuda::CUDAStream copies_;
  std::deque<Waiting> waiting_;  // not yet begun
  struct Return {
    at::Tensor device;
    at::Tensor host;
  };
  std::vector<Return> returns_;
  Sent sent_;
};

}  // namespace espalier
