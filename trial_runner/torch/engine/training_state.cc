#include "trial_runner/torch/engine/training_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <bit>
#include <cstdio>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "trial_runner/torch/checkpoints/checkpoint_file.h"
#include "trial_runner/torch/checkpoints/exception_text.h"
#include "trial_runner/torch/checkpoints/state_bytes.h"
#include "trial_runner/torch/engine/first_values.h"
#include "trial_runner/torch/engine/replica_check.h"

namespace espalier {
namespace {

std::string NameOfModel(const std::string& name) {
  return name.empty() ? "model" : absl::StrCat("model.", name);
}

}  // namespace

absl::Status TrainingState::AddModel(const std::string& name, ModelPart& model,
                                     OptimizerPart& optimizer) {
  for (const OptimizedModel& other : models_) {
    if (other.name == name) {
      return absl::AlreadyExistsError(absl::StrCat("there is already a model named \"", name,
                                                   "\": want a name of its own for each"));
    }
  }
  std::set<const void*> own;
  for (const NamedTensor& p : model.Parameters()) own.insert(p.tensor.unsafeGetTensorImpl());
  for (const std::vector<at::Tensor>& group : optimizer.Groups()) {
    for (const at::Tensor& p : group) {
      if (own.contains(p.unsafeGetTensorImpl())) continue;
      std::ostringstream shape;
      shape << p.sizes();
      return absl::InvalidArgumentError(
          absl::StrCat(NameOfModel(name), ": its optimizer has a parameter of shape ", shape.str(),
                       " that is not the model's: want one module that holds all that is trained"));
    }
  }
  models_.push_back({name, model, optimizer});
  return absl::OkStatus();
}

std::vector<std::int64_t> TrainingState::Order() const {
  const auto [step, epoch, evaluations, models, left_out] = position.Order();
  const std::int64_t merges = sums.merges();
  const bool fresh = step == 0 && epoch == 0 && evaluations == 0 && models == 0 && merges == 0;
  const Kind kind = spoiled_ ? kSpoiled : fresh ? kFresh : kTrained;
  return std::vector<std::int64_t>{kind, step, epoch, evaluations, models, merges, left_out};
}

// ---- from replica to replica ------------------------------------------------------------------

absl::Status TrainingState::CompareFresh(Collectives& collectives, bool running) {
  std::vector<NamedTensor> values;
  try {
    for (const OptimizedModel& trained : models_) {
      for (const auto& [name, tensor] : trained.model.Parameters()) {
        values.push_back({absl::StrCat("parameter \"", name, "\""), tensor});
      }
      for (const auto& [name, tensor] : trained.model.Buffers()) {
        if (ReplicaCheck::IsStatistic(name)) continue;
        values.push_back({absl::StrCat("buffer \"", name, "\""), tensor});
      }
    }
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("cannot compare models: ", FirstLine(e)));
  }
  return CompareFirstValues(collectives, values, running);
}

void TrainingState::WriteModel(const OptimizedModel& trained, StateWriter& to) const {
  if (extent == Extent::kAll) {
    for (const auto& [name, tensor] : trained.model.Parameters()) {
      to.Text(name);
      to.Tensor(tensor);
    }
    to.Text("");  // the model has no more
    trained.optimizer.Write(to);
  }
  const std::vector<NamedTensor> buffers = trained.model.Buffers();
  to.Integer(std::ssize(buffers));
  for (const auto& [name, tensor] : buffers) {
    to.Text(name);
    to.Integer(tensor.is_cpu() ? 1 : 0);
    to.Tensor(tensor);
  }
  to.Text(trained.model.OtherState());
}

void TrainingState::WriteStates(StateWriter& to) const {
  for (const auto& [name, state] : trial_.states) {
    to.Text(name);
    to.Text(BytesOf(*state));
  }
  to.Text("");  // the program has no more states
}

absl::StatusOr<StateOffer> TrainingState::Offer() {
  try {
    StateWriter to;
    if (extent == Extent::kStates) {
      WriteStates(to);
      return std::move(to).Take();
    }
    if (extent != Extent::kProgram) {
      for (const OptimizedModel& trained : models_) WriteModel(trained, to);
    }
    if (extent == Extent::kBuffers) return std::move(to).Take();
    to.Text(position.Encode());
    to.Text(sums.Encode());
    WriteStates(to);
    to.Integer(std::ssize(kept_buffers));
    for (const auto& [name, hash] : kept_buffers) {
      to.Text(name);
      to.Integer(std::bit_cast<std::int64_t>(hash));
    }
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
  if (extent == Extent::kAll) {
    const std::string model = NameOfModel(trained.name);
    for (const auto& [name, tensor] : trained.model.Parameters()) {
      ESPALIER_RETURN_IF_ERROR(ReadName(model, name, from));
      ESPALIER_RETURN_IF_ERROR(from.TensorInto(tensor, absl::StrCat(model, ": ", name)));
    }
    ESPALIER_RETURN_IF_ERROR(ReadName(model, "", from));
    ESPALIER_RETURN_IF_ERROR(trained.optimizer.Read(from));
  }
  ESPALIER_RETURN_IF_ERROR(ReadBuffers(trained, from));
  ESPALIER_ASSIGN_OR_RETURN(const std::string_view other, from.Text());
  expected_others_.emplace_back(other);
  return absl::OkStatus();
}

// Buffers are what they are in the other replica, whatever shape they have there: the observers of
// a model that is quantized take theirs from the first batch.
absl::Status TrainingState::ReadBuffers(const OptimizedModel& trained, StateReader& from) {
  std::map<std::string, at::Tensor> own;
  at::Device device = at::kCPU;
  for (const NamedTensor& p : trained.model.Parameters()) device = p.tensor.device();
  for (const auto& [name, tensor] : trained.model.Buffers()) own[name] = tensor;
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t count, from.Integer());
  bool same = count == std::ssize(own);
  std::vector<NamedTensor> theirs;
  for (std::int64_t i = 0; i < count; ++i) {
    ESPALIER_ASSIGN_OR_RETURN(const std::string_view name, from.Text());
    ESPALIER_ASSIGN_OR_RETURN(const std::int64_t on_host, from.Integer());
    NamedTensor& buffer = theirs.emplace_back(std::string(name), own[std::string(name)]);
    const at::Tensor former = buffer.tensor;
    ESPALIER_RETURN_IF_ERROR(
        from.AnyTensor(buffer.tensor, on_host == 1 ? at::Device(at::kCPU) : device));
    same = same && buffer.tensor.is_same(former);
  }
  if (same) return absl::OkStatus();
  const absl::Status set = trained.model.SetBuffers(theirs);
  return set.ok() ? set
                  : absl::Status(set.code(), absl::StrCat(NameOfModel(trained.name), ": ",
                                                          std::string(set.message())));
}

absl::Status TrainingState::ReadStates(StateReader& from) {
  for (const auto& [name, state] : trial_.states) {
    ESPALIER_RETURN_IF_ERROR(ReadName("the program's states", name, from));
    ESPALIER_ASSIGN_OR_RETURN(const std::string_view bytes, from.Text());
    // A member that has the same already is in the midst of its program.
    if (extent == Extent::kStates && BytesOf(*state) == bytes) continue;
    ESPALIER_RETURN_IF_ERROR(LoadBytes(*state, std::string(bytes)));
  }
  return ReadName("the program's states", "", from);
}

absl::StatusOr<std::vector<CollectiveBuffer>> TrainingState::Expect(
    const std::vector<std::uint8_t>& description) {
  // Buffers alone are taken over when all of them have arrived.
  const bool buffers = extent == Extent::kBuffers;
  expected_others_.clear();
  if (extent == Extent::kStates) {
    try {
      StateReader from(description);
      ESPALIER_RETURN_IF_ERROR(ReadStates(from));
      return std::vector<CollectiveBuffer>();
    } catch (const std::exception& e) {
      return absl::InternalError(
          absl::StrCat("cannot take over the program's states: ", FirstLine(e)));
    }
  }
  spoiled_ = !buffers;
  try {
    const at::NoGradGuard no_grad;
    StateReader from(description, /*aside=*/buffers);
    if (extent != Extent::kProgram) {
      for (const OptimizedModel& trained : models_) {
        ESPALIER_RETURN_IF_ERROR(ReadModel(trained, from));
      }
    }
    if (buffers) {
      detours_ = from.TakeDetours();
      return from.expected();
    }
    ESPALIER_ASSIGN_OR_RETURN(const std::string_view where, from.Text());
    ESPALIER_ASSIGN_OR_RETURN(expected_position_, TrainingPosition::Decode(where));
    ESPALIER_ASSIGN_OR_RETURN(const std::string_view sums_text, from.Text());
    expected_sums_ = std::string(sums_text);
    ESPALIER_RETURN_IF_ERROR(ReadStates(from));
    ESPALIER_ASSIGN_OR_RETURN(const std::int64_t kept, from.Integer());
    kept_buffers.clear();
    for (std::int64_t i = 0; i < kept; ++i) {
      ESPALIER_ASSIGN_OR_RETURN(const std::string_view name, from.Text());
      ESPALIER_ASSIGN_OR_RETURN(const std::int64_t hash, from.Integer());
      kept_buffers.emplace(name, std::bit_cast<std::uint64_t>(hash));
    }
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
    for (std::size_t i = 0; i < expected_others_.size(); ++i) {
      if (!expected_others_[i].empty()) models_[i].model.SetOtherState(expected_others_[i]);
    }
    if (extent == Extent::kAll) {
      for (const OptimizedModel& trained : models_) {
        ESPALIER_RETURN_IF_ERROR(trained.optimizer.Settle());
      }
    }
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("cannot take over the training state: ", FirstLine(e)));
  }
  detours_.clear();
  if (extent == Extent::kBuffers || extent == Extent::kStates) return absl::OkStatus();
  ESPALIER_RETURN_IF_ERROR(sums.Adopt(expected_sums_));
  position = std::move(expected_position_);
  spoiled_ = false;
  return absl::OkStatus();
}

void TrainingState::Forsake() {
  detours_.clear();
  for (const OptimizedModel& trained : models_) {
    for (const std::vector<NamedTensor>& tensors :
         {trained.model.Parameters(), trained.model.Buffers()}) {
      for (const auto& [name, tensor] : tensors) tensor.set_data(at::empty_like(tensor));
    }
    trained.optimizer.Clear();
  }
}

absl::Status TrainingState::WarmUp() {
  ESPALIER_ASSIGN_OR_RETURN(const StateOffer offer, Offer());
  ESPALIER_ASSIGN_OR_RETURN(const auto expected, Expect(*offer.description));
  for (std::size_t i = 0; i < expected.size(); ++i) CopyMemory(offer.tensors[i], expected[i]);
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
  auto copy =
      format_.Copy({.position = position.Encode(), .accumulators = sums.Encode()}, trial_.states);
  copy->step = position.step;
  copy->value = trial_.ValueOfPresentState();
  return copy;
}

void TrainingState::SaveCheckpoint() {
  if (trial_.checkpoint_dir.empty() || spoiled_) return;
  try {
    writer_.Put(Copy());
  } catch (const std::exception& e) {  // Training need not end for it.
    std::fprintf(stderr, "espalier: checkpoint of step %lld: %s\n",
                 static_cast<long long>(position.step), FirstLine(e).c_str());
  }
}

absl::Status TrainingState::CatchUp() {
  try {
    const auto there = TrainingPosition::Decode(format_.PositionIn(trial_.checkpoint));
    if (there.ok() && !spoiled_ && there->Order() <= position.Order()) return absl::OkStatus();
  } catch (const std::exception&) {
    // Gone or broken: loading says what is wrong.
  }
  return LoadCheckpoint(trial_.checkpoint);
}

absl::Status TrainingState::LoadCheckpoint(const std::string& path) {
  ESPALIER_RETURN_IF_ERROR(VerifyCheckpointFile(path));
  absl::Status read;
  try {
    const absl::StatusOr<CheckpointTexts> texts = format_.Load(path, trial_.states);
    read = texts.ok() ? TakeCheckpoint(*texts) : texts.status();
  } catch (const std::exception& e) {
    read = absl::DataLossError(FirstLine(e));
  }
  if (read.ok()) return read;
  return absl::Status(read.code(),
                      absl::StrCat("checkpoint ", path, ": ", std::string(read.message())));
}

absl::Status TrainingState::TakeCheckpoint(const CheckpointTexts& texts) {
  ESPALIER_ASSIGN_OR_RETURN(TrainingPosition loaded, TrainingPosition::Decode(texts.position));
  ESPALIER_RETURN_IF_ERROR(sums.Restore(texts.accumulators));
  position = std::move(loaded);
  spoiled_ = false;
  return absl::OkStatus();
}

}  // namespace espalier
