#include "allocator/simulator/cluster.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "allocator/simulator/cluster_record.h"
#include "allocator/simulator/training_job.h"
#include "base/status.h"

namespace espalier {

namespace {

absl::Status CheckOptions(const ClusterLoad& load, const ClusterOptions& options) {
  const auto refuse = [](const char* name, const char* needed, double got) {
    return absl::InvalidArgumentError(
        absl::StrCat("simulated cluster: ", name, " needs ", needed, ", got ", got));
  };
  if (!(options.interval_s > 0) || !std::isfinite(options.interval_s)) {
    return refuse("interval_s", "a number > 0", options.interval_s);
  }
  if (!options.on_events && options.interval_s != std::floor(options.interval_s)) {
    return refuse("interval_s", "whole seconds unless decisions are made on events",
                  options.interval_s);
  }
  if (!(options.resize_cost_s >= 0)) {
    return refuse("resize_cost_s", "a number >= 0", options.resize_cost_s);
  }
  if (!(options.least_gap_s > 0)) return refuse("least_gap_s", "a number > 0", options.least_gap_s);
  if (!(options.first_profile_s >= 0)) {
    return refuse("first_profile_s", "a number >= 0", options.first_profile_s);
  }
  if (load.nodes < 1) return refuse("nodes", "at least 1", load.nodes);
  // A ring is written with one digit a node.
  if (load.slots_per_node < 1 || load.slots_per_node > 9) {
    return refuse("slots_per_node", "1 to 9", load.slots_per_node);
  }
  for (const ClusterJob& job : load.jobs) {
    if (!job.application) {
      return absl::InvalidArgumentError(absl::StrCat("job \"", job.name, "\" has no application"));
    }
    if (options.batch == BatchRule::kRequested && job.requested_batch < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "job \"", job.name, "\": needs a requested batch >= 1, got ", job.requested_batch));
    }
  }
  return absl::OkStatus();
}

// One run of a load.
class ClusterRun {
 public:
  ClusterRun(const ClusterLoad& load, Policy& policy, const ClusterOptions& options)
      : load_(load), policy_(policy), options_(options), record_(load) {
    jobs_.reserve(load.jobs.size());
    for (const ClusterJob& job : load.jobs) jobs_.push_back({{job, options, memory_}, {}, -1e9});
  }

  absl::StatusOr<Timeline> Run();

 private:
  struct Holder {
    TrainingJob job;
    Placement placement;
    double resized_s;
  };

  bool Waits(const Holder& holder) const {
    return holder.job.job().submitted_s <= now_s_ && !holder.job.done();
  }
  bool AllDone() const;
  double NextDecision();
  absl::Status AdvanceTo(double until_s);
  absl::Status Decide();
  absl::StatusOr<Job> Describe(std::size_t index);
  std::shared_ptr<const std::vector<double>> KnownStepTimes(const TrainingJob& job);
  absl::Status Apply(const AllocationDecision& decision);
  absl::Status CheckCapacity() const;
  std::vector<int> RingOf(const Placement& placement) const;

  const ClusterLoad& load_;
  Policy& policy_;
  const ClusterOptions& options_;
  StepTimeMemory memory_;
  ClusterRecord record_;
  std::vector<Holder> jobs_;  // job i is trial i + 1
  std::map<std::pair<const Application*, std::int64_t>, std::shared_ptr<const std::vector<double>>>
      known_step_times_;
  double now_s_ = 0;
};

bool ClusterRun::AllDone() const {
  return std::all_of(jobs_.begin(), jobs_.end(),
                     [](const Holder& holder) { return holder.job.done(); });
}

absl::StatusOr<Timeline> ClusterRun::Run() {
  if (options_.on_events) ESPALIER_RETURN_IF_ERROR(Decide());
  while (!AllDone()) {
    ESPALIER_RETURN_IF_ERROR(AdvanceTo(NextDecision()));
    ESPALIER_RETURN_IF_ERROR(Decide());
    if (now_s_ > options_.longest_s) {
      return absl::DeadlineExceededError(
          absl::StrCat("load \"", load_.name, "\" is not done after ", options_.longest_s, " s"));
    }
  }
  return std::move(record_).Finish();
}

double ClusterRun::NextDecision() {
  const double latest = now_s_ + options_.interval_s;
  if (!options_.on_events) return latest;
  double event_s = latest;
  for (Holder& holder : jobs_) {
    if (holder.job.job().submitted_s > now_s_) {
      event_s = std::min(event_s, holder.job.job().submitted_s);
    } else if (const auto to_event = holder.job.ToNextEvent()) {
      event_s = std::min(event_s, now_s_ + *to_event);
    }
  }
  return std::min(latest, std::max(event_s, now_s_ + options_.least_gap_s));
}

absl::Status ClusterRun::AdvanceTo(double until_s) {
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    TrainingJob& job = jobs_[i].job;
    if (job.done()) continue;
    ESPALIER_RETURN_IF_ERROR(job.Advance(now_s_, until_s - now_s_));
    if (!job.done()) continue;
    record_.Completed(i, *job.completed_s());
    jobs_[i].placement.clear();
  }
  now_s_ = until_s;
  return absl::OkStatus();
}

std::shared_ptr<const std::vector<double>> ClusterRun::KnownStepTimes(const TrainingJob& job) {
  const Application& application = job.application();
  auto& known = known_step_times_[{&application, job.fixed_batch()}];
  if (known) return known;
  auto times = std::make_shared<std::vector<double>>();
  std::vector<int> ring;
  for (int slots = 1; slots <= job.MaxSlots(); ++slots) {
    if (slots % load_.slots_per_node == 1 || load_.slots_per_node == 1) ring.push_back(0);
    ++ring.back();
    const BatchSplit split = SplitBatch(application.bounds(), job.fixed_batch(), slots);
    const auto time = memory_.At(application, ring, split.atomic);
    if (!time.ok()) break;  // no longer known
    times->push_back(time->step_s +
                     (time->step_s - time->sync_s) * static_cast<double>(split.accumulation));
  }
  return known = std::move(times);
}

absl::StatusOr<Job> ClusterRun::Describe(std::size_t index) {
  Holder& holder = jobs_[index];
  TrainingJob& training = holder.job;
  const ClusterJob& submitted = training.job();
  Job job;
  job.id = TrialId(static_cast<std::int64_t>(index) + 1);
  job.study = StudyId(1);
  job.name = submitted.name;
  job.order = static_cast<std::int64_t>(index);
  job.running = training.slots() > 0;
  job.current = holder.placement;
  job.max_slots = training.MaxSlots();
  job.goodput = training.Model();
  job.fixed_batch = training.fixed_batch() > 0;
  job.global_batch = training.fixed_batch();
  job.max_profiled_replicas = training.max_profiled_replicas();
  job.work_left_s = training.WorkLeftOnOneSlot();
  job.resize_cost_s = options_.resize_cost_s;
  job.since_resize_s = now_s_ - holder.resized_s;
  job.joining = training.resizing();
  job.age_s = now_s_ - submitted.submitted_s;
  job.held_s = training.held_s();
  job.attained_service = training.attained_service();
  job.resizes = training.resizes();
  job.requested_slots = submitted.requested_slots;
  ESPALIER_ASSIGN_OR_RETURN(job.steps_left, training.StepsLeft());
  if (job.fixed_batch) job.known_step_s = KnownStepTimes(training);
  return job;
}

absl::Status ClusterRun::Decide() {
  Pool pool;
  pool.now_s = now_s_;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (!Waits(jobs_[i])) continue;
    ESPALIER_ASSIGN_OR_RETURN(Job job, Describe(i));
    pool.jobs.push_back(std::move(job));
  }
  if (pool.jobs.empty()) return absl::OkStatus();
  for (int n = 1; n <= load_.nodes; ++n) {
    pool.nodes.push_back({.id = NodeId(n), .slots = load_.slots_per_node});
  }
  for (const AllocationDecision& decision : policy_.Allocate(pool)) {
    ESPALIER_RETURN_IF_ERROR(Apply(decision));
  }
  return CheckCapacity();
}

std::vector<int> ClusterRun::RingOf(const Placement& placement) const {
  std::vector<int> ring;
  for (const auto& [node, slots] : placement) ring.push_back(slots);
  if (options_.ring == RingOrder::kMostFirst) std::sort(ring.rbegin(), ring.rend());
  return ring;
}

absl::Status ClusterRun::Apply(const AllocationDecision& decision) {
  const std::int64_t index = decision.trial.value - 1;
  if (index < 0 || index >= static_cast<std::int64_t>(jobs_.size()) ||
      !Waits(jobs_[static_cast<std::size_t>(index)])) {
    return absl::InternalError(
        absl::StrCat("the policy decided on trial ", decision.trial.value, ", which is not there"));
  }
  Holder& holder = jobs_[static_cast<std::size_t>(index)];
  if (holder.placement == decision.placement) return absl::OkStatus();
  holder.placement = decision.placement;
  holder.resized_s = now_s_;
  ESPALIER_RETURN_IF_ERROR(holder.job.Resize(RingOf(decision.placement)));
  record_.Decided(static_cast<std::size_t>(index), now_s_, holder.job.slots(), holder.job.nodes(),
                  holder.job.resizes(), decision.reason);
  return absl::OkStatus();
}

absl::Status ClusterRun::CheckCapacity() const {
  std::map<NodeId, int> used;
  for (const Holder& holder : jobs_) {
    for (const auto& [node, slots] : holder.placement) used[node] += slots;
  }
  for (const auto& [node, slots] : used) {
    const bool known = node.value >= 1 && node.value <= load_.nodes;
    if (known && slots <= load_.slots_per_node) continue;
    return absl::InternalError(absl::StrCat("the policy gave out ", slots, " slots of node ",
                                            node.value, ", which has ",
                                            known ? load_.slots_per_node : 0));
  }
  return absl::OkStatus();
}

}  // namespace

ClusterOptions PublishedOptions(std::string_view policy) {
  ClusterOptions options;
  if (policy == "optimus" || policy == "tiresias") {
    options.batch = BatchRule::kRequested;
    options.ring = RingOrder::kMostFirst;
  }
  return options;
}

absl::StatusOr<Timeline> SimulateCluster(const ClusterLoad& load, Policy& policy,
                                         const ClusterOptions& options) {
  ESPALIER_RETURN_IF_ERROR(CheckOptions(load, options));
  return ClusterRun(load, policy, options).Run();
}

}  // namespace espalier
