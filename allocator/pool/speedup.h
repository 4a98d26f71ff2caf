#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/pool/pool.h"

namespace espalier {

// How much faster a job makes useful progress on some slots than on one. A job without a model is
// assumed to scale linearly. One that does not run on a single slot (its batch does not fit) is
// normalised by the fewest slots it does run on. Where GPU types have models of their own, the unit
// is the same for all of them. Values are computed when first asked for: one owner, one thread.
class SpeedupCurve {
 public:
  explicit SpeedupCurve(const Job& job);

  // The speedup: zero for no replicas, and for a shape in which the job cannot run. The model knows
  // only whether replicas are on one node or on several.
  double At(int nodes, int replicas, std::string_view gpu_type = {});

  // Whether the curve of this job would be this one.
  bool Fits(const Job& job) const;

 private:
  struct Table {
    GoodputModel model;
    std::vector<double> local{};  // by replicas; negative: not computed yet
    std::vector<double> cross{};
    std::map<int, double> wide{};  // across nodes on many replicas, where few numbers are asked for
  };

  double Goodput(const GoodputModel& model, int nodes, int replicas) const;
  double Lookup(Table& table, int nodes, int replicas);

  bool fixed_batch_;
  std::int64_t global_batch_;
  int max_slots_;
  double unit_ = 0;                 // goodput that counts as a speedup of one; 0: linear
  std::vector<Table> reference_{};  // one, or none without a model
  std::map<std::string, Table, std::less<>> by_type_{};
};

// The curves of the jobs that a policy sees again and again; a curve is worked out anew when its
// job's model has changed. One owner, one thread.
class SpeedupCache {
 public:
  std::shared_ptr<SpeedupCurve> CurveOf(const Job& job);
  // Drops the curves of jobs that are not in the pool.
  void KeepOnly(const Pool& pool);

 private:
  std::map<TrialId, std::shared_ptr<SpeedupCurve>> curves_;
};

// The fewest and most slots the job may hold, pinning included.
int MinSlots(const Job& job);
int MaxSlots(const Job& job);
// Whether it may hold so many slots, of which there is at least one: within these bounds, and one
// of its sizes where it has some.
bool MayHold(const Job& job, int slots);
// Whether its sizes allow so many slots: where it has some, one of them, or none at all.
bool FitsSizes(const Job& job, int slots);
// The largest number that it may hold and that is at most `slots`; 0: there is none.
int LargestSize(const Job& job, int slots);
// The smallest number that it may hold and that is more than `slots`; 0: there is none.
int NextSize(const Job& job, int slots);
// The most slots to which a policy may grow it now. How it scales beyond what was measured is not
// known, so each try goes to `factor` times that at most, to two before anything was measured, and
// to the next of its sizes at least.
int GrowthCap(const Job& job, int factor = 2);
// The same, with a factor that depends on the job's pause. Each further try costs a pause, while a
// try that goes too far costs only the slots until that is seen. So where pauses are long a try
// goes further, by the root of their seconds and up to eight times what was measured.
int PauseAwareGrowthCap(const Job& job);

}  // namespace espalier
