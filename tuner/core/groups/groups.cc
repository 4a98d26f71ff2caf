#include "tuner/core/groups/groups.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/pool/allocation_figures.h"
#include "allocator/pool/job_check.h"
#include "allocator/pool/slot_ledger.h"
#include "base/check.h"

namespace espalier {

namespace {

constexpr std::int64_t kReplicaIdBlock = 1000;  // ids that one commit reserves

}  // namespace

ReplicaId Groups::NewReplicaId() {
  if (next_replica_ >= turn_.state().replica_ids_below) {
    turn_.Emit(ReplicaIdsReserved{next_replica_ + kReplicaIdBlock});
  }
  return ReplicaId(next_replica_++);
}

TrialTimeouts Groups::TimeoutsOf(const Trial& trial) const {
  return Merge(turn_.state().studies.at(trial.study).spec.timeouts, options_.timeouts);
}

ReplicaId Groups::StartReplica(const Trial& trial, NodeId node, int slot,
                               std::vector<int> more_slots, const NodeOfRanks& ranks) {
  const ReplicaId id = NewReplicaId();
  Replica& replica = pool_.replicas.emplace(id, Replica(id, trial.id, node, slot)).first->second;
  replica.more_slots = std::move(more_slots);
  pool_.SlotsChange(trial.id);
  const Group& group = pool_.groups.at(trial.id);
  replica.untried = group.elastic;
  // Only an elastic program says Ready; whether this one is, its first replica will show.
  if (group.elastic)
    pool_.replicas.SetDeadline(replica, After(turn_.now(), TimeoutsOf(trial).start_s));
  // A replica that joins others is handed their state.
  StartReplicaCommand start{node, id, trial.id, slot};
  start.more_slots = replica.more_slots;
  start.ranks_of_nodes = ranks.ranks_of_nodes;
  start.node_rank = ranks.node_rank;
  start.joins = group.elastic && copies_.HasSource(trial.id);
  if (start.joins) start.replicas = TotalSlots(group.target);
  if (!start.joins) {
    replica.started_from = CheckpointKey(trial);
    if (trial.newest_checkpoint->known()) {
      start.from = *trial.newest_checkpoint;
      start.sources = copies_.HoldersOf(trial);
      replica.sources = start.sources;
    }
  }
  turn_.Send(std::move(start));
  return id;
}

void Groups::StopReplica(Replica& replica, double grace_s) {
  replica.stopping = true;
  replica.grace_s = grace_s;
  // Said again until the exit is seen: the command may be lost with the agent's stream.
  pool_.replicas.SetDeadline(replica, After(turn_.now(), grace_s + options_.lease_s));
  pool_.reconcile.insert(replica.trial);
  turn_.Send(StopReplicaCommand{replica.node, replica.id, grace_s});
}

void Groups::SeeOff(Replica& replica, double grace_s) {
  const Trial& trial = turn_.TrialAt(replica.trial);
  Time until = After(turn_.now(), TimeoutsOf(trial).pause_s);
  // Where the moment is known at which the node is gone, it can still be stopped before.
  const auto node = pool_.nodes.find(replica.node);
  if (node != pool_.nodes.end() && node->second.ends) {
    until = std::min(until, After(*node->second.ends, -grace_s));
  }
  if (!trial.ranks->saving.asked() || until <= turn_.now()) return StopReplica(replica, grace_s);
  replica.leaving = true;
  replica.grace_s = grace_s;
  pool_.replicas.SetDeadline(replica, until);
  pool_.reconcile.insert(replica.trial);
}

void Groups::Regroup(TrialId id, std::vector<ReplicaId> members, bool abandon, bool after_loss) {
  ESPALIER_CHECK(!members.empty(), "a regroup to nobody is a pause");
  Group& group = pool_.groups.at(id);
  const Trial& trial = turn_.TrialAt(id);
  const double stall_s = StallOf(id);
  turn_.Emit(GenerationAdvanced{id, trial.generation + 1});
  Membership membership{trial.generation, {}, abandon};
  for (const ReplicaId member : members) {
    const Replica& replica = pool_.replicas.at(member);
    membership.members.push_back({member, replica.node, replica.address});
  }
  std::set<ReplicaId> told(members.begin(), members.end());
  const bool tried_stay = std::any_of(told.begin(), told.end(), [this](ReplicaId member) {
    return !pool_.replicas.at(member).untried;
  });
  group.moved = group.moved && !tried_stay;
  for (const ReplicaId old : group.members) {
    const auto it = pool_.replicas.find(old);
    if (it == pool_.replicas.end() || told.contains(old)) continue;
    it->second.leaving = true;
    group.moved = group.moved || (!tried_stay && !it->second.untried);
    pool_.replicas.SetDeadline(it->second, After(turn_.now(), stall_s));
    it->second.grace_s = turn_.StudyAt(trial.study).spec.stop_grace_s;
    told.insert(old);
  }
  for (const ReplicaId to : told) {
    turn_.Send(RegroupCommand{pool_.replicas.at(to).node, to, membership});
  }
  // A regroup that overtakes another counts from the group that last trained.
  if (!group.forming) group.replicas_before = static_cast<int>(group.members.size());
  group.after_loss = after_loss || (group.forming && group.after_loss);
  group.members = std::move(members);
  group.forming = true;
  group.moved_at = turn_.now();
  pool_.timed.insert(id);
  pool_.reconcile.insert(id);
  group.awaited = {group.members.begin(), group.members.end()};
  group.longest_pause = {};
  group.stuck.clear();
  group.stuck_ends.reset();
  group.contacts.clear();
  group.contacts_end.reset();
}

void Groups::FinishForming(TrialId id) {
  Group& group = pool_.groups.at(id);
  group.forming = false;
  pool_.reconcile.insert(id);
  std::set<NodeId> nodes;
  for (const ReplicaId member : group.members) {
    if (const auto r = pool_.replicas.find(member); r != pool_.replicas.end())
      nodes.insert(r->second.node);
  }
  pool_.faults.WorkTogether(nodes);
  const int replicas = static_cast<int>(group.members.size());
  if (group.replicas_before > 0) {
    const ReplicaRegrouped& longest = group.longest_pause;
    turn_.Emit(ResizeMeasured{id,
                              {.at = turn_.now(),
                               .generation = turn_.TrialAt(id).generation,
                               .from_replicas = group.replicas_before,
                               .to_replicas = replicas,
                               .pause_s = longest.pause_s,
                               .after_loss = group.after_loss,
                               .form_s = longest.form_s,
                               .broadcast_s = longest.broadcast_s}});
  }
  const std::string& transport = group.longest_pause.transport;
  if (!transport.empty() && transport != group.transport) {
    group.transport = transport;
    turn_.Decide(turn_.TrialAt(id), DecisionKind::kStudy, replicas, replicas,
                 absl::StrCat("gradients go ", transport));
  }
  group.after_loss = false;
  group.last_resize = turn_.now();
  group.form_timeouts = 0;
  group.stragglers.Reset(turn_.now());
  turn_.Wake();
}

float Groups::GoodputIn(const TrainingFigures& figures) {
  return KeptFigure(figures[Figure::kGoodput]);
}

// Requires that the group has told its progress.
TrainingFigures Groups::FiguresOf(TrialId id, const Group& group) const {
  const ReplicaProgress& progress = *group.progress;
  TrainingFigures figures = progress.figures;
  figures[Figure::kStepTime] = group.step_time_s;
  figures[Figure::kSyncShare] = group.sync_share;
  figures[Figure::kBatchSize] = static_cast<double>(progress.global_batch_size);
  if (group.noise.sqr > 0) {
    figures[Figure::kNoiseScale] =
        static_cast<double>(group.batch.initial) * group.noise.var / group.noise.sqr;
  }
  double modelled_goodput = 0;
  const int replicas = static_cast<int>(group.members.size());
  const std::optional<std::string> gpu_type = pool_.GpuTypeOf(group);
  const auto fitted = gpu_type ? speeds_.FittedFor(id, *gpu_type) : std::nullopt;
  if (fitted && replicas > 0 && CheckModel("", *fitted, group.noise, group.batch).ok()) {
    const GoodputModel model(*fitted, group.noise, group.batch);
    std::set<NodeId> nodes;
    for (const ReplicaId member : group.members) {
      if (const auto r = pool_.replicas.find(member); r != pool_.replicas.end())
        nodes.insert(r->second.node);
    }
    const BatchChoice choice = model.AtFixedGlobalBatch(std::max(1, static_cast<int>(nodes.size())),
                                                        replicas, progress.global_batch_size);
    modelled_goodput = choice.goodput;
    figures[Figure::kThroughput] = choice.throughput;
  }
  // What the trial itself works with is nearer to the truth than our model of it.
  if (!(figures[Figure::kGoodput] > 0)) figures[Figure::kGoodput] = modelled_goodput;
  return figures;
}

}  // namespace espalier
