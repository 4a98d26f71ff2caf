#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "trial_runner/elastic/accumulated_sums.h"
#include "trial_runner/torch/group/replica_group.h"

namespace espalier {

// Beside accumulators: sums of a program that are not numbers with fixed names. Each replica's own
// part is brought together wherever accumulators are merged.
class ProgramSums {
 public:
  virtual ~ProgramSums() = default;
  virtual bool empty() const = 0;
  // Empty: this replica has added nothing since the last merge.
  virtual std::string Own() const = 0;
  // What each member brought, by rank; its own part is then merged.
  virtual absl::Status Merge(const std::vector<std::string>& parts) = 0;
};

// What the program sums up over all replicas, in accumulators or by itself: brings together what
// each member of the group has added.
class SharedSums {
 public:
  // `sums` are the accumulators', which belong to the training state. Both must outlive this.
  SharedSums(ReplicaGroup& group, AccumulatedSums& sums) : group_(group), sums_(sums) {}

  void SetProgramSums(std::unique_ptr<ProgramSums> sums) { program_ = std::move(sums); }

  // Adds an accumulator before the group is joined, and returns the index of its first sum. Ends
  // the program where it has a mistake.
  std::size_t AddAccumulator(const std::string& name, const std::vector<std::string>& sums);
  std::int64_t accumulators() const { return accumulators_; }  // how many there are
  void Add(std::size_t index, double value) { sums_.Add(index, value); }

  // All members call it alike: what each has added becomes part of the sums that all share.
  // `all_know`: that a newer generation is announced, as far as this has shown, and that each of
  // them `may_leave` the group here.
  absl::Status Merge(bool& all_know, bool may_leave = true);

 private:
  absl::Status GatherProgramSums(const std::string& own, std::span<const double> sizes);

  ReplicaGroup& group_;
  AccumulatedSums& sums_;
  std::unique_ptr<ProgramSums> program_;  // null: the program has none
  std::int64_t accumulators_ = 0;
};

}  // namespace espalier
