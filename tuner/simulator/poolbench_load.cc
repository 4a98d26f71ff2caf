#include "tuner/simulator/poolbench_load.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace espalier {

namespace {

constexpr const char* kSpace = R"({
  "log10_lr": {"_type": "uniform", "_value": [-5, 0]},
  "log2_bs": {"_type": "choice", "_value": [4, 5, 6, 7, 8, 9, 10, 11, 12]},
  "log10_wd": {"_type": "uniform", "_value": [-6, -1]},
  "width": {"_type": "choice", "_value": [0, 1, 2, 3, 4]}
})";

double Number(const Parameters& parameters, const char* name) {
  const ParameterValue* value = Find(parameters, name);
  ESPALIER_CHECK(value != nullptr, "a trial has the parameters of its study's space");
  if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
  return std::get<double>(*value);
}

class PoolbenchTruth : public TrialTruth {
 public:
  PoolbenchTruth(const Poolbench& bench, const PoolbenchConfiguration& c)
      : configuration_(c), errors_(bench.Errors(c)) {}

  BatchBounds bounds() const override {
    const std::int64_t batch = configuration_.batch();
    return {.initial = batch,
            .max_global = batch,
            .min_atomic = 1,
            .max_atomic = batch,
            .accumulation = true};
  }
  GradientNoise noise() const override {
    return {1, PoolbenchNoiseScale(configuration_) / static_cast<double>(configuration_.batch())};
  }
  std::int64_t steps() const override { return kPoolbenchEpochs; }
  Pace On(int, int replicas) const override {
    const PoolbenchIteration step = PoolbenchIterationOn(configuration_, replicas);
    return {static_cast<double>(kPoolbenchSamples) / static_cast<double>(configuration_.batch()),
            step.total_s, step.grad_s};
  }
  double ValueAfter(std::int64_t step) const override {
    return errors_.at(static_cast<std::size_t>(step - 1));
  }

 private:
  PoolbenchConfiguration configuration_;
  std::vector<double> errors_;
};

class PoolbenchLoad : public Workload {
 public:
  explicit PoolbenchLoad(const PoolbenchLoadOptions& options)
      : options_(options), bench_(options.rule), random_(options.seed) {}

  StudySpec Study() const override {
    auto space = SearchSpace::FromJson(kSpace);
    ESPALIER_CHECK(space.ok(), "the search space above is valid");
    StudySpec spec;
    spec.name = "poolbench";
    spec.metric = "error";
    spec.space = *std::move(space);
    spec.sampler = {"random", {}};
    spec.pruner = {"asha", {{"min_steps", 1}, {"eta", 3}}};
    spec.command = {"poolbench"};
    spec.directory = "/";
    spec.max_step = kPoolbenchEpochs;
    spec.seed = options_.seed;
    return spec;
  }

  Parameters ParametersOf(const Trial& trial) override {
    if (options_.own_sampler) return trial.parameters;
    const PoolbenchConfiguration c = ConfigurationOf(trial);
    return {{"log10_lr", c.log10_lr},
            {"log2_bs", std::int64_t{c.log2_bs}},
            {"log10_wd", c.log10_wd},
            {"width", std::int64_t{c.width}}};
  }

  std::unique_ptr<TrialTruth> Begin(const Trial& trial) override {
    return std::make_unique<PoolbenchTruth>(bench_, ConfigurationOf(trial));
  }

 private:
  PoolbenchConfiguration ConfigurationOf(const Trial& trial) {
    if (options_.own_sampler) {
      const Parameters& p = trial.parameters;
      return {Number(p, "log10_lr"), static_cast<int>(Number(p, "log2_bs")), Number(p, "log10_wd"),
              static_cast<int>(Number(p, "width"))};
    }
    while (std::ssize(drawn_) <= trial.number) drawn_.push_back(SamplePoolbench(random_));
    return drawn_[static_cast<std::size_t>(trial.number)];
  }

  const PoolbenchLoadOptions options_;
  const Poolbench bench_;
  Random random_;
  std::vector<PoolbenchConfiguration> drawn_;
};

}  // namespace

std::unique_ptr<Workload> MakePoolbenchLoad(const PoolbenchLoadOptions& options) {
  return std::make_unique<PoolbenchLoad>(options);
}

absl::StatusOr<PoolbenchRule> ParsePoolbenchRule(const std::string& name) {
  if (name == "sqrt") return PoolbenchRule::kSqrt;
  if (name == "linear") return PoolbenchRule::kLinear;
  return absl::InvalidArgumentError(
      absl::StrCat("rule \"", name, "\": poolbench knows sqrt and linear"));
}

}  // namespace espalier
