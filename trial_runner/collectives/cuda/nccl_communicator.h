#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trial_runner/collectives/collectives.h"
#include "trial_runner/collectives/cuda/communicator_stream.h"
#include "trial_runner/collectives/cuda/nccl_api.h"

namespace espalier {

// One communicator of NCCL's with the stream its operations run on. Non-blocking: NCCL returns
// before it is done, and what it has not completed is waited for through `Patience`, which the
// control plane can end. It uses raw NCCL and not c10d's ProcessGroupNCCL, whose watchdog threads
// end the process by limits of their own.
//
// A communicator is only ever made anew, never shrunk: NCCL 2.28 answers ncclCommShrink before the
// smaller one exists, and after a remote error it never succeeds (NCCL's issues 1472 and 2397).
//
// One thread. After an operation has failed, the communicator can only be destroyed.
class NcclCommunicator {
 public:
  // Waits until the function returns true. An error if the group is given up or the limit is
  // reached.
  using Patience = std::function<absl::Status(const std::function<bool()>& done)>;

  // How many numbers an id has; they are never all zeros.
  static constexpr std::size_t kIdNumbers = sizeof(ncclUniqueId) / sizeof(std::int64_t);

  // The id that rank 0 makes and with which all members join.
  static absl::StatusOr<std::vector<std::int64_t>> NewId(const NcclApi& nccl);
  // Begins to join the others, on the calling thread's current device, to which `stream` belongs.
  // It goes on by itself; until Joined() says that it is done, nothing else may be asked for.
  static std::unique_ptr<NcclCommunicator> Begin(const NcclApi& nccl,
                                                 std::unique_ptr<CommunicatorStream> stream,
                                                 const std::vector<std::int64_t>& id, int rank,
                                                 int size);
  // Whether it is done. An error if it has failed. Does not wait.
  absl::StatusOr<bool> Joined();
  // Aborts the communicator, on a thread of its own that keeps the buffers until the GPU has let go
  // of them.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Each is ordered after what the calling thread's current stream holds. OK: NCCL has taken it.
  absl::Status AllReduceSum(const CollectiveBuffer& buffer, const Patience& patience);
  absl::Status Broadcast(const CollectiveBuffer& buffer, int root, const Patience& patience);
  // Several sends and receives that go on at once.
  struct Transfer {
    CollectiveBuffer buffer;
    int peer = 0;
    bool send = false;
  };
  absl::Status Exchange(const std::vector<Transfer>& transfers, const Patience& patience);
  // Waits for everything begun. With `follow`: for what that gives the current stream, too, which
  // comes after what was begun.
  absl::Status WaitAll(const Patience& patience, const std::function<void()>& follow = nullptr);

  // Nothing was begun since the last WaitAll, and NCCL has told of no error.
  bool idle() const { return in_use_.empty() && !failed_; }

  // The destructor's thread waits for this long before it aborts. For a member that leaves: within
  // a node the others' kernels may still read its memory (NCCL's issue 863), and it does not hear
  // when they have ended.
  void LingerFor(double seconds) { linger_s_ = seconds; }

 private:
  NcclCommunicator(const NcclApi& nccl, std::unique_ptr<CommunicatorStream> stream)
      : nccl_(nccl), stream_(std::move(stream)) {}

  absl::Status Enqueue(const std::function<ncclResult_t()>& start,
                       const std::vector<CollectiveBuffer>& buffers, const Patience& patience);
  // Waits until NCCL is done with its last call that returned `result`.
  absl::Status Settle(ncclResult_t result, const Patience& patience);
  absl::Status Fail(ncclResult_t result);

  const NcclApi& nccl_;
  std::unique_ptr<CommunicatorStream> stream_;
  // NCCL's thread stores the communicator here once more when it has joined: kept until the abort
  // has ended.
  std::shared_ptr<ncclComm_t> comm_ = std::make_shared<ncclComm_t>(nullptr);
  ncclResult_t joining_ = ncclInProgress;  // what NCCL said last of it
  double linger_s_ = 0;
  bool failed_ = false;
  std::vector<std::shared_ptr<const void>> in_use_;  // owners of what the stream works on
};

}  // namespace espalier
