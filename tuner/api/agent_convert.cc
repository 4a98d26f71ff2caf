#include "tuner/api/agent_convert.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/api/convert.h"
#include "tuner/base/check.h"

namespace espalier {

namespace {

// Trial programs learn by it which of the two batch modes their study is in.
constexpr char kBatchModeVariable[] = "ESPALIER_BATCH_MODE";
constexpr char kDirectionVariable[] = "ESPALIER_DIRECTION";

absl::StatusOr<ReplicaReady> ToReady(ReplicaId replica, const v1::Ready& ready) {
  const v1::BatchBounds& batch = ready.batch();
  if (batch.initial_batch_size() < 1 || batch.max_batch_size() < batch.initial_batch_size() ||
      batch.min_atomic_batch_size() < 1 ||
      batch.max_atomic_batch_size() < batch.min_atomic_batch_size() ||
      batch.max_unsplit_batch_size() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "replica ", replica.value,
        ": batch bounds need 1 <= initial <= max, 1 <= min_atomic <= max_atomic and ",
        "0 <= max_unsplit, got initial ", batch.initial_batch_size(), ", max ",
        batch.max_batch_size(), ", min_atomic ", batch.min_atomic_batch_size(), ", max_atomic ",
        batch.max_atomic_batch_size(), ", max_unsplit ", batch.max_unsplit_batch_size()));
  }
  return ReplicaReady{
      replica,
      ready.address(),
      {batch.initial_batch_size(), batch.max_batch_size(), batch.min_atomic_batch_size(),
       batch.max_atomic_batch_size(), batch.accumulation(), batch.max_unsplit_batch_size()},
      ready.total_steps()};
}

ReplicaProgress ToProgress(ReplicaId replica, const v1::Progress& progress) {
  ReplicaProgress out;
  out.replica = replica;
  out.generation = progress.generation();
  out.step = progress.step();
  out.progress = progress.progress();
  out.epoch = progress.epoch();
  out.global_batch_size = progress.global_batch_size();
  out.atomic_batch_size = progress.atomic_batch_size();
  out.accumulation_steps = progress.accumulation_steps();
  out.learning_rate = progress.learning_rate();
  out.noise = {progress.gradient_sqr(), progress.gradient_var()};
  for (const v1::ProfileEntry& entry : progress.profile()) {
    out.profile.push_back({{entry.nodes(), entry.replicas(), entry.atomic_batch_size()},
                           entry.accumulation_count(),
                           entry.accumulation_time_s(),
                           entry.optimizer_count(),
                           entry.optimizer_time_s(),
                           entry.sync_time_s()});
  }
  for (const v1::ReplicaTime& time : progress.replica_times()) {
    out.replica_times.push_back(
        {ReplicaId(time.replica_id()), time.steps(), time.compute_time_s()});
  }
  out.goodput = progress.goodput();
  out.memory_bytes = progress.memory_bytes();
  out.device_memory_bytes = progress.device_memory_bytes();
  out.skipped_steps = progress.skipped_steps();
  out.loss_scale = progress.loss_scale();
  return out;
}

absl::StatusOr<std::optional<Event>> FromReplica(ReplicaId replica,
                                                 const v1::ReplicaMessage& message) {
  switch (message.kind_case()) {
    case v1::ReplicaMessage::kReady: {
      ESPALIER_ASSIGN_OR_RETURN(ReplicaReady ready, ToReady(replica, message.ready()));
      return std::optional<Event>(std::move(ready));
    }
    case v1::ReplicaMessage::kRegrouped:
      return std::optional<Event>(
          ReplicaRegrouped{replica, message.regrouped().generation(), message.regrouped().step(),
                           message.regrouped().pause_s(), message.regrouped().form_s(),
                           message.regrouped().broadcast_s()});
    case v1::ReplicaMessage::kReport:
      if (message.report().step() < 0) {
        return absl::InvalidArgumentError(absl::StrCat("replica ", replica.value,
                                                       ": a report's step must be 0 or more, got ",
                                                       message.report().step()));
      }
      return std::optional<Event>(ReplicaReport{
          replica, message.report().step(), message.report().value(), message.report().progress()});
    case v1::ReplicaMessage::kProgress:
      return std::optional<Event>(ToProgress(replica, message.progress()));
    case v1::ReplicaMessage::kCheckpoint:
      return std::optional<Event>(ReplicaCheckpoint{replica, message.checkpoint().path()});
    case v1::ReplicaMessage::kFinished: {
      ReplicaFinished finished{replica, std::nullopt, message.finished().failure()};
      if (message.finished().has_value()) finished.value = message.finished().value();
      return std::optional<Event>(finished);
    }
    case v1::ReplicaMessage::kStuck:
      return std::optional<Event>(
          ReplicaStuck{replica, message.stuck().generation(), message.stuck().waited_s()});
    case v1::ReplicaMessage::kHeartbeat:  // the agent's own business
    case v1::ReplicaMessage::kParked:
    case v1::ReplicaMessage::KIND_NOT_SET:
      break;
  }
  return std::optional<Event>();
}

absl::Status CheckAmount(std::string_view what, double amount) {
  if (amount >= 0 && std::isfinite(amount)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a node's ", std::string(what), " must be 0 or more, got ", amount));
}

absl::StatusOr<FromAgent> FromHello(const v1::Hello& hello) {
  if (hello.node_name().empty() || hello.node_name().size() > kMaxNodeName) {
    return absl::InvalidArgumentError(absl::StrCat("a node's name has 1 to ", kMaxNodeName,
                                                   " bytes, got ", hello.node_name().size()));
  }
  if (hello.slots() < 1 || hello.slots() > kMaxSlotsPerNode) {
    return absl::InvalidArgumentError(absl::StrCat("node \"", hello.node_name(), "\" needs 1 to ",
                                                   kMaxSlotsPerNode, " slots, got ",
                                                   hello.slots()));
  }
  FromAgent out;
  if (hello.gpu_type().size() > kMaxNodeName) {
    return absl::InvalidArgumentError(absl::StrCat("node \"", hello.node_name(),
                                                   "\": its GPU type has at most ", kMaxNodeName,
                                                   " bytes, got ", hello.gpu_type().size()));
  }
  ESPALIER_RETURN_IF_ERROR(CheckAmount("price an hour", hello.price_per_hour()));
  ESPALIER_RETURN_IF_ERROR(CheckAmount("time to leave", hello.leaves_in_s()));
  AgentHello event{hello.node_name(), hello.slots(),          {},          hello.gpu_type(),
                   hello.spot(),      hello.price_per_hour(), std::nullopt};
  if (hello.has_leaves_in_s()) event.leaves_in_s = hello.leaves_in_s();
  for (const v1::LiveReplica& live : hello.replicas()) {
    LiveReplica replica{ReplicaId(live.replica_id()), TrialId(live.trial_id()), live.slot(),
                        live.generation(), std::nullopt};
    if (live.has_ready()) {
      ESPALIER_ASSIGN_OR_RETURN(replica.ready, ToReady(replica.replica, live.ready()));
    }
    if (live.pid() > 0) out.pids.push_back({replica.replica, live.pid()});
    event.replicas.push_back(std::move(replica));
  }
  if (hello.gpus_size() > kMaxGpusPerNode) {
    return absl::InvalidArgumentError(absl::StrCat("node \"", hello.node_name(), "\" may have ",
                                                   kMaxGpusPerNode, " GPUs, got ",
                                                   hello.gpus_size()));
  }
  for (const v1::Gpu& gpu : hello.gpus()) {
    out.gpus.push_back({gpu.name(), gpu.uuid(), gpu.memory_bytes()});
  }
  if (hello.directory().size() > kMaxNodePath) {
    return absl::InvalidArgumentError(absl::StrCat("node \"", hello.node_name(),
                                                   "\": its directory has at most ", kMaxNodePath,
                                                   " bytes, got ", hello.directory().size()));
  }
  out.folder = hello.directory();
  out.event = std::move(event);
  return out;
}

// Whoever enqueued the trial wrote it; what is no text is passed over.
void AddEnvironment(const std::string& json, v1::StartReplica& start) {
  const auto variables = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!variables.is_object()) return;
  for (const auto& [name, value] : variables.items()) {
    if (value.is_string()) (*start.mutable_environment())[name] = value.get<std::string>();
  }
}

v1::ServiceMessage ToMessage(const StartReplicaCommand& command, const TunerState& state) {
  const auto trial = state.trials.find(command.trial);
  ESPALIER_CHECK(trial != state.trials.end(), "the core starts replicas of trials it knows");
  const Study& study = state.studies.at(trial->second.study);
  v1::ServiceMessage message;
  v1::StartReplica& start = *message.mutable_start();
  start.set_replica_id(command.replica.value);
  start.set_trial_id(command.trial.value);
  start.set_slot(command.slot);
  start.mutable_command()->Add(study.spec.command.begin(), study.spec.command.end());
  start.set_directory(study.spec.directory);
  start.mutable_environment()->insert(study.spec.environment.begin(), study.spec.environment.end());
  (*start.mutable_environment())[kBatchModeVariable] =
      study.spec.batch_mode == BatchMode::kAdaptive ? "adaptive" : "fixed";
  (*start.mutable_environment())[kDirectionVariable] = std::string(ToString(study.spec.direction));
  const auto& attributes = trial->second.attributes.system;
  if (const auto own = attributes.find(kTrialEnvironment); own != attributes.end()) {
    AddEnvironment(own->second, start);
  }
  const auto verbatim = attributes.find(kTrialParameters);
  start.set_parameters_json(verbatim == attributes.end()
                                ? study.spec.space.NestedJson(trial->second.parameters)
                                : verbatim->second);
  start.set_study(study.spec.name);
  start.set_trial_number(trial->second.number);
  start.set_checkpoint(trial->second.checkpoint);
  return message;
}

v1::ServiceMessage ToMessage(const RegroupCommand& command, const TunerState&) {
  v1::ServiceMessage message;
  message.mutable_to_replica()->set_replica_id(command.replica.value);
  v1::Regroup& regroup = *message.mutable_to_replica()->mutable_command()->mutable_regroup();
  regroup.set_generation(command.generation);
  regroup.set_abandon(command.abandon);
  for (const GroupMember& member : command.members) {
    v1::Member& added = *regroup.add_members();
    added.set_replica_id(member.replica.value);
    added.set_address(member.address);
    added.set_node_id(member.node.value);
  }
  return message;
}

v1::ServiceMessage ToMessage(const StopReplicaCommand& command, const TunerState&) {
  v1::ServiceMessage message;
  message.mutable_stop()->set_replica_id(command.replica.value);
  message.mutable_stop()->set_grace_s(command.grace_s);
  return message;
}

}  // namespace

absl::StatusOr<FromAgent> FromProto(const v1::AgentMessage& message) {
  FromAgent out;
  switch (message.kind_case()) {
    case v1::AgentMessage::kHello:
      return FromHello(message.hello());
    case v1::AgentMessage::kFromReplica: {
      ESPALIER_ASSIGN_OR_RETURN(out.event,
                                FromReplica(ReplicaId(message.from_replica().replica_id()),
                                            message.from_replica().message()));
      return out;
    }
    case v1::AgentMessage::kExited: {
      const v1::ReplicaExited& exited = message.exited();
      out.event = ReplicaExited{ReplicaId(exited.replica_id()), exited.exit_code(), exited.signal(),
                                exited.last_output(), exited.error()};
      return out;
    }
    case v1::AgentMessage::kStarted: {
      const ReplicaId replica(message.started().replica_id());
      out.event = ReplicaStarted{replica};
      out.pids.push_back({replica, message.started().pid()});
      return out;
    }
    case v1::AgentMessage::kLeaving:
      ESPALIER_RETURN_IF_ERROR(CheckAmount("time to leave", message.leaving().within_s()));
      out.event = AgentLeaving{{}, message.leaving().within_s()};
      return out;
    case v1::AgentMessage::kHeartbeat:
    case v1::AgentMessage::kOutput:
    case v1::AgentMessage::KIND_NOT_SET:
      break;
  }
  return out;
}

v1::ServiceMessage ToProto(const Command& command, const TunerState& state) {
  return std::visit([&state](const auto& c) { return ToMessage(c, state); }, command);
}

NodeId NodeOf(const Command& command) {
  return std::visit([](const auto& c) { return c.node; }, command);
}

}  // namespace espalier
