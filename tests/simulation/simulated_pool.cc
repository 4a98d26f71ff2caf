#include "tests/simulation/simulated_pool.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace espalier {

namespace {

constexpr char kClients[] = "clients";

CoreOptions SimulatedOptions() {
  CoreOptions options;
  options.lease_s = 5;
  options.timeouts.start_s = 30;
  options.slot_lease_s = 4;
  return options;
}

double LossAt(const Trial& trial, std::int64_t step) {
  const double x = std::get<double>(trial.parameters.front().value);
  return (x - 0.3) * (x - 0.3) + 1.0 / static_cast<double>(step + 1);
}

}  // namespace

SimulatedPool::SimulatedPool(std::uint64_t seed, int nodes, int slots_per_node, Faults faults,
                             std::int64_t last_step)
    : last_step_(last_step), random_(seed), faults_(faults), storage_(MakeMemoryStorage()) {
  core_ = std::make_unique<Core>(TunerState{}, SimulatedOptions());
  for (int i = 0; i < nodes; ++i) {
    SimNode node;
    node.name = absl::StrCat("node-", i);
    node.slots = slots_per_node;
    nodes_.push_back(std::move(node));
    for (int slot = 0; slot < slots_per_node && faults.slow_slot > 0; ++slot) {
      if (random_.Uniform() >= faults.slow_slot) continue;
      slow_slots_.emplace(i, slot);
      ++met_["slow slot"];
    }
    const auto index = static_cast<std::size_t>(i);
    OnStream(index, After(agenda_.now(), random_.Uniform(0, 0.1)), [this, index] { Dial(index); });
  }
  agenda_.In(0.2, [this] { KeepTicking(); });
}

StudySpec SimulatedPool::MakeStudy(const std::string& name, bool elastic, BatchMode mode) const {
  StudySpec spec;
  spec.name = elastic ? absl::StrCat(name, "-elastic") : name;
  spec.space = *SearchSpace::FromJson(
      R"({"x": {"_type": "uniform", "_value": [0, 1]}, "n": {"_type": "choice", "_value": [1, 2]}})");
  spec.command = {"program"};
  spec.directory = "/";
  spec.max_trials = 24;
  spec.sampler = {"random", {}};
  spec.pruner = {"asha", {{"eta", 2}}};
  spec.max_consecutive_failures = 1000;
  spec.stop_grace_s = 1;
  spec.seed = 7;
  spec.batch_mode = mode;
  return spec;
}

RanksWait SimulatedPool::MeetingOf(const Process& process) {
  return {process.node_rank == 0 ? absl::StrCat("host:", process.id.value) : ""};
}

void SimulatedPool::OnStream(std::size_t index, Time at, std::function<void()> happening) {
  agenda_.Add(at, [this, index, session = nodes_[index].session, act = std::move(happening)] {
    if (nodes_[index].session == session) act();
  });
}

void SimulatedPool::Fail(const std::string& what) {
  if (failure_.empty()) failure_ = absl::StrCat("at ", now_s(), " s, step ", steps_, ": ", what);
}

std::size_t SimulatedPool::NodeIndex(NodeId id) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].id == id) return i;
  }
  return nodes_.size();
}

SimulatedPool::Process* SimulatedPool::FindProcess(ReplicaId id) {
  for (SimNode& node : nodes_) {
    if (const auto it = node.processes.find(id); it != node.processes.end()) {
      return it->second.exited ? nullptr : &it->second;
    }
  }
  return nullptr;
}

Reply SimulatedPool::Client(const Event& event) { return StepCore(event); }

Reply SimulatedPool::StepCore(const Event& event) {
  ++steps_;
  StepResult result = core_->Handle(agenda_.now(), event);
  const bool settles = faults_.together == 0 || random_.Uniform() >= faults_.together;
  if (settles) Append(core_->Settle(agenda_.now()), result);
  const bool crash = random_.Uniform() < faults_.crash_service;
  if (crash && random_.Uniform() < 0.5) {
    ++met_["service crashed before the commit"];
    RestartService();  // before the commit: the step never was
    return {absl::UnavailableError("crashed")};
  }
  if (!storage_->Commit(result.changes).ok()) Fail("commit failed");
  CheckNewest(result.changes);
  for (const Change& change : result.changes) {
    committed_.push_back(change);
    if (const auto* value = std::get_if<ValueReported>(&change)) {
      acknowledged_.emplace(value->id, value->value.step);
    }
    if (const auto* held = std::get_if<SlotsHeldChanged>(&change)) CheckGrant(*held);
    if (const auto* generation = std::get_if<GenerationAdvanced>(&change)) {
      if (generation->generation <= generations_[generation->id]) Fail("a generation came twice");
      generations_[generation->id] = generation->generation;
      saved_before_[{generation->id, generation->generation}] = newest_[generation->id].step;
    }
  }
  if (settles) CheckInvariants();
  if (crash) {
    ++met_["service crashed after the commit"];
    RestartService();  // committed, but nobody was told
    return {absl::UnavailableError("crashed")};
  }
  if (const auto* hello = std::get_if<AgentHello>(&event); hello && result.reply.status.ok()) {
    // The welcome goes first on the stream.
    for (SimNode& node : nodes_) {
      if (node.name != hello->node_name) continue;
      node.id = result.reply.node();
      node.connected = true;
    }
  }
  for (const Command& command : result.commands) Send(command);
  return result.reply;
}

void SimulatedPool::RestartService() {
  ++restarts_;
  auto loaded = storage_->Load();
  if (!loaded.ok()) return Fail("load failed");
  core_ = std::make_unique<Core>(*std::move(loaded), SimulatedOptions());
  for (std::size_t i = 0; i < nodes_.size(); ++i) BreakStream(i);
}

void SimulatedPool::BreakStream(std::size_t index) {
  SimNode& node = nodes_[index];
  if (!node.up) return;
  node.connected = false;
  ++node.session;
  const Time at = After(agenda_.now(), random_.Uniform(0.05, 1.0));
  OnStream(index, at, [this, index] { Dial(index); });
}

void SimulatedPool::KeepTicking() {
  StepCore(Tick{});
  agenda_.In(0.5, [this] { KeepTicking(); });
}

void SimulatedPool::Resume(const std::string& study) {
  if (StepCore(ResumeStudy{study, 0, 0}).status.ok()) return;
  agenda_.In(1, [this, study] { Resume(study); });
}

void SimulatedPool::Dial(std::size_t index) {
  SimNode& node = nodes_[index];
  if (!node.up || node.connected) return;
  AgentHello hello{node.name, node.slots, {}};
  hello.clones = true;
  for (const auto& [id, process] : node.processes) {
    hello.replicas.push_back(
        {id, process.trial, process.slot, process.generation, process.ready, process.started_from});
    hello.replicas.back().more_slots = process.more_slots;
    if (process.waits) hello.replicas.back().ranks_wait = MeetingOf(process);
  }
  hello.spans_launches = true;
  hello.checkpoints = HeldOn(index);
  const int restarts = restarts_;
  const Reply reply = StepCore(hello);
  if (restarts != restarts_) return;  // the service crashed meanwhile; a new dial is on its way
  if (!reply.status.ok()) return Fail(absl::StrCat("hello refused: ", reply.status.message()));
  for (const auto& [from, event] : node.unacknowledged) Transmit(index, from, event);
}

void SimulatedPool::Send(const Command& command) {
  const NodeId to = std::visit([](const auto& c) { return c.node; }, command);
  const std::size_t index = NodeIndex(to);
  if (index == nodes_.size() || !nodes_[index].connected) return;
  // One delay for all: a stream keeps its order.
  OnStream(index, After(agenda_.now(), 0.002), [this, index, command] {
    std::visit([this, index](const auto& c) { Do(index, c); }, command);
  });
}

void SimulatedPool::Emit(std::size_t index, ReplicaId from, Event event) {
  SimNode& node = nodes_[index];
  node.unacknowledged.emplace_back(from, std::move(event));
  if (node.connected) Transmit(index, from, node.unacknowledged.back().second);
}

// A stream keeps its order: nothing arrives before what was sent earlier.
void SimulatedPool::Transmit(std::size_t index, ReplicaId from, const Event& event) {
  SimNode& node = nodes_[index];
  node.last_arrival = std::max(After(node.last_arrival, 1e-6), After(agenda_.now(), 0.002));
  OnStream(index, node.last_arrival, [this, index, from, event] { Arrive(index, from, event); });
}

void SimulatedPool::Arrive(std::size_t index, ReplicaId from, const Event& event) {
  const int restarts = restarts_;
  StepCore(event);
  if (restarts != restarts_) return;
  if (random_.Uniform() < faults_.double_message) {
    ++met_["message doubled"];
    StepCore(event);
  }
  if (restarts != restarts_) return;
  SimNode& node = nodes_[index];
  if (!node.unacknowledged.empty()) node.unacknowledged.pop_front();
  if (std::holds_alternative<ReplicaExited>(event)) node.processes.erase(from);
}

void SimulatedPool::Exit(std::size_t index, ReplicaId id, int code, int signal,
                         const std::string& error, CheckpointFailure checkpoint) {
  Process& process = nodes_[index].processes.at(id);
  if (process.exited) return;
  process.exited = true;
  Emit(index, id, ReplicaExited{id, code, signal, "last words", error, checkpoint});
}

// The slot is free, and held by nobody but the trial.
void SimulatedPool::CheckStart(std::size_t index, const StartReplicaCommand& start) {
  const SimNode& node = nodes_[index];
  std::vector<int> given = start.more_slots;
  given.push_back(start.slot);
  for (const int slot : given) {
    if (slot >= node.slots) Fail(absl::StrCat("there is no slot ", slot, " of ", node.name));
    for (const auto& [id, other] : node.processes) {
      if (!other.exited && other.Holds(slot)) {
        Fail(absl::StrCat("slot ", slot, " of ", node.name, " was given out twice"));
      }
    }
    for (const auto& [id, trial] : state().trials) {
      if (trial.spans.empty() || trial.spans.back().to != Time{} || id == start.trial) continue;
      const std::vector<Slot>& slots = trial.spans.back().slots;
      if (std::find(slots.begin(), slots.end(), Slot{start.node, slot}) != slots.end()) {
        Fail(absl::StrCat("slot ", slot, " of ", node.name, " is held by another trial"));
      }
    }
  }
}

void SimulatedPool::Do(std::size_t index, const StartReplicaCommand& start) {
  CheckStart(index, start);
  SimNode& node = nodes_[index];
  Process process;
  process.id = start.replica;
  process.trial = start.trial;
  process.slot = start.slot;
  process.more_slots = start.more_slots;
  process.elastic =
      state().studies.at(state().trials.at(start.trial).study).spec.name.ends_with("-elastic");
  process.started_from = start.from.fingerprint;
  if (!start.ranks_of_nodes.empty()) process.node_rank = start.node_rank;
  if (faults_.fail_joining > 0 && start.joins && random_.Uniform() < faults_.fail_joining) {
    process.fails_after = static_cast<int>(random_.Below(8));
  }
  for (DiskFile& file : node.disk[start.trial]) file.fetched = false;
  if (IsHereAndSound(index, start.trial, start.from.fingerprint)) {
    process.step = start.from.step;
  } else if (start.from.known()) {
    process.fetching = start;
  }
  if (!node.processes.emplace(start.replica, process).second) {
    return Fail("a replica id was used twice");
  }
  agenda_.In(random_.Uniform(0.05, 0.5), [this, index, id = process.id] { Work(index, id); });
}

void SimulatedPool::Do(std::size_t index, const RanksMeetCommand& meet) {
  const auto it = nodes_[index].processes.find(meet.replica);
  if (it == nodes_[index].processes.end() || it->second.exited || it->second.met) return;
  ++met_["ranks met"];
  it->second.met = true;
}

void SimulatedPool::Do(std::size_t index, const RegroupCommand& regroup) {
  const auto it = nodes_[index].processes.find(regroup.replica);
  if (it == nodes_[index].processes.end() || it->second.exited) return;
  Process& process = it->second;
  if (process.hung) return;
  if (process.regroup && process.regroup->generation >= regroup.membership.generation) return;
  CountHandover(process);
  process.regroup = regroup.membership;
  if (!regroup.membership.members.empty()) {
    return TryForm(process.trial, regroup.membership.generation);
  }
  SaveCheckpoint(index, process);
  Exit(index, process.id, 0, 0);
}

void SimulatedPool::Do(std::size_t index, const StopReplicaCommand& stop) {
  const auto it = nodes_[index].processes.find(stop.replica);
  if (it == nodes_[index].processes.end() || it->second.exited || it->second.stopping) return;
  it->second.stopping = true;
  agenda_.In(random_.Uniform(0, stop.grace_s), [this, index, id = it->first] { Work(index, id); });
}

// The group of a generation forms when all its members have been told and live.
void SimulatedPool::TryForm(TrialId trial, std::int64_t generation) {
  std::vector<Member> members;
  for (SimNode& node : nodes_) {
    for (auto& [id, process] : node.processes) {
      if (!process.exited && process.trial == trial && process.regroup &&
          process.regroup->generation == generation) {
        members = process.regroup->members;
      }
    }
  }
  std::int64_t furthest = 0;
  if (members.size() > 1 && random_.Uniform() < faults_.cut_off) {
    cut_off_.emplace(trial, generation);
    ++met_["group cut off"];
  }
  for (const Member& member : members) {
    const Process* process = FindProcess(member.replica);
    if (process == nullptr || !process->regroup || process->regroup->generation != generation)
      return;
    furthest = std::max(furthest, process->step);
  }
  CutSome(members);
  if (IsCut(members)) return;
  const auto for_each_told = [&](const std::function<void(std::size_t, Process&)>& act) {
    for (std::size_t index = 0; index < nodes_.size(); ++index) {
      for (auto& [id, process] : nodes_[index].processes) {
        if (!process.exited && process.trial == trial && process.regroup &&
            process.regroup->generation == generation) {
          act(index, process);
        }
      }
    }
  };
  for_each_told([&](std::size_t index, Process& process) {
    if (!process.regroup->RankOf(process.id)) Exit(index, process.id, 0, 0);
  });
  if (!StateHasMoved(trial, generation, members.size())) return;
  CheckGroupStart(trial, generation, furthest);
  for_each_told([&](std::size_t index, Process& process) {
    process.generation = generation;
    process.step = furthest;
    Emit(index, process.id, FromReplica{process.id, ReplicaRegrouped{generation, furthest, 0.01}});
  });
}

// Whether a group that has formed cannot take a step: somebody is dead, hangs or is cut off.
bool SimulatedPool::WaitsInVain(const Process& process) {
  if (process.regroup->members.size() < 2) return false;
  if (cut_off_.contains({process.trial, process.generation})) return true;
  return std::any_of(process.regroup->members.begin(), process.regroup->members.end(),
                     [this](const Member& member) {
                       const Process* other = FindProcess(member.replica);
                       return other == nullptr || other->hung;
                     });
}

void SimulatedPool::TellProgress(std::size_t index, const Process& process) {
  constexpr std::int64_t kSteps = 10;
  ReplicaProgress progress;
  progress.generation = process.generation;
  progress.step = kSteps * process.step;
  progress.global_batch_size = 32;
  for (const Member& member : process.regroup->members) {
    const Process* other = FindProcess(member.replica);
    if (other == nullptr) return;
    const double pace = slow_slots_.contains({NodeIndex(member.node), other->slot}) ? 3 : 1;
    progress.replica_times.push_back(
        {member.replica, kSteps, 0.1 * pace * random_.Uniform(1, 1.1)});
  }
  const int replicas = static_cast<int>(process.regroup->members.size());
  if (faults_.profiles) {
    progress.profile.push_back({{1, replicas, 32 / replicas}, 0, 0, kSteps, 0.2 / replicas, 0.01});
  }
  Emit(index, process.id, FromReplica{process.id, std::move(progress)});
}

// A process gets on with its life: becomes ready, or reports its next value, or ends.
void SimulatedPool::Work(std::size_t index, ReplicaId id) {
  const auto it = nodes_[index].processes.find(id);
  if (it == nodes_[index].processes.end() || it->second.exited) return;
  Process& process = it->second;
  if (process.stopping) return Exit(index, id, -1, process.hung ? 9 : 15);
  if (process.hung) return;
  if (random_.Uniform() < faults_.crash_program) {
    ++met_["program crashed"];
    if (process.met) Emit(index, id, FromReplica{id, RanksFailed{.exit_code = 1, .ago_s = 0.2}});
    return Exit(index, id, 1, 0);
  }
  if (process.fails_after && (*process.fails_after)-- == 0) {
    ++met_["joining failed"];
    return Exit(index, id, 1, 0);
  }
  agenda_.In(random_.Uniform(0.1, 0.4), [this, index, id] { Work(index, id); });
  if (process.fetching) return GoOnFetching(index, process);
  if (process.node_rank && !process.waits) {
    process.waits = true;
    return Emit(index, id, FromReplica{id, MeetingOf(process)});
  }
  // Those of other nodes train with the ranks of the first one, which tells of it.
  if (process.node_rank && (!process.met || *process.node_rank > 0)) return;
  if (process.elastic && !process.ready) {
    process.ready =
        ReplicaReady{absl::StrCat("host:", id.value), {32, 32, 1, 32, true}, last_step_};
    return Emit(index, id, FromReplica{id, *process.ready});
  }
  const bool trains =
      !process.elastic || (process.regroup && process.generation == process.regroup->generation);
  const bool in_group = process.elastic && process.regroup && !process.regroup->members.empty();
  if (in_group && !cuts_.empty()) {
    if (SaysWhomItCannotReach(index, process)) return;
    if (!trains) return TryForm(process.trial, process.regroup->generation);
    if (IsCut(process.regroup->members)) return;  // the other side knows why it gets no further
  }
  if (process.elastic && trains && WaitsInVain(process)) {
    return Emit(index, id, FromReplica{id, ReplicaStuck{process.generation, 3}});
  }
  const bool rank0 = !process.elastic || (trains && !process.regroup->members.empty() &&
                                          process.regroup->members.front().replica == id);
  if (!rank0) return;
  if (process.step == last_step_) {
    const TrialId trial = process.trial;
    if (process.elastic) Emit(index, id, FromReplica{id, ReplicaFinished{std::nullopt}});
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (auto& [other, p] : nodes_[i].processes) {
        if (p.trial == trial && (!process.elastic || p.generation == process.generation)) {
          Exit(i, other, 0, 0);
        }
      }
    }
    return;
  }
  ++process.step;
  const Trial& trial = state().trials.at(process.trial);
  // Trials of the second choice have larger batches, and make less progress in a step.
  const bool large = std::get<std::int64_t>(trial.parameters.back().value) == 2;
  const double progress = static_cast<double>(process.step) * (large ? 60 : 100);
  Emit(index, id,
       FromReplica{id, ReplicaReport{process.step, LossAt(trial, process.step), progress}});
  if (!process.elastic) return;
  for (const Member& member : process.regroup->members) {
    if (Process* other = FindProcess(member.replica)) other->step = process.step;
  }
  TellProgress(index, process);
  if (process.step % 3 == 0) SaveCheckpoint(index, process);
}

// A client does one thing or the other, or is silent for so long that it loses what it holds.
void SimulatedPool::ActAsClient() {
  constexpr std::size_t kMaxTrials = 5;
  const Study* study = state().FindStudy(kClients);
  if (study == nullptr) {
    StudySpec spec;
    spec.name = kClients;
    spec.kind = StudyKind::kByClients;
    StepCore(CreateStudy{spec, true});
    return;
  }
  if (client_trials_.size() < kMaxTrials) {
    const Reply reply = StepCore(CreateTrial{study->id, nullptr});
    if (reply.status.ok()) client_trials_.push_back(reply.trial());
    return;
  }
  const auto chosen =
      client_trials_.begin() + static_cast<std::ptrdiff_t>(random_.Below(client_trials_.size()));
  const TrialId trial = *chosen;
  const double what = random_.Uniform();
  if (what < 0.4) {
    StepCore(AcquireSlots{trial, 1 + static_cast<int>(random_.Below(3)), "",
                          random_.Uniform() < 0.5 ? 0 : 2.0});
  } else if (what < 0.7) {
    StepCore(RenewSlots{trial});
  } else if (what < 0.85) {
    StepCore(ReleaseSlots{trial});
  } else {
    client_trials_.erase(chosen);
    StepCore(SetTrialState{trial, TrialState::kComplete, {1}});
  }
}

// What a client gets is there, and nobody is on it any more.
void SimulatedPool::CheckGrant(const SlotsHeldChanged& grant) {
  const auto trial = state().trials.find(grant.id);
  if (grant.slots.empty() || trial == state().trials.end()) return;
  if (!state().studies.at(trial->second.study).spec.by_clients()) return;
  ++client_grants_;
  for (const Slot& slot : grant.slots) {
    const std::string& name = state().nodes.at(slot.node);
    const auto node = std::find_if(nodes_.begin(), nodes_.end(),
                                   [&name](const SimNode& known) { return known.name == name; });
    if (node == nodes_.end() || slot.index >= node->slots) {
      return Fail("a client got a slot that the pool does not have");
    }
    for (const auto& [id, process] : node->processes) {
      if (!process.exited && process.Holds(slot.index)) {
        return Fail("a client got a slot in which a process lives");
      }
    }
  }
}

void SimulatedPool::Run(double until_s) {
  const Time until = After(agenda_.now(), until_s);
  while (failure_.empty() && agenda_.Next() && *agenda_.Next() <= until &&
         !(AllStudiesEnded() && NothingHeld())) {
    agenda_.HappenNext();
    if (!state().studies.empty()) InjectFaults();
  }
}

bool SimulatedPool::NothingHeld() const {
  const auto& trials = state().trials;
  return core_->SlotsHeld() == 0 &&
         std::all_of(trials.begin(), trials.end(), [](const auto& entry) {
           return entry.second.spans.empty() || entry.second.spans.back().to != Time{};
         });
}

bool SimulatedPool::AllStudiesEnded() const {
  const auto& studies = state().studies;
  return std::all_of(studies.begin(), studies.end(), [](const auto& entry) {
    return entry.second.state == StudyState::kComplete ||
           entry.second.state == StudyState::kFailed || entry.second.spec.by_clients();
  });
}

void SimulatedPool::CheckInvariants() {
  const TunerState& state = core_->state();
  for (const NodeView& node : core_->Nodes()) {
    std::set<int> slots;
    for (const ReplicaView& replica : node.replicas) {
      if (!slots.insert(replica.slot).second) Fail("a slot is held twice");
    }
  }
  for (const auto& [id, trial] : state.trials) {
    if (trial.state == TrialState::kWaiting && trial.started != Time{})
      Fail("a started trial waits");
    if (trial.state == TrialState::kComplete && !trial.value) Fail("COMPLETE without a value");
    for (std::size_t i = 1; i < trial.values.size(); ++i) {
      if (trial.values[i - 1].step >= trial.values[i].step) Fail("values are not in order");
    }
  }
  if (steps_ % 64 != 0) return;
  for (const auto& [trial, step] : acknowledged_) {
    const auto& values = state.trials.at(trial).values;
    if (std::none_of(values.begin(), values.end(),
                     [s = step](const auto& v) { return v.step == s; })) {
      Fail("an acknowledged value is gone");
    }
  }
  const auto stored = storage_->Load();
  if (!stored.ok() || stored->trials != state.trials || stored->nodes != state.nodes ||
      stored->drained != state.drained) {
    Fail("what is stored differs from what the core holds");
  }
}

}  // namespace espalier
