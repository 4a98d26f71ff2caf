#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trial_runner/elastic/training_position.h"
#include "trial_runner/torch/engine/trained_model.h"

namespace espalier {

// What replicas of a trial have in common, as numbers that are the same where it is the same bit by
// bit: parameters, optimizers' state, schedules, and the position. Of the tensors a step compares
// one part in Rounds(), the next step the next part; a comparison of all of them is made after a
// join and before a checkpoint. The numbers of a step travel in the tail of its first model's sums,
// from which every member finds alike whether all agree.
//
// Replicas on unlike processors or devices round differently: there the bits say nothing, and norms
// are compared instead.
//
// Use it from the thread that trains. The models must outlive it.
class ReplicaCheck {
 public:
  static constexpr std::int64_t kRounds = 45;

  // By ESPALIER_CHECK_REPLICAS.
  enum class Mode {
    kBits,   // on
    kNorms,  // as on unlike machines
    kOff,
  };
  // What that variable says; bad use where it says something else.
  static Mode ModeOfEnvironment();

  ReplicaCheck(const std::vector<std::unique_ptr<TrainedModel>>& models, Mode mode)
      : models_(models), mode_(mode) {}

  bool on() const { return mode_ != Mode::kOff; }
  // In so many steps each part is compared once, kRounds at the most; in the first of them the
  // optimizers are asked for their state. As it was asked for last.
  std::int64_t Rounds() const;
  // The group has changed, or its members' state: the next step compares all tensors.
  void StartGroup();

  // Puts the numbers of the step that follows this position into the tail.
  void Fill(GradientBuckets& gradients, const TrainingPosition& position);
  // After the sums of so many members. False: they differ. The step counts as one that was compared
  // if they do not.
  bool Agree(const GradientBuckets& gradients, int members, const TrainingPosition& position);
  // Members are on unlike machines, as the last sums have shown.
  bool unlike() const { return unlike_ || mode_ == Mode::kNorms; }

  // A number of all that is compared, and of the machine.
  std::uint64_t OfAll(const TrainingPosition& position);
  static std::uint64_t OfMachine();
  // Of each tensor, in an order that is the same on all members; then one of the numbers that are
  // not tensors'. For finding what differs.
  std::vector<std::uint64_t> OfEach(const TrainingPosition& position);
  // The name of one of those.
  std::string NameOf(std::size_t number) const;
  static std::uint64_t OfTensor(const at::Tensor& tensor);
  // Hashes of the models' buffers, by model and name. Not of running statistics, which are each
  // replica's own.
  std::map<std::string, std::uint64_t> OfBuffers() const;
  static bool IsStatistic(std::string_view buffer);
  // What the next step compares beside all tensors: a number of those buffers that have changed
  // since they were the same on all.
  void SetChangedBuffers(std::uint64_t number) { changed_buffers_ = number; }
  // |parameters|, of all models.
  double Norm() const;
  // The last step after which that tensor was found to be the same on all; -1: none in this group.
  std::int64_t LastAgreed(std::size_t number) const;
  void CountAll(const TrainingPosition& position);  // all have been compared, and agree

 private:
  struct Part {
    at::Tensor flat;         // of the tensor's memory, one dimension
    std::int64_t begin = 0;  // words of 32 bits, of all
    std::int64_t words = 0;
    std::int64_t agreed_after = -1;
  };

  void Refresh();
  std::uint64_t OfWords(std::int64_t begin, std::int64_t end) const;
  std::uint64_t OfNumbers(const TrainingPosition& position) const;

  const std::vector<std::unique_ptr<TrainedModel>>& models_;
  const Mode mode_;
  std::vector<Part> parts_;
  std::int64_t words_ = 0;
  std::uint64_t numbers_ = 0;  // of the optimizers, as they were at the last refresh
  std::uint64_t changed_buffers_ = 0;
  bool stale_ = true;
  bool all_due_ = true;
  bool unlike_ = false;
  std::int64_t begin_ = 0;  // the words of the step under way
  std::int64_t end_ = 0;
};

// So many names of what differs stand in a message, and how many more there are.
inline constexpr std::size_t kMostNamed = 3;
std::string SomeNames(const std::vector<std::string>& names, std::size_t count);

// The rank whose number most have not, where there are three or more; of two the second.
std::size_t OddOneOut(const std::vector<std::vector<std::int64_t>>& all, std::size_t number);

}  // namespace espalier
