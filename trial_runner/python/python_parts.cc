#include "trial_runner/python/python_parts.h"

#include <ATen/core/grad_mode.h>
#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <cmath>
#include <istream>
#include <iterator>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "trial_runner/torch/process/device.h"
#include "trial_runner/torch/process/host_copies.h"

namespace espalier::python {
namespace {

constexpr std::int64_t kFirstSteps = 5;  // of Adam, whose averages say little yet

Exchange& The() { return Exchange::The(); }

}  // namespace

std::vector<NamedTensor> PythonModel::Ask(What what) const {
  const Parcel parcel =
      The().Ask({}, [&](const EspalierCallbacks& python) { return python.model(number_, what); });
  std::vector<NamedTensor> named;
  for (std::size_t i = 0; i < parcel.texts.size(); ++i) {
    named.push_back({parcel.texts[i], parcel.tensors.at(i)});
  }
  return named;
}

absl::Status PythonModel::SetBuffers(const std::vector<NamedTensor>& buffers) {
  Parcel parcel;
  for (const auto& [name, tensor] : buffers) {
    parcel.texts.push_back(name);
    parcel.tensors.push_back(tensor);
  }
  The().Ask(std::move(parcel),
            [&](const EspalierCallbacks& python) { return python.model(number_, kSetBuffers); });
  return absl::OkStatus();
}

std::string PythonModel::OtherState() const {
  return The()
      .Ask({}, [&](const EspalierCallbacks& python) { return python.model(number_, kOtherState); })
      .texts.at(0);
}

void PythonModel::SetOtherState(const std::string& bytes) {
  The().Ask({.texts = {bytes}, .tensors = {}},
            [&](const EspalierCallbacks& python) { return python.model(number_, kSetOtherState); });
}

std::optional<std::string> PythonModel::DeferHooks() {
  (void)Ask(kDeferHooks);
  return std::nullopt;
}

void PythonModel::CallHooks() { (void)Ask(kCallHooks); }

// ---- the optimizer ------------------------------------------------------------------------------

PythonOptimizer::PythonOptimizer(std::int64_t model, const ModelDescription& described,
                                 bool is_adam)
    : model_(model), groups_(described.groups), is_adam_(is_adam), rates_(described.groups.size()) {
  for (const std::vector<at::Tensor>& group : groups_) {
    std::ranges::copy_if(group, std::back_inserter(trained_),
                         [](const at::Tensor& p) { return p.requires_grad(); });
  }
}

void PythonOptimizer::Step(std::span<const double> factors, const at::Tensor& /*found_inf*/) {
  last_factor_ = factors.front();
  const Parcel said = The().Ask({}, [&](const EspalierCallbacks& python) {
    return python.step(model_, factors.data(), std::ssize(factors));
  });
  if (!said.texts.empty()) return;
  // Adam counts steps for each parameter, and none where it had no gradient.
  for (std::size_t i = 0; i < moments_.steps.size(); ++i) {
    if (trained_[i].grad().defined()) ++moments_.steps[i];
  }
}

std::vector<Preconditioner> PythonOptimizer::Preconditioners(
    const std::vector<at::Tensor>& parameters, const std::vector<std::size_t>& /*groups*/) {
  std::vector<Preconditioner> all;
  if (moments_.moments.size() != parameters.size()) return all;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& moment = moments_.moments[i];
    if (moments_.steps[i] < kFirstSteps) return {};
    const double correction =
        1 - std::pow(moments_.beta2[i], static_cast<double>(moments_.steps[i]));
    all.push_back(
        {InOrderOf(parameters[i], moment), 1 / std::sqrt(correction), moments_.epsilon[i]});
  }
  return all;
}

void PythonOptimizer::StartGroup() {
  moments_ = {};
  if (!is_adam_) return;
  The().Ask({}, [&](const EspalierCallbacks& python) { return python.compared(model_, 2); });
}

OptimizerPart::Compared PythonOptimizer::WhatToCompare() const {
  Parcel parcel =
      The().Ask({}, [&](const EspalierCallbacks& python) { return python.compared(model_, 0); });
  return {.tensors = std::move(parcel.tensors), .numbers = std::move(parcel.texts.at(0))};
}

std::vector<std::string> PythonOptimizer::NamesOfTensors() const {
  return The()
      .Ask({}, [&](const EspalierCallbacks& python) { return python.compared(model_, 1); })
      .texts;
}

void PythonOptimizer::Write(StateWriter& to) const {
  const Parcel state = The().Ask(
      {}, [&](const EspalierCallbacks& python) { return python.write_optimizer(model_); });
  to.Text(state.texts.at(0));
  to.Integer(std::ssize(state.tensors));
  for (const at::Tensor& tensor : state.tensors) {
    to.Integer(tensor.is_cpu() ? 1 : 0);
    to.Tensor(tensor);
  }
}

absl::Status PythonOptimizer::Read(StateReader& from) {
  Clear();
  Parcel state;
  ESPALIER_ASSIGN_OR_RETURN(const std::string_view text, from.Text());
  state.texts.emplace_back(text);
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t count, from.Integer());
  const auto filled = std::ranges::find_if(groups_, [](const auto& g) { return !g.empty(); });
  const at::Device device = filled == groups_.end() ? at::kCPU : filled->front().device();
  for (std::int64_t i = 0; i < count; ++i) {
    ESPALIER_ASSIGN_OR_RETURN(const std::int64_t on_host, from.Integer());
    ESPALIER_RETURN_IF_ERROR(
        from.AnyTensor(state.tensors.emplace_back(), on_host == 1 ? at::Device(at::kCPU) : device));
  }
  arriving_ = std::move(state);
  return absl::OkStatus();
}

absl::Status PythonOptimizer::Settle() {
  if (!arriving_) return absl::OkStatus();
  The().Ask(*std::exchange(arriving_, std::nullopt),
            [&](const EspalierCallbacks& python) { return python.read_optimizer(model_); });
  return absl::OkStatus();
}

void PythonOptimizer::Clear() {
  arriving_.reset();
  moments_ = {};
  The().Ask({}, [&](const EspalierCallbacks& python) { return python.clear_optimizer(model_); });
}

double PythonRule::Factor(const ScalingContext& c) const {
  const double factor = The().callbacks.factor(number_, c.group, c.scale, c.sqr, c.var, c.progress,
                                               c.base_batch_size, c.dataset_size);
  if (std::isnan(factor)) throw CallbackError("a scaling rule has failed");
  return factor;
}

// ---- states and sums ----------------------------------------------------------------------------

void PythonState::Save(std::ostream& to) const {
  const Parcel parcel = The().Ask(
      {}, [&](const EspalierCallbacks& python) { return python.state(name_.c_str(), 0); });
  to << parcel.texts.at(0);
}

void PythonState::Load(std::istream& from) {
  std::string bytes(std::istreambuf_iterator<char>(from), {});
  The().Ask({.texts = {std::move(bytes)}, .tensors = {}},
            [&](const EspalierCallbacks& python) { return python.state(name_.c_str(), 1); });
}

void PythonState::Sync() {
  The().Ask({}, [&](const EspalierCallbacks& python) { return python.state(name_.c_str(), 2); });
}

std::string PythonSums::Own() const {
  return The().Ask({}, [](const EspalierCallbacks& python) { return python.sums(0); }).texts.at(0);
}

absl::Status PythonSums::Merge(const std::vector<std::string>& parts) {
  The().Ask({.texts = parts, .tensors = {}},
            [](const EspalierCallbacks& python) { return python.sums(1); });
  return absl::OkStatus();
}

// ---- checkpoints --------------------------------------------------------------------------------

namespace {

// As torch.save lays a file out: see torch.serialization.
class PickledCopy final : public TrainingStateCopy {
 public:
  PickledCopy(std::string pickle, const std::vector<at::Tensor>& memory)
      : pickle_(std::move(pickle)), memory_(memory, SpareBytes) {}

  absl::Status Write(const ByteSink& sink) const override {
    try {
      const at::NoGradGuard no_grad;
      caffe2::serialize::PyTorchStreamWriter writer([&](const void* bytes, std::size_t count) {
        sink(bytes, count);
        return count;
      });
      const auto text = [&](const char* name, const std::string& content) {
        writer.writeRecord(name, content.data(), content.size());
      };
      text("data.pkl", pickle_);
      text(".format_version", "1");
      text(".storage_alignment", "64");
      text("byteorder", "little");
      const std::vector<at::Tensor>& memory = memory_.Await();
      for (std::size_t i = 0; i < memory.size(); ++i) {
        writer.writeRecord(absl::StrCat("data/", i), memory[i].const_data_ptr(),
                           memory[i].nbytes());
      }
      writer.writeEndOfFile();
      return absl::OkStatus();
    } catch (const std::exception& e) {
      return absl::InternalError(absl::StrCat("checkpoint: ", e.what()));
    }
  }

 private:
  const std::string pickle_;
  const HostCopies memory_;  // of each storage that the pickle names
};

}  // namespace

std::unique_ptr<TrainingStateCopy> PythonCheckpoints::Copy(const CheckpointTexts& texts,
                                                           const States& /*states*/) const {
  Parcel made = The().Ask({.texts = {texts.position, texts.accumulators}, .tensors = {}},
                          [](const EspalierCallbacks& python) { return python.checkpoint("", 0); });
  return std::make_unique<PickledCopy>(std::move(made.texts.at(0)), made.tensors);
}

absl::StatusOr<CheckpointTexts> PythonCheckpoints::Load(const std::string& path,
                                                        const States& /*states*/) {
  Parcel loaded = The().Ask(
      {}, [&](const EspalierCallbacks& python) { return python.checkpoint(path.c_str(), 1); });
  return CheckpointTexts{.position = std::move(loaded.texts.at(0)),
                         .accumulators = std::move(loaded.texts.at(1))};
}

std::string PythonCheckpoints::PositionIn(const std::string& path) const {
  return The()
      .Ask({}, [&](const EspalierCallbacks& python) { return python.checkpoint(path.c_str(), 2); })
      .texts.at(0);
}

}  // namespace espalier::python
