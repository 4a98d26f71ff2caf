#pragma once

#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trial_runner/collectives/collectives.h"

namespace espalier {

// One communicator of NCCL's with the stream its operations run on. Non-blocking: NCCL returns
// before it is done, and what it has not completed is waited for through `Patience`, which the
// control plane can end. It uses raw NCCL and not c10d's ProcessGroupNCCL, whose watchdog threads
// end the process by limits of their own.
//
// One thread. It has never run so far, for want of a machine with several GPUs.
class NcclCommunicator {
 public:
  // Waits until the function returns true. An error if the group is given up or the limit is
  // reached.
  using Patience = std::function<absl::Status(const std::function<bool()>& done)>;

  // How many numbers an id has; they are never all zeros.
  static constexpr std::size_t kIdNumbers = sizeof(ncclUniqueId) / sizeof(std::int64_t);

  // The id that rank 0 makes and with which all members join.
  static absl::StatusOr<std::vector<std::int64_t>> NewId();
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Join(const std::vector<std::int64_t>& id,
                                                                int rank, int size, int device,
                                                                const Patience& patience);
  // Makes a communicator of the members that are not excluded; called by each of them. `broken`:
  // the members' operations under way are ended first.
  absl::StatusOr<std::unique_ptr<NcclCommunicator>> Shrink(std::vector<int> excluded, bool broken,
                                                           const Patience& patience);
  // Aborts what is under way, on a thread of its own that keeps the buffers until the GPU has let
  // go of them.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Each is ordered after what the stream `after` holds. OK: NCCL has taken it.
  absl::Status AllReduceSum(const CollectiveBuffer& buffer, c10::cuda::CUDAStream after,
                            const Patience& patience);
  absl::Status Broadcast(const CollectiveBuffer& buffer, int root, c10::cuda::CUDAStream after,
                         const Patience& patience);
  // Several sends and receives that go on at once.
  struct Transfer {
    CollectiveBuffer buffer;
    int peer = 0;
    bool send = false;
  };
  absl::Status Exchange(const std::vector<Transfer>& transfers, c10::cuda::CUDAStream after,
                        const Patience& patience);
  // Waits for everything begun.
  absl::Status WaitAll(const Patience& patience);

  // Ends what is under way, for good: only Shrink can be called now.
  void Revoke();
  bool broken() const { return broken_; }
  bool busy() const { return !in_use_.empty(); }  // since the last WaitAll

 private:
  NcclCommunicator(int device, c10::cuda::CUDAStream stream) : device_(device), stream_(stream) {}

  absl::Status Enqueue(const std::function<ncclResult_t()>& start,
                       const std::vector<CollectiveBuffer>& buffers, c10::cuda::CUDAStream after,
                       const Patience& patience);
  // Waits until NCCL is done with its last call that returned `result`.
  absl::Status Settle(ncclResult_t result, const Patience& patience) const;
  absl::Status ErrorOf(ncclResult_t result) const;

  const int device_;
  const c10::cuda::CUDAStream stream_;
  // Where NCCL's threads put the communicator, and that of a Shrink that has not succeeded: kept
  // until they have ended.
  std::shared_ptr<ncclComm_t> comm_ = std::make_shared<ncclComm_t>(nullptr);
  std::shared_ptr<ncclComm_t> unborn_;
  bool broken_ = false;
  std::vector<std::shared_ptr<const void>> in_use_;  // owners of what the stream works on
};

}  // namespace espalier
