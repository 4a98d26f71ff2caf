#pragma once

#include <map>
#include <utility>

#include "allocator/policies/policy.h"

namespace espalier {

// How much faster a job makes useful progress on some slots than on one. A job without a model is
// taken to scale linearly. One that does not run on a single slot (its batch does not fit) is
// normalised by the fewest slots it does run on. Remembers what it has computed: one owner, one
// thread.
class SpeedupCurve {
 public:
  explicit SpeedupCurve(const Job& job);

  // Zero for no replicas, and for a shape in which the job cannot run.
  double At(int nodes, int replicas);

 private:
  double Goodput(int nodes, int replicas) const;

  const Job* job_;
  double unit_ = 0;  // goodput that counts as a speedup of one; 0: linear
  std::map<std::pair<int, int>, double> known_;
};

// The fewest and most slots the job may hold, pinning included.
int MinSlots(const Job& job);
int MaxSlots(const Job& job);
// The most slots a policy may grow it to now: nobody knows how it scales beyond what was measured,
// so each try goes at most to twice that.
int GrowthCap(const Job& job);

}  // namespace espalier
