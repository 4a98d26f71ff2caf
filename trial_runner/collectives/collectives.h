#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace espalier {

// Memory that a collective reads and writes. `owner` keeps it alive: an abandoned collective may
// touch it long after its caller has gone on. So after any failure the caller takes a fresh one.
struct CollectiveBuffer {
  enum class Type { kFloat, kDouble, kInt64, kByte };

  static constexpr int kHost = -1;

  Type type = Type::kFloat;
  void* start = nullptr;
  std::int64_t count = 0;  // elements
  int device = kHost;      // index of the CUDA device whose memory it is
  std::shared_ptr<const void> owner;

  static CollectiveBuffer Of(const std::shared_ptr<std::vector<float>>& v);
  static CollectiveBuffer Of(const std::shared_ptr<std::vector<double>>& v);
  static CollectiveBuffer Of(const std::shared_ptr<std::vector<std::int64_t>>& v);
  static CollectiveBuffer Of(const std::shared_ptr<std::vector<std::uint8_t>>& v);
};

struct CollectivesOptions {
  // Address of this machine that the other replicas can reach: rendezvous and connections bind to
  // it.
  std::string host = "127.0.0.1";
  // Network interface to bind to instead ("eth0"); empty: by `host`.
  std::string interface;
  // How long one collective, and one formation, may take. Both are far beyond what happens: the
  // control plane's word ends a hopeless wait much sooner.
  double collective_limit_s = 600;
  double formation_limit_s = 300;
  // The GPU that the replica trains on.
  int device = CollectiveBuffer::kHost;
  // "gloo": by sockets; device memory goes through the host's. "nccl": device memory from GPU to
  // GPU where every member has one of its own, host memory as with gloo. Empty: as `device` asks.
  std::string implementation;
};

// One generation of a trial's replicas, as one of its members sees it.
struct GroupPlan {
  std::int64_t generation = 0;
  int rank = 0;
  int size = 1;
  std::string rendezvous;  // Address() of rank 0
};

// The seam to Gloo (and NCCL): the group of replicas and what it computes together.
//
// One thread calls everything but Abandon(), which any thread may call at any time. Members call
// the same operations in the same order. No operation waits for ever on a member that is gone: it
// ends with
//   kAborted           the group was abandoned while (or before) it waited;
//   kUnavailable       the transport reported a lost member;
//   kDeadlineExceeded  it took longer than CollectivesOptions allow.
// After any of these the group is of no use: the next call is Form() with a newer generation. A
// group of one needs no transport, and its operations return at once.
class Collectives {
 public:
  virtual ~Collectives() = default;

  // host:port where the members of a generation whose rank 0 is this process meet.
  virtual std::string Address() const = 0;

  // Leaves the present group, if there is one, and waits until all members of `plan` have met.
  // May wait as long as the others take to arrive, up to the limit. kAborted also if Abandon() has
  // already named a newer generation.
  virtual absl::Status Form(const GroupPlan& plan) = 0;

  // Begun here, done when WaitAll() says so; the buffer is not to be touched meanwhile. Operations
  // of one kind are begun in the same order on all members (send and receive: between each two),
  // and between the same two WaitAll.
  // Device memory: ordered after what the calling thread's current CUDA stream holds.
  //
  // Replaces the buffer's content with the sum over all members, bitwise the same on each.
  virtual void StartAllReduceSum(const CollectiveBuffer& buffer) = 0;
  virtual void StartBroadcast(const CollectiveBuffer& buffer, int root) = 0;
  // Point to point; the two buffers have one size.
  virtual void StartSend(const CollectiveBuffer& buffer, int to) = 0;
  virtual void StartReceive(const CollectiveBuffer& buffer, int from) = 0;
  // Waits for everything begun since the last time. Ends with the first error, and the group is
  // then of no use: what was begun may still write to its buffers.
  virtual absl::Status WaitAll() = 0;

  absl::Status AllReduceSum(const CollectiveBuffer& buffer) {
    StartAllReduceSum(buffer);
    return WaitAll();
  }
  absl::Status Broadcast(const CollectiveBuffer& buffer, int root) {
    StartBroadcast(buffer, root);
    return WaitAll();
  }
  // Each member's values, by rank. All members give equally many.
  virtual absl::StatusOr<std::vector<std::vector<std::int64_t>>> AllGather(
      const std::vector<std::int64_t>& values) = 0;

  // Groups older than `generation` are given up: whoever waits in one returns kAborted; at once,
  // or after `grace_s` seconds of waiting during which the word was known.
  virtual void Abandon(std::int64_t generation, double grace_s = 0) = 0;
};

// Collectives by the options. An unknown implementation is answered with the known ones.
absl::StatusOr<std::unique_ptr<Collectives>> MakeCollectives(const CollectivesOptions& options);

}  // namespace espalier
