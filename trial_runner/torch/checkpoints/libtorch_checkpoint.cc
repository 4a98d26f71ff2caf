#include "trial_runner/torch/checkpoints/libtorch_checkpoint.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include <cstring>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "trial_runner/torch/checkpoints/exception_text.h"
#include "trial_runner/torch/checkpoints/optimizer_state.h"
#include "trial_runner/torch/checkpoints/state_bytes.h"
#include "trial_runner/torch/process/device.h"
#include "trial_runner/torch/process/host_copies.h"

namespace espalier {
namespace {

namespace optim = torch::optim;
using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

constexpr char kPosition[] = "espalier";
constexpr char kAccumulators[] = "accumulators";
constexpr char kParameters[] = "parameters";
constexpr char kOptions[] = "options";  // of an optimizer, as it was built

std::string KeyOf(const char* kind, const std::string& name) {
  return name.empty() ? kind : absl::StrCat(kind, ".", name);
}

// The tensors of a module under their names, nested as in LibTorch's archives.
struct ModuleTensors {
  struct Child;

  std::vector<std::pair<std::string, at::Tensor>> parameters;
  std::vector<std::pair<std::string, at::Tensor>> buffers;
  std::vector<Child> children;
};

struct ModuleTensors::Child {
  std::string name;
  ModuleTensors tensors;
};

// The module's own memory.
ModuleTensors ModuleTensorsOf(const torch::nn::Module& module) {
  ModuleTensors tensors;
  for (const auto& p : module.named_parameters(/*recurse=*/false)) {
    tensors.parameters.emplace_back(p.key(), p.value());
  }
  for (const auto& b : module.named_buffers(/*recurse=*/false)) {
    tensors.buffers.emplace_back(b.key(), b.value());
  }
  for (const auto& child : module.named_children()) {
    if (!child.value()->is_serializable()) continue;
    tensors.children.push_back({child.key(), ModuleTensorsOf(*child.value())});
  }
  return tensors;
}

void AddTo(std::vector<at::Tensor*>& all, ModuleTensors& tensors) {
  for (auto& [name, tensor] : tensors.parameters) all.push_back(&tensor);
  for (auto& [name, tensor] : tensors.buffers) all.push_back(&tensor);
  for (auto& [name, child] : tensors.children) AddTo(all, child);
}

void WriteModule(const ModuleTensors& tensors, OutputArchive& archive) {
  for (const auto& [name, tensor] : tensors.parameters) archive.write(name, tensor);
  for (const auto& [name, tensor] : tensors.buffers) {
    archive.write(name, tensor, /*is_buffer=*/true);
  }
  for (const auto& [name, child] : tensors.children) {
    OutputArchive nested(archive.compilation_unit());
    WriteModule(child, nested);
    archive.write(name, nested);
  }
}

// An optimizer that saves as the given one does. Its state is the given one's, whose tensors are
// added to `all`, to be copied; its parameters are placeholders: LibTorch's archives of optimizers
// have none.
std::unique_ptr<optim::Optimizer> CopyOf(const OptimizerKind& kind,
                                         const optim::Optimizer& optimizer,
                                         std::vector<at::Tensor*>& all) {
  std::vector<optim::OptimizerParamGroup> groups;
  for (const optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    std::vector<at::Tensor> placeholders;
    for (std::size_t i = 0; i < group.params().size(); ++i) placeholders.push_back(at::empty({0}));
    groups.emplace_back(std::move(placeholders), group.options().clone());
  }
  std::unique_ptr<optim::Optimizer> copy = kind.like(optimizer, std::move(groups));
  copy->state().clear();
  for (std::size_t g = 0; g < optimizer.param_groups().size(); ++g) {
    const std::vector<at::Tensor>& parameters = optimizer.param_groups()[g].params();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto state = optimizer.state().find(parameters[i].unsafeGetTensorImpl());
      if (state == optimizer.state().end()) continue;
      std::unique_ptr<optim::OptimizerParamState> own = state->second->clone();
      for (at::Tensor* tensor : kind.fields(*own).tensors) {
        if (tensor->defined()) all.push_back(tensor);
      }
      copy->state()[copy->param_groups()[g].params()[i].unsafeGetTensorImpl()] = std::move(own);
    }
  }
  return copy;
}

std::string ArchiveOf(const optim::Optimizer& optimizer) {
  OutputArchive archive;
  optimizer.save(archive);
  std::ostringstream out;
  archive.save_to(out);
  return std::move(out).str();
}

void CopyArchive(InputArchive& from, OutputArchive& to) {
  for (const std::string& key : from.keys()) {
    InputArchive child;
    if (from.try_read(key, child)) {
      OutputArchive nested(to.compilation_unit());
      CopyArchive(child, nested);
      to.write(key, nested);
    } else {
      c10::IValue value;
      from.read(key, value);
      to.write(key, value);
    }
  }
}

std::string FormText(const at::Tensor& tensor) {
  std::ostringstream out;
  out << tensor.scalar_type() << " " << tensor.sizes();
  return out.str();
}

absl::Status ReadTensor(InputArchive& archive, const std::string& name, const std::string& path,
                        const at::Tensor& into) {
  at::Tensor read;
  if (!archive.try_read(name, read)) {
    return absl::FailedPreconditionError(
        absl::StrCat("it has no ", path, ", which this program's model has"));
  }
  if (read.sizes() != into.sizes() || read.scalar_type() != into.scalar_type()) {
    return absl::FailedPreconditionError(absl::StrCat("its ", path, " is ", FormText(read), " and ",
                                                      FormText(into), " in this program's model"));
  }
  into.detach().copy_(read);
  return absl::OkStatus();
}

absl::Status ReadTensors(InputArchive& archive, const std::string& path,
                         const ModuleTensors& into) {
  std::set<std::string> known;
  for (const auto* tensors : {&into.parameters, &into.buffers}) {
    for (const auto& [name, tensor] : *tensors) {
      known.insert(name);
      ESPALIER_RETURN_IF_ERROR(ReadTensor(archive, name, absl::StrCat(path, ".", name), tensor));
    }
  }
  for (const auto& [name, child] : into.children) {
    known.insert(name);
    const std::string child_path = absl::StrCat(path, ".", name);
    InputArchive nested;
    if (!archive.try_read(name, nested)) {
      return absl::FailedPreconditionError(
          absl::StrCat("it has no ", child_path, ", which this program's model has"));
    }
    ESPALIER_RETURN_IF_ERROR(ReadTensors(nested, child_path, child));
  }
  for (const std::string& key : archive.keys()) {
    if (known.contains(key)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("it has ", path, ".", key, ", which this program's model has not"));
  }
  return absl::OkStatus();
}

// What is to be written, and written on another thread.
class ArchiveCopy final : public TrainingStateCopy {
 public:
  void AddModule(const std::string& key, const torch::nn::Module& module) {
    modules_.emplace_back(key, ModuleTensorsOf(module));
  }

  void AddOptimizer(const std::string& key, const optim::Optimizer& optimizer) {
    OptimizerCopy copy;
    if (const OptimizerKind* kind = FindOptimizerKind(optimizer)) {
      copy.optimizer = CopyOf(*kind, optimizer, tensors_);
    } else {
      copy.archive = ArchiveOf(optimizer);
    }
    optimizers_.emplace_back(key, std::move(copy));
  }

  // Copies the tensors of all that was added.
  void CopyTensors() {
    for (auto& [key, tensors] : modules_) AddTo(tensors_, tensors);
    std::vector<at::Tensor> originals;
    for (const at::Tensor* tensor : tensors_) originals.push_back(*tensor);
    copies_ = HostCopies(originals, SpareBytes);
    const std::vector<at::Tensor>& copies = copies_.UnderWay();
    for (std::size_t i = 0; i < tensors_.size(); ++i) *tensors_[i] = copies[i];
    tensors_.clear();
  }

  void AddText(const std::string& key, std::string text) {
    values_.emplace_back(key, c10::IValue(std::move(text)));
  }

  void AddNumbers(const std::string& key, const std::vector<double>& numbers) {
    values_.emplace_back(key, c10::IValue(at::tensor(numbers, at::kDouble)));
  }

  void AddBytes(const std::string& key, const std::string& bytes) {  // as a tensor
    at::Tensor tensor = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
    if (!bytes.empty()) std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
    values_.emplace_back(key, c10::IValue(std::move(tensor)));
  }

  absl::Status Write(const ByteSink& sink) const override;

 private:
  struct OptimizerCopy {
    std::unique_ptr<optim::Optimizer> optimizer;
    std::string archive;  // instead, of one that is not in the table of kinds
  };

  std::vector<std::pair<std::string, ModuleTensors>> modules_;
  std::vector<std::pair<std::string, OptimizerCopy>> optimizers_;
  std::vector<std::pair<std::string, c10::IValue>> values_;
  std::vector<at::Tensor*> tensors_;  // of all of these, to be copied
  HostCopies copies_;
};

absl::Status ArchiveCopy::Write(const ByteSink& sink) const {
  try {
    const at::NoGradGuard no_grad;
    copies_.Await();
    OutputArchive archive;
    for (const auto& [key, tensors] : modules_) {
      OutputArchive nested(archive.compilation_unit());
      WriteModule(tensors, nested);
      archive.write(key, nested);
    }
    for (const auto& [key, copy] : optimizers_) {
      OutputArchive nested(archive.compilation_unit());
      if (copy.optimizer) {
        copy.optimizer->save(nested);
      } else {
        InputArchive archived;
        archived.load_from(copy.archive.data(), copy.archive.size());
        CopyArchive(archived, nested);
      }
      archive.write(key, nested);
    }
    for (const auto& [key, content] : values_) archive.write(key, content);
    archive.save_to([&](const void* bytes, std::size_t count) {
      sink(bytes, count);
      return count;
    });
    return absl::OkStatus();
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("checkpoint: ", FirstLine(e)));
  }
}

absl::Status ReadModule(InputArchive& archive, const std::string& key, torch::nn::Module& module) {
  InputArchive nested;
  if (!archive.try_read(key, nested)) {
    return absl::FailedPreconditionError(
        absl::StrCat("it has no ", key, ", which this program trains"));
  }
  const at::NoGradGuard no_grad;
  return ReadTensors(nested, key, ModuleTensorsOf(module));
}

absl::Status ReadOptimizer(InputArchive& archive, const std::string& key,
                           optim::Optimizer& optimizer) {
  InputArchive nested;
  if (!archive.try_read(key, nested)) {
    return absl::FailedPreconditionError(
        absl::StrCat("it has no ", key, ", which this program trains with"));
  }
  optimizer.state().clear();
  try {
    optimizer.load(nested);
  } catch (const std::exception& e) {
    return absl::FailedPreconditionError(
        absl::StrCat("its ", key, " does not fit the one of this program: ", FirstLine(e)));
  }
  const OptimizerKind* kind = FindOptimizerKind(optimizer);
  if (kind == nullptr) return absl::OkStatus();
  for (const optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      const auto state = optimizer.state().find(parameter.unsafeGetTensorImpl());
      if (state == optimizer.state().end()) continue;
      for (at::Tensor* tensor : kind->fields(*state->second).tensors) {
        if (tensor->defined()) *tensor = tensor->to(parameter.device());
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadBytes(InputArchive& archive, const std::string& key) {
  at::Tensor tensor;
  if (!archive.try_read(key, tensor) || tensor.scalar_type() != at::kByte) {
    return absl::FailedPreconditionError(
        absl::StrCat("it has no ", key, ", which this program has"));
  }
  const at::Tensor whole = tensor.cpu().contiguous();
  return std::string(static_cast<const char*>(whole.const_data_ptr()), whole.nbytes());
}

// Nothing where there is none.
std::vector<double> ReadNumbers(InputArchive& archive, const std::string& key) {
  at::Tensor tensor;
  if (!archive.try_read(key, tensor) || tensor.scalar_type() != at::kDouble) return {};
  const at::Tensor whole = tensor.cpu().contiguous();
  return {whole.const_data_ptr<double>(), whole.const_data_ptr<double>() + whole.numel()};
}

// Whether the checkpoint is of a trial with other parameters. Earlier versions noted none.
bool HasOtherParameters(InputArchive& archive, const Parameters& own) {
  c10::IValue parameters;
  return archive.try_read(kParameters, parameters) && parameters.isString() &&
         parameters.toStringRef() != own.Json();
}

// What the program has no place for would be lost without a word.
absl::Status RefuseUnknownKeys(InputArchive& archive, const std::set<std::string>& known) {
  for (const std::string& key : archive.keys()) {
    if (known.contains(key)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("it has ", key, ", which this program has not"));
  }
  return absl::OkStatus();
}

}  // namespace

void LibTorchCheckpoints::AddModel(const std::string& name, torch::nn::Module& model,
                                   torch::optim::Optimizer& optimizer) {
  models_.push_back({name, model, optimizer, OptionNumbersOf(optimizer)});
}

std::unique_ptr<TrainingStateCopy> LibTorchCheckpoints::Copy(const CheckpointTexts& texts,
                                                             const States& states) const {
  auto copy = std::make_unique<ArchiveCopy>();
  for (const OptimizedModel& trained : models_) {
    copy->AddModule(KeyOf("model", trained.name), trained.model);
    copy->AddOptimizer(KeyOf("optimizer", trained.name), trained.optimizer);
    copy->AddNumbers(KeyOf(kOptions, trained.name), trained.options);
  }
  copy->CopyTensors();
  for (const auto& [name, state] : states) {
    copy->AddBytes(KeyOf("state", name), BytesOf(*state));
  }
  copy->AddText(kParameters, parameters_.Json());
  copy->AddText(kAccumulators, texts.accumulators);
  copy->AddText(kPosition, texts.position);
  return copy;
}

absl::StatusOr<CheckpointTexts> LibTorchCheckpoints::Load(const std::string& path,
                                                          const States& states) {
  InputArchive archive;
  archive.load_from(path);
  c10::IValue position;
  c10::IValue accumulators;
  if (!archive.try_read(kPosition, position) || !position.isString() ||
      !archive.try_read(kAccumulators, accumulators) || !accumulators.isString()) {
    return absl::FailedPreconditionError("it has no training position");
  }
  std::set<std::string> known{kPosition, kAccumulators, kParameters};
  const bool of_others = HasOtherParameters(archive, parameters_);
  for (const OptimizedModel& trained : models_) {
    const std::string model = KeyOf("model", trained.name);
    const std::string optimizer = KeyOf("optimizer", trained.name);
    ESPALIER_RETURN_IF_ERROR(ReadModule(archive, model, trained.model));
    ESPALIER_RETURN_IF_ERROR(ReadOptimizer(archive, optimizer, trained.optimizer));
    const std::string options = KeyOf(kOptions, trained.name);
    if (of_others) {
      ESPALIER_RETURN_IF_ERROR(
          TakeOwnOptions(trained.optimizer, ReadNumbers(archive, options), trained.options));
    }
    known.insert({model, optimizer, options});
  }
  for (const auto& [name, state] : states) known.insert(KeyOf("state", name));
  ESPALIER_RETURN_IF_ERROR(RefuseUnknownKeys(archive, known));
  for (const auto& [name, state] : states) {
    ESPALIER_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(archive, KeyOf("state", name)));
    ESPALIER_RETURN_IF_ERROR(LoadBytes(*state, bytes));
  }
  return CheckpointTexts{.position = position.toStringRef(),
                         .accumulators = accumulators.toStringRef()};
}

std::string LibTorchCheckpoints::PositionIn(const std::string& path) const {
  InputArchive archive;
  archive.load_from(path);
  c10::IValue position;
  archive.read(kPosition, position);
  return position.toStringRef();
}

}  // namespace espalier
