#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace espalier {

// The sums of a trial's accumulators in one replica. What the program adds is at first this
// replica's own; Merge makes it part of the shared sums, which are the same on all members of a
// group, are handed to replicas that join, and are saved in checkpoints. Pure; one thread.
//
// What is added between a microbatch's begin and the end of its step counts only if the step does:
// a step that is dropped is repeated, and its samples are added again.
class AccumulatedSums {
 public:
  // Returns the index at which the accumulator's values begin. Fails if there is an accumulator of
  // that name, or a name is empty, is given twice or has characters other than letters, digits,
  // '_', '-' and '.' in it.
  absl::StatusOr<std::size_t> Declare(const std::string& name,
                                      const std::vector<std::string>& sums);
  bool empty() const { return own_.empty(); }

  void Add(std::size_t index, double value);

  void BeginMicrobatch() { phase_ = Phase::kUnderWay; }
  void CountStep();
  void DropStep();

  // What this replica brings to the next Merge.
  const std::vector<double>& own() const { return own_; }
  // `totals`: the sum of what all members brought.
  void Merge(std::span<const double> totals);
  // Returns the shared sums from `begin` on, which start again from 0.
  std::vector<double> Take(std::size_t begin, std::size_t count);
  // Drops this replica's own part of them: it was counted when these samples were first evaluated,
  // and the result was kept.
  void Forget(std::size_t begin, std::size_t count);

  // Grows with each Merge: when two replicas' sums are compared, those with more merges are
  // further.
  std::int64_t merges() const { return merges_; }

  // The shared part, as text. Adopt takes another replica's shared part: own sums stay if they are
  // not yet in it. Fails if the accumulators are not the same.
  std::string Encode() const;
  absl::Status Adopt(std::string_view text);
  // Takes the shared part of a checkpoint. Own sums are dropped, since they belong to what is
  // repeated.
  absl::Status Restore(std::string_view text);

 private:
  enum class Phase { kUnderWay, kCounted, kDropped };

  std::vector<std::string> names_;  // "accumulator sum", by index
  std::vector<double> shared_;
  std::vector<double> own_;
  std::vector<double> open_;  // of the step under way
  std::int64_t merges_ = 0;
  Phase phase_ = Phase::kCounted;
};

}  // namespace espalier
