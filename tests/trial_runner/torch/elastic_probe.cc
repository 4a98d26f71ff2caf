// A small but real trial program for tests and benchmarks: a perceptron on made-up data that writes
// down which samples it was dealt in which step. Parameters: lr, batch_size, max_batch_size,
// min_atomic and max_atomic, accumulation, samples, epochs, dropout, width, momentum, adam,
// batch_norm, compute_ms (added to each microbatch), log (folder for the record), scaling_rule,
// base_batch_size, evaluations (an epoch), evaluate_first (each epoch, before its loop), sums (an
// accumulator and a state of its own), bucket_operations (steps on the CPU as on a GPU) and
// gradient_kernel (with the blocks and threads of our kernel), channels_last (a convolution first,
// whose weights lie in that order), schedule
// ("epoch": the rate falls before an epoch's evaluations, "batch": in each batch), leaves_out (of
// every so many steps the last replica leaves one out), drawn (each step is followed by one in a
// direction that is drawn), all_parameters (each replica writes down what it comes to), those of
// probe_data.h. With epochs=0 it trains until there is a file "stop" in that folder, to the end of
// an epoch. While there is a folder "hold" in it a replica stays in an evaluation, and leaves a
// file there that says so. With --thread-first it has a thread of its own before its Trial.

#include <poll.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/trial_runner/kernels/host_launch.h"
#include "tests/trial_runner/torch/probe_data.h"
#include "trial_runner/torch/accumulator.h"
#include "trial_runner/torch/adaptive_data_loader.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/process/trial_context.h"
#include "trial_runner/torch/state.h"
#include "trial_runner/torch/trial.h"

namespace {

constexpr std::int64_t kFeatures = 8;

class Record {
 public:
  explicit Record(const std::string& folder) {
    if (!folder.empty()) out_ = std::fopen((folder + "/" + std::to_string(getpid())).c_str(), "w");
  }
  // generation, epoch, step about to be taken, samples
  void Add(std::int64_t generation, std::int64_t epoch, std::int64_t step, const at::Tensor& of) {
    if (out_ == nullptr) return;
    std::fprintf(out_, "%lld %lld %lld", static_cast<long long>(generation),
                 static_cast<long long>(epoch), static_cast<long long>(step));
    for (std::int64_t i = 0; i < of.numel(); ++i) {
      std::fprintf(out_, " %lld", static_cast<long long>(of.const_data_ptr<std::int64_t>()[i]));
    }
    std::fprintf(out_, "\n");
    std::fflush(out_);
  }

 private:
  std::FILE* out_ = nullptr;
};

void StayWhileHeld(const std::string& log) {
  const std::filesystem::path hold = log + "/hold";
  if (!std::filesystem::exists(hold)) return;
  std::ofstream(hold / std::to_string(getpid())) << "here";
  while (std::filesystem::exists(hold)) poll(nullptr, 0, 1);
}

// What the program itself remembers of the epoch before.
class LastEpoch final : public espalier::State {
 public:
  std::string name() const override { return "last-epoch"; }
  void Save(std::ostream& to) const override { to << epoch; }
  void Load(std::istream& from) override { from >> epoch; }

  std::int64_t epoch = 0;
};

// A learning rate that falls: with the number of the epoch, or by batches that it counts.
class Schedule final : public espalier::State {
 public:
  Schedule(torch::optim::Optimizer& optimizer, std::string of, double rate)
      : optimizer_(optimizer), of_(std::move(of)), rate_(rate) {}

  std::string name() const override { return "schedule"; }
  void Save(std::ostream& to) const override { to << count_; }
  void Load(std::istream& from) override {
    from >> count_;
    Set(count_);
  }

  void EndTraining(std::int64_t epoch) {
    if (of_ == "epoch") Set(epoch);
  }
  // Between a batch and its step: what is changed later is not handed over with the step.
  void BeginBatch() {
    if (of_ == "batch") Set(count_ + 1);
  }

 private:
  void Set(std::int64_t count) {
    count_ = count;
    const double factor = std::pow(of_ == "epoch" ? 0.7 : 0.99, static_cast<double>(count));
    for (auto& group : optimizer_.param_groups()) group.options().set_lr(rate_ * factor);
  }

  torch::optim::Optimizer& optimizer_;
  const std::string of_;
  const double rate_;
  std::int64_t count_ = 0;
};

torch::nn::Sequential MakeNet(espalier::Trial& trial) {
  const auto width = trial.Get("width", std::int64_t{16});
  torch::nn::Sequential net;
  if (trial.Get("channels_last", false)) {
    net->push_back(torch::nn::Unflatten(torch::nn::UnflattenOptions(1, {2, 2, 2})));
    torch::nn::Conv2d convolution(torch::nn::Conv2dOptions(2, width, 2));
    convolution->weight.set_data(convolution->weight.contiguous(at::MemoryFormat::ChannelsLast));
    net->push_back(convolution);
    net->push_back(torch::nn::Flatten());
  } else {
    net->push_back(torch::nn::Linear(kFeatures, width));
  }
  if (trial.Get("batch_norm", false)) net->push_back(torch::nn::BatchNorm1d(width));
  const double dropout = trial.Get("dropout", 0.0);
  if (dropout > 0) net->push_back(torch::nn::Dropout(dropout));
  net->push_back(torch::nn::Linear(width, 1));
  return net;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1] == std::string("--thread-first")) std::thread([] { pause(); }).detach();
  espalier::Trial trial(argc, argv);
  if (std::getenv("ESPALIER_TEST_DEVICE") != nullptr) {  // the steps of tests/gpu want to know
    std::fprintf(stderr, "on %s\n", trial.device().str().c_str());
  }
  trial.context().bucket_operations = trial.Get("bucket_operations", false);
  if (trial.Get("gradient_kernel", false)) trial.context().gradient_kernel = espalier::LaunchOnHost;
  const auto samples = trial.Get("samples", std::int64_t{1000});
  const auto given_epochs = trial.Get("epochs", std::int64_t{2});
  const std::int64_t epochs =
      given_epochs > 0 ? given_epochs : std::numeric_limits<std::int64_t>::max();
  const auto evaluations = trial.Get("evaluations", 1);
  const auto evaluate_first = trial.Get("evaluate_first", false);
  const int compute_ms = trial.Get("compute_ms", 0);
  const std::string log = trial.Get("log", "");
  Record record(log);

  const auto generator = at::detail::createCPUGenerator(7);
  const auto x = torch::randn({samples, kFeatures}, generator);
  const auto y = x.pow(2).sum(1, true) + 0.3 * torch::randn({samples, 1}, generator);

  auto net = MakeNet(trial);
  auto second_net = MakeNet(trial);
  net->to(trial.device());
  second_net->to(trial.device());
  const double lr = trial.Get("lr", 0.01);
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (trial.Get("adam", false)) {
    optimizer = std::make_unique<torch::optim::Adam>(net->parameters(), lr);
  } else {
    optimizer = std::make_unique<torch::optim::SGD>(
        net->parameters(), torch::optim::SGDOptions(lr).momentum(trial.Get("momentum", 0.9)));
  }
  espalier::DataParallelOptions options{
      .scaling_rule = trial.Get("scaling_rule", ""),
      .base_batch_size = trial.Get("base_batch_size", std::int64_t{0}),
      .max_gradient_norm = trial.Get("max_gradient_norm", 0.0),
      .mixed_precision = trial.Get("mixed_precision", ""),
      .max_skipped_steps = trial.Get("max_skipped_steps", std::int64_t{10})};
  const auto nan_from = trial.Get("nan_from", std::int64_t{0});
  const auto nan_to = nan_from + trial.Get("nan_steps", std::int64_t{1});
  espalier::AdaptiveDataParallel parallel(trial, *net, *optimizer, options);
  torch::optim::Adam second_optimizer(second_net->parameters(), lr);
  std::unique_ptr<espalier::AdaptiveDataParallel> second;
  if (trial.Get("models", 1) == 2) {
    options.name = "second";
    second = std::make_unique<espalier::AdaptiveDataParallel>(trial, *second_net, second_optimizer,
                                                              options);
  }
  std::optional<Schedule> schedule;
  if (const auto of = trial.Get("schedule", ""); !std::string(of).empty()) {
    trial.AddState(schedule.emplace(*optimizer, of, lr));
  }
  LastEpoch last_epoch;
  const auto leaves_out = trial.Get("leaves_out", std::int64_t{0});
  const bool drawn = trial.Get("drawn", false);
  const bool all_parameters = trial.Get("all_parameters", false);
  std::optional<espalier::Accumulator> seen;
  if (trial.Get("sums", false)) {
    trial.AddState(last_epoch);
    seen.emplace(parallel, "seen", std::vector<std::string>{"samples", "indices"});
  }
  espalier::ProbeData data(trial, parallel, x, y,
                           {.batch_size = trial.Get("batch_size", std::int64_t{32}),
                            .max_atomic_batch_size = trial.Get("max_atomic", std::int64_t{0}),
                            .accumulation = trial.Get("accumulation", true)});
  espalier::EpochLoader& loader = data.loader();
  if (const auto max = trial.Get("max_batch_size", std::int64_t{0}); max > 0) {
    loader.AutoscaleBatchSize(max, {.min = trial.Get("min_atomic", std::int64_t{0}),
                                    .max = trial.Get("max_atomic", std::int64_t{0})});
  }

  const auto evaluate = [&] {
    return parallel.Evaluate(samples, 256, [&](const at::Tensor& indices) {
      StayWhileHeld(log);
      const at::Tensor guesses = net->forward(x.index_select(0, indices).to(trial.device()));
      return (guesses - y.index_select(0, indices).to(trial.device())).pow(2).sum().item<double>();
    });
  };
  for (const std::int64_t epoch : loader.RemainingEpochsUntil(epochs)) {
    const double before = evaluate_first ? evaluate() : 0;
    net->train();
    while (const auto batch = data.Next()) {
      record.Add(parallel.generation(), epoch, parallel.steps() + 1, batch->indices);
      const bool last = parallel.rank() + 1 == parallel.replicas();
      if (leaves_out > 0 && last && parallel.steps() % leaves_out == leaves_out - 1) continue;
      if (schedule) schedule->BeginBatch();
      if (seen) {
        seen->Add("samples", static_cast<double>(batch->indices.numel()));
        seen->Add("indices", batch->indices.sum().item<double>());
      }
      if (compute_ms > 0) poll(nullptr, 0, compute_ms);  // stands for a longer forward pass
      const at::Tensor inputs = batch->inputs.to(trial.device());
      const at::Tensor targets = batch->targets.to(trial.device());
      const auto loss = [&](const at::Tensor& output) {
        const std::int64_t step = parallel.steps() + 1;
        const bool broken = nan_from > 0 && step >= nan_from && step < nan_to;
        return torch::nn::functional::mse_loss(output.to(at::kFloat), targets) *
               (broken ? std::numeric_limits<float>::quiet_NaN() : 1.0F);
      };
      at::Tensor output;
      {
        const auto precision = parallel.Autocast();
        output = net->forward(inputs);
      }
      parallel.Step(loss(output));
      if (second) {
        // Through the first model, whose gradients this is not to disturb.
        second->Step(loss(net->forward(inputs) + second_net->forward(inputs)));
      }
      if (drawn) {
        const at::NoGradGuard no_grad;
        for (at::Tensor& p : net->parameters()) p.add_(0.01 * at::randn_like(p));
      }
    }
    if (schedule) schedule->EndTraining(epoch);
    double error = 0;
    for (int i = 0; i < evaluations; ++i) {
      error = evaluate();
    }
    std::map<std::string, double> figures{
        {"steps", static_cast<double>(parallel.steps())},
        {"skipped", static_cast<double>(parallel.skipped_steps())},
        {"batch_size", static_cast<double>(parallel.batch_size())}};
    if (evaluate_first) figures["before"] = before / static_cast<double>(samples);
    if (seen) {
      figures.merge(seen->Synchronize());
      figures["last_epoch"] = static_cast<double>(last_epoch.epoch);
      last_epoch.epoch = epoch;
    }
    trial.Report(epoch, error / static_cast<double>(samples), figures);
    // All have to come to the same answer: so it goes through a sum.
    if (given_epochs == 0 && parallel.Evaluate(1, 1, [&](const at::Tensor&) {
          return std::filesystem::exists(log + "/stop") ? 1.0 : 0.0;
        }) > 0) {
      break;
    }
  }
  if (!log.empty() && (parallel.rank() == 0 || all_parameters)) {
    std::ofstream parameters(log + "/parameters" +
                             (all_parameters ? "-" + std::to_string(parallel.rank()) : ""));
    parameters.precision(9);
    std::vector<at::Tensor> trained = net->parameters();
    if (second) {
      for (const auto& p : second_net->parameters()) trained.push_back(p);
    }
    for (const auto& p : trained) {
      const auto flat = p.detach().cpu().contiguous();
      for (std::int64_t i = 0; i < flat.numel(); ++i) {
        parameters << flat.const_data_ptr<float>()[i] << "\n";
      }
    }
  }
  trial.Finish();
}
