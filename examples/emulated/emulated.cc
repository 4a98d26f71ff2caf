// A trial whose compute is a timed sleep and whose metric follows a given curve, with everything
// else real: processes, groups, all-reduces, checkpoints, reports. So many slots can be exercised
// on a machine with two cores.
//
//   emulated --profile FILE [--epochs N] [--samples N] [--set name=value ...]
//
// Parameters: lr, batch_size, scaling_rule. FILE is JSON: the throughput model of a slot
// (alpha_c_s, beta_c_s a microbatch and sample, alpha_r_s, beta_r_s for the all-reduce; the terms
// of Pollux, OSDI'21, section 3.2) and the curve's constants.

#include <ATen/ops/zeros.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "trial_runner/torch/adaptive_data_loader.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/trial.h"

namespace {

struct Profile {
  double alpha_c_s, beta_c_s;  // a microbatch; a sample of it
  double alpha_r_s, beta_r_s;  // an all-reduce of two; each further replica
  double noise_scale;          // samples
  double best_lr;              // at batch size 128
  double jitter;               // of the metric
};

struct Arguments {
  std::string profile;
  std::int64_t epochs = 20;
  std::int64_t samples = 8192;
};

Profile ReadProfile(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error("cannot read the profile \"" + path + "\": name one with --profile");
  const nlohmann::json json = nlohmann::json::parse(file);
  const auto at = [&json, &path](const char* key) {
    if (!json.contains(key) || !json[key].is_number()) {
      throw std::runtime_error(path + ": \"" + key + "\" is missing or not a number");
    }
    return json[key].get<double>();
  };
  return {.alpha_c_s = at("alpha_c_s"),
          .beta_c_s = at("beta_c_s"),
          .alpha_r_s = at("alpha_r_s"),
          .beta_r_s = at("beta_r_s"),
          .noise_scale = at("noise_scale"),
          .best_lr = at("best_lr"),
          .jitter = at("jitter")};
}

// Validation error after so many epochs: a power law towards an end that depends on the learning
// rate, whose optimum grows with the square root of the batch size.
double ErrorAfter(const Profile& profile, double lr, double batch_size, double epochs,
                  std::uint64_t seed) {
  const double best = profile.best_lr * std::sqrt(batch_size / 128);
  const double off = std::log10(lr / best);
  const double end = 0.06 + 0.05 * off * off + 0.002 * std::log2(std::max(1.0, batch_size / 128));
  const double efficiency = (profile.noise_scale + 128) / (profile.noise_scale + batch_size);
  const double curve = 0.9 * std::pow(1 + 0.7 * epochs * efficiency, -1.1);
  espalier::Random noise(espalier::MixSeed(seed, static_cast<std::uint64_t>(epochs * 1000)));
  return std::min(0.9, end + curve + profile.jitter * noise.Normal());
}

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (i + 1 == argc) throw std::runtime_error("\"" + flag + "\" needs a value");
    if (flag == "--profile") {
      arguments.profile = argv[++i];
    } else if (flag == "--epochs") {
      arguments.epochs = std::atoll(argv[++i]);
    } else if (flag == "--samples") {
      arguments.samples = std::atoll(argv[++i]);
    } else if (flag == "--set") {
      ++i;  // read by espalier::Trial
    } else {
      throw std::runtime_error("\"" + flag + "\": want --profile, --epochs, --samples or --set");
    }
  }
  if (arguments.epochs < 1 || arguments.samples < 1) {
    throw std::runtime_error("--epochs and --samples want 1 or more");
  }
  return arguments;
}

// Steps that take what the profile says on few processors too: what a step really needs besides
// its sleep (the real all-reduce, and waiting for a processor) is part of its time, not added to
// it. It is known from the steps before; the median, because a single late step says nothing.
class PacedStep {
 public:
  // Sleeps what is left of a step of so many seconds. Another number of replicas begins anew.
  void Sleep(double step_s, int replicas) {
    const Clock::time_point now = Clock::now();
    if (replicas != replicas_) {
      replicas_ = replicas;
      besides_.clear();
    } else {
      besides_.push_back(std::chrono::duration<double>(now - woke_).count());
      if (besides_.size() > kRemembered) besides_.pop_front();
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(std::max(0.0, step_s - Besides())));
    woke_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kRemembered = 9;  // steps

  double Besides() const {
    if (besides_.empty()) return 0;
    std::vector<double> sorted(besides_.begin(), besides_.end());
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
  }

  int replicas_ = 0;
  Clock::time_point woke_;
  std::deque<double> besides_;
};

void Train(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  const Profile profile = ReadProfile(arguments.profile);
  espalier::Trial trial(argc, argv);
  const double lr = trial.Get("lr", 0.1);
  const auto batch_size = trial.Get("batch_size", std::int64_t{128});

  torch::nn::Linear model(16, 1);
  model->to(trial.device());
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(1e-4));
  espalier::AdaptiveDataParallel parallel(
      trial, *model, optimizer,
      {.scaling_rule = trial.Get("scaling_rule", "sqrt"), .base_batch_size = 128});
  espalier::AdaptiveDataLoader loader(parallel, arguments.samples,
                                      {.batch_size = batch_size, .max_batch_size = 8 * batch_size});

  const auto step_on = [&](std::int64_t samples) {
    const at::Tensor x = at::zeros({1, 16}, trial.device()) + 1e-3 * static_cast<double>(samples);
    parallel.Step(model->forward(x).square().mean());
  };
  loader.Rehearse([&](const at::Tensor& indices) { step_on(indices.size(0)); });
  PacedStep step;
  while (loader.NextEpoch(arguments.epochs)) {
    while (const auto indices = loader.NextBatch()) {
      const auto samples = static_cast<double>(indices->size(0));
      const int replicas = parallel.replicas();
      double step_s = profile.alpha_c_s + profile.beta_c_s * samples;
      if (replicas > 1) step_s += profile.alpha_r_s + profile.beta_r_s * (replicas - 2);
      step.Sleep(step_s, replicas);
      step_on(indices->size(0));
    }
    // What the epochs are worth: larger batches learn less a sample, which the curve knows.
    trial.Report(loader.epoch(), ErrorAfter(profile, lr, static_cast<double>(parallel.batch_size()),
                                            static_cast<double>(loader.epoch()), trial.seed()));
  }
  trial.Finish();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Train(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "emulated: %s\n", error.what());
    return 2;
  }
}
