// TrainingEngine's evaluations: sums over samples that are cut over the replicas.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "trial_runner/torch/host_copies.h"
#include "trial_runner/torch/training_engine.h"
#include "tuner/base/status.h"

namespace espalier {

absl::Status TrainingEngine::ShareBuffers() {
  if (group_.size() == 1) return absl::OkStatus();
  std::int64_t bytes = 0;
  std::vector<at::Tensor> buffers;
  for (const auto& model : models_) {
    for (NamedTensor& b : model->model().Buffers()) buffers.push_back(std::move(b.tensor));
  }
  for (const at::Tensor& b : buffers) bytes += static_cast<std::int64_t>(b.nbytes());
  if (bytes == 0) return absl::OkStatus();
  // Running statistics differ between replicas; rank 0's count, as they do in a checkpoint.
  auto packed = std::make_shared<std::vector<std::uint8_t>>(static_cast<std::size_t>(bytes));
  std::size_t offset = 0;
  if (group_.rank() == 0) {
    const HostCopies copies(buffers);
    for (const at::Tensor& copy : copies.Await()) {
      const at::Tensor whole = copy.contiguous();
      std::memcpy(packed->data() + offset, whole.const_data_ptr(), whole.nbytes());
      offset += whole.nbytes();
    }
  }
  ESPALIER_RETURN_IF_ERROR(group_.Broadcast(CollectiveBuffer::Of(packed), 0));
  offset = 0;
  for (const at::Tensor& b : buffers) {
    const bool pinned = b.is_cuda();
    at::Tensor whole = at::empty(b.sizes(), b.options().device(at::kCPU).pinned_memory(pinned));
    std::memcpy(whole.mutable_data_ptr(), packed->data() + offset, whole.nbytes());
    offset += whole.nbytes();
    b.detach().copy_(whole, /*non_blocking=*/pinned);
  }
  return absl::OkStatus();
}

absl::Status TrainingEngine::EvaluateShare(std::int64_t size, std::int64_t batch_size,
                                           const SumOver& sum_over, std::vector<double>& sums,
                                           bool& pending) {
  ESPALIER_RETURN_IF_ERROR(ShareBuffers());
  const SampleSlice share = CutEvenly({0, size}, group_.rank(), group_.size());
  auto totals = std::make_shared<std::vector<double>>(sums.size() + 1);
  for (std::int64_t done = 0; done < share.size; done += batch_size) {
    if (group_.Abandoned()) return absl::AbortedError("the group is broken");
    const std::vector<double> part = sum_over(
        at::arange(share.begin + done, share.begin + std::min(done + batch_size, share.size)));
    if (part.size() != sums.size()) {
      BadUse(absl::StrCat("EvaluateSums: the function gave ", part.size(), " sums: want ",
                          sums.size()));
    }
    for (std::size_t i = 0; i < part.size(); ++i) (*totals)[i] += part[i];
  }
  totals->back() = group_.Pending() ? 1 : 0;
  ESPALIER_RETURN_IF_ERROR(group_.AllReduceSum(CollectiveBuffer::Of(totals)));
  std::copy(totals->begin(), totals->end() - 1, sums.begin());
  pending = !group_.narrowed() && std::lround(totals->back()) == group_.size();
  return absl::OkStatus();
}

ProgramPlace TrainingEngine::PlaceOf(const EvaluationKey& key, std::int64_t accumulator) {
  const auto kind = accumulator > 0 ? ProgramPlace::Kind::kSums : ProgramPlace::Kind::kEvaluation;
  return {.kind = kind,
          .epoch = key.epoch,
          .step = key.step,
          .call = key.call,
          .accumulator = accumulator};
}

EvaluationKey TrainingEngine::NextEvaluationKey() {
  const std::int64_t step = state_.position.step;
  // A spare that left between two evaluations of an epoch and comes back when the others have gone
  // on to another one is still between the two, whatever step they are at.
  const bool goes_on = next_evaluation_.epoch == local_epoch_ && !trained_since_evaluation_ &&
                       state_.position.epoch > local_epoch_;
  if (goes_on) {
    next_evaluation_.step = step;
  } else if (next_evaluation_.epoch != local_epoch_ || next_evaluation_.step != step) {
    next_evaluation_ = {local_epoch_, step, 0};
  }
  trained_since_evaluation_ = false;
  const EvaluationKey key = next_evaluation_;
  ++next_evaluation_.call;
  return key;
}

std::vector<double> TrainingEngine::Evaluate(std::int64_t size, std::int64_t batch_size,
                                             std::size_t sums, const SumOver& sum_over) {
  if (size < 1 || batch_size < 1) BadUse("Evaluate: size and batch_size are positive numbers");
  if (!group_.joined()) BadUse("Evaluate was called before NextEpoch");
  if (answer_due_) BadUse("Evaluate was called where Step was due");
  RegroupBeforeEvaluation();
  TrainingPosition& p = state_.position;
  const EvaluationKey key = NextEvaluationKey();

  std::vector<bool> were_training;
  for (const auto& model : models_) {
    were_training.push_back(model->model().training());
    model->model().Train(false);
  }
  const absl::Cleanup restore_modes = [&] {
    for (std::size_t i = 0; i < models_.size(); ++i) models_[i]->model().Train(were_training[i]);
  };
  const at::NoGradGuard no_grad;
  while (!p.evaluation_results.contains(key)) {
    // A spare that was adopted comes this way when the others have long gone on.
    if (p.epoch > key.epoch || p.step > key.step) return p.PastEvaluation(key, sums);
    std::vector<double> result(sums);
    bool all_know = false;
    absl::Status done = group_.Meet(PlaceOf(key));
    if (done.ok()) done = EvaluateShare(size, batch_size, sum_over, result, all_know);
    if (done.ok()) {
      p.AddEvaluation(key, result);
      last_step_end_ = Clock::now();
    }
    if (!done.ok() || all_know) Regroup(/*broken=*/!done.ok());
  }
  const std::vector<double> result = p.evaluation_results.at(key);
  return result;
}

}  // namespace espalier
