#include "allocator/policies/yardsticks/pollux_fitness.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "allocator/goodput/sample_rounding.h"
#include "allocator/pool/speedup.h"
#include "base/check.h"

namespace espalier {

namespace {

constexpr int kBatchesTried = 50;
constexpr double kFloor = 1e-3;  // of a speedup in the mean, so that nothing is divided by zero

// The artifact's search for the best batch. It differs from GoodputModel::Optimize in two points
// that decide which shapes are worth something: an atomic batch that has to be rounded out of its
// bounds counts nothing, and where the replicas need more samples than the largest batch has, the
// candidates run downwards from what they need instead of there being none.
double BestGoodput(const GoodputModel& model, int nodes, int replicas) {
  const BatchBounds& bounds = model.bounds();
  const auto initial = static_cast<double>(bounds.initial);
  const double low = std::max(initial, static_cast<double>(bounds.min_atomic) * replicas);
  const double high = std::max(initial, static_cast<double>(bounds.max_global));
  double best = 0;
  std::int64_t last_m = 0;
  std::int64_t last_s = 0;
  for (int i = 0; i < kBatchesTried; ++i) {
    const double global =
        i + 1 == kBatchesTried ? high : low * std::pow(high / low, i / (kBatchesTried - 1.0));
    const double local = global / replicas;
    std::int64_t s = 0;
    if (bounds.accumulation) {
      s = CeilOfSamples(local / static_cast<double>(bounds.max_atomic)) - 1;
      if (replicas == 1 && bounds.SplitsAlone(local)) s = std::max<std::int64_t>(s, 1);
      s = std::max<std::int64_t>(s, 0);
    }
    const auto m = CeilOfSamples(local / static_cast<double>(s + 1));
    if (m < bounds.min_atomic || m > bounds.max_atomic || (m == last_m && s == last_s)) continue;
    best = std::max(best, model.Goodput(nodes, replicas, m, s));
    last_m = m;
    last_s = s;
  }
  return best;
}

double GoodputOf(const Job& job, int nodes, int replicas) {
  const GoodputModel& model = *job.goodput;
  if (!job.fixed_batch) return BestGoodput(model, nodes, replicas);
  const std::int64_t batch = job.global_batch > 0 ? job.global_batch : model.bounds().initial;
  return model.AtFixedGlobalBatch(nodes, replicas, batch).goodput;
}

int CeilDivide(int a, int b) { return (a + b - 1) / b; }

}  // namespace

PolluxObjectives::PolluxObjectives(const Pool& pool, const PolluxFitnessOptions& options)
    : pool_(&pool), options_(options) {
  int slots = 0;
  for (const NodeCapacity& node : pool.nodes) slots += std::max(0, node.slots);
  const auto jobs = static_cast<int>(pool.jobs.size());
  if (slots == 0 || jobs == 0) return;
  const auto nodes = static_cast<int>(pool.nodes.size());
  scale_ = static_cast<double>(nodes) / slots;
  const int fair_replicas = CeilDivide(slots, jobs);
  const int fair_nodes = std::min(fair_replicas, CeilDivide(nodes, slots));
  for (const Job& job : pool.jobs) {
    Table& table = tables_.emplace_back();
    table.linear = 1.0 / fair_replicas;
    if (job.goodput) {
      table.unit = GoodputOf(job, fair_nodes, fair_replicas);
      // Its batch does not go with a fair share: by the fewest slots that it runs on.
      for (int k = 1; k <= MaxSlots(job) && !(table.unit > 0); ++k) {
        table.unit = GoodputOf(job, 1, k) / k * fair_replicas;
      }
      table.most = std::min(slots, MaxSlots(job));
      table.known.assign(2 * static_cast<std::size_t>(table.most + 1), -1.0);
    }
    restart_factors_.push_back(std::max(job.age_s - job.resizes * options.restart_delay_s, 0.0) /
                               std::max(job.age_s + options.restart_delay_s, 1e-9));
  }
}

double PolluxObjectives::Speedup(std::size_t job, int nodes, int replicas) {
  Table& table = tables_[job];
  if (replicas == 0 || !(table.unit > 0)) return replicas * table.linear;
  if (replicas > table.most) return GoodputOf(pool_->jobs[job], nodes, replicas) / table.unit;
  // All that the model asks of the nodes is whether there are several.
  const std::size_t row = nodes > 1 ? static_cast<std::size_t>(table.most + 1) : 0;
  double& known = table.known[row + static_cast<std::size_t>(replicas)];
  if (known < 0) known = GoodputOf(pool_->jobs[job], nodes, replicas) / table.unit;
  return known;
}

double PolluxObjectives::Mean(std::span<const double> scaled_speedups) const {
  const auto n = static_cast<double>(scaled_speedups.size());
  const double p = options_.fairness;
  double sum = 0;
  if (p == 0) {
    for (const double u : scaled_speedups) sum += std::log(std::max(u, kFloor));
    return std::exp(sum / n);
  }
  if (p == -1) {
    for (const double u : scaled_speedups) sum += 1.0 / (u + kFloor);
    return n / sum;
  }
  for (const double u : scaled_speedups) sum += std::pow(u + kFloor, p);
  return std::pow(sum / n, 1.0 / p);
}

double PolluxFitness(const Pool& pool, const std::vector<Placement>& placements,
                     const PolluxFitnessOptions& options) {
  ESPALIER_CHECK(placements.size() == pool.jobs.size(), "one placement for each job");
  PolluxObjectives objectives(pool, options);
  if (!(objectives.Scale() > 0)) return 0;
  std::vector<double> scaled;
  for (std::size_t j = 0; j < placements.size(); ++j) {
    int replicas = 0;
    for (const auto& [node, slots] : placements[j]) replicas += slots;
    const double factor = placements[j] == pool.jobs[j].current ? 1.0 : objectives.RestartFactor(j);
    const double speedup = objectives.Speedup(j, static_cast<int>(placements[j].size()), replicas);
    scaled.push_back(speedup * objectives.Scale() * factor);
  }
  return objectives.Mean(scaled);
}

}  // namespace espalier
