#include "trial_runner/torch/checkpoints/optimizer_state.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/serialize/archive.h>

#include <sstream>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace espalier {
namespace {

namespace optim = torch::optim;

// What each kind keeps for a parameter, and the options of its groups, as references.
auto StateOf(optim::SGDParamState& s) { return std::tie(s.momentum_buffer()); }
auto StateOf(optim::AdamParamState& s) {
  return std::tie(s.step(), s.exp_avg(), s.exp_avg_sq(), s.max_exp_avg_sq());
}
auto StateOf(optim::AdamWParamState& s) {
  return std::tie(s.step(), s.exp_avg(), s.exp_avg_sq(), s.max_exp_avg_sq());
}
auto StateOf(optim::RMSpropParamState& s) {
  return std::tie(s.step(), s.square_avg(), s.momentum_buffer(), s.grad_avg());
}
auto StateOf(optim::AdagradParamState& s) { return std::tie(s.step(), s.sum()); }

auto OptionsOf(optim::SGDOptions& o) {
  return std::tie(o.lr(), o.momentum(), o.dampening(), o.weight_decay(), o.nesterov());
}
auto OptionsOf(optim::AdamOptions& o) {
  return std::tie(o.lr(), std::get<0>(o.betas()), std::get<1>(o.betas()), o.eps(), o.weight_decay(),
                  o.amsgrad());
}
auto OptionsOf(optim::AdamWOptions& o) {
  return std::tie(o.lr(), std::get<0>(o.betas()), std::get<1>(o.betas()), o.eps(), o.weight_decay(),
                  o.amsgrad());
}
auto OptionsOf(optim::RMSpropOptions& o) {
  return std::tie(o.lr(), o.alpha(), o.eps(), o.weight_decay(), o.momentum(), o.centered());
}
auto OptionsOf(optim::AdagradOptions& o) {
  return std::tie(o.lr(), o.lr_decay(), o.weight_decay(), o.initial_accumulator_value(), o.eps());
}

void AddField(at::Tensor& tensor, OptimizerKind::Fields& to) { to.tensors.push_back(&tensor); }
void AddField(std::int64_t& integer, OptimizerKind::Fields& to) { to.integers.push_back(&integer); }

template <typename Optimizer, typename State, typename Options>
OptimizerKind Row(const char* name) {
  OptimizerKind kind{};
  kind.name = name;
  kind.new_state = []() -> std::unique_ptr<optim::OptimizerParamState> {
    return std::make_unique<State>();
  };
  kind.fields = [](optim::OptimizerParamState& state) {
    OptimizerKind::Fields fields;
    std::apply([&](auto&... field) { (AddField(field, fields), ...); },
               StateOf(static_cast<State&>(state)));
    return fields;
  };
  kind.options = [](const optim::OptimizerOptions& options) {
    auto copy = static_cast<const Options&>(options);
    return std::apply(
        [](auto&... option) { return std::vector<double>{static_cast<double>(option)...}; },
        OptionsOf(copy));
  };
  kind.set_options = [](optim::OptimizerOptions& options, const std::vector<double>& values) {
    std::size_t i = 0;
    std::apply(
        [&](auto&... option) {
          ((option = static_cast<std::remove_reference_t<decltype(option)>>(values.at(i++))), ...);
        },
        OptionsOf(static_cast<Options&>(options)));
  };
  kind.like =
      [](const optim::Optimizer& optimizer,
         std::vector<optim::OptimizerParamGroup> groups) -> std::unique_ptr<optim::Optimizer> {
    return std::make_unique<Optimizer>(std::move(groups),
                                       static_cast<const Options&>(optimizer.defaults()));
  };
  return kind;
}

struct KnownKind {
  const std::type_info& type;
  OptimizerKind kind;
};

const std::vector<KnownKind>& Kinds() {
  static const std::vector<KnownKind> kinds{
      {typeid(optim::SGD), Row<optim::SGD, optim::SGDParamState, optim::SGDOptions>("SGD")},
      {typeid(optim::Adam), Row<optim::Adam, optim::AdamParamState, optim::AdamOptions>("Adam")},
      {typeid(optim::AdamW),
       Row<optim::AdamW, optim::AdamWParamState, optim::AdamWOptions>("AdamW")},
      {typeid(optim::RMSprop),
       Row<optim::RMSprop, optim::RMSpropParamState, optim::RMSpropOptions>("RMSprop")},
      {typeid(optim::Adagrad),
       Row<optim::Adagrad, optim::AdagradParamState, optim::AdagradOptions>("Adagrad")},
  };
  return kinds;
}

// The name under which optimizers of no row are described.
constexpr std::string_view kArchived = "archive";

void WriteArchived(const optim::Optimizer& optimizer, StateWriter& to) {
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  std::ostringstream out;
  archive.save_to(out);
  to.Text(std::move(out).str());
}

absl::Status ReadArchived(optim::Optimizer& optimizer, StateReader& from) {
  ESPALIER_ASSIGN_OR_RETURN(const std::string_view bytes, from.Text());
  torch::serialize::InputArchive archive;
  archive.load_from(bytes.data(), bytes.size());
  optimizer.state().clear();
  optimizer.load(archive);
  return absl::OkStatus();
}

absl::Status ReadParameterState(const OptimizerKind& kind, optim::Optimizer& optimizer,
                                const at::Tensor& parameter, StateReader& from) {
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t present, from.Integer());
  void* const key = parameter.unsafeGetTensorImpl();
  if (present == 0) {
    optimizer.state().erase(key);
    return absl::OkStatus();
  }
  std::unique_ptr<optim::OptimizerParamState>& state = optimizer.state()[key];
  if (!state) state = kind.new_state();
  const OptimizerKind::Fields fields = kind.fields(*state);
  for (std::int64_t* integer : fields.integers) {
    ESPALIER_ASSIGN_OR_RETURN(*integer, from.Integer());
  }
  for (at::Tensor* tensor : fields.tensors) {
    ESPALIER_RETURN_IF_ERROR(from.AnyTensor(*tensor, parameter.device()));
  }
  return absl::OkStatus();
}

absl::Status Differs(const char* what, std::int64_t here, std::int64_t there) {
  return absl::FailedPreconditionError(
      absl::StrCat("the optimizer has ", here, " ", what, " in this replica and ", there,
                   " in the group that it joins: do all replicas run the same program with the "
                   "same parameters?"));
}

}  // namespace

const OptimizerKind* FindOptimizerKind(const optim::Optimizer& optimizer) {
  for (const KnownKind& known : Kinds()) {
    if (known.type == typeid(optimizer)) return &known.kind;
  }
  return nullptr;
}

OptimizerNumbers NumbersOf(const optim::Optimizer& optimizer, std::vector<at::Tensor>& tensors) {
  OptimizerNumbers numbers;
  const OptimizerKind* kind = FindOptimizerKind(optimizer);
  if (kind == nullptr) return numbers;
  for (const optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    for (const double option : kind->options(group.options())) numbers.push_back(option);
    for (const at::Tensor& parameter : group.params()) {
      const auto state = optimizer.state().find(parameter.unsafeGetTensorImpl());
      if (state == optimizer.state().end()) continue;
      const OptimizerKind::Fields fields = kind->fields(*state->second);
      for (const std::int64_t* integer : fields.integers) {
        numbers.push_back(static_cast<double>(*integer));
      }
      for (const at::Tensor* tensor : fields.tensors) {
        if (tensor->defined()) tensors.push_back(*tensor);
      }
    }
  }
  return numbers;
}

std::vector<double> OptionNumbersOf(const optim::Optimizer& optimizer) {
  std::vector<double> numbers;
  const OptimizerKind* kind = FindOptimizerKind(optimizer);
  if (kind == nullptr) return numbers;
  for (const optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    const std::vector<double> options = kind->options(group.options());
    numbers.insert(numbers.end(), options.begin(), options.end());
  }
  return numbers;
}

absl::Status TakeOwnOptions(optim::Optimizer& optimizer, const std::vector<double>& then,
                            const std::vector<double>& now) {
  const OptimizerKind* kind = FindOptimizerKind(optimizer);
  if (kind == nullptr || then.size() != now.size() ||
      now.size() != OptionNumbersOf(optimizer).size()) {
    return absl::FailedPreconditionError(
        "options of its optimizer are not known by number: it cannot go on with other parameters "
        "than those of the trial that wrote it");
  }
  std::size_t at = 0;
  for (optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    std::vector<double> options = kind->options(group.options());
    for (std::size_t i = 0; i < options.size(); ++i, ++at) {
      if (then[at] == now[at]) continue;
      const bool is_rate = i == 0;
      options[i] = is_rate && then[at] != 0 ? options[i] * (now[at] / then[at]) : now[at];
    }
    kind->set_options(group.options(), options);
  }
  return absl::OkStatus();
}

void WriteOptimizer(const optim::Optimizer& optimizer, StateWriter& to) {
  const OptimizerKind* kind = FindOptimizerKind(optimizer);
  to.Text(kind != nullptr ? kind->name : kArchived);
  if (kind == nullptr) {
    WriteArchived(optimizer, to);
    return;
  }
  to.Integer(static_cast<std::int64_t>(optimizer.param_groups().size()));
  for (const optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    for (const double option : kind->options(group.options())) to.Real(option);
    to.Integer(static_cast<std::int64_t>(group.params().size()));
    for (const at::Tensor& parameter : group.params()) {
      const auto state = optimizer.state().find(parameter.unsafeGetTensorImpl());
      to.Integer(state != optimizer.state().end() ? 1 : 0);
      if (state == optimizer.state().end()) continue;
      const OptimizerKind::Fields fields = kind->fields(*state->second);
      for (const std::int64_t* integer : fields.integers) to.Integer(*integer);
      for (const at::Tensor* tensor : fields.tensors) to.Tensor(*tensor);
    }
  }
}

absl::Status ReadOptimizer(optim::Optimizer& optimizer, StateReader& from) {
  const OptimizerKind* kind = FindOptimizerKind(optimizer);
  const std::string_view own = kind != nullptr ? kind->name : kArchived;
  ESPALIER_ASSIGN_OR_RETURN(const std::string_view name, from.Text());
  if (name != own) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the optimizer is of kind ", std::string(own), " in this replica and ", std::string(name),
        " in the group that it joins: do all replicas run the same "
        "program with the same parameters?"));
  }
  if (kind == nullptr) return ReadArchived(optimizer, from);
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t groups, from.Integer());
  const auto own_groups = static_cast<std::int64_t>(optimizer.param_groups().size());
  if (groups != own_groups) return Differs("parameter groups", own_groups, groups);
  for (optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    std::vector<double> options = kind->options(group.options());
    for (double& option : options) {
      ESPALIER_ASSIGN_OR_RETURN(option, from.Real());
    }
    kind->set_options(group.options(), options);
    ESPALIER_ASSIGN_OR_RETURN(const std::int64_t parameters, from.Integer());
    const auto own_parameters = static_cast<std::int64_t>(group.params().size());
    if (parameters != own_parameters) {
      return Differs("parameters in a group", own_parameters, parameters);
    }
    for (const at::Tensor& parameter : group.params()) {
      ESPALIER_RETURN_IF_ERROR(ReadParameterState(*kind, optimizer, parameter, from));
    }
  }
  return absl::OkStatus();
}

}  // namespace espalier
