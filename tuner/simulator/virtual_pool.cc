#include "tuner/simulator/virtual_pool.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "tuner/core/state/engine_node_names.h"

namespace espalier {

namespace {

constexpr double kWhole = 1e-9;        // a step this near to its end is at its end
constexpr double kLeastTick_s = 1e-3;  // a deadline that is due again and again moves time on

// All slots of the pool may start at once, and their commands may come again.
double LongestStart(const VirtualPoolOptions& options) {
  int slots = 0;
  for (const VirtualNode& node : options.nodes) slots = std::max(slots, node.slots);
  const StartLoad& load = options.start_load;
  const double rounds = load.cores > 0 ? std::max(1.0, slots / load.cores) : 1.0;
  return options.start_s + rounds * load.cpu_s * (1 + load.spread);
}

// A group that pauses for long is not taken to hang.
CoreOptions PatientOptions(const VirtualPoolOptions& options) {
  CoreOptions core = options.core;
  TrialTimeouts& timeouts = core.timeouts;
  timeouts.stall_s = std::max(timeouts.stall_s, 2 * options.resize_s);
  timeouts.start_s = std::max(timeouts.start_s, 2 * LongestStart(options));
  return core;
}

}  // namespace

VirtualPool::VirtualPool(Workload& load, VirtualPoolOptions options)
    : load_(load), options_(std::move(options)), core_(TunerState{}, PatientOptions(options_)) {
  for (std::size_t i = 0; i < options_.nodes.size(); ++i) {
    const VirtualNode& node = options_.nodes[i];
    In(node.joins_s, [this, i] { Join(i); });
    if (node.leaves_s && node.notice_s) {
      In(std::max(node.joins_s, *node.leaves_s - *node.notice_s), [this, i] { Notice(i); });
    }
    if (node.leaves_s) In(*node.leaves_s, [this, i] { Leave(i); });
  }
  if (!options_.core.pool_size) return;
  engine_ = std::make_unique<SimulatedEngine>(
      [this](const std::string& name) { return TemplateOfNode(name).start_s; },
      [this] { return agenda_.now(); },
      [this](double delay_s) { In(delay_s, [this] { EngineHappens(); }); });
}

VirtualPool::~VirtualPool() = default;

void VirtualPool::In(double delay_s, std::function<void()> happening) {
  agenda_.Add(Time{agenda_.now().us + std::llround(delay_s * 1e6)}, std::move(happening));
}

// Commands are done in order and after the step that gave them, not inside it.
Reply VirtualPool::Step(const Event& event) {
  ++steps_;
  StepResult result = core_.Step(agenda_.now(), event);
  if (options_.observer) options_.observer(agenda_.now(), event, result);
  commands_.insert(commands_.end(), result.commands.begin(), result.commands.end());
  AskEngine(result.node_requests);
  if (!doing_) DoCommands();
  return std::move(result.reply);
}

void VirtualPool::DoCommands() {
  doing_ = true;
  for (std::size_t i = 0; i < commands_.size(); ++i) {
    const Command command = commands_[i];
    std::visit([this](const auto& c) { Do(c); }, command);
  }
  commands_.clear();
  doing_ = false;
}

// ---- what the core asks for ---------------------------------------------------------------------

void VirtualPool::Do(const StartReplicaCommand& command) {
  processes_.emplace(command.replica, Process{command.trial, command.node, false, {}});
  Training& training = trainings_[command.trial];
  if (!training.truth) {
    training.truth = load_.Begin(core_.state().trials.at(command.trial));
    ESPALIER_CHECK(training.truth != nullptr, "a load knows each trial of its study");
  }
  if (TakeSpare(command.trial, command.node)) {
    const ReplicaId replica = command.replica;
    return In(*options_.spare_start_s, [this, replica] { Ready(replica); });
  }
  BeginStart(command.replica, command.node);
}

// ---- starts -------------------------------------------------------------------------------------

bool VirtualPool::TakeSpare(TrialId trial, NodeId node) {
  const auto spare = spares_.find({trial, node});
  if (spare == spares_.end() || spare->second == 0) return false;
  --spare->second;
  return true;
}

void VirtualPool::BeginStart(ReplicaId replica, NodeId node) {
  if (options_.start_load.cpu_s <= 0) {
    return In(options_.start_s, [this, replica] { Ready(replica); });
  }
  Starts& starts =
      starts_.try_emplace(node, Starts{ProcessStarts(options_.start_load)}).first->second;
  starts.queue.Begin(replica, agenda_.now());
  PlanStarts(node, starts);
}

void VirtualPool::PlanStarts(NodeId node, Starts& starts) {
  ++starts.serial;
  const std::optional<Time> next = starts.queue.NextDone();
  if (!next) return;
  In(SecondsBetween(agenda_.now(), *next),
     [this, node, serial = starts.serial] { Started(node, serial); });
}

void VirtualPool::Started(NodeId node, std::int64_t serial) {
  const auto it = starts_.find(node);
  if (it == starts_.end() || it->second.serial != serial) return;
  for (const ReplicaId replica : it->second.queue.TakeDone(agenda_.now())) {
    In(options_.start_s, [this, replica] { Ready(replica); });
  }
  PlanStarts(node, it->second);
}

void VirtualPool::Ready(ReplicaId replica) {
  const auto it = processes_.find(replica);
  if (it == processes_.end() || it->second.leaving) return;
  const TrialTruth& truth = *trainings_.at(it->second.trial).truth;
  Step(FromReplica{replica, ReplicaReady{absl::StrCat("replica-", replica.value), truth.bounds(),
                                         truth.steps()}});
}

// ---- groups -------------------------------------------------------------------------------------

void VirtualPool::Do(const RegroupCommand& command) {
  const auto it = processes_.find(command.replica);
  if (it == processes_.end() || it->second.leaving) return;
  Process& process = it->second;
  Training& training = trainings_.at(process.trial);
  if (command.membership.members.empty()) {  // save what there is, and leave
    Halt(training);
    training.checkpoint = training.done;
    Park(command.replica);
    Step(FromReplica{command.replica, ReplicaCheckpoint{absl::StrCat("step-", training.done),
                                                        static_cast<std::int64_t>(training.done)}});
    Exit(command.replica, 0);
    return;
  }
  const Membership& told = process.told = command.membership;
  if (!told.RankOf(command.replica)) {
    Park(command.replica);
    Exit(command.replica, 0, StepLeft(training));
  }
  for (const Member& member : told.members) {
    const auto other = processes_.find(member.replica);
    if (other == processes_.end() || other->second.told.generation != told.generation) return;
  }
  // Members are told first; leavers of the same generation may follow.
  if (training.generation < told.generation) Form(process.trial, told);
}

void VirtualPool::Do(const StopReplicaCommand& command) {
  const auto it = processes_.find(command.replica);
  if (it == processes_.end() || it->second.leaving) return;
  Training& training = trainings_.at(it->second.trial);
  const auto member = std::find(training.members.begin(), training.members.end(), command.replica);
  if (member != training.members.end()) Halt(training);
  Exit(command.replica, 15);
}

// To the service it has exited all the same.
void VirtualPool::Park(ReplicaId replica) {
  if (!options_.spare_start_s) return;
  const Process& process = processes_.at(replica);
  ++spares_[{process.trial, process.node}];
}

void VirtualPool::Exit(ReplicaId replica, int signal, double delay_s) {
  Process& process = processes_.at(replica);
  process.leaving = true;
  if (const auto starts = starts_.find(process.node); starts != starts_.end()) {
    starts->second.queue.GiveUp(replica, agenda_.now());
    PlanStarts(process.node, starts->second);
  }
  In(delay_s, [this, replica, signal] { Exited(replica, signal); });
}

void VirtualPool::Exited(ReplicaId replica, int signal) {
  if (processes_.erase(replica) == 0) return;
  Step(ReplicaExited{.replica = replica,
                     .exit_code = signal == 0 ? 0 : -1,
                     .signal = signal,
                     .last_output = "",
                     .error = ""});
}

// ---- nodes of the engine ------------------------------------------------------------------------

void VirtualPool::AskEngine(const std::vector<NodeRequest>& requests) {
  for (const NodeRequest& request : requests) {
    if (request.start) {
      asked_.emplace(request.name, agenda_.now());
      engine_->StartNode(request.name);
    } else {
      asked_.erase(request.name);
      engine_->ReleaseNode(request.name);
    }
  }
}

const NodeTemplate& VirtualPool::TemplateOfNode(const std::string& name) const {
  const std::vector<NodeTemplate>& templates = options_.core.pool_size->templates;
  const auto of = std::find_if(templates.begin(), templates.end(),
                               [&name](const auto& node) { return TemplateOf(name) == node.name; });
  ESPALIER_CHECK(of != templates.end(), "the core asks for nodes of its templates");
  return *of;
}

void VirtualPool::EngineHappens() {
  for (const SimulatedEngine::Happening& happening : engine_->TakeDue()) {
    if (!happening.joins) {
      Leave(engine_nodes_.at(happening.name));
      continue;
    }
    const NodeTemplate& node = TemplateOfNode(happening.name);
    VirtualNode added{happening.name, node.slots};
    added.gpu_type = node.gpu_type;
    added.spot = node.spot;
    added.price_per_hour = node.price_per_hour;
    engine_nodes_[happening.name] = options_.nodes.size();
    options_.nodes.push_back(std::move(added));
    Join(options_.nodes.size() - 1);
  }
}

VirtualPool::NodeUse VirtualPool::UseOfNodes(Time until) const {
  NodeUse use;
  std::map<Time, int> changes;
  for (const NodeSpan& span : node_spans_) {
    const Time to = std::min(until, span.to.value_or(until));
    if (span.from >= to) continue;
    const VirtualNode& node = options_.nodes[span.node];
    const double there_s = SecondsBetween(span.from, to);
    use.node_seconds += there_s;
    use.slot_seconds += there_s * node.slots;
    use.price += there_s / 3600 * node.price_per_hour;
    ++changes[span.from];
    --changes[to];
  }
  int nodes = 0;
  for (const auto& [at, change] : changes)
    use.most_nodes = std::max(use.most_nodes, nodes += change);
  return use;
}

// ---- training -----------------------------------------------------------------------------------

// Seconds to the end of the optimizer step that the group is in, if it is one to be waited for.
double VirtualPool::StepLeft(const Training& training) const {
  if (!options_.whole_steps) return 0;
  if (!training.runs) return std::max(0.0, SecondsBetween(agenda_.now(), training.step_ends));
  const double iteration_s = training.pace.iteration_s;
  const double step_s = training.pace.iterations * iteration_s;
  const double done = training.done + SecondsBetween(training.since, agenda_.now()) / step_s;
  const double iterations = done * training.pace.iterations;
  return (std::ceil(iterations - kWhole) - iterations) * iteration_s;
}

// The group stands still from now on, or from the end of its step, and goes on a pause later.
void VirtualPool::Form(TrialId trial, const Membership& group) {
  Training& training = trainings_.at(trial);
  const double left_s = StepLeft(training);
  if (training.runs) {
    Halt(training);
    training.done += left_s / (training.pace.iterations * training.pace.iteration_s);
    training.step_ends = After(agenda_.now(), left_s);
  }
  ++training.serial;
  std::set<NodeId> nodes;
  training.members.clear();
  for (const Member& member : group.members) {
    training.members.push_back(member.replica);
    nodes.insert(processes_.at(member.replica).node);
  }
  training.generation = group.generation;
  training.nodes = static_cast<int>(nodes.size());
  In(left_s + (training.began ? options_.resize_s : 0), [this, trial, serial = training.serial] {
    if (trainings_.at(trial).serial == serial) Formed(trial);
  });
}

void VirtualPool::Formed(TrialId trial) {
  Training& training = trainings_.at(trial);
  training.runs = true;
  training.pace = training.truth->On(training.nodes, static_cast<int>(training.members.size()));
  training.since = training.told_at = agenda_.now();
  training.told_done = training.done;
  training.warm = false;
  const double pause_s = training.began ? options_.resize_s : 0;
  training.began = true;
  const auto step = static_cast<std::int64_t>(training.done * training.pace.iterations);
  PlanWork(trial, training);
  // Each word may make the core regroup anew; the others are then of an older generation.
  const std::int64_t generation = training.generation;
  for (const ReplicaId member : std::vector<ReplicaId>(training.members)) {
    Step(FromReplica{member, ReplicaRegrouped{generation, step, pause_s}});
  }
}

void VirtualPool::Advance(Training& training) {
  if (!training.runs) return;
  const double step_s = training.pace.iterations * training.pace.iteration_s;
  training.done += SecondsBetween(training.since, agenda_.now()) / step_s;
  training.since = agenda_.now();
}

void VirtualPool::Halt(Training& training) {
  Advance(training);
  training.runs = false;
  ++training.serial;
}

// Next comes the end of the reported step, or the moment to tell the progress: after the first
// optimizer step that ends a period or more after the last time.
void VirtualPool::PlanWork(TrialId trial, Training& training) {
  const double step_s = training.pace.iterations * training.pace.iteration_s;
  const std::int64_t next = std::min(training.reported + 1, training.truth->steps());
  const double left = static_cast<double>(next) - training.done;
  const double iteration_s = std::max(training.pace.iteration_s, 1e-6);
  const double period_s = std::ceil(options_.progress_period_s / iteration_s) * iteration_s;
  const double told_s = SecondsBetween(training.told_at, agenda_.now());
  const double delay_s = std::min(left * step_s, std::max(period_s - told_s, 1e-6));
  In(std::max(delay_s, 1e-6), [this, trial, serial = training.serial] {
    if (trainings_.at(trial).serial == serial) Work(trial);
  });
}

void VirtualPool::Work(TrialId trial) {
  Training& training = trainings_.at(trial);
  const std::int64_t serial = training.serial;
  // Its last report may have made the core regroup it once more.
  if (training.reported >= training.truth->steps()) return Finish(trial);
  Advance(training);
  const double step_s = training.pace.iterations * training.pace.iteration_s;
  const auto next = static_cast<double>(training.reported + 1);
  if (training.done >= next - kWhole - 2e-6 / step_s) {
    training.done = next;
    ++training.reported;
    training.checkpoint = training.done;
    // The report may end, pause or resize the training.
    Step(FromReplica{training.members.front(),
                     ReplicaReport{training.truth->StepNumber(training.reported),
                                   training.truth->ValueAfter(training.reported),
                                   training.done * training.pace.iterations,
                                   training.truth->FiguresAfter(training.reported)}});
    if (training.serial != serial || !training.runs) return;
    promises_.emplace_back(trial, core_.Activity(trial).promise);
    if (training.reported >= training.truth->steps()) return Finish(trial);
  }
  if (SecondsBetween(training.told_at, agenda_.now()) >= options_.progress_period_s - 1e-6) {
    TellProgress(training);
    if (training.serial != serial || !training.runs) return;
  }
  PlanWork(trial, training);
}

void VirtualPool::TellProgress(Training& training) {
  const Pace& pace = training.pace;
  const auto replicas = static_cast<std::int64_t>(training.members.size());
  const std::int64_t batch = training.truth->bounds().initial;
  const auto first = static_cast<std::int64_t>(training.told_done * pace.iterations + kWhole);
  const auto last = static_cast<std::int64_t>(training.done * pace.iterations + kWhole);
  ReplicaProgress progress;
  progress.generation = training.generation;
  progress.step = last;
  progress.progress = training.done * pace.iterations;
  progress.epoch = training.done;
  progress.global_batch_size = batch;
  const std::int64_t atomic_batch = (batch + replicas - 1) / replicas;
  progress.figures[Figure::kAtomicBatchSize] = static_cast<double>(atomic_batch);
  progress.noise = training.truth->noise();
  const std::int64_t timed = last - first - (training.warm ? 0 : 1);
  if (timed > 0) {
    const auto count = static_cast<double>(timed);
    progress.profile.push_back({.key = {training.nodes, static_cast<int>(replicas), atomic_batch},
                                .accumulation_count = 0,
                                .accumulation_time_s = 0,
                                .optimizer_count = timed,
                                .optimizer_time_s = count * pace.iteration_s,
                                .sync_time_s = count * (pace.iteration_s - pace.grad_s)});
  }
  training.warm = training.warm || last > first;
  training.told_done = training.done;
  training.told_at = agenda_.now();
  Step(FromReplica{training.members.front(), std::move(progress)});
}

void VirtualPool::Finish(TrialId trial) {
  Training& training = trainings_.at(trial);
  Halt(training);
  const std::vector<ReplicaId> members = training.members;
  Step(FromReplica{members.front(), ReplicaFinished{std::nullopt}});
  for (const ReplicaId member : members) {
    if (const auto it = processes_.find(member); it != processes_.end() && !it->second.leaving) {
      Exit(member, 0);
    }
  }
}

// ---- nodes --------------------------------------------------------------------------------------

void VirtualPool::Join(std::size_t node) {
  const VirtualNode& joins = options_.nodes[node];
  const Reply reply = Step(AgentHello{.node_name = joins.name,
                                      .slots = joins.slots,
                                      .replicas = {},
                                      .gpu_type = joins.gpu_type,
                                      .spot = joins.spot,
                                      .price_per_hour = joins.price_per_hour,
                                      .leaves_in_s = std::nullopt});
  ESPALIER_CHECK(reply.status.ok(), "simulated nodes are checked before they join");
  node_ids_[node] = reply.node();
  const auto asked = asked_.find(joins.name);
  node_spans_.push_back({node, asked == asked_.end() ? agenda_.now() : asked->second});
  if (asked != asked_.end()) asked_.erase(asked);
}

void VirtualPool::Notice(std::size_t node) {
  const auto known = node_ids_.find(node);
  if (known != node_ids_.end()) Step(AgentLeaving{known->second, *options_.nodes[node].notice_s});
}

// The machine is gone. Groups that lost a member stand still until they are regrouped from the
// memory of the others; without others they go back to their last checkpoint.
void VirtualPool::Leave(std::size_t node) {
  const auto known = node_ids_.find(node);
  if (known == node_ids_.end()) return;
  const NodeId id = known->second;
  for (NodeSpan& span : node_spans_) {
    if (span.node == node && !span.to) span.to = agenda_.now();
  }
  std::set<TrialId> hit;
  for (auto it = processes_.begin(); it != processes_.end();) {
    if (it->second.node != id) {
      ++it;
      continue;
    }
    hit.insert(it->second.trial);
    it = processes_.erase(it);
  }
  for (const TrialId trial : hit) {
    Training& training = trainings_.at(trial);
    Halt(training);
    const bool survivors =
        std::any_of(training.members.begin(), training.members.end(),
                    [this](ReplicaId member) { return processes_.contains(member); });
    if (survivors) continue;
    lost_steps_ += std::max(0.0, training.done - training.checkpoint);
    training.done = training.checkpoint;
  }
  std::erase_if(spares_, [id](const auto& entry) { return entry.first.second == id; });
  starts_.erase(id);
  Step(AgentGone{id});
}

// ---- time ---------------------------------------------------------------------------------------

bool VirtualPool::Over() const {
  const auto& studies = core_.state().studies;
  return processes_.empty() && !studies.empty() &&
         std::all_of(studies.begin(), studies.end(), [](const auto& entry) {
           return entry.second.state == StudyState::kComplete ||
                  entry.second.state == StudyState::kFailed;
         });
}

void VirtualPool::Run(double until_s) {
  const Time until{kStart.us + std::llround(until_s * 1e6)};
  while (!Over()) {
    const std::optional<Time> deadline = core_.NextDeadline();
    const std::optional<Time> happens = agenda_.Next();
    if (!deadline && !happens) return;  // nothing will ever happen again
    const bool tick = deadline && (!happens || *deadline < *happens);
    const Time next = tick ? std::max(*deadline, After(agenda_.now(), kLeastTick_s)) : *happens;
    if (next > until) return agenda_.PassTo(until);
    if (tick) {
      agenda_.PassTo(next);
      Step(Tick{});
    } else {
      agenda_.HappenNext();
    }
  }
}

}  // namespace espalier
