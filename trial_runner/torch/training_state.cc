#include "trial_runner/torch/training_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include <cstdio>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "trial_runner/torch/checkpoint_file.h"
#include "trial_runner/torch/exception_text.h"
#include "trial_runner/torch/optimizer_state.h"
#include "trial_runner/torch/training_state_copy.h"
#include "tuner/base/status.h"

namespace espalier {
namespace {

// The tensors that make a model, in the module's own order, which is the same in each replica.
std::vector<std::pair<std::string, at::Tensor>> TensorsOf(const torch::nn::Module& model) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& p : model.named_parameters()) tensors.emplace_back(p.key(), p.value());
  for (const auto& b : model.named_buffers()) tensors.emplace_back(b.key(), b.value());
  return tensors;
}

std::string BytesOf(const State& state) {
  std::ostringstream out;
  state.Save(out);
  return std::move(out).str();
}

absl::Status LoadState(State& state, const std::string& bytes) {
  std::istringstream in(bytes);
  try {
    state.Load(in);
  } catch (const std::exception& e) {
    return absl::DataLossError(absl::StrCat("state \"", state.name(), "\": ", e.what()));
  }
  return absl::OkStatus();
}

std::string KeyOf(const char* kind, const std::string& name) {
  return name.empty() ? kind : absl::StrCat(kind, ".", name);
}

}  // namespace

absl::Status TrainingState::AddModel(const std::string& name, torch::nn::Module& model,
                                     torch::optim::Optimizer& optimizer) {
  for (const OptimizedModel& other : models_) {
    if (other.name == name) {
      return absl::AlreadyExistsError(absl::StrCat("there is already a model named \"", name,
                                                   "\": want a name of its own for each"));
    }
  }
  std::set<const void*> own;
  for (const at::Tensor& p : model.parameters()) own.insert(p.unsafeGetTensorImpl());
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& p : group.params()) {
      if (own.contains(p.unsafeGetTensorImpl())) continue;
      std::ostringstream shape;
      shape << p.sizes();
      return absl::InvalidArgumentError(absl::StrCat(
          KeyOf("model", name), ": its optimizer has a parameter of shape ", shape.str(),
          " that is not the model's: want one module that holds all that is trained"));
    }
  }
  models_.push_back({name, model, optimizer});
  return absl::OkStatus();
}

std::vector<std::int64_t> TrainingState::Order() const {
  const auto [step, epoch, evaluations, models] = position.Order();
  const std::int64_t merges = sums.merges();
  const bool fresh = step == 0 && epoch == 0 && evaluations == 0 && models == 0 && merges == 0;
  const Kind kind = spoiled_ ? kSpoiled : fresh ? kFresh : kTrained;
  return std::vector<std::int64_t>{kind, step, epoch, evaluations, models, merges};
}

// ---- from replica to replica ------------------------------------------------------------------

absl::StatusOr<StateOffer> TrainingState::Offer() {
  try {
    StateWriter to;
    to.Text(position.Encode());
    to.Text(sums.Encode());
    for (const OptimizedModel& trained : models_) {
      for (const auto& [name, tensor] : TensorsOf(trained.model)) {
        to.Text(name);
        to.Tensor(tensor);
      }
      to.Text("");  // the model has no more
      WriteOptimizer(trained.optimizer, to);
    }
    for (const auto& [name, state] : trial_.states) {
      to.Text(name);
      to.Text(BytesOf(*state));
    }
    to.Text("");  // the program has no more states
    return std::move(to).Take();
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("cannot hand over the training state: ", FirstLine(e)));
  }
}

namespace {

absl::Status ReadName(const std::string& of, const std::string& own, StateReader& from) {
  ESPALIER_ASSIGN_OR_RETURN(const std::string_view name, from.Text());
  if (name == own) return absl::OkStatus();
  const auto quoted = [](std::string_view n) {
    return n.empty() ? std::string("nothing more") : absl::StrCat("\"", std::string(n), "\"");
  };
  return absl::FailedPreconditionError(absl::StrCat(
      of, ": ", quoted(own), " in this replica where it has ", quoted(name),
      " in the group that it joins: do all replicas run the same program with the same "
      "parameters?"));
}

}  // namespace

absl::Status TrainingState::ReadModel(const OptimizedModel& trained, StateReader& from) {
  const std::string model = KeyOf("model", trained.name);
  for (const auto& [name, tensor] : TensorsOf(trained.model)) {
    ESPALIER_RETURN_IF_ERROR(ReadName(model, name, from));
    ESPALIER_RETURN_IF_ERROR(from.TensorInto(tensor, absl::StrCat(model, ": ", name)));
  }
  ESPALIER_RETURN_IF_ERROR(ReadName(model, "", from));
  return ReadOptimizer(trained.optimizer, from);
}

absl::StatusOr<std::vector<CollectiveBuffer>> TrainingState::Expect(
    const std::vector<std::uint8_t>& description) {
  spoiled_ = true;
  try {
    const at::NoGradGuard no_grad;
    StateReader from(description);
    ESPALIER_ASSIGN_OR_RETURN(const std::string_view where, from.Text());
    ESPALIER_ASSIGN_OR_RETURN(expected_position_, TrainingPosition::Decode(where));
    ESPALIER_ASSIGN_OR_RETURN(const std::string_view sums_text, from.Text());
    expected_sums_ = std::string(sums_text);
    for (const OptimizedModel& trained : models_) {
      ESPALIER_RETURN_IF_ERROR(ReadModel(trained, from));
    }
    for (const auto& [name, state] : trial_.states) {
      ESPALIER_RETURN_IF_ERROR(ReadName("the program's states", name, from));
      ESPALIER_ASSIGN_OR_RETURN(const std::string_view bytes, from.Text());
      ESPALIER_RETURN_IF_ERROR(LoadState(*state, std::string(bytes)));
    }
    ESPALIER_RETURN_IF_ERROR(ReadName("the program's states", "", from));
    detours_ = from.TakeDetours();
    return from.expected();
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("cannot take over the training state: ", FirstLine(e)));
  }
}

absl::Status TrainingState::Accept() {
  try {
    const at::NoGradGuard no_grad;
    for (const StateReader::Detour& detour : detours_) detour.target.copy_(detour.arrived);
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("cannot take over the training state: ", FirstLine(e)));
  }
  detours_.clear();
  ESPALIER_RETURN_IF_ERROR(sums.Adopt(expected_sums_));
  position = std::move(expected_position_);
  spoiled_ = false;
  return absl::OkStatus();
}

void TrainingState::Forsake() {
  detours_.clear();
  for (const OptimizedModel& trained : models_) {
    for (auto& [name, tensor] : TensorsOf(trained.model)) tensor.set_data(at::empty_like(tensor));
    trained.optimizer.state().clear();
  }
}

absl::Status TrainingState::WarmUp() {
  ESPALIER_ASSIGN_OR_RETURN(const StateOffer offer, Offer());
  ESPALIER_RETURN_IF_ERROR(Expect(*offer.description).status());
  return Accept();
}

// ---- checkpoints ------------------------------------------------------------------------------

absl::Status TrainingState::Restore() {
  if (trial_.checkpoint.empty()) {
    return absl::NotFoundError("no checkpoint to restore the training state from");
  }
  return LoadCheckpoint(trial_.checkpoint);
}

void TrainingState::SyncStates() {
  for (const auto& [name, state] : trial_.states) {
    try {
      state->Sync();
    } catch (const std::exception& e) {
      EndProcess(absl::InternalError(absl::StrCat("state \"", name, "\": Sync: ", e.what())), 1);
    }
  }
}

std::unique_ptr<TrainingStateCopy> TrainingState::Copy() const {
  auto copy = std::make_unique<TrainingStateCopy>();
  copy->step = position.step;
  copy->value = trial_.last_value();
  for (const OptimizedModel& trained : models_) {
    copy->AddModule(KeyOf("model", trained.name), trained.model);
    copy->AddOptimizer(KeyOf("optimizer", trained.name), trained.optimizer);
  }
  for (const auto& [name, state] : trial_.states) {
    copy->AddBytes(KeyOf("state", name), BytesOf(*state));
  }
  copy->AddText("accumulators", sums.Encode());
  copy->AddText("espalier", position.Encode());
  return copy;
}

void TrainingState::SaveCheckpoint() {
  if (trial_.checkpoint_dir.empty()) return;
  try {
    writer_.Put(Copy());
  } catch (const std::exception& e) {  // Training need not end for it.
    std::fprintf(stderr, "espalier: checkpoint of step %lld: %s\n",
                 static_cast<long long>(position.step), FirstLine(e).c_str());
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
    // Gone or broken: loading says what is wrong.
  }
  return LoadCheckpoint(trial_.checkpoint);
}

absl::Status TrainingState::LoadCheckpoint(const std::string& path) {
  ESPALIER_RETURN_IF_ERROR(VerifyCheckpointFile(path));
  absl::Status read;
  try {
    torch::serialize::InputArchive archive;
    archive.load_from(path);
    read = ReadArchive(archive);
  } catch (const std::exception& e) {
    read = absl::DataLossError(FirstLine(e));
  }
  if (read.ok()) return read;
  return absl::Status(read.code(),
                      absl::StrCat("checkpoint ", path, ": ", std::string(read.message())));
}

absl::Status TrainingState::ReadArchive(torch::serialize::InputArchive& archive) {
  c10::IValue where;
  c10::IValue accumulated;
  if (!archive.try_read("espalier", where) || !where.isString() ||
      !archive.try_read("accumulators", accumulated) || !accumulated.isString()) {
    return absl::FailedPreconditionError("it has no training position");
  }
  ESPALIER_ASSIGN_OR_RETURN(TrainingPosition loaded, TrainingPosition::Decode(where.toStringRef()));
  for (const OptimizedModel& trained : models_) {
    ESPALIER_RETURN_IF_ERROR(ReadModule(archive, KeyOf("model", trained.name), trained.model));
    ESPALIER_RETURN_IF_ERROR(
        ReadOptimizer(archive, KeyOf("optimizer", trained.name), trained.optimizer));
  }
  ESPALIER_RETURN_IF_ERROR(RefuseUnknownKeys(archive));
  ESPALIER_RETURN_IF_ERROR(sums.Restore(accumulated.toStringRef()));
  for (const auto& [name, state] : trial_.states) {
    ESPALIER_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(archive, KeyOf("state", name)));
    ESPALIER_RETURN_IF_ERROR(LoadState(*state, bytes));
  }
  position = std::move(loaded);
  spoiled_ = false;
  return absl::OkStatus();
}

// What the program has no place for would be lost without a word.
absl::Status TrainingState::RefuseUnknownKeys(torch::serialize::InputArchive& archive) const {
  std::set<std::string> known{"espalier", "accumulators"};
  for (const OptimizedModel& trained : models_) {
    known.insert({KeyOf("model", trained.name), KeyOf("optimizer", trained.name)});
  }
  for (const auto& [name, state] : trial_.states) known.insert(KeyOf("state", name));
  for (const std::string& key : archive.keys()) {
    if (known.contains(key)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("it has ", key, ", which this program has not"));
  }
  return absl::OkStatus();
}

}  // namespace espalier
