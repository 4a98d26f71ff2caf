#include "allocator/simulator/training_job.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/goodput/fit.h"
#include "allocator/goodput/sample_rounding.h"
#include "base/status.h"

namespace espalier {

namespace {

constexpr double kSameInstant = 1e-9;  // seconds
constexpr int kMostSlots = 64;         // no larger shape was measured

// A lone microbatch must not carry more than the largest batch that was recorded.
BatchSplit WithinLargest(const BatchBounds& bounds, BatchSplit split, int replicas) {
  const std::int64_t count = replicas * (split.accumulation + 1);
  split.atomic = std::min(split.atomic, bounds.max_global / count);
  return split;
}

}  // namespace

absl::StatusOr<StepTime> StepTimeMemory::At(const Application& application,
                                            const std::vector<int>& ring,
                                            std::int64_t atomic_batch) {
  const Key key{&application, ring, atomic_batch};
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  const auto time = application.step_times().At(ring, atomic_batch);
  if (!time.ok()) {
    return absl::Status(time.status().code(), absl::StrCat("application \"", application.name(),
                                                           "\": ", time.status().message()));
  }
  known_.emplace(key, *time);
  return time;
}

BatchSplit SplitBatch(const BatchBounds& bounds, std::int64_t global_batch, int replicas) {
  const std::int64_t local = CeilOfSamples(static_cast<double>(global_batch) / replicas);
  BatchSplit split;
  split.accumulation =
      CeilOfSamples(static_cast<double>(local) / static_cast<double>(bounds.max_atomic)) - 1;
  if (replicas == 1 && bounds.SplitsAlone(static_cast<double>(global_batch))) {
    split.accumulation = std::max<std::int64_t>(1, split.accumulation);
  }
  split.atomic =
      CeilOfSamples(static_cast<double>(local) / static_cast<double>(split.accumulation + 1));
  return WithinLargest(bounds, split, replicas);
}

TrainingJob::TrainingJob(const ClusterJob& job, const ClusterOptions& options,
                         StepTimeMemory& memory)
    : job_(&job),
      application_(job.application.get()),
      memory_(&memory),
      whole_seconds_(!options.on_events),
      resize_cost_s_(options.resize_cost_s),
      first_profile_s_(options.on_events ? options.first_profile_s : 0),
      fixed_batch_(options.batch == BatchRule::kRequested ? job.requested_batch
                                                          : application_->pinned_batch()) {}

void TrainingJob::Hold(double seconds) {
  held_s_ += seconds;
  attained_service_ += seconds * slots_;
}

absl::Status TrainingJob::Advance(double from_s, double seconds) {
  if (slots_ == 0 || done()) return absl::OkStatus();
  const double until_s = from_s + seconds;
  const double delay = std::min(resize_left_s_, seconds);
  resize_left_s_ -= delay;
  Hold(delay);
  double now_s = from_s + delay;
  double left_s = seconds - delay;
  while (left_s > 0 && !done()) {
    ESPALIER_RETURN_IF_ERROR(LookUpSpeed());
    Report();
    const double trained = TrainUpTo(now_s, left_s);
    left_s -= trained;
    now_s = left_s > 0 ? now_s + trained : until_s;
    ESPALIER_RETURN_IF_ERROR(ChooseBatch());
  }
  return absl::OkStatus();
}

// Up to the given seconds, less if an epoch ends or a new shape has been measured before. Returns
// how many.
double TrainingJob::TrainUpTo(double from_s, double seconds) {
  if (!reported()) seconds = std::min(seconds, first_profile_s_ - trained_in_shape_s_);
  const double next = application_->ProgressAfter(epoch_ + 1);
  double trained = seconds;
  const bool ends = whole_seconds_ ? !(progress_ + progress_per_s_ * seconds < next)
                                   : ToEpochEnd() <= seconds + kSameInstant;
  if (ends) {
    trained = whole_seconds_ ? std::nearbyint(ToEpochEnd()) : std::min(ToEpochEnd(), seconds);
    progress_ = next;
    EndEpoch(from_s + trained);
  } else {
    progress_ += progress_per_s_ * seconds;
  }
  trained_in_shape_s_ += trained;
  Hold(trained);
  return trained;
}

double TrainingJob::ToEpochEnd() const {
  return (application_->ProgressAfter(epoch_ + 1) - progress_) / progress_per_s_;
}

void TrainingJob::EndEpoch(double at_s) {
  ++epoch_;
  speed_is_stale_ = true;
  if (epoch_ == application_->epochs()) completed_s_ = at_s;
}

absl::Status TrainingJob::LookUpSpeed() {
  if (!speed_is_stale_) return absl::OkStatus();
  speed_is_stale_ = false;
  ESPALIER_ASSIGN_OR_RETURN(step_, memory_->At(*application_, ring_, split_.atomic));
  ESPALIER_ASSIGN_OR_RETURN(true_noise_, application_->NoiseIn(GlobalBatch(), epoch_));
  const double scale =
      static_cast<double>(GlobalBatch()) / static_cast<double>(application_->bounds().initial);
  const double gain =
      (true_noise_.var + true_noise_.sqr) / (true_noise_.var / scale + true_noise_.sqr);
  const double grad_s = step_.step_s - step_.sync_s;
  progress_per_s_ = gain / (step_.step_s + grad_s * static_cast<double>(split_.accumulation));
  return absl::OkStatus();
}

bool TrainingJob::reported() const {
  return trained_in_shape_s_ + kSameInstant >= first_profile_s_;
}

void TrainingJob::Report() {
  if (!reported()) return;
  if (!noise_ || noise_->sqr != true_noise_.sqr || noise_->var != true_noise_.var) {
    noise_ = true_noise_;
    model_is_stale_ = batch_is_stale_ = true;
  }
  if (!profiled_.insert(Shape()).second) return;
  profile_.Add({.key = Shape(),
                .optimizer_count = 1,
                .optimizer_time_s = step_.step_s,
                .sync_time_s = step_.sync_s});
  fit_is_stale_ = model_is_stale_ = batch_is_stale_ = true;
}

const std::optional<GoodputModel>& TrainingJob::Model() {
  if (fit_is_stale_) params_ = Fit(profile_);
  fit_is_stale_ = false;
  if (model_is_stale_ && params_) {
    model_.emplace(*params_, *noise_, application_->bounds());
    one_slot_rate_ = 0;
  }
  model_is_stale_ = false;
  return model_;
}

absl::Status TrainingJob::ChooseBatch() {
  if (!batch_is_stale_) return absl::OkStatus();
  batch_is_stale_ = false;
  const BatchBounds& bounds = application_->bounds();
  BatchSplit split;
  if (fixed_batch_ > 0) {
    split = SplitBatch(bounds, fixed_batch_, slots_);
  } else if (!Model()) {
    split = SplitBatch(bounds, std::max(bounds.initial, bounds.min_atomic * slots_), slots_);
  } else {
    const BatchChoice choice = Model()->Optimize(nodes(), slots_);
    split = WithinLargest(bounds, {choice.atomic_batch_size, choice.accumulation_steps}, slots_);
  }
  if (split.atomic < 1) {
    return absl::InvalidArgumentError(absl::StrCat("job \"", job_->name,
                                                   "\": its batch of at most ", bounds.max_global,
                                                   " cannot be split over ", slots_, " slots"));
  }
  if (split.atomic != split_.atomic || split.accumulation != split_.accumulation) {
    speed_is_stale_ = true;
    // A shape that was measured before needs no new measurement.
    const bool known = profiled_.contains({nodes(), slots_, split.atomic});
    trained_in_shape_s_ = known ? first_profile_s_ : 0;
  }
  split_ = split;
  return absl::OkStatus();
}

absl::Status TrainingJob::Resize(std::vector<int> ring) {
  ring_ = std::move(ring);
  slots_ = std::accumulate(ring_.begin(), ring_.end(), 0);
  split_ = {};
  speed_is_stale_ = batch_is_stale_ = true;
  if (slots_ == 0) return absl::OkStatus();
  resize_left_s_ = resize_cost_s_;
  ++placements_;
  return ChooseBatch();
}

std::optional<double> TrainingJob::ToNextEvent() {
  if (slots_ == 0 || done()) return std::nullopt;
  if (resize_left_s_ > 0) return resize_left_s_;
  if (!LookUpSpeed().ok()) return 0;  // Advance will say why
  double next_s = ToEpochEnd();
  if (!reported()) next_s = std::min(next_s, first_profile_s_ - trained_in_shape_s_);
  return next_s;
}

int TrainingJob::MaxSlots() const {
  if (application_->pinned_batch() > 0) return 1;
  const BatchBounds& bounds = application_->bounds();
  std::int64_t most = kMostSlots;
  if (fixed_batch_ > 0) return static_cast<int>(std::min(most, fixed_batch_ / bounds.min_atomic));
  return static_cast<int>(std::min(most, bounds.max_global / bounds.min_atomic));
}

absl::StatusOr<double> TrainingJob::StepsLeft() const {
  const int last = application_->epochs() - 1;
  if (fixed_batch_ == 0) {
    const double gain =
        slots_ > 0 && !speed_is_stale_
            ? progress_per_s_ * (step_.step_s + (step_.step_s - step_.sync_s) *
                                                    static_cast<double>(split_.accumulation))
            : 1;
    return (application_->ProgressAfter(last + 1) - progress_) / gain;
  }
  if (last <= epoch_) return 1;
  ESPALIER_ASSIGN_OR_RETURN(const double end, application_->StepsThrough(fixed_batch_, last));
  ESPALIER_ASSIGN_OR_RETURN(const double now, application_->StepsThrough(fixed_batch_, epoch_));
  return end - now;
}

double TrainingJob::WorkLeftOnOneSlot() {
  if (!Model()) return 0;
  if (one_slot_rate_ == 0) {
    const GoodputModel& model = *Model();
    const double goodput = fixed_batch_ > 0
                               ? model.AtFixedGlobalBatch(1, 1, fixed_batch_).throughput *
                                     model.Efficiency(fixed_batch_)
                               : model.Optimize(1, 1).goodput;
    one_slot_rate_ = goodput / static_cast<double>(application_->bounds().initial);
  }
  if (one_slot_rate_ <= 0) return 0;
  return (application_->ProgressAfter(application_->epochs()) - progress_) / one_slot_rate_;
}

}  // namespace espalier
