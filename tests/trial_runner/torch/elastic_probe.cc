// A small but real trial program for tests and benchmarks: a perceptron on made-up data that writes
// down which samples it was dealt in which step. Parameters: lr, batch_size, max_batch_size,
// min_atomic and max_atomic, accumulation, samples, epochs, dropout, width, momentum, adam,
// batch_norm, compute_ms (added to each microbatch), log (folder for the record), scaling_rule,
// base_batch_size, evaluations (an epoch), evaluate_first (each epoch, before its loop), sums (an
// accumulator and a state of its own), bucket_operations (steps on the CPU as on a GPU) and
// gradient_kernel (with the blocks and threads of our kernel), channels_last (a convolution first,
// whose weights lie in that order), schedule
// ("epoch": the rate falls before an epoch's evaluations, "batch": in each batch), batches (another
// batch size in each epoch, which is set where it begins, "start", or the one before ends, "end"),
// leaves_out (of every so many steps the last replica leaves one out), drawn (each step is followed
// by one in a direction that is drawn), all_parameters (each replica writes down what it comes to),
// those of probe_data.h. With epochs=0 it trains until there is a file "stop" in that folder, to
// the end of an epoch. While there is a folder "hold" in it a replica stays in an evaluation, and
// leaves a file there that says so. With --thread-first it has a thread of its own before its
// Trial.

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

#include "absl/strings/str_cat.h"
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

// With sums=true: what an accumulator adds up, and the epoch before.
class Sums {
 public:
  Sums(espalier::Trial& trial, espalier::AdaptiveDataParallel& parallel)
      : seen_(parallel, "seen", {"samples", "indices"}) {
    trial.AddState(last_epoch_);
  }

  void Add(const at::Tensor& indices) {
    seen_.Add("samples", static_cast<double>(indices.numel()));
    seen_.Add("indices", indices.sum().item<double>());
  }
  void EndEpoch(std::int64_t epoch, std::map<std::string, double>& figures) {
    figures.merge(seen_.Synchronize());
    figures["last_epoch"] = static_cast<double>(last_epoch_.epoch);
    last_epoch_.epoch = epoch;
  }

 private:
  LastEpoch last_epoch_;
  espalier::Accumulator seen_;
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
  if (trial.Get("own_seed", false)) at::manual_seed(static_cast<std::uint64_t>(getpid()));
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
  net->to(trial.device());
  return net;
}

double RateOf(espalier::Trial& trial) { return trial.Get("lr", 0.01); }

std::unique_ptr<torch::optim::Optimizer> MakeOptimizer(espalier::Trial& trial,
                                                       const torch::nn::Sequential& net) {
  if (trial.Get("adam", false)) {
    return std::make_unique<torch::optim::Adam>(net->parameters(), RateOf(trial));
  }
  return std::make_unique<torch::optim::SGD>(
      net->parameters(),
      torch::optim::SGDOptions(RateOf(trial)).momentum(trial.Get("momentum", 0.9)));
}

espalier::DataParallelOptions OptionsOf(espalier::Trial& trial, const std::string& name) {
  return {.scaling_rule = trial.Get("scaling_rule", ""),
          .base_batch_size = trial.Get("base_batch_size", std::int64_t{0}),
          .name = name,
          .max_gradient_norm = trial.Get("max_gradient_norm", 0.0),
          .mixed_precision = trial.Get("mixed_precision", ""),
          .max_skipped_steps = trial.Get("max_skipped_steps", std::int64_t{10})};
}

// What is trained: a model, and with models=2 a second one.
class Models {
 public:
  explicit Models(espalier::Trial& trial)
      : net_(MakeNet(trial)),
        second_net_(MakeNet(trial)),
        optimizer_(MakeOptimizer(trial, net_)),
        second_optimizer_(second_net_->parameters(), RateOf(trial)),
        parallel_(trial, *net_, *optimizer_, OptionsOf(trial, "")),
        drawn_(trial.Get("drawn", false)),
        nan_from_(trial.Get("nan_from", std::int64_t{0})),
        nan_to_(nan_from_ + trial.Get("nan_steps", std::int64_t{1})) {
    if (trial.Get("models", 1) == 2) {
      second_.emplace(trial, *second_net_, second_optimizer_, OptionsOf(trial, "second"));
    }
  }

  torch::nn::Sequential& net() { return net_; }
  torch::optim::Optimizer& optimizer() { return *optimizer_; }
  espalier::AdaptiveDataParallel& parallel() { return parallel_; }

  // Whether this replica leaves out the step that is due.
  bool LeavesOut(std::int64_t of_every) const {
    const bool last = parallel_.rank() + 1 == parallel_.replicas();
    return of_every > 0 && last && parallel_.steps() % of_every == of_every - 1;
  }

  // The microbatch's step of each.
  void Step(const at::Tensor& inputs, const at::Tensor& targets) {
    const auto loss = [&](const at::Tensor& output) {
      const std::int64_t step = parallel_.steps() + 1;
      const bool broken = nan_from_ > 0 && step >= nan_from_ && step < nan_to_;
      return torch::nn::functional::mse_loss(output.to(at::kFloat), targets) *
             (broken ? std::numeric_limits<float>::quiet_NaN() : 1.0F);
    };
    at::Tensor output;
    {
      const auto precision = parallel_.Autocast();
      output = net_->forward(inputs);
    }
    parallel_.Step(loss(output));
    if (second_) {
      // Through the first model, whose gradients this is not to disturb.
      second_->Step(loss(net_->forward(inputs) + second_net_->forward(inputs)));
    }
    if (!drawn_) return;
    const at::NoGradGuard no_grad;
    for (at::Tensor& p : net_->parameters()) p.add_(0.01 * at::randn_like(p));
  }

  // On rank 0; `each`: on each, with its rank in the file's name.
  void Write(const std::string& path, bool each) const {
    if (!each && parallel_.rank() > 0) return;
    std::ofstream out(each ? absl::StrCat(path, "-", parallel_.rank()) : path);
    out.precision(9);
    std::vector<at::Tensor> trained = net_->parameters();
    if (second_) {
      for (const auto& p : second_net_->parameters()) trained.push_back(p);
    }
    for (const auto& p : trained) {
      const auto flat = p.detach().cpu().contiguous();
      for (std::int64_t i = 0; i < flat.numel(); ++i) {
        out << flat.const_data_ptr<float>()[i] << "\n";
      }
    }
  }

 private:
  torch::nn::Sequential net_;
  torch::nn::Sequential second_net_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  torch::optim::Adam second_optimizer_;
  espalier::AdaptiveDataParallel parallel_;
  std::optional<espalier::AdaptiveDataParallel> second_;
  const bool drawn_;
  const std::int64_t nan_from_;  // steps whose loss is not a number; 0: none
  const std::int64_t nan_to_;
};

// Another batch size in each epoch, set where it begins or where the one before ends.
class SetBatches {
 public:
  SetBatches(espalier::Trial& trial, espalier::EpochLoader& loader)
      : where_(trial.Get("batches", "")),
        batch_size_(trial.Get("batch_size", std::int64_t{32})),
        loader_(loader) {}

  void Begin(std::int64_t epoch) {
    if (where_ == "start") loader_.SetBatchSize(Of(epoch));
  }
  void End(std::int64_t epoch) {
    if (where_ == "end") loader_.SetBatchSize(Of(epoch + 1));
  }

 private:
  std::int64_t Of(std::int64_t epoch) const { return batch_size_ * (1 + (epoch - 1) % 3); }

  const std::string where_;
  const std::int64_t batch_size_;
  espalier::EpochLoader& loader_;
};

void SetUp(espalier::Trial& trial) {
  if (std::getenv("ESPALIER_TEST_DEVICE") != nullptr) {  // the steps of tests/gpu want to know
    std::fprintf(stderr, "on %s\n", trial.device().str().c_str());
  }
  trial.context().bucket_operations = trial.Get("bucket_operations", false);
  if (trial.Get("gradient_kernel", false)) trial.context().gradient_kernel = espalier::LaunchOnHost;
}

void Autoscale(espalier::Trial& trial, espalier::EpochLoader& loader) {
  const auto max = trial.Get("max_batch_size", std::int64_t{0});
  if (max <= 0) return;
  loader.AutoscaleBatchSize(max, {.min = trial.Get("min_atomic", std::int64_t{0}),
                                  .max = trial.Get("max_atomic", std::int64_t{0})});
}

// All have to come to the same answer: so it goes through a sum.
bool IsToStop(espalier::AdaptiveDataParallel& parallel, const std::string& log) {
  return parallel.Evaluate(1, 1, [&](const at::Tensor&) {
    return std::filesystem::exists(log + "/stop") ? 1.0 : 0.0;
  }) > 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1] == std::string("--thread-first")) std::thread([] { pause(); }).detach();
  espalier::Trial trial(argc, argv);
  SetUp(trial);
  const auto samples = trial.Get("samples", std::int64_t{1000});
  const auto given_epochs = trial.Get("epochs", std::int64_t{2});
  const std::int64_t epochs =
      given_epochs > 0 ? given_epochs : std::numeric_limits<std::int64_t>::max();
  const auto evaluations = trial.Get("evaluations", 1);
  const auto evaluate_first = trial.Get("evaluate_first", false);
  const int compute_ms = trial.Get("compute_ms", 0);
  const std::string log = trial.Get("log", "");
  const auto leaves_out = trial.Get("leaves_out", std::int64_t{0});
  Record record(log);

  const auto generator = at::detail::createCPUGenerator(7);
  const auto x = torch::randn({samples, kFeatures}, generator);
  const auto y = x.pow(2).sum(1, true) + 0.3 * torch::randn({samples, 1}, generator);

  Models models(trial);
  espalier::AdaptiveDataParallel& parallel = models.parallel();
  std::optional<Schedule> schedule;
  if (const std::string of = trial.Get("schedule", ""); !of.empty()) {
    trial.AddState(schedule.emplace(models.optimizer(), of, RateOf(trial)));
  }
  std::optional<Sums> sums;
  if (trial.Get("sums", false)) sums.emplace(trial, parallel);
  espalier::ProbeData data(trial, parallel, x, y,
                           {.batch_size = trial.Get("batch_size", std::int64_t{32}),
                            .max_atomic_batch_size = trial.Get("max_atomic", std::int64_t{0}),
                            .accumulation = trial.Get("accumulation", true)});
  Autoscale(trial, data.loader());

  const auto evaluate = [&] {
    return parallel.Evaluate(samples, 256, [&](const at::Tensor& indices) {
      StayWhileHeld(log);
      const at::Tensor guesses =
          models.net()->forward(x.index_select(0, indices).to(trial.device()));
      return (guesses - y.index_select(0, indices).to(trial.device())).pow(2).sum().item<double>();
    });
  };
  SetBatches batches(trial, data.loader());
  for (const std::int64_t epoch : data.loader().RemainingEpochsUntil(epochs)) {
    batches.Begin(epoch);
    const double before = evaluate_first ? evaluate() : 0;
    models.net()->train();
    while (const auto batch = data.Next()) {
      record.Add(parallel.generation(), epoch, parallel.steps() + 1, batch->indices);
      if (models.LeavesOut(leaves_out)) continue;
      if (schedule) schedule->BeginBatch();
      if (sums) sums->Add(batch->indices);
      if (compute_ms > 0) poll(nullptr, 0, compute_ms);  // stands for a longer forward pass
      models.Step(batch->inputs.to(trial.device()), batch->targets.to(trial.device()));
    }
    if (schedule) schedule->EndTraining(epoch);
    double error = 0;
    for (int i = 0; i < evaluations; ++i) error = evaluate();
    std::map<std::string, double> figures{
        {"steps", static_cast<double>(parallel.steps())},
        {"skipped", static_cast<double>(parallel.skipped_steps())},
        {"batch_size", static_cast<double>(parallel.batch_size())}};
    if (evaluate_first) figures["before"] = before / static_cast<double>(samples);
    if (sums) sums->EndEpoch(epoch, figures);
    trial.Report(epoch, error / static_cast<double>(samples), figures);
    batches.End(epoch);
    if (given_epochs == 0 && IsToStop(parallel, log)) break;
  }
  if (!log.empty()) models.Write(log + "/parameters", trial.Get("all_parameters", false));
  trial.Finish();
}
