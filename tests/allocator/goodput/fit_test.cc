#include "allocator/goodput/fit.h"

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "allocator/goodput/goodput.h"
#include "base/random.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

// Steps as a trial with these parameters would report them.
void AddSteps(Profile& profile, const ThroughputParams& truth, ProfileKey key,
              double relative_error = 0) {
  const auto m = static_cast<double>(key.atomic_batch_size);
  const double grad = GradTime(truth, m) * (1 + relative_error);
  const double optim = OptimTime(truth, key.nodes, key.replicas, m) * (1 + relative_error);
  profile.Add({key, 20, 20 * grad, 10, 10 * optim, 10 * std::max(0.0, optim - grad)});
}

// Enough of the measured rings to fit to; a digit is the replicas on one node.
const std::set<std::string> kRings = {"1", "2", "3", "4", "11", "12", "22", "44", "111"};

// Measured step times of one application, in shapes of at most `max_replicas`.
Profile Measured(const std::string& application, int max_replicas) {
  std::ifstream file(ESPALIER_POLLUX_LOADS "/traces/" + application + "/placements.csv");
  EXPECT_TRUE(file.good());
  Profile profile;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    std::string placement, size, step, sync;
    std::getline(cells, placement, ',');
    std::getline(cells, size, ',');
    std::getline(cells, step, ',');
    std::getline(cells, sync, ',');
    int replicas = 0;
    for (const char digit : placement) replicas += digit - '0';
    if (replicas > max_replicas || !kRings.contains(placement)) continue;
    profile.Add({.key = {static_cast<int>(placement.size()), replicas, std::stoll(size)},
                 .optimizer_count = 1,
                 .optimizer_time_s = std::stod(step),
                 .sync_time_s = std::stod(sync)});
  }
  EXPECT_FALSE(profile.empty());
  return profile;
}

double StepTimeError(const Profile& profile, const ThroughputParams& params) {
  double squares = 0;
  const auto observations = profile.Observations();
  for (const ProfileObservation& o : observations) {
    const double predicted = OptimTime(params, o.key.nodes, o.key.replicas,
                                       static_cast<double>(o.key.atomic_batch_size));
    squares += std::pow(std::log(predicted / o.optim_time_s), 2);
  }
  return std::sqrt(squares / static_cast<double>(observations.size()));
}

TEST(Fit, WithoutObservationsIsTheWarmStart) {
  EXPECT_EQ(Fit(Profile()), ThroughputParams{});
  const ThroughputParams warm{1, 1, 1, 1, 1, 1, 2};
  EXPECT_EQ(Fit(Profile(), warm), warm);
}

TEST(Fit, RecoversTimesOfAKnownModel) {
  const ThroughputParams truth{0.02, 0.0005, 0.15, 0.007, 0.03, 0.0025, 1.6};
  Profile profile;
  for (const std::int64_t m : {32, 64, 128, 256}) {
    for (const ProfileKey key :
         {ProfileKey{1, 1, m}, {1, 2, m}, {1, 4, m}, {2, 4, m}, {4, 16, m}}) {
      AddSteps(profile, truth, key);
    }
  }
  const ThroughputParams fitted = Fit(profile);
  EXPECT_LT(FitObjective(profile, fitted), FitObjective(profile, truth) + 1e-4);
  EXPECT_NEAR(fitted.alpha_c, truth.alpha_c, 0.002);
  EXPECT_NEAR(fitted.beta_c, truth.beta_c, 2e-5);
  // A shape between those seen.
  EXPECT_NEAR(OptimTime(fitted, 2, 8, 96), OptimTime(truth, 2, 8, 96),
              0.05 * OptimTime(truth, 2, 8, 96));
}

TEST(Fit, StandsNoise) {
  const ThroughputParams truth{0.02, 0.0005, 0.15, 0.007, 0.03, 0.0025, 1.6};
  Random random(1);
  Profile profile;
  for (const std::int64_t m : {32, 64, 128, 256}) {
    for (const int k : {1, 2, 3, 4}) AddSteps(profile, truth, {1, k, m}, 0.1 * random.Normal());
  }
  const ThroughputParams fitted = Fit(profile);
  EXPECT_NEAR(OptimTime(fitted, 1, 4, 96), OptimTime(truth, 1, 4, 96),
              0.15 * OptimTime(truth, 1, 4, 96));
}

TEST(Fit, HoldsWhatOneShapeCannotTell) {
  Profile profile;
  profile.Add({{1, 1, 32}, 0, 0, 10, 1.0, 0});
  const ThroughputParams p = Fit(profile);
  EXPECT_NEAR(p.alpha_c, 0.05, 1e-6);
  EXPECT_NEAR(GradTime(p, 32), 0.1, 0.002);
  EXPECT_LE(p.alpha_r, 1.01e-8);
  EXPECT_LE(p.beta_n, 1.2e-8);
  // Unseen replicas are thus expected to scale.
  EXPECT_NEAR(Throughput(p, 1, 2, 32, 0) / Throughput(p, 1, 1, 32, 0), 2, 0.01);
}

TEST(Fit, ExpectsNodesToBeNoFasterThanOneNode) {
  const ThroughputParams truth{0.02, 0.0005, 0.15, 0.007, 0.03, 0.0025, 1.2};
  Profile profile;
  for (const int k : {1, 2, 3, 4}) AddSteps(profile, truth, {1, k, 64});
  const ThroughputParams p = Fit(profile);
  EXPECT_GE(p.alpha_n, 1.0999 * p.alpha_r);
  EXPECT_GE(p.beta_n, 1.0999 * p.beta_r);
}

TEST(Fit, LeavesAWarmStartFromBeforeTheFirstResize) {
  const ThroughputParams truth{0.02, 0.0005, 0.15, 0.007, 0.03, 0.0025, 1.6};
  Profile profile;
  AddSteps(profile, truth, {1, 1, 64});
  const ThroughputParams alone = Fit(profile);
  AddSteps(profile, truth, {1, 2, 32});
  AddSteps(profile, truth, {1, 4, 16});
  const ThroughputParams warm = Fit(profile, alone);
  EXPECT_LE(FitObjective(profile, warm), FitObjective(profile, Fit(profile)) + 1e-3);
  EXPECT_NEAR(OptimTime(warm, 1, 2, 32), OptimTime(truth, 1, 2, 32), 0.003);
}

TEST(Fit, NeverLeavesItsBounds) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    Profile profile;
    const auto shapes = 1 + random.Below(8);
    for (std::uint64_t i = 0; i < shapes; ++i) {
      const int nodes = 1 + static_cast<int>(random.Below(3));
      const double optim = std::pow(10, random.Uniform(-6, 3));
      profile.Add({{nodes, nodes + static_cast<int>(random.Below(4)),
                    1 + static_cast<std::int64_t>(random.Below(512))},
                   0,
                   0,
                   1,
                   optim,
                   optim * random.Uniform()});
    }
    const ThroughputParams p = Fit(profile);
    for (const double v : {p.alpha_c, p.beta_c, p.alpha_n, p.beta_n, p.alpha_r, p.beta_r}) {
      EXPECT_TRUE(std::isfinite(v));
      EXPECT_GE(v, 0.99e-8);
      EXPECT_LE(v, 1.2e6);
    }
    EXPECT_GE(p.gamma, 1);
    EXPECT_LE(p.gamma, 10.0001);
  }
}

TEST(Fit, ExplainsMeasuredStepTimes) {
  for (const char* application : {"cifar10", "bert"}) {
    const Profile profile = Measured(application, 8);
    EXPECT_LT(StepTimeError(profile, Fit(profile)), 0.15) << application;
  }
}

TEST(Fit, PredictsFourReplicasFromThree) {
  const Profile few = Measured("bert", 3);
  const Profile all = Measured("bert", 8);
  EXPECT_LT(StepTimeError(all, Fit(few)), 0.2);
}

// All that is known of a trial in fixed mode when a second slot becomes free.
TEST(Fit, OfALoneReplicaThatSplitsItsBatchPromisesASecondOneToHelp) {
  for (const double step_s : {1e-4, 1e-2, 1.0}) {
    Profile profile;
    profile.Add({{1, 1, 128}, 100, 100 * step_s, 100, 100.5 * step_s, 0.5 * step_s});
    const GoodputModel model(
        Fit(profile), {},
        {.initial = 256, .max_global = 256, .max_atomic = 256, .max_unsplit = 64});
    const double one = model.AtFixedGlobalBatch(1, 1, 256).goodput;
    EXPECT_GT(model.AtFixedGlobalBatch(1, 2, 256).goodput, 1.5 * one) << step_s;
  }
}

}  // namespace
}  // namespace espalier
