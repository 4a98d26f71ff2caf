#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "trial_runner/elastic/noise_scale.h"

namespace espalier {

// Names one call of Evaluate() in the same way on every replica, also on one that joined later:
// the epoch the program is in, the optimizer steps done, and how many calls came before it there.
struct EvaluationKey {
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  std::int64_t call = 0;

  friend auto operator<=>(const EvaluationKey&, const EvaluationKey&) = default;
};

// How far a trial's training is, beside its tensors: what a regroup hands to those who join and a
// checkpoint keeps. The same on all members of a group between two steps.
struct TrainingPosition {
  static constexpr std::size_t kKeptEvaluations = 32;

  std::int64_t step = 0;               // optimizer steps done
  std::int64_t epoch = 0;              // passes over the data finished
  std::int64_t cursor = 0;             // samples consumed of the present pass
  std::int64_t evaluations = 0;        // done in all
  std::int64_t batch_size = 0;         // global, of the next step; 0: not chosen yet
  std::int64_t atomic_batch_size = 0;  // chosen along with it in adaptive mode; 0: by schedule
  double progress = 0;                 // scale-invariant steps
  NoiseAverages noise;
  std::map<EvaluationKey, std::vector<double>> evaluation_results;  // the latest

  // Grows with everything that members do together: of two positions the one with the larger
  // order is further.
  std::tuple<std::int64_t, std::int64_t, std::int64_t> Order() const {
    return {step, epoch, evaluations};
  }

  void AddEvaluation(const EvaluationKey& key, std::vector<double> result);

  // One line of text each; numbers keep all their digits.
  std::string Encode() const;
  static absl::StatusOr<TrainingPosition> Decode(std::string_view text);
};

}  // namespace espalier
