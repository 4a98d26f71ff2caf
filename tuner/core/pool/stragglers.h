#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "base/clock.h"
#include "tuner/messages/replica_messages.h"

namespace espalier {

inline constexpr double kStragglerRatio = 1.5;      // of the median of the others
inline constexpr std::size_t kStragglerWindow = 5;  // looks in a row, each of which must say so
inline constexpr std::int64_t kStragglerSteps = 3;  // of each replica, for one look
inline constexpr double kStragglerSettle_s = 3;     // after a regroup, during which none is judged

// A replica that slows its group down.
struct Straggler {
  ReplicaId replica;
  double ratio = 0;  // its computing time of a step over the median of the others', in the window
};

// Finds the replica of one group that computes longer than the others. All replicas of a group
// compute the same number of samples a step, and the all-reduce makes each wait for the slowest, so
// computing times without that wait can be compared as they are.
//
// One look is at the sums of times since the last one, as soon as every replica has done
// kStragglerSteps steps; a replica is a straggler when it exceeded kStragglerRatio in each of the
// last kStragglerWindow looks. A single long step (a page fault, a validation) is never enough.
// Pure; not thread safe.
class StragglerDetector {
 public:
  // The group has changed: what was seen says nothing about the new one.
  void Reset(Time now);

  // Times of all replicas of the group since the last call. The slowest straggler, if there is one.
  // Fewer than two replicas have none.
  std::optional<Straggler> Observe(Time now, std::span<const ReplicaTime> times);

  // By the last times alone, settled or not, some replica was slow: too early to say that it is a
  // straggler, and too early to judge by these times what the group is worth.
  bool suspects() const { return suspects_; }

 private:
  struct Pace {
    std::int64_t steps = 0;  // of the look that is being gathered
    double compute_time_s = 0;
    std::size_t slow_looks = 0;  // in a row
    std::array<double, kStragglerWindow> ratios{};
  };

  static double SlowestRatio(std::span<const ReplicaTime> times);
  bool Gathered() const;
  void Look();

  Time settled_from_;
  bool suspects_ = false;
  std::map<ReplicaId, Pace> paces_;
};

// Whether `replicas` replicas would make a step faster without one that takes `ratio` times as long
// as each of the others, at the same global batch: the others then have more to compute, and none
// waits. The gain must be worth the pause.
bool FasterWithout(int replicas, double ratio);

}  // namespace espalier
