#include "allocator/simulator/application.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace espalier {

absl::StatusOr<std::shared_ptr<const Application>> Application::Make(
    const ApplicationRecord& record) {
  const auto refuse = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat("application \"", record.name, "\": ", what...));
  };
  if (record.batches.empty()) return refuse("no training run was recorded");
  if (record.epochs < 1) return refuse("needs at least one epoch, got ", record.epochs);
  for (const RecordedBatch& batch : record.batches) {
    if (batch.epochs.size() < static_cast<std::size_t>(record.epochs)) {
      return refuse("trains ", record.epochs, " epochs, but with batch size ", batch.global_batch,
                    " only ", batch.epochs.size(), " were recorded");
    }
  }
  auto times = StepTimes::Make(record.rings, record.scales, record.tetrahedra);
  if (!times.ok()) return refuse(times.status().message());
  std::shared_ptr<const Application> application(new Application(record, *std::move(times)));
  const BatchBounds& bounds = application->bounds();
  if (bounds.max_atomic < bounds.min_atomic || bounds.max_global < bounds.min_atomic) {
    return refuse("atomic batches of ", bounds.min_atomic, " to ", bounds.max_atomic,
                  " do not go with global ones up to ", bounds.max_global);
  }
  return application;
}

Application::Application(const ApplicationRecord& record, StepTimes step_times)
    : name_(record.name),
      epochs_(record.epochs),
      pinned_batch_(record.pinned_batch),
      batches_(record.batches),
      step_times_(std::move(step_times)) {
  std::sort(batches_.begin(), batches_.end(),
            [](const auto& a, const auto& b) { return a.global_batch < b.global_batch; });
  bounds_ = {
      .initial = batches_.front().global_batch,
      .max_global = batches_.back().global_batch,
      .min_atomic = step_times_.min_atomic_batch(),
      .max_atomic = record.max_atomic > 0 ? record.max_atomic : step_times_.max_atomic_batch(),
      .accumulation = true};
  progress_after_.push_back(0);
  for (std::size_t epoch = 0; epoch < static_cast<std::size_t>(epochs_); ++epoch) {
    double least = batches_.front().epochs[epoch].progress;
    for (const RecordedBatch& batch : batches_) {
      least = std::min(least, batch.epochs[epoch].progress);
    }
    progress_after_.push_back(least);
  }
}

double Application::ProgressAfter(int epochs) const {
  return progress_after_[static_cast<std::size_t>(std::clamp(epochs, 0, epochs_))];
}

absl::StatusOr<Application::Neighbours> Application::Around(std::int64_t global_batch) const {
  const auto upper = std::lower_bound(
      batches_.begin(), batches_.end(), global_batch,
      [](const RecordedBatch& batch, std::int64_t size) { return batch.global_batch < size; });
  const bool exact = upper != batches_.end() && upper->global_batch == global_batch;
  if (upper == batches_.end() || (upper == batches_.begin() && !exact)) {
    return absl::OutOfRangeError(absl::StrCat("application \"", name_, "\": batch size ",
                                              global_batch, " is outside ", bounds_.initial, " to ",
                                              bounds_.max_global));
  }
  return Neighbours{exact ? &*upper : &*(upper - 1), &*upper};
}

double Application::Neighbours::Mix(double of_lower, double of_upper,
                                    std::int64_t global_batch) const {
  if (lower == upper) return of_lower;
  return (static_cast<double>(global_batch - lower->global_batch) * of_upper +
          static_cast<double>(upper->global_batch - global_batch) * of_lower) /
         static_cast<double>(upper->global_batch - lower->global_batch);
}

absl::StatusOr<double> Application::StepsThrough(std::int64_t global_batch, int epoch) const {
  const auto around = Around(global_batch);
  if (!around.ok()) return around.status();
  const auto e = static_cast<std::size_t>(std::clamp(epoch, 0, epochs_ - 1));
  return around->Mix(around->lower->epochs[e].steps, around->upper->epochs[e].steps, global_batch);
}

absl::StatusOr<GradientNoise> Application::NoiseIn(std::int64_t global_batch, int epoch) const {
  const auto around = Around(global_batch);
  if (!around.ok()) return around.status();
  const auto e = static_cast<std::size_t>(std::clamp(epoch, 0, epochs_ - 1));
  const GradientNoise& lower = around->lower->epochs[e].noise;
  const GradientNoise& upper = around->upper->epochs[e].noise;
  return GradientNoise{around->Mix(lower.sqr, upper.sqr, global_batch),
                       around->Mix(lower.var, upper.var, global_batch)};
}

}  // namespace espalier
