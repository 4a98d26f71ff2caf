#include "tuner/messages/wire/replica_wire.h"

#include "base/shortened.h"
#include "tuner/messages/wire/figures_wire.h"

namespace espalier {
namespace {

void Fill(const ReplicaReady& from, v1::ReplicaMessage& message) {
  v1::Ready& to = *message.mutable_ready();
  to.set_address(from.address);
  to.set_total_steps(from.total_steps);
  to.set_not_rehearsed(from.not_rehearsed);
  v1::BatchBounds& batch = *to.mutable_batch();
  batch.set_initial_batch_size(from.batch.initial);
  batch.set_max_batch_size(from.batch.max_global);
  batch.set_min_atomic_batch_size(from.batch.min_atomic);
  batch.set_max_atomic_batch_size(from.batch.max_atomic);
  batch.set_accumulation(from.batch.accumulation);
  batch.set_max_unsplit_batch_size(from.batch.max_unsplit);
}

void Fill(const ReplicaRegrouped& from, v1::ReplicaMessage& message) {
  v1::Regrouped& to = *message.mutable_regrouped();
  to.set_generation(from.generation);
  to.set_step(from.step);
  to.set_pause_s(from.pause_s);
  to.set_form_s(from.form_s);
  to.set_broadcast_s(from.broadcast_s);
  to.set_transport(from.transport);
}

ReplicaRegrouped Read(const v1::Regrouped& from) {
  return {.generation = from.generation(),
          .step = from.step(),
          .pause_s = from.pause_s(),
          .form_s = from.form_s(),
          .broadcast_s = from.broadcast_s(),
          .transport = from.transport().size() <= kMaxTransport ? from.transport() : ""};
}

void Fill(const ReplicaReport& from, v1::ReplicaMessage& message) {
  v1::Report& to = *message.mutable_report();
  to.set_step(from.step);
  to.set_value(from.value);
  to.set_progress(from.progress);
  to.mutable_extra()->insert(from.extra.begin(), from.extra.end());
}

ReplicaReport Read(const v1::Report& from) {
  return {.step = from.step(),
          .value = from.value(),
          .progress = from.progress(),
          .extra = {from.extra().begin(), from.extra().end()}};
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

ProfileEntry Read(const v1::ProfileEntry& from) {
  return {.key = {from.nodes(), from.replicas(), from.atomic_batch_size()},
          .accumulation_count = from.accumulation_count(),
          .accumulation_time_s = from.accumulation_time_s(),
          .optimizer_count = from.optimizer_count(),
          .optimizer_time_s = from.optimizer_time_s(),
          .sync_time_s = from.sync_time_s()};
}

// Nothing is written of none.
template <typename Message>
void FillChecks(const ReplicaChecks& from, Message& message) {
  if (from == ReplicaChecks{}) return;
  v1::ReplicaChecks& to = *message.mutable_checks();
  to.set_alike(from.alike);
  to.set_norms(from.norms);
  to.set_unlike(from.unlike);
}

ReplicaChecks Read(const v1::ReplicaChecks& from) {
  return {.alike = from.alike(), .norms = from.norms(), .unlike = from.unlike()};
}

void Fill(const ReplicaProgress& from, v1::ReplicaMessage& message) {
  v1::Progress& to = *message.mutable_progress();
  to.set_generation(from.generation);
  to.set_step(from.step);
  to.set_progress(from.progress);
  to.set_epoch(from.epoch);
  to.set_global_batch_size(from.global_batch_size);
  to.set_gradient_sqr(from.noise.sqr);
  to.set_gradient_var(from.noise.var);
  for (const ProfileEntry& entry : from.profile) Fill(entry, *to.add_profile());
  for (const ReplicaTime& time : from.replica_times) {
    v1::ReplicaTime& t = *to.add_replica_times();
    t.set_replica_id(time.replica.value);
    t.set_steps(time.steps);
    t.set_compute_time_s(time.compute_time_s);
  }
  SetFigures(from.figures, to);
  FillChecks(from.checks, to);
}

ReplicaProgress Read(const v1::Progress& from) {
  ReplicaProgress to;
  to.generation = from.generation();
  to.step = from.step();
  to.progress = from.progress();
  to.epoch = from.epoch();
  to.global_batch_size = from.global_batch_size();
  to.noise = {from.gradient_sqr(), from.gradient_var()};
  for (const v1::ProfileEntry& entry : from.profile()) to.profile.push_back(Read(entry));
  for (const v1::ReplicaTime& time : from.replica_times()) {
    to.replica_times.push_back({ReplicaId(time.replica_id()), time.steps(), time.compute_time_s()});
  }
  to.figures = FiguresIn(from);
  to.checks = Read(from.checks());
  return to;
}

void Fill(const ReplicaCheckpoint& from, v1::ReplicaMessage& message) {
  v1::CheckpointSaved& to = *message.mutable_checkpoint();
  to.set_path(from.path);
  to.set_step(from.step);
  to.set_name(from.name);
  to.set_fingerprint(from.fingerprint);
}

ReplicaCheckpoint Read(const v1::CheckpointSaved& from) {
  return {.path = from.path(),
          .step = from.step(),
          .name = from.name(),
          .fingerprint = from.fingerprint()};
}

void Fill(const ReplicaFinished& from, v1::ReplicaMessage& message) {
  v1::Finished& to = *message.mutable_finished();
  if (from.value) to.set_value(*from.value);
  to.set_failure(from.failure);
  FillChecks(from.checks, to);
  to.mutable_unread()->Add(from.unread.begin(), from.unread.end());
}

ReplicaFinished Read(const v1::Finished& from) {
  return {.value = from.has_value() ? std::optional(from.value()) : std::nullopt,
          .failure = from.failure(),
          .checks = Read(from.checks()),
          .unread = {from.unread().begin(), from.unread().end()}};
}

v1::Contact::Kind ToProto(Contact contact) {
  switch (contact) {
    case Contact::kUnknown:
      return v1::Contact::UNKNOWN;
    case Contact::kAnswered:
      return v1::Contact::ANSWERED;
    case Contact::kRefused:
      return v1::Contact::REFUSED;
    case Contact::kSilent:
      return v1::Contact::SILENT;
    case Contact::kMute:
      return v1::Contact::MUTE;
  }
  return v1::Contact::UNKNOWN;
}

// What a newer build may say beside these counts as not tried.
Contact Read(v1::Contact::Kind kind) {
  for (const Contact contact :
       {Contact::kAnswered, Contact::kRefused, Contact::kSilent, Contact::kMute}) {
    if (ToProto(contact) == kind) return contact;
  }
  return Contact::kUnknown;
}

void Fill(const ReplicaStuck& from, v1::ReplicaMessage& message) {
  v1::Stuck& to = *message.mutable_stuck();
  to.set_generation(from.generation);
  to.set_waited_s(from.waited_s);
  for (const ReplicaContact& contact : from.contacts) {
    v1::Contact& added = *to.add_contacts();
    added.set_replica_id(contact.replica.value);
    added.set_address(contact.address);
    added.set_kind(ToProto(contact.contact));
    added.set_error(contact.error);
  }
}

ReplicaStuck Read(const v1::Stuck& from) {
  ReplicaStuck to{from.generation(), from.waited_s()};
  for (const v1::Contact& contact : from.contacts()) {
    to.contacts.push_back({ReplicaId(contact.replica_id()), contact.address(), Read(contact.kind()),
                           contact.error()});
  }
  return to;
}

v1::Forming::Phase ToProto(GroupPhase phase) {
  switch (phase) {
    case GroupPhase::kNone:
      return v1::Forming::NONE;
    case GroupPhase::kMeeting:
      return v1::Forming::MEETING;
    case GroupPhase::kHandingOver:
      return v1::Forming::HANDING_OVER;
    case GroupPhase::kSaving:
      return v1::Forming::SAVING;
  }
  return v1::Forming::NONE;
}

GroupPhase Read(v1::Forming::Phase phase) {
  for (const GroupPhase known :
       {GroupPhase::kMeeting, GroupPhase::kHandingOver, GroupPhase::kSaving}) {
    if (ToProto(known) == phase) return known;
  }
  return GroupPhase::kNone;
}

void Fill(const ReplicaForming& from, v1::ReplicaMessage& message) {
  v1::Forming& to = *message.mutable_forming();
  to.set_generation(from.generation);
  to.set_phase(ToProto(from.phase));
  to.set_bytes(from.bytes);
  to.set_bytes_total(from.bytes_total);
}

ReplicaForming Read(const v1::Forming& from) {
  return {.generation = from.generation(),
          .phase = Read(from.phase()),
          .bytes = from.bytes(),
          .bytes_total = from.bytes_total()};
}

void Fill(const RanksWait& from, v1::ReplicaMessage& message) {
  message.mutable_ranks_wait()->set_address(from.address);
}

void Fill(const RanksFailed& from, v1::ReplicaMessage& message) {
  v1::RanksFailed& to = *message.mutable_ranks_failed();
  to.set_exit_code(from.exit_code);
  to.set_signal(from.signal);
  to.set_ago_s(from.ago_s);
  to.set_noted(from.noted);
}

void Fill(const RanksLeft& from, v1::ReplicaMessage& message) {
  v1::RanksLeft& to = *message.mutable_ranks_left();
  to.set_rank(from.rank);
  to.set_ago_s(from.ago_s);
}

RanksLeft Read(const v1::RanksLeft& from) { return {.rank = from.rank(), .ago_s = from.ago_s()}; }

RanksFailed Read(const v1::RanksFailed& from) {
  return {.exit_code = from.exit_code(),
          .signal = from.signal(),
          .ago_s = from.ago_s(),
          .noted = from.noted()};
}

}  // namespace

v1::ReplicaMessage ToProto(const ReplicaMessage& message) {
  v1::ReplicaMessage out;
  std::visit([&out](const auto& m) { Fill(m, out); }, message);
  return out;
}

v1::ReplicaCommand ToProto(const Membership& membership) {
  v1::ReplicaCommand command;
  v1::Regroup& regroup = *command.mutable_regroup();
  regroup.set_generation(membership.generation);
  regroup.set_abandon(membership.abandon);
  regroup.set_secret(membership.secret);
  for (const Member& member : membership.members) {
    v1::Member& added = *regroup.add_members();
    added.set_replica_id(member.replica.value);
    added.set_node_id(member.node.value);
    added.set_address(member.address);
  }
  return command;
}

v1::ReplicaCommand ToProto(const Adoption& adoption) {
  v1::ReplicaCommand command;
  command.mutable_adopt()->set_replica_id(adoption.replica.value);
  command.mutable_adopt()->set_checkpoint(adoption.checkpoint);
  return command;
}

std::optional<ReplicaMessage> FromProto(const v1::ReplicaMessage& message) {
  switch (message.kind_case()) {
    case v1::ReplicaMessage::kReady:
      return FromProto(message.ready());
    case v1::ReplicaMessage::kRegrouped:
      return Read(message.regrouped());
    case v1::ReplicaMessage::kReport:
      return Read(message.report());
    case v1::ReplicaMessage::kProgress:
      return Read(message.progress());
    case v1::ReplicaMessage::kCheckpoint:
      return Read(message.checkpoint());
    case v1::ReplicaMessage::kFinished:
      return Read(message.finished());
    case v1::ReplicaMessage::kStuck:
      return Read(message.stuck());
    case v1::ReplicaMessage::kForming:
      return Read(message.forming());
    case v1::ReplicaMessage::kRanksWait:
      return FromProto(message.ranks_wait());
    case v1::ReplicaMessage::kRanksFailed:
      return Read(message.ranks_failed());
    case v1::ReplicaMessage::kRanksLeft:
      return Read(message.ranks_left());
    case v1::ReplicaMessage::kHeartbeat:
    case v1::ReplicaMessage::kParked:
    case v1::ReplicaMessage::kGreeting:
    case v1::ReplicaMessage::KIND_NOT_SET:
      break;
  }
  return std::nullopt;
}

RanksWait FromProto(const v1::RanksWait& wait) { return {.address = wait.address()}; }

ReplicaReady FromProto(const v1::Ready& ready) {
  const v1::BatchBounds& batch = ready.batch();
  return {.address = ready.address(),
          .batch = {.initial = batch.initial_batch_size(),
                    .max_global = batch.max_batch_size(),
                    .min_atomic = batch.min_atomic_batch_size(),
                    .max_atomic = batch.max_atomic_batch_size(),
                    .accumulation = batch.accumulation(),
                    .max_unsplit = batch.max_unsplit_batch_size()},
          .total_steps = ready.total_steps(),
          .not_rehearsed = Shortened(ready.not_rehearsed(), kMaxNotRehearsed)};
}

Membership FromProto(const v1::Regroup& regroup) {
  Membership membership;
  membership.generation = regroup.generation();
  membership.abandon = regroup.abandon();
  membership.secret = regroup.secret();
  for (const v1::Member& m : regroup.members()) {
    membership.members.push_back({ReplicaId(m.replica_id()), NodeId(m.node_id()), m.address()});
  }
  return membership;
}

Adoption FromProto(const v1::Adopt& adopt) {
  return {.replica = ReplicaId(adopt.replica_id()), .checkpoint = adopt.checkpoint()};
}

}  // namespace espalier
