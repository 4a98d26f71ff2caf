#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "allocator/goodput/goodput.h"
#include "allocator/goodput/profile.h"
#include "tuner/base/ids.h"

namespace espalier {

// One replica of a group.
struct Member {
  ReplicaId replica;
  NodeId node;
  std::string address;  // host:port of its rendezvous

  friend bool operator==(const Member&, const Member&) = default;
};

// The group of a trial as the service wants it. A replica obeys the highest generation it has
// seen: one that is not a member leaves, and without any member the trial pauses.
struct Membership {
  std::int64_t generation = 0;  // 0: none yet
  std::vector<Member> members;  // by rank
  bool abandon = false;         // do not wait for a step boundary: the present group is broken

  std::optional<int> RankOf(ReplicaId replica) const;
  int Nodes() const;  // distinct nodes among the members
};

// ---- what a replica tells the service; control.proto says what each field means --------------

struct ReplicaReady {
  std::string address;
  BatchBounds bounds;
  std::int64_t total_steps = 0;
};

struct ReplicaRegrouped {
  std::int64_t generation = 0;
  std::int64_t step = 0;
  double pause_s = 0;
  double form_s = 0;
  double broadcast_s = 0;
  double lost_step_s = 0;
};

struct ReplicaReport {
  std::int64_t generation = 0;
  std::int64_t step = 0;
  double value = 0;
  double progress = 0;
  std::map<std::string, double> extra;
};

struct ReplicaTime {
  ReplicaId replica;
  std::int64_t steps = 0;
  double compute_time_s = 0;
};

struct ReplicaProgress {
  std::int64_t generation = 0;
  std::int64_t step = 0;
  double progress = 0;
  double epoch = 0;
  std::int64_t global_batch_size = 0;
  std::int64_t atomic_batch_size = 0;
  std::int64_t accumulation_steps = 0;
  double learning_rate = 0;
  double gradient_sqr = 0;
  double gradient_var = 0;
  std::vector<ProfileEntry> profile;
  std::vector<ReplicaTime> replica_times;
  double goodput = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t device_memory_bytes = 0;
  std::int64_t skipped_steps = 0;
  double loss_scale = 0;
};

struct ReplicaCheckpoint {
  std::int64_t generation = 0;
  std::string path;
  std::int64_t step = 0;
};

struct ReplicaFinished {
  std::int64_t generation = 0;
  std::optional<double> value;
  std::string failure;
};

struct ReplicaStuck {
  std::int64_t generation = 0;
  double waited_s = 0;
};

using ReplicaWord = std::variant<ReplicaReady, ReplicaRegrouped, ReplicaReport, ReplicaProgress,
                                 ReplicaCheckpoint, ReplicaFinished, ReplicaStuck>;

// What a replica that has left its group is told when it is wanted again.
struct Adoption {
  ReplicaId replica;       // its id from now on
  std::string checkpoint;  // the trial's newest; empty: none
  std::int64_t generation =
      0;  // the highest seen before: what it says is not about the new replica
};

// The seam between a replica and the service. Any thread may call any function. A control plane
// that is lost for good ends the process: its lease is over, and another may run the trial.
class ControlPlane {
 public:
  virtual ~ControlPlane() = default;

  // Returns when the message is on its way; messages arrive in order.
  virtual void Send(const ReplicaWord& word) = 0;

  // The highest generation seen. Cheap: asked at every step.
  virtual std::int64_t LatestGeneration() const = 0;
  virtual Membership Latest() const = 0;
  // Blocks until a generation above `generation` is known, and returns the highest.
  virtual Membership WaitAbove(std::int64_t generation) = 0;
  // The same, for at most `patience_s`.
  virtual std::optional<Membership> WaitAboveFor(std::int64_t generation, double patience_s) = 0;

  // Has `listener` called with each newer membership, and at once with the latest if there is one.
  // It must be quick, and must not call back. An empty function ends the listening; when this
  // returns, the former listener is not running and will not be called again.
  virtual void Listen(std::function<void(const Membership&)> listener) = 0;

  // For a replica that has left its group. Waits, as long as the agent keeps it as a spare, until
  // it is wanted again under another id. nullopt: spares are not kept here, and it is to end with
  // exit code 0. To the service both are the same.
  virtual std::optional<Adoption> Park() = 0;
};

}  // namespace espalier
