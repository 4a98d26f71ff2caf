// bench: refit - one fit of a trial's throughput model, by what was measured: processor time
//
// Trials with a known model report noisy step times of 1 to 200 kinds: shapes of up to 4 nodes and
// 32 replicas, batches, accumulation, overlap of all-reduce and backward pass. Of each number of
// observations 200 trials are fitted, from scratch and from the fit before the last observation, as
// a running trial is. A profile keeps Profile::kMaxShapes kinds. median_error is the relative error
// of the step time that the fit gives for twice the most replicas measured.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <vector>

#include "allocator/goodput/fit.h"
#include "base/random.h"
#include "tests/benchmarks/programs/smoke.h"

namespace espalier {
namespace {

constexpr int kTrials = 200;
constexpr double kNoise = 0.05;  // of a mean step time, as a standard deviation

// Processor time of this thread: a fit is one thread's work, and other processes of a busy machine
// say nothing about it.
double ThreadMicroseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

ThroughputParams RandomTruth(Random& random) {
  const double step = std::exp(random.Uniform(std::log(0.02), std::log(1.0)));
  return {.alpha_c = step * random.Uniform(0.05, 0.3),
          .beta_c = step / std::pow(2, random.Uniform(4, 9)),
          .alpha_n = step * random.Uniform(0.1, 0.8),
          .beta_n = step * random.Uniform(0, 0.02),
          .alpha_r = step * random.Uniform(0.02, 0.3),
          .beta_r = step * random.Uniform(0, 0.01),
          .gamma = random.Uniform(1, 6)};
}

ProfileEntry Measured(const ThroughputParams& truth, Random& random) {
  const int nodes = 1 << random.Below(3);
  const int replicas = nodes * (1 << random.Below(4));
  const auto atomic = static_cast<std::int64_t>(16 + random.Below(496));
  const auto noise = [&random] { return std::exp(kNoise * random.Normal()); };
  const double grad_s = GradTime(truth, static_cast<double>(atomic)) * noise();
  const double optim_s = OptimTime(truth, nodes, replicas, static_cast<double>(atomic)) * noise();
  ProfileEntry entry;
  entry.key = {nodes, replicas, atomic};
  entry.accumulation_count = random.Uniform() < 0.3 ? 20 : 0;
  entry.accumulation_time_s = static_cast<double>(entry.accumulation_count) * grad_s;
  entry.optimizer_count = 20;
  entry.optimizer_time_s = 20 * optim_s;
  entry.sync_time_s = 20 * std::clamp(optim_s - grad_s, 0.0, optim_s);
  return entry;
}

struct Figures {
  std::vector<double> first_us, again_us, errors;
};

void FitOne(int observations, Random& random, Figures& figures) {
  const ThroughputParams truth = RandomTruth(random);
  Profile profile;
  for (int i = 1; i < observations; ++i) profile.Add(Measured(truth, random));
  const ThroughputParams before = Fit(profile);
  profile.Add(Measured(truth, random));
  double start = ThreadMicroseconds();
  (void)Fit(profile);
  figures.first_us.push_back(ThreadMicroseconds() - start);
  start = ThreadMicroseconds();
  const ThroughputParams fit = Fit(profile, before);
  figures.again_us.push_back(ThreadMicroseconds() - start);
  const int twice = 2 * profile.max_replicas();
  const int nodes = std::max(1, twice / 8);
  const double true_s = IterationTime(truth, nodes, twice, 128, 1);
  figures.errors.push_back(std::abs(IterationTime(fit, nodes, twice, 128, 1) / true_s - 1));
}

int Run(int trials) {
  std::printf("%12s%10s%10s%12s%10s%14s\n", "observations", "p50 us", "p99 us", "again p50", "p99",
              "median error");
  Random random(1);
  Figures all;
  for (const int observations : {1, 2, 5, 10, 20, 50, 100, 200}) {
    Figures figures;
    for (int trial = 0; trial < trials; ++trial) FitOne(observations, random, figures);
    std::printf("%12d%10.0f%10.0f%12.0f%10.0f%14.3f\n", observations,
                Quantile(figures.first_us, 0.5), Quantile(figures.first_us, 0.99),
                Quantile(figures.again_us, 0.5), Quantile(figures.again_us, 0.99),
                Quantile(figures.errors, 0.5));
    all.first_us.insert(all.first_us.end(), figures.first_us.begin(), figures.first_us.end());
    all.again_us.insert(all.again_us.end(), figures.again_us.begin(), figures.again_us.end());
    if (observations == 200) all.errors = figures.errors;
  }
  std::printf(
      "{\"p50_us\": %.1f, \"p99_us\": %.1f, \"again_p50_us\": %.1f, \"again_p99_us\": %.1f, "
      "\"median_error_at_200\": %.4f}\n",
      Quantile(all.first_us, 0.5), Quantile(all.first_us, 0.99), Quantile(all.again_us, 0.5),
      Quantile(all.again_us, 0.99), Quantile(all.errors, 0.5));
  return 0;
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) {
  return espalier::Run(espalier::benchmarks::IsSmoke(argc, argv) ? 3 : espalier::kTrials);
}
