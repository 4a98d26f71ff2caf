#include "trial_runner/torch/accumulator.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/training_engine.h"
#include "tuner/base/status.h"

namespace espalier {

Accumulator::Accumulator(AdaptiveDataParallel& parallel, const std::string& name,
                         std::vector<std::string> sums)
    : engine_(parallel.engine()),
      name_(name),
      sums_(std::move(sums)),
      begin_(engine_.AddAccumulator(name_, sums_)),
      number_(engine_.accumulators()) {}

void Accumulator::Add(const std::string& sum, double value) {
  const auto found = std::find(sums_.begin(), sums_.end(), sum);
  if (found == sums_.end()) {
    BadUse(absl::StrCat("accumulator \"", name_, "\" has no sum \"", sum,
                        "\": it has: ", absl::StrJoin(sums_, ", ")));
  }
  engine_.Accumulate(begin_ + static_cast<std::size_t>(found - sums_.begin()), value);
}

std::map<std::string, double> Accumulator::Synchronize() {
  const std::vector<double> values = engine_.SynchronizeSums(number_, begin_, sums_.size());
  std::map<std::string, double> by_name;
  for (std::size_t i = 0; i < sums_.size(); ++i) by_name[sums_[i]] = values[i];
  return by_name;
}

// ---- the engine's part ------------------------------------------------------------------------

std::size_t TrainingEngine::AddAccumulator(const std::string& name,
                                           const std::vector<std::string>& sums) {
  if (group_.joined()) {
    BadUse(absl::StrCat("accumulator \"", name,
                        "\" was made after training began: make all of them before"));
  }
  const absl::StatusOr<std::size_t> begin = state_.sums.Declare(name, sums);
  if (!begin.ok()) EndProcess(begin.status(), kBadUseExitCode);
  ++accumulators_;
  return *begin;
}

absl::Status TrainingEngine::MergeSums(bool& all_know) {
  all_know = false;
  const bool program = program_sums_ && !program_sums_->empty();
  if (state_.sums.empty() && !program) return absl::OkStatus();
  // One exchange tells all that has to be known: the sums, who knows of a newer generation, and how
  // much each has of the program's. Training stands still meanwhile.
  const std::size_t sums = state_.sums.own().size();
  const std::string own = program ? program_sums_->Own() : std::string();
  auto totals = std::make_shared<std::vector<double>>(state_.sums.own());
  totals->push_back(group_.Pending() ? 1 : 0);
  if (program) {
    totals->resize(totals->size() + static_cast<std::size_t>(group_.size()));
    (*totals)[sums + 1 + static_cast<std::size_t>(group_.rank())] = static_cast<double>(own.size());
  }
  ESPALIER_RETURN_IF_ERROR(group_.AllReduceSum(CollectiveBuffer::Of(totals)));
  all_know = !group_.narrowed() && std::lround((*totals)[sums]) == group_.size();
  const std::span<const double> known(*totals);
  if (program) ESPALIER_RETURN_IF_ERROR(GatherProgramSums(own, known.subspan(sums + 1)));
  state_.sums.Merge(known.first(sums));
  return absl::OkStatus();
}

// `sizes`: in bytes, of what each member has, by rank.
absl::Status TrainingEngine::GatherProgramSums(const std::string& own,
                                               std::span<const double> sizes) {
  std::vector<std::shared_ptr<std::vector<std::uint8_t>>> buffers;
  for (std::size_t from = 0; from < sizes.size(); ++from) {
    const auto size = static_cast<std::size_t>(std::lround(sizes[from]));
    buffers.push_back(std::make_shared<std::vector<std::uint8_t>>(size));
    if (size == 0) continue;
    const auto root = static_cast<int>(from);
    if (root == group_.rank()) buffers.back()->assign(own.begin(), own.end());
    group_.collectives().StartBroadcast(CollectiveBuffer::Of(buffers.back()), root);
  }
  ESPALIER_RETURN_IF_ERROR(group_.collectives().WaitAll());
  std::vector<std::string> parts;
  for (const auto& bytes : buffers) parts.emplace_back(bytes->begin(), bytes->end());
  return program_sums_->Merge(parts);
}

EvaluationKey TrainingEngine::BeginEvaluation() {
  if (!group_.joined()) BadUse("an evaluation was begun before the first epoch");
  RegroupBeforeEvaluation();
  return NextEvaluationKey();
}

TrainingEngine::EvaluationState TrainingEngine::StateOf(const EvaluationKey& key) const {
  const TrainingPosition& p = state_.position;
  if (p.evaluation_results.contains(key)) return EvaluationState::kDone;
  // A spare that was adopted comes this way when the others have long gone on.
  if (p.epoch > key.epoch || p.step > key.step) return EvaluationState::kPast;
  return EvaluationState::kToDo;
}

bool TrainingEngine::MergeEvaluation(const EvaluationKey& key, std::int64_t accumulator) {
  bool all_know = false;
  if (group_.Abandoned() || !group_.Meet(PlaceOf(key, accumulator)).ok() ||
      !MergeSums(all_know).ok()) {
    Regroup(/*broken=*/true);
    return false;
  }
  state_.position.AddEvaluation(key, {});
  last_step_end_ = Clock::now();
  regroup_due_ = regroup_due_ || all_know;
  return true;
}

std::vector<double> TrainingEngine::SynchronizeSums(std::int64_t accumulator, std::size_t begin,
                                                    std::size_t count) {
  if (!group_.joined()) BadUse("Synchronize was called before NextEpoch");
  TrainingPosition& p = state_.position;
  if (answer_due_ || InMidEpoch()) {
    BadUse(
        "Synchronize was called in mid-epoch, where replicas that join would not: call it after "
        "the last batch");
  }
  RegroupBeforeEvaluation();
  const EvaluationKey key = NextEvaluationKey();
  if (p.evaluation_results.contains(key)) state_.sums.Forget(begin, count);
  while (!p.evaluation_results.contains(key)) {
    // A spare that was adopted comes this way when the others have long gone on.
    if (p.epoch > key.epoch || p.step > key.step) return p.PastEvaluation(key, count);
    bool all_know = false;
    absl::Status merged = group_.Meet(PlaceOf(key, accumulator));
    if (merged.ok()) merged = MergeSums(all_know);
    if (merged.ok()) {
      p.AddEvaluation(key, state_.sums.Take(begin, count));
      last_step_end_ = Clock::now();
    }
    if (!merged.ok() || all_know) Regroup(/*broken=*/!merged.ok());
  }
  return p.evaluation_results.at(key);
}

}  // namespace espalier
