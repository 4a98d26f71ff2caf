#include "trial_runner/control/control_wire.h"

#include "control.pb.h"

namespace espalier {
namespace {

void Fill(const ReplicaReady& from, v1::ReplicaMessage& message) {
  v1::Ready& to = *message.mutable_ready();
  to.set_address(from.address);
  to.set_total_steps(from.total_steps);
  v1::BatchBounds& batch = *to.mutable_batch();
  batch.set_initial_batch_size(from.bounds.initial);
  batch.set_max_batch_size(from.bounds.max_global);
  batch.set_min_atomic_batch_size(from.bounds.min_atomic);
  batch.set_max_atomic_batch_size(from.bounds.max_atomic);
  batch.set_accumulation(from.bounds.accumulation);
  batch.set_max_unsplit_batch_size(from.bounds.max_unsplit);
}

void Fill(const ReplicaRegrouped& from, v1::ReplicaMessage& message) {
  v1::Regrouped& to = *message.mutable_regrouped();
  to.set_generation(from.generation);
  to.set_step(from.step);
  to.set_pause_s(from.pause_s);
  to.set_form_s(from.form_s);
  to.set_broadcast_s(from.broadcast_s);
  to.set_lost_step_s(from.lost_step_s);
}

void Fill(const ReplicaReport& from, v1::ReplicaMessage& message) {
  v1::Report& to = *message.mutable_report();
  to.set_generation(from.generation);
  to.set_step(from.step);
  to.set_value(from.value);
  to.set_progress(from.progress);
  to.mutable_extra()->insert(from.extra.begin(), from.extra.end());
}

void Fill(const ProfileEntry& from, v1::ProfileEntry& to) {
  to.set_nodes(from.key.nodes);
  to.set_replicas(from.key.replicas);
  to.set_atomic_batch_size(from.key.atomic_batch_size);
  to.set_accumulation_count(from.accumulation_count);
  to.set_accumulation_time_s(from.accumulation_time_s);
  to.set_optimizer_count(from.optimizer_count);
  to.set_optimizer_time_s(from.optimizer_time_s);
  to.set_sync_time_s(from.sync_time_s);
}

void Fill(const ReplicaProgress& from, v1::ReplicaMessage& message) {
  v1::Progress& to = *message.mutable_progress();
  to.set_generation(from.generation);
  to.set_step(from.step);
  to.set_progress(from.progress);
  to.set_epoch(from.epoch);
  to.set_global_batch_size(from.global_batch_size);
  to.set_atomic_batch_size(from.atomic_batch_size);
  to.set_accumulation_steps(from.accumulation_steps);
  to.set_learning_rate(from.learning_rate);
  to.set_gradient_sqr(from.gradient_sqr);
  to.set_gradient_var(from.gradient_var);
  for (const ProfileEntry& entry : from.profile) Fill(entry, *to.add_profile());
  for (const ReplicaTime& time : from.replica_times) {
    v1::ReplicaTime& t = *to.add_replica_times();
    t.set_replica_id(time.replica.value);
    t.set_steps(time.steps);
    t.set_compute_time_s(time.compute_time_s);
  }
  to.set_goodput(from.goodput);
  to.set_memory_bytes(from.memory_bytes);
  to.set_device_memory_bytes(from.device_memory_bytes);
  to.set_skipped_steps(from.skipped_steps);
  to.set_loss_scale(from.loss_scale);
}

void Fill(const ReplicaCheckpoint& from, v1::ReplicaMessage& message) {
  v1::CheckpointSaved& to = *message.mutable_checkpoint();
  to.set_generation(from.generation);
  to.set_path(from.path);
  to.set_step(from.step);
}

void Fill(const ReplicaFinished& from, v1::ReplicaMessage& message) {
  v1::Finished& to = *message.mutable_finished();
  to.set_generation(from.generation);
  if (from.value) to.set_value(*from.value);
  to.set_failure(from.failure);
}

void Fill(const ReplicaStuck& from, v1::ReplicaMessage& message) {
  v1::Stuck& to = *message.mutable_stuck();
  to.set_generation(from.generation);
  to.set_waited_s(from.waited_s);
}

}  // namespace

std::string EncodeReplicaWord(const ReplicaWord& word) {
  v1::ReplicaMessage message;
  std::visit([&](const auto& w) { Fill(w, message); }, word);
  return message.SerializeAsString();
}

std::string EncodeHeartbeat() {
  v1::ReplicaMessage message;
  message.mutable_heartbeat();
  return message.SerializeAsString();
}

std::string EncodeParked() {
  v1::ReplicaMessage message;
  message.mutable_parked();
  return message.SerializeAsString();
}

absl::StatusOr<ReplicaOrder> DecodeOrder(const std::string& bytes) {
  v1::ReplicaCommand command;
  if (!command.ParseFromString(bytes) || !(command.has_regroup() || command.has_adopt())) {
    return absl::InvalidArgumentError("not a ReplicaCommand with a Regroup or Adopt");
  }
  if (command.has_adopt()) {
    return Adoption{ReplicaId(command.adopt().replica_id()), command.adopt().checkpoint(), 0};
  }
  const v1::Regroup& regroup = command.regroup();
  Membership membership;
  membership.generation = regroup.generation();
  membership.abandon = regroup.abandon();
  for (const v1::Member& m : regroup.members()) {
    membership.members.push_back({ReplicaId(m.replica_id()), NodeId(m.node_id()), m.address()});
  }
  return membership;
}

}  // namespace espalier
