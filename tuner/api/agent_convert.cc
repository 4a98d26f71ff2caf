#include "tuner/api/agent_convert.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/host_port.h"
#include "base/protocol.h"
#include "tuner/api/convert.h"
#include "tuner/api/trial_command.h"
#include "tuner/core/state/refusals.h"
#include "tuner/messages/wire/replica_wire.h"

namespace espalier {

namespace {

// Trial programs learn by it which of the two batch modes their study is in.
constexpr char kBatchModeVariable[] = "ESPALIER_BATCH_MODE";
constexpr char kDirectionVariable[] = "ESPALIER_DIRECTION";

absl::Status Check(ReplicaId replica, const ReplicaReady& ready) {
  const BatchBounds& batch = ready.batch;
  if (batch.initial >= 1 && batch.max_global >= batch.initial && batch.min_atomic >= 1 &&
      batch.max_atomic >= batch.min_atomic && batch.max_unsplit >= 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "replica ", replica.value,
      ": batch bounds need 1 <= initial <= max, 1 <= min_atomic <= max_atomic and ",
      "0 <= max_unsplit, got initial ", batch.initial, ", max ", batch.max_global, ", min_atomic ",
      batch.min_atomic, ", max_atomic ", batch.max_atomic, ", max_unsplit ", batch.max_unsplit));
}

absl::Status Check(ReplicaId replica, const ReplicaReport& report) {
  if (const absl::Status status = CheckStep(report.step); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("replica ", replica.value, ": a report's ", std::string(status.message())));
  }
  if (report.extra.size() > kMaxExtraFigures) {
    return absl::InvalidArgumentError(absl::StrCat("replica ", replica.value,
                                                   ": a report has at most ", kMaxExtraFigures,
                                                   " further figures, got ", report.extra.size()));
  }
  for (const auto& [name, value] : report.extra) {
    if (!name.empty() && name.size() <= kMaxFigureName) continue;
    return absl::InvalidArgumentError(absl::StrCat("replica ", replica.value,
                                                   ": the name of a figure has 1 to ",
                                                   kMaxFigureName, " bytes, got ", name.size()));
  }
  return absl::OkStatus();
}

absl::Status CheckCheckpoint(const std::string& name, const std::string& fingerprint) {
  if (name.size() <= kMaxCheckpointName && fingerprint.size() <= kMaxFingerprint) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a checkpoint's name has at most ", kMaxCheckpointName, " bytes and its fingerprint ",
      kMaxFingerprint, ", got ", name.size(), " and ", fingerprint.size()));
}

absl::Status Check(ReplicaId, const ReplicaCheckpoint& saved) {
  return CheckCheckpoint(saved.name, saved.fingerprint);
}

absl::Status Check(ReplicaId replica, const RanksWait& wait) {
  if (wait.address.empty()) return absl::OkStatus();
  return ParseHostPort(wait.address).ok()
             ? absl::OkStatus()
             : absl::InvalidArgumentError(absl::StrCat(
                   "replica ", replica.value, ": where its ranks meet should be HOST:PORT, got \"",
                   absl::CEscape(wait.address.substr(0, 100)), "\""));
}

absl::Status CheckAgo(ReplicaId replica, double ago_s) {
  if (ago_s >= 0 && ago_s <= kMaxTime_s) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("replica ", replica.value,
                                                 ": its ranks ended 0 to ", kMaxTime_s,
                                                 " seconds ago, got ", ago_s));
}

absl::Status Check(ReplicaId replica, const RanksFailed& failed) {
  return CheckAgo(replica, failed.ago_s);
}

absl::Status Check(ReplicaId replica, const RanksLeft& left) {
  return CheckAgo(replica, left.ago_s);
}

template <typename Message>
absl::Status Check(ReplicaId, const Message&) {
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Event>> ToEvent(const v1::FromReplica& from) {
  const ReplicaId replica(from.replica_id());
  std::optional<ReplicaMessage> message = FromProto(from.message());
  if (!message) return std::optional<Event>();
  ESPALIER_RETURN_IF_ERROR(std::visit([&](const auto& m) { return Check(replica, m); }, *message));
  return std::optional<Event>(FromReplica{replica, *std::move(message)});
}

absl::Status CheckPrice(double per_hour) {
  if (per_hour >= 0 && std::isfinite(per_hour)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a node's price an hour must be 0 or more, got ", per_hour));
}

absl::Status CheckTimeToLeave(double seconds) {
  if (seconds >= 0 && seconds <= kMaxTime_s) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a node's time to leave must be 0 to ", kMaxTime_s, " seconds, got ", seconds));
}

absl::Status TakeCheckpoints(const v1::Hello& hello, AgentHello& event) {
  if (hello.shared_folder().size() > kMaxFingerprint) {
    return absl::InvalidArgumentError(
        absl::StrCat("node \"", hello.node_name(), "\": the mark of its shared folder has at most ",
                     kMaxFingerprint, " bytes, got ", hello.shared_folder().size()));
  }
  event.shared_folder = hello.shared_folder();
  if (!hello.has_checkpoints()) return absl::OkStatus();
  const auto& told = hello.checkpoints().checkpoints();
  if (told.size() > kMaxHeldCheckpoints) {
    return absl::InvalidArgumentError(absl::StrCat("node \"", hello.node_name(), "\" may tell of ",
                                                   kMaxHeldCheckpoints, " checkpoints, got ",
                                                   told.size()));
  }
  HeldCheckpoints& held = event.checkpoints.emplace();
  held.more = hello.checkpoints().more();
  for (const v1::HeldCheckpoint& one : told) {
    ESPALIER_RETURN_IF_ERROR(CheckCheckpoint(one.name(), one.fingerprint()));
    held.files.push_back({.study = one.study(),
                          .number = one.trial_number(),
                          .name = one.name(),
                          .fingerprint = one.fingerprint(),
                          .fetched = one.fetched()});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int>> MoreSlotsOf(const v1::LiveReplica& live) {
  const std::set<int> slots(live.more_slots().begin(), live.more_slots().end());
  if (!slots.empty() && (*slots.begin() < 0 || *slots.rbegin() >= kMaxSlotsPerNode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("replica ", live.replica_id(), " holds slots with numbers from 0 to ",
                     kMaxSlotsPerNode - 1, ", got ", *slots.begin(), " to ", *slots.rbegin()));
  }
  return std::vector<int>(slots.begin(), slots.end());
}

absl::StatusOr<std::map<int, std::string>> UnusableSlotsOf(const v1::UnusableSlots& told) {
  std::map<int, std::string> slots;
  for (const v1::UnusableSlot& unusable : told.slots()) {
    if (unusable.slot() < 0 || unusable.slot() >= kMaxSlotsPerNode) {
      return absl::InvalidArgumentError(
          absl::StrCat("a slot that cannot be used has a number from 0 to ", kMaxSlotsPerNode - 1,
                       ", got ", unusable.slot()));
    }
    slots[unusable.slot()] = unusable.reason();
  }
  return slots;
}

CheckpointFailure CheckpointFailureOf(const v1::ReplicaExited& exited) {
  if (!exited.checkpoint_missing()) return CheckpointFailure::kNone;
  return exited.checkpoint_gone() ? CheckpointFailure::kGone : CheckpointFailure::kMissing;
}

bool IsUnfitForNames(char c) {
  return c == '"' || c == '\\' || absl::ascii_iscntrl(static_cast<unsigned char>(c));
}

absl::Status TakeGpus(const v1::Hello& hello, AgentHello& event, NodeDetails& details) {
  if (hello.gpus_size() > kMaxGpusPerNode) {
    return absl::InvalidArgumentError(absl::StrCat("node \"", hello.node_name(), "\" may have ",
                                                   kMaxGpusPerNode, " GPUs, got ",
                                                   hello.gpus_size()));
  }
  event.gpus = hello.gpus_size();
  for (const v1::Gpu& gpu : hello.gpus()) {
    details.gpus.push_back({gpu.name(), gpu.uuid(), gpu.memory_bytes()});
  }
  return absl::OkStatus();
}

absl::StatusOr<FromAgent> FromHello(const v1::Hello& hello) {
  if (hello.node_name().empty() || hello.node_name().size() > kMaxNodeName) {
    return absl::InvalidArgumentError(absl::StrCat("a node's name has 1 to ", kMaxNodeName,
                                                   " bytes, got ", hello.node_name().size()));
  }
  if (std::any_of(hello.node_name().begin(), hello.node_name().end(), IsUnfitForNames)) {
    return absl::InvalidArgumentError(
        absl::StrCat("node \"", absl::CEscape(hello.node_name()),
                     "\": its name may not have quotes, backslashes and control characters, "
                     "which would spoil logs and tables"));
  }
  if (hello.slots() < 1 || hello.slots() > kMaxSlotsPerNode) {
    return absl::InvalidArgumentError(absl::StrCat("node \"", hello.node_name(), "\" needs 1 to ",
                                                   kMaxSlotsPerNode, " slots, got ",
                                                   hello.slots()));
  }
  if (hello.gpu_type().size() > kMaxNodeName) {
    return absl::InvalidArgumentError(absl::StrCat("node \"", hello.node_name(),
                                                   "\": its GPU type has at most ", kMaxNodeName,
                                                   " bytes, got ", hello.gpu_type().size()));
  }
  ESPALIER_RETURN_IF_ERROR(CheckPrice(hello.price_per_hour()));
  ESPALIER_RETURN_IF_ERROR(CheckTimeToLeave(hello.leaves_in_s()));
  AgentHello event{.node_name = hello.node_name(),
                   .slots = hello.slots(),
                   .replicas = {},
                   .gpu_type = hello.gpu_type(),
                   .spot = hello.spot(),
                   .price_per_hour = hello.price_per_hour(),
                   .leaves_in_s = std::nullopt};
  if (hello.has_leaves_in_s()) event.leaves_in_s = hello.leaves_in_s();
  ESPALIER_ASSIGN_OR_RETURN(event.unusable_slots, UnusableSlotsOf(hello.unusable()));
  ESPALIER_RETURN_IF_ERROR(TakeCheckpoints(hello, event));
  NodeDetails details;
  for (const v1::LiveReplica& live : hello.replicas()) {
    LiveReplica replica{.replica = ReplicaId(live.replica_id()),
                        .trial = TrialId(live.trial_id()),
                        .slot = live.slot(),
                        .generation = live.generation(),
                        .ready = std::nullopt,
                        .started_from = live.started_from()};
    if (live.has_ready()) {
      replica.ready = FromProto(live.ready());
      ESPALIER_RETURN_IF_ERROR(Check(replica.replica, *replica.ready));
    }
    ESPALIER_ASSIGN_OR_RETURN(replica.more_slots, MoreSlotsOf(live));
    if (live.has_ranks_wait()) {
      replica.ranks_wait = FromProto(live.ranks_wait());
      ESPALIER_RETURN_IF_ERROR(Check(replica.replica, *replica.ranks_wait));
    }
    if (live.pid() > 0) details.pids.push_back({replica.replica, live.pid()});
    event.replicas.push_back(std::move(replica));
  }
  ESPALIER_RETURN_IF_ERROR(TakeGpus(hello, event, details));
  event.spans_launches = hello.spans_launches();
  event.clones = hello.clones();
  if (hello.directory().size() > kMaxNodePath) {
    return absl::InvalidArgumentError(absl::StrCat("node \"", hello.node_name(),
                                                   "\": its directory has at most ", kMaxNodePath,
                                                   " bytes, got ", hello.directory().size()));
  }
  details.folder = hello.directory();
  return FromAgent{std::move(event), std::move(details)};
}

std::vector<std::string> NamesOf(const std::vector<NodeId>& nodes, const TunerState& state) {
  std::vector<std::string> names;
  for (const NodeId node : nodes) names.push_back(state.nodes.at(node));
  return names;
}

void Fill(const CheckpointLabel& what, const std::vector<std::string>& nodes,
          v1::CheckpointSources& told) {
  told.set_name(what.name);
  told.set_fingerprint(what.fingerprint);
  told.set_step(what.step);
  for (const std::string& node : nodes) told.add_sources()->set_node(node);
}

void AddLaunch(const StartReplicaCommand& command, const StudySpec& spec, v1::StartReplica& start) {
  if (spec.launch.empty()) return;
  v1::Launch& launch = *start.mutable_launch();
  launch.mutable_words()->Add(spec.launch.begin(), spec.launch.end());
  launch.set_least(spec.min_slots);
  launch.set_grace_s(spec.stop_grace_s);
  launch.set_apart_s(spec.timeouts.exit_s > 0 ? spec.timeouts.exit_s : kDefaultRanksApart_s);
  launch.mutable_ranks_of_nodes()->Add(command.ranks_of_nodes.begin(),
                                       command.ranks_of_nodes.end());
  launch.set_node_rank(command.node_rank);
}

// Those that the agent reads out of what the program writes.
void AddMetrics(const StudySpec& spec, v1::StartReplica& start) {
  if (!spec.from_output.value.empty()) {
    v1::OutputMetric& metric = *start.mutable_output_metric();
    metric.set_pattern(spec.from_output.value);
    metric.set_step(spec.from_output.step);
    for (const std::string& figure : FiguresNeeded(spec)) metric.add_figures(figure);
  }
  if (const MetricFiles& files = spec.from_files; !files.path.empty()) {
    v1::FileMetric& metric = *start.mutable_file_metric();
    metric.set_path(files.path);
    metric.set_value(files.value);
    metric.set_step(files.step);
    metric.set_tag(files.tag);
    for (const std::string& figure : FiguresNeeded(spec)) metric.add_figures(figure);
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
  start.mutable_more_slots()->Add(command.more_slots.begin(), command.more_slots.end());
  start.mutable_command()->Add(study.spec.command.begin(), study.spec.command.end());
  start.set_directory(study.spec.directory);
  AddLaunch(command, study.spec, start);
  start.set_own_interpreter(!study.spec.preload);
  start.set_expects_elastic(study.spec.population.on() && !study.spec.resize_by_restart);
  if (study.spec.preload) {
    start.mutable_preload()->Add(study.spec.preload->begin(), study.spec.preload->end());
  }
  start.mutable_environment()->insert(study.spec.environment.begin(), study.spec.environment.end());
  (*start.mutable_environment())[kBatchModeVariable] =
      study.spec.batch_mode == BatchMode::kAdaptive ? "adaptive" : "fixed";
  (*start.mutable_environment())[kDirectionVariable] =
      std::string(ToString(study.spec.direction()));
  for (const auto& [name, value] : trial->second.environment) {
    (*start.mutable_environment())[name] = value;
  }
  start.set_parameters_json(ParametersJsonOf(trial->second, study));
  start.set_study(study.spec.name);
  start.set_study_identity(IdentityOf(study));
  start.set_trial_number(trial->second.number);
  // What is read is what rank 0 writes.
  if (command.node_rank == 0) AddMetrics(study.spec, start);
  start.set_seed(SeedOf(trial->second, study));
  start.set_joins(command.replicas);
  // By which programs draw what is random; a clone goes on in its parent's order of samples.
  if (trial->second.lineage->cloned()) {
    std::string& seed = (*start.mutable_environment())[kSeedVariable];
    if (seed.empty()) seed = absl::StrCat(trial->second.lineage->founder);
  }
  if (command.joins) return message;
  if (!trial->second.values.empty()) {
    (*start.mutable_environment())[kLastStepVariable] =
        absl::StrCat(trial->second.values.back().step);
  }
  start.set_checkpoint(trial->second.checkpoint);
  if (!command.sources.empty()) {
    Fill(command.from, NamesOf(command.sources, state), *start.mutable_from());
  }
  return message;
}

v1::ServiceMessage ToMessage(const CopyCheckpointCommand& command, const TunerState& state) {
  v1::ServiceMessage message;
  v1::CopyCheckpoint& copy = *message.mutable_copy();
  copy.set_trial_id(command.trial.value);
  // Else it was deleted in the same batch.
  if (const auto trial = state.trials.find(command.trial); trial != state.trials.end()) {
    const Study& study = state.studies.at(trial->second.study);
    copy.set_study(study.spec.name);
    copy.set_study_identity(IdentityOf(study));
    copy.set_trial_number(trial->second.number);
  }
  Fill(command.what, NamesOf(command.sources, state), *copy.mutable_from());
  if (command.of >= 0) copy.set_of_trial(command.of);
  return message;
}

v1::ServiceMessage ToMessage(const DropCheckpointsCommand& command, const TunerState&) {
  v1::ServiceMessage message;
  message.mutable_drop()->set_study(command.study);
  message.mutable_drop()->set_trial_number(command.trial_number);
  return message;
}

v1::ServiceMessage ToMessage(const EndSparesCommand& command, const TunerState&) {
  v1::ServiceMessage message;
  message.mutable_end_spares()->set_slot(command.slot);
  return message;
}

v1::ServiceMessage ToMessage(const RegroupCommand& command, const TunerState&) {
  v1::ServiceMessage message;
  message.mutable_to_replica()->set_replica_id(command.replica.value);
  *message.mutable_to_replica()->mutable_command() = ToProto(command.membership);
  return message;
}

v1::ServiceMessage ToMessage(const RanksMeetCommand& command, const TunerState&) {
  v1::ServiceMessage message;
  message.mutable_to_replica()->set_replica_id(command.replica.value);
  message.mutable_to_replica()->mutable_command()->mutable_ranks_meet()->set_address(
      command.address);
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
      ESPALIER_ASSIGN_OR_RETURN(out.event, ToEvent(message.from_replica()));
      return out;
    }
    case v1::AgentMessage::kExited: {
      const v1::ReplicaExited& exited = message.exited();
      out.event = ReplicaExited{.replica = ReplicaId(exited.replica_id()),
                                .exit_code = exited.exit_code(),
                                .signal = exited.signal(),
                                .last_output = exited.last_output(),
                                .error = exited.error(),
                                .checkpoint = CheckpointFailureOf(exited),
                                .node = NodeId(),
                                .agent_stops = exited.agent_stops(),
                                .node_at_fault = exited.node_at_fault(),
                                .rank = exited.rank()};
      return out;
    }
    case v1::AgentMessage::kCopied: {
      const v1::CheckpointCopied& copied = message.copied();
      ESPALIER_RETURN_IF_ERROR(CheckCheckpoint(copied.name(), copied.fingerprint()));
      CheckpointCopied event;
      event.trial = TrialId(copied.trial_id());
      event.what.step = copied.step();
      event.what.name = copied.name();
      event.what.fingerprint = copied.fingerprint();
      event.error = copied.error();
      event.bytes = copied.bytes();
      event.path = copied.path();
      out.event = std::move(event);
      return out;
    }
    case v1::AgentMessage::kStarted: {
      const ReplicaId replica(message.started().replica_id());
      out.event = ReplicaStarted{replica};
      out.details = ReplicaPid{replica, message.started().pid()};
      return out;
    }
    case v1::AgentMessage::kLeaving:
      ESPALIER_RETURN_IF_ERROR(CheckTimeToLeave(message.leaving().within_s()));
      out.event = AgentLeaving{{}, message.leaving().within_s()};
      return out;
    case v1::AgentMessage::kUnusable: {
      AgentSlots event;
      ESPALIER_ASSIGN_OR_RETURN(event.unusable, UnusableSlotsOf(message.unusable()));
      out.event = std::move(event);
      return out;
    }
    case v1::AgentMessage::kHeartbeat:
    case v1::AgentMessage::kOutput:
    case v1::AgentMessage::kCheckpointServer:
    case v1::AgentMessage::KIND_NOT_SET:
      break;
  }
  return out;
}

v1::ServiceMessage ToProto(const Command& command, const TunerState& state) {
  return std::visit([&state](const auto& c) { return ToMessage(c, state); }, command);
}

CommandSources SourcesOf(const Command& command, v1::ServiceMessage& message) {
  if (const auto* start = std::get_if<StartReplicaCommand>(&command)) {
    if (!message.start().has_from()) return {};
    return {start->sources, message.mutable_start()->mutable_from(), message.start().study(),
            message.start().trial_number()};
  }
  if (const auto* copy = std::get_if<CopyCheckpointCommand>(&command)) {
    return {copy->sources, message.mutable_copy()->mutable_from(), message.copy().study(),
            message.copy().trial_number()};
  }
  return {};
}

NodeId NodeOf(const Command& command) {
  return std::visit([](const auto& c) { return c.node; }, command);
}

}  // namespace espalier
