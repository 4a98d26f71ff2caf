#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace espalier {

class AdaptiveDataParallel;
class TrainingEngine;

// Named sums over what all replicas see: losses, hits, counts.
//
//   espalier::Accumulator train(parallel, "train", {"loss", "correct"});
//   while (loader.NextEpoch(epochs)) {
//     while (const auto batch = loader.NextBatch()) {
//       ...
//       train.Add("loss", loss.item<double>() * size);  // before Step
//       parallel.Step(loss);
//     }
//     const auto sums = train.Synchronize();            // the same on each replica
//
// Replicas may come and go in between. What a replica that leaves has added stays in the sums, and
// what belongs to a step that has to be repeated is counted once. Add between NextBatch and Step: a
// replica that leaves does so within Step, and what it would add after it is lost. So is what a
// replica that was killed or cut off had added since the last Synchronize, the last change of the
// group or the last epoch's end, whichever came last: Evaluate is for sums that must be whole.
//
// Make accumulators before the first NextEpoch, the same ones on each replica; `parallel` must
// outlive it. Use it from one thread. A mistake in its use ends the program with exit code 2 and a
// message.
class Accumulator {
 public:
  Accumulator(AdaptiveDataParallel& parallel, std::string name, std::vector<std::string> sums);

  void Add(const std::string& sum, double value);

  // Returns the sums over all replicas since the last call, by name; they start again from 0. Each
  // replica calls it at the same place: after the epoch's last batch and before NextEpoch. A
  // replica that joined later, or a trial that goes on from a checkpoint and calls this again, gets
  // the result that was kept.
  std::map<std::string, double> Synchronize();

 private:
  TrainingEngine& engine_;
  const std::string name_;
  const std::vector<std::string> sums_;
  std::size_t begin_ = 0;
  std::int64_t number_ = 0;
};

}  // namespace espalier
