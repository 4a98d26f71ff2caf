#include "trial_runner/torch/training_state.h"

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include <cstdio>
#include <cstring>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "trial_runner/torch/checkpoint_file.h"
#include "tuner/base/status.h"

namespace espalier {
namespace {

// The tensors that make a model, in the module's own order, which is the same in each replica.
std::vector<at::Tensor> TensorsOf(const torch::nn::Module& model) {
  std::vector<at::Tensor> tensors = model.parameters();
  for (at::Tensor& buffer : model.buffers()) tensors.push_back(std::move(buffer));
  return tensors;
}

void AppendSized(std::vector<std::uint8_t>& to, const void* start, std::size_t size) {
  const std::uint64_t prefix = size;
  const auto* p = reinterpret_cast<const std::uint8_t*>(&prefix);
  to.insert(to.end(), p, p + sizeof prefix);
  const auto* s = static_cast<const std::uint8_t*>(start);
  to.insert(to.end(), s, s + size);
}

absl::StatusOr<std::string_view> TakeSized(std::string_view& from) {
  std::uint64_t size = 0;
  if (from.size() < sizeof size) return absl::DataLossError("training state ends too early");
  std::memcpy(&size, from.data(), sizeof size);
  from.remove_prefix(sizeof size);
  if (from.size() < size) return absl::DataLossError("training state ends too early");
  const std::string_view part = from.substr(0, size);
  from.remove_prefix(size);
  return part;
}

absl::Status TakeTensor(std::string_view& from, at::Tensor& tensor) {
  ESPALIER_ASSIGN_OR_RETURN(const std::string_view part, TakeSized(from));
  at::Tensor target = tensor.is_contiguous() ? tensor : at::empty_like(tensor).contiguous();
  if (part.size() != target.nbytes()) {
    return absl::DataLossError(absl::StrCat(
        "training state: a tensor has ", part.size(), " bytes where this replica's model has ",
        target.nbytes(), ": do all replicas run the same program with the same parameters?"));
  }
  std::memcpy(target.mutable_data_ptr(), part.data(), part.size());
  if (!target.is_same(tensor)) tensor.copy_(target);
  return absl::OkStatus();
}

std::string OptimizerBytes(const torch::optim::Optimizer& optimizer) {
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  std::ostringstream out;
  archive.save_to(out);
  return std::move(out).str();
}

std::string KeyOf(const char* kind, const std::string& name) {
  return name.empty() ? kind : absl::StrCat(kind, ".", name);
}

}  // namespace

absl::Status TrainingState::AddModel(const std::string& name, torch::nn::Module& model,
                                     torch::optim::Optimizer& optimizer) {
  for (const TrainedModel& other : models_) {
    if (other.name == name) {
      return absl::AlreadyExistsError(absl::StrCat("there is already a model named \"", name,
                                                   "\": want a name of its own for each"));
    }
  }
  models_.push_back({name, model, optimizer});
  return absl::OkStatus();
}

std::vector<std::int64_t> TrainingState::Order() const {
  const auto [step, epoch, evaluations, models] = position.Order();
  const bool fresh = step == 0 && epoch == 0 && evaluations == 0 && models == 0;
  return {fresh ? 0 : 1, step, epoch, evaluations, models};
}

absl::StatusOr<std::shared_ptr<std::vector<std::uint8_t>>> TrainingState::Save() const {
  try {
    auto bytes = std::make_shared<std::vector<std::uint8_t>>();
    const std::string where = position.Encode();
    AppendSized(*bytes, where.data(), where.size());
    for (const TrainedModel& trained : models_) {
      const std::string optimizer = OptimizerBytes(trained.optimizer);
      AppendSized(*bytes, optimizer.data(), optimizer.size());
      for (const at::Tensor& tensor : TensorsOf(trained.model)) {
        const at::Tensor whole = tensor.detach().contiguous();
        AppendSized(*bytes, whole.const_data_ptr(), whole.nbytes());
      }
    }
    return bytes;
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("cannot save the training state: ", e.what()));
  }
}

absl::Status TrainingState::Load(const std::vector<std::uint8_t>& bytes) {
  try {
    std::string_view left(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    ESPALIER_ASSIGN_OR_RETURN(const std::string_view where, TakeSized(left));
    ESPALIER_ASSIGN_OR_RETURN(TrainingPosition loaded, TrainingPosition::Decode(where));
    const at::NoGradGuard no_grad;
    for (const TrainedModel& trained : models_) {
      ESPALIER_ASSIGN_OR_RETURN(const std::string_view optimizer, TakeSized(left));
      for (at::Tensor& tensor : TensorsOf(trained.model)) {
        at::Tensor values = tensor.detach();
        ESPALIER_RETURN_IF_ERROR(TakeTensor(left, values));
      }
      torch::serialize::InputArchive archive;
      archive.load_from(optimizer.data(), optimizer.size());
      trained.optimizer.state().clear();
      trained.optimizer.load(archive);
    }
    position = std::move(loaded);
    return absl::OkStatus();
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("cannot load the training state: ", e.what()));
  }
}

absl::Status TrainingState::WarmUp() {
  ESPALIER_ASSIGN_OR_RETURN(const auto bytes, Save());
  return Load(*bytes);
}

void TrainingState::SaveCheckpoint() {
  if (trial_.checkpoint_dir.empty()) return;
  absl::StatusOr<std::string> path;
  try {
    torch::serialize::OutputArchive archive;
    for (const TrainedModel& trained : models_) {
      torch::serialize::OutputArchive model(archive.compilation_unit());
      torch::serialize::OutputArchive optimizer(archive.compilation_unit());
      trained.model.save(model);
      trained.optimizer.save(optimizer);
      archive.write(KeyOf("model", trained.name), model);
      archive.write(KeyOf("optimizer", trained.name), optimizer);
    }
    archive.write("espalier", c10::IValue(position.Encode()));
    std::ostringstream out;
    archive.save_to(out);
    path = WriteCheckpointFile(trial_.checkpoint_dir, position.step, out.str());
  } catch (const std::exception& e) {
    path = absl::InternalError(absl::StrCat("checkpoint: ", e.what()));
  }
  if (path.ok()) {
    trial_.control->Send(ReplicaCheckpoint{trial_.generation, *path, position.step});
  } else {  // Training need not end for it; the service keeps the one it knows.
    std::fprintf(stderr, "espalier: %s\n", std::string(path.status().message()).c_str());
  }
}

absl::Status TrainingState::CatchUp() {
  try {
    torch::serialize::InputArchive archive;
    archive.load_from(trial_.checkpoint);
    c10::IValue where;
    archive.read("espalier", where);
    const auto there = TrainingPosition::Decode(where.toStringRef());
    if (there.ok() && there->Order() <= position.Order()) return absl::OkStatus();
  } catch (const std::exception&) {
    // Gone or broken: then there is a newer one, or loading says what is wrong.
  }
  return LoadNewestCheckpoint();
}

absl::Status TrainingState::LoadNewestCheckpoint() {
  const absl::Status given = LoadCheckpoint(trial_.checkpoint);
  if (given.ok()) return given;
  constexpr int kLooks = 3;  // files may go while they are tried
  for (int look = 0; look < kLooks; ++look) {
    for (const std::string& path : CheckpointFiles(trial_.checkpoint_dir)) {
      if (!LoadCheckpoint(path).ok()) continue;
      std::fprintf(stderr, "espalier: %s; went on from %s\n", std::string(given.message()).c_str(),
                   path.c_str());
      return absl::OkStatus();
    }
  }
  return given;
}

absl::Status TrainingState::LoadCheckpoint(const std::string& path) {
  try {
    torch::serialize::InputArchive archive;
    archive.load_from(path);
    c10::IValue where;
    archive.read("espalier", where);
    ESPALIER_ASSIGN_OR_RETURN(TrainingPosition loaded,
                              TrainingPosition::Decode(where.toStringRef()));
    for (const TrainedModel& trained : models_) {
      torch::serialize::InputArchive model;
      torch::serialize::InputArchive optimizer;
      archive.read(KeyOf("model", trained.name), model);
      archive.read(KeyOf("optimizer", trained.name), optimizer);
      trained.model.load(model);
      trained.optimizer.state().clear();
      trained.optimizer.load(optimizer);
    }
    position = std::move(loaded);
    return absl::OkStatus();
  } catch (const std::exception& e) {
    const std::string message = e.what();
    return absl::DataLossError(
        absl::StrCat("checkpoint ", path, ": ", message.substr(0, message.find('\n'))));
  }
}

}  // namespace espalier
