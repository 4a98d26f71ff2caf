#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/port_range.h"
#include "base/status.h"
#include "tuner/messages/training_figures.h"

namespace espalier {

// Memory that a collective reads and writes. `owner` keeps it alive: an abandoned collective may
// touch it long after its caller has gone on. So after any failure the caller takes a fresh buffer.
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
  // The network interface that has this address, for libraries that take no address (NCCL); empty:
  // they choose.
  std::string interface;
  PortRange ports;  // to listen at; NCCL listens where it likes
  // How long one collective, and one formation, may take. Both are far longer than what happens:
  // the control plane ends a hopeless wait much sooner.
  double collective_limit_s = 600;
  double formation_limit_s = 300;
  // How long the members of a new group may take, once all its connections stand, to confirm that
  // these are theirs.
  double confirmation_limit_s = 20;
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
  // The generation's secret; members with another one cannot join the group.
  std::string secret{};

  bool operator==(const GroupPlan&) const = default;
};

// How device memory goes to the other members of a group.
struct DeviceWay {
  GradientTransport transport = GradientTransport::kNone;  // kNone: no device, or no other member
  std::string
      text;  // the same with the reason, as in "through host memory: two replicas share a GPU"
};

// The seam to Gloo (and NCCL): the group of replicas and what it computes together.
//
// One thread calls everything but Expect(), Prepare(), Abandon() and Waiting_s(), which any thread
// may call at any time. Members call the same operations in the same order. No operation waits
// forever for a member that is gone: it ends with
//   kAborted           the group was abandoned while (or before) it waited;
//   kUnavailable       the transport reported a lost member;
//   kDeadlineExceeded  it took longer than CollectivesOptions allow.
// After any of these the group cannot be used: the next call is Form() with a newer generation. A
// group of one needs no transport, and its operations return at once.
class Collectives {
 public:
  virtual ~Collectives() = default;

  // host:port (an IPv6 host in brackets) where the members of a generation whose rank 0 is this
  // process meet.
  virtual std::string Address() const = 0;

  // How long the one thread has been waiting for the others, in Form() or WaitAll(); 0: it is not,
  // or this is not known. Any thread may ask.
  virtual double Waiting_s() const { return 0; }

  // From now on members of the generation, whose rank 0 is this process, may meet here: they need
  // not wait until it calls Form() itself. Any thread.
  virtual void Expect(std::int64_t /*generation*/, const std::string& /*secret*/) {}

  // Forms the next group beside the present one, in the background, for the Form() of this plan to
  // take over: its members need not stop for it. What goes wrong is said by Form(). A newer plan
  // takes the place of an older one. Any thread.
  virtual void Prepare(const GroupPlan& /*plan*/) {}
  // False: the group of this generation is being prepared, and may be soon. It is not waited for
  // for longer than a few seconds.
  virtual bool Prepared(std::int64_t /*generation*/) const { return true; }

  // Leaves the present group, if there is one, and waits until all members of `plan` have met. May
  // wait as long as the others take to arrive, up to the limit. kAborted also if Abandon() has
  // already named a newer generation, and kUnavailable, naming the rank that it should belong to,
  // if a connection turns out to be that of a process which does not know the secret.
  virtual absl::Status Form(const GroupPlan& plan) = 0;

  // An operation is begun here and done when WaitAll() says so; the buffer must not be touched
  // meanwhile. Operations of one kind are begun in the same order on all members (send and receive:
  // between each two), and between the same two WaitAll. Device memory: ordered after what the
  // calling thread's current CUDA stream holds.
  //
  // Replaces the buffer's content with the sum over all members, bitwise the same on each.
  virtual void StartAllReduceSum(const CollectiveBuffer& buffer) = 0;
  virtual void StartBroadcast(const CollectiveBuffer& buffer, int root) = 0;
  // Point to point; the two buffers have the same size.
  virtual void StartSend(const CollectiveBuffer& buffer, int to) = 0;
  virtual void StartReceive(const CollectiveBuffer& buffer, int from) = 0;
  // Waits for everything begun since the last call. Ends with the first error; the group cannot be
  // used then, and what was begun may still write to its buffers.
  virtual absl::Status WaitAll() = 0;
  // The same, and what has been summed can be worked with while the rest is under way: `each` is
  // called as operations are found to be done, at most once for each, in the order in which they
  // were begun, with the start of the operation's buffer. An implementation that finds out about
  // all at once need not call it.
  using EachDone = std::function<void(const void* start)>;
  virtual absl::Status WaitAllInTurn(const EachDone& /*each*/) { return WaitAll(); }
  // The same, and `follow` gives the calling thread's current CUDA stream what is to come after
  // what was begun. Where that goes from device to device, it is waited for together with what
  // follows; else `follow` is called last, and the caller waits. It is called once, or not at all
  // after an error; what it has given is not to be relied on if this returns an error.
  virtual absl::Status WaitAllAnd(const std::function<void()>& follow) {
    ESPALIER_RETURN_IF_ERROR(WaitAll());
    follow();
    return absl::OkStatus();
  }

  absl::Status AllReduceSum(const CollectiveBuffer& buffer) {
    StartAllReduceSum(buffer);
    return WaitAll();
  }
  absl::Status Broadcast(const CollectiveBuffer& buffer, int root) {
    StartBroadcast(buffer, root);
    return WaitAll();
  }
  // Returns each member's values, by rank. All members give the same number of values.
  virtual absl::StatusOr<std::vector<std::vector<std::int64_t>>> AllGather(
      const std::vector<std::int64_t>& values) = 0;

  // Whether device memory is to go from device to device in the present group, at once or a little
  // later. All members say the same, for as long as the group lasts.
  virtual bool FromDeviceToDevice() const { return false; }
  // How device memory goes to the other members of the present group. It may change between two
  // steps, when a communicator has formed or failed.
  virtual DeviceWay Way() const { return {}; }

  // Gives up groups older than `generation`: operations that wait in one return kAborted, at once,
  // or once they have waited for `grace_s` seconds after this call.
  virtual void Abandon(std::int64_t generation, double grace_s = 0) = 0;
  // A grace is not shorter than this in operations that wait from now on.
  virtual void SetLeastGrace(double /*grace_s*/) {}
};

// Makes the collectives that the options name. An unknown implementation is answered with the known
// ones.
absl::StatusOr<std::unique_ptr<Collectives>> MakeCollectives(const CollectivesOptions& options);

}  // namespace espalier
