#include "trial_runner/torch/gradients/fused_optimizer.h"

#include <ATen/ops/_fused_adagrad.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <map>
#include <optional>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

namespace espalier {
namespace {

namespace optim = torch::optim;

std::optional<at::Tensor> IfDefined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

// The state of each parameter of a group that has a gradient, made where there is none yet.
template <typename State>
struct Group {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> gradients;
  std::vector<State*> states;
  std::vector<void*> made;  // keys of states that there were none of
};

template <typename State>
Group<State> WithGradients(optim::Optimizer& optimizer, const optim::OptimizerParamGroup& of) {
  Group<State> group;
  for (const at::Tensor& p : of.params()) {
    if (!p.grad().defined()) continue;
    auto& state = optimizer.state()[p.unsafeGetTensorImpl()];
    if (!state) {
      state = std::make_unique<State>();
      group.made.push_back(p.unsafeGetTensorImpl());
    }
    group.parameters.push_back(p);
    group.gradients.push_back(p.grad());
    group.states.push_back(static_cast<State*>(state.get()));
  }
  return group;
}

template <typename State>
std::vector<at::Tensor> TensorsOf(const std::vector<State*>& states, at::Tensor& (State::*of)()) {
  std::vector<at::Tensor> tensors;
  for (State* state : states) tensors.push_back((state->*of)());
  return tensors;
}

// The number of the step that each state is in, as a tensor on the device: one for all parameters
// that have stepped as often.
template <typename State>
std::vector<at::Tensor> StepsOf(const std::vector<State*>& states, at::Device device) {
  std::map<std::int64_t, at::Tensor> made;
  std::vector<at::Tensor> steps;
  for (State* state : states) {
    at::Tensor& step = made[state->step()];
    if (!step.defined()) {
      step = at::full({}, state->step(), at::TensorOptions(at::kFloat).device(device));
    }
    steps.push_back(step);
  }
  return steps;
}

class FusedSgd final : public FusedOptimizer {
 public:
  explicit FusedSgd(optim::Optimizer& optimizer) : optimizer_(optimizer) {}

  void Step(const at::Tensor& found_inf) override {
    const at::NoGradGuard no_grad;
    first_.clear();
    for (const optim::OptimizerParamGroup& group : optimizer_.param_groups()) {
      const auto& options = static_cast<const optim::SGDOptions&>(group.options());
      if (options.momentum() == 0) {
        StepPlain(group, options, found_inf);
      } else {
        StepWithMomentum(group, options, found_inf);
      }
    }
  }

  // The optimizer tells its first step by there being no state.
  void TakeBack() override {
    for (void* const parameter : first_) optimizer_.state().erase(parameter);
    first_.clear();
  }

 private:
  struct Lists {
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> gradients;
    std::vector<at::Tensor> momenta;
  };

  static void Launch(const Lists& lists, const optim::SGDOptions& options, bool first,
                     const at::Tensor& found_inf) {
    if (lists.parameters.empty()) return;
    at::_fused_sgd_(lists.parameters, lists.gradients, lists.momenta, options.weight_decay(),
                    options.momentum(), options.lr(), options.dampening(), options.nesterov(),
                    /*maximize=*/false, first, /*grad_scale=*/{}, IfDefined(found_inf));
  }

  static void StepPlain(const optim::OptimizerParamGroup& group, const optim::SGDOptions& options,
                        const at::Tensor& found_inf) {
    Lists lists;
    for (const at::Tensor& p : group.params()) {
      if (!p.grad().defined()) continue;
      lists.parameters.push_back(p);
      lists.gradients.push_back(p.grad());
    }
    Launch(lists, options, /*first=*/false, found_inf);
  }

  void StepWithMomentum(const optim::OptimizerParamGroup& group, const optim::SGDOptions& options,
                        const at::Tensor& found_inf) {
    const auto known = WithGradients<optim::SGDParamState>(optimizer_, group);
    Lists first;
    Lists later;
    for (std::size_t i = 0; i < known.states.size(); ++i) {
      at::Tensor& momentum = known.states[i]->momentum_buffer();
      Lists& lists = momentum.defined() ? later : first;
      if (!momentum.defined()) {
        momentum = at::zeros_like(known.parameters[i]);
        first_.push_back(known.parameters[i].unsafeGetTensorImpl());
      }
      lists.parameters.push_back(known.parameters[i]);
      lists.gradients.push_back(known.gradients[i]);
      lists.momenta.push_back(momentum);
    }
    Launch(first, options, /*first=*/true, found_inf);
    Launch(later, options, /*first=*/false, found_inf);
  }

  optim::Optimizer& optimizer_;
  std::vector<void*> first_;  // parameters whose first step the last one was
};

// Of optimizers whose state counts the steps of each parameter.
template <typename State>
class CountingOptimizer : public FusedOptimizer {
 public:
  explicit CountingOptimizer(optim::Optimizer& optimizer) : optimizer_(optimizer) {}

  void Step(const at::Tensor& found_inf) final {
    const at::NoGradGuard no_grad;
    counted_.clear();
    made_.clear();
    for (const optim::OptimizerParamGroup& of : optimizer_.param_groups()) {
      const Group<State> group = WithGradients<State>(optimizer_, of);
      if (group.parameters.empty()) continue;
      made_.insert(made_.end(), group.made.begin(), group.made.end());
      for (std::size_t i = 0; i < group.states.size(); ++i) {
        Prepare(*group.states[i], group.parameters[i], of.options());
        group.states[i]->step(group.states[i]->step() + 1);
        counted_.push_back(group.states[i]);
      }
      Launch(group, StepsOf(group.states, group.parameters.front().device()), of.options(),
             IfDefined(found_inf));
    }
  }

  void TakeBack() final {
    for (State* const state : counted_) state->step(state->step() - 1);
    for (void* const key : made_) optimizer_.state().erase(key);
    counted_.clear();
    made_.clear();
  }

 protected:
  // Makes the tensors of a state that has none.
  virtual void Prepare(State& state, const at::Tensor& parameter,
                       const optim::OptimizerOptions& options) = 0;
  virtual void Launch(const Group<State>& group, const std::vector<at::Tensor>& steps,
                      const optim::OptimizerOptions& options,
                      const std::optional<at::Tensor>& found_inf) = 0;

 private:
  optim::Optimizer& optimizer_;
  std::vector<State*> counted_;
  std::vector<void*> made_;  // in the last step
};

// The functions of Adam and AdamW with a learning rate that is a number.
using AdamFunction = void (*)(at::TensorList parameters, at::TensorList gradients,
                              at::TensorList averages, at::TensorList squares,
                              at::TensorList largest_squares, at::TensorList steps, double lr,
                              double beta1, double beta2, double weight_decay, double eps,
                              bool amsgrad, bool maximize,
                              const std::optional<at::Tensor>& grad_scale,
                              const std::optional<at::Tensor>& found_inf);

template <typename State, typename Options, AdamFunction kLaunch>
class FusedAdam final : public CountingOptimizer<State> {
 public:
  using CountingOptimizer<State>::CountingOptimizer;

 private:
  void Prepare(State& state, const at::Tensor& parameter,
               const optim::OptimizerOptions& options) override {
    const bool amsgrad = static_cast<const Options&>(options).amsgrad();
    if (!state.exp_avg().defined()) state.exp_avg(at::zeros_like(parameter));
    if (!state.exp_avg_sq().defined()) state.exp_avg_sq(at::zeros_like(parameter));
    if (amsgrad && !state.max_exp_avg_sq().defined()) {
      state.max_exp_avg_sq(at::zeros_like(parameter));
    }
  }

  void Launch(const Group<State>& group, const std::vector<at::Tensor>& steps,
              const optim::OptimizerOptions& options,
              const std::optional<at::Tensor>& found_inf) override {
    const auto& own = static_cast<const Options&>(options);
    const auto [beta1, beta2] = own.betas();
    std::vector<at::Tensor> largest;
    if (own.amsgrad()) largest = TensorsOf(group.states, &State::max_exp_avg_sq);
    kLaunch(group.parameters, group.gradients, TensorsOf(group.states, &State::exp_avg),
            TensorsOf(group.states, &State::exp_avg_sq), largest, steps, own.lr(), beta1, beta2,
            own.weight_decay(), own.eps(), own.amsgrad(), /*maximize=*/false, /*grad_scale=*/{},
            found_inf);
  }
};

class FusedAdagrad final : public CountingOptimizer<optim::AdagradParamState> {
 public:
  using CountingOptimizer::CountingOptimizer;

 private:
  using State = optim::AdagradParamState;

  // The optimizer makes it with itself.
  void Prepare(State& state, const at::Tensor& parameter,
               const optim::OptimizerOptions& options) override {
    if (state.sum().defined()) return;
    const double initial =
        static_cast<const optim::AdagradOptions&>(options).initial_accumulator_value();
    state.sum(at::full_like(parameter, initial));
  }

  void Launch(const Group<State>& group, const std::vector<at::Tensor>& steps,
              const optim::OptimizerOptions& options,
              const std::optional<at::Tensor>& found_inf) override {
    const auto& own = static_cast<const optim::AdagradOptions&>(options);
    at::_fused_adagrad_(group.parameters, group.gradients, TensorsOf(group.states, &State::sum),
                        steps, own.lr(), own.lr_decay(), own.weight_decay(), own.eps(),
                        /*maximize=*/false, /*grad_scale=*/{}, found_inf);
  }
};

}  // namespace

std::unique_ptr<FusedOptimizer> FusedOptimizer::For(optim::Optimizer& optimizer) {
  for (const optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    for (const at::Tensor& p : group.params()) {
      if (!p.is_non_overlapping_and_dense()) return nullptr;
    }
  }
  const std::type_info& type = typeid(optimizer);
  if (type == typeid(optim::SGD)) return std::make_unique<FusedSgd>(optimizer);
  if (type == typeid(optim::Adam)) {
    return std::make_unique<FusedAdam<optim::AdamParamState, optim::AdamOptions, at::_fused_adam_>>(
        optimizer);
  }
  if (type == typeid(optim::AdamW)) {
    return std::make_unique<
        FusedAdam<optim::AdamWParamState, optim::AdamWOptions, at::_fused_adamw_>>(optimizer);
  }
  if (type == typeid(optim::Adagrad)) return std::make_unique<FusedAdagrad>(optimizer);
  return nullptr;
}

}  // namespace espalier
