#include "tuner/server/loop/loop.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <future>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/guarded.h"
#include "spdlog/spdlog.h"
#include "tuner/api/pool_warnings.h"
#include "tuner/core/terminators/question.h"
#include "tuner/server/loop/event_name.h"

namespace espalier {

namespace {

Reply Refusal(const absl::Status& status) {
  Reply reply;
  reply.status = status;
  return reply;
}

constexpr const char* kErrorOfItsOwn =
    "the tuner service met an error of its own, which the log names; start it again, and it goes "
    "on from its last commit";

constexpr const char* kStartsAgain = "the tuner service met an error of its own and starts again";

constexpr const char* kNoDatabase = "the tuner service cannot write its database";

std::function<void(const Reply&, const View*)> WithoutView(std::function<void(const Reply&)> done) {
  if (!done) return nullptr;
  return [done = std::move(done)](const Reply& reply, const View*) { done(reply); };
}

Reply ClosedReply() { return Refusal(ShuttingDown()); }

void EndProcess(int exit_code) {
  spdlog::shutdown();
  std::_Exit(exit_code);
}

}  // namespace

Loop::Loop(std::unique_ptr<Storage> storage, TunerState state, LoopOptions options,
           Metrics& metrics, SendCommands send)
    : options_(std::move(options)),
      metrics_(metrics),
      send_(std::move(send)),
      storage_(std::move(storage)),
      core_(std::move(state), options_.core),
      planning_([this](const std::string& what) { AsideFailed(what); }),
      drawing_([this](const std::string& what) { AsideFailed(what); }),
      thread_([this] { Run(); }) {}

Loop::~Loop() { Stop(); }

Reply Loop::Post(Event event) {
  return PostAndRead(std::move(event), [](const Reply&, const View&) {});
}

Reply Loop::PostAndRead(Event event, const std::function<void(const Reply&, const View&)>& look) {
  auto answered = std::make_shared<std::promise<Reply>>();
  std::future<Reply> reply = answered->get_future();
  Item item = EventItem{{std::move(event), {}},
                        [answered, &look](const Reply& given, const View* view) {
                          if (view != nullptr) look(given, *view);
                          answered->set_value(given);
                        },
                        {}};
  const absl::Status queued = Enqueue(item, Queue::IfFull::kWait);
  return queued.ok() ? reply.get() : Refusal(queued);
}

bool Loop::PostAsync(FromAgent from_agent, Done done) {
  Item item = EventItem{std::move(from_agent), WithoutView(std::move(done)), {}};
  return queue_.Put(item, QueueLane::kOthers, Queue::IfFull::kPass).ok();
}

absl::Status Loop::Read(const std::function<void(const View&)>& look) {
  auto seen = std::make_shared<std::promise<absl::Status>>();
  std::future<absl::Status> status = seen->get_future();
  Item item = ReadItem{[seen, &look](const View* view) {
    if (view == nullptr) {
      seen->set_value(ShuttingDown());
      return;
    }
    const bool looked = Took([] { return std::string("a look"); }, [&] { look(*view); });
    seen->set_value(looked ? absl::OkStatus()
                           : absl::InternalError("the request could not be answered"));
  }};
  const absl::Status queued = Enqueue(item, Queue::IfFull::kWait);
  return queued.ok() ? status.get() : queued;
}

void Loop::PostThen(Event event, std::function<void(const Reply&)> done) {
  Item item = EventItem{{std::move(event), {}}, WithoutView(std::move(done)), {}};
  const absl::Status queued = Enqueue(item, Queue::IfFull::kRefuse);
  if (!queued.ok()) std::get<EventItem>(item).done(Refusal(queued), nullptr);
}

void Loop::ReadThen(std::function<void(const View*)> look) {
  Item item = ReadItem{std::move(look)};
  if (!Enqueue(item, Queue::IfFull::kRefuse).ok()) std::get<ReadItem>(item).look(nullptr);
}

absl::StatusOr<std::string> Loop::ReadOutput(NodeId node, const TrialName& trial,
                                             const OutputPart& part) {
  if (!options_.read_output) return Tuner::ReadOutput(node, trial, part);
  return options_.read_output(node, trial, part);
}

// `item` is untouched where it is not taken.
absl::Status Loop::Enqueue(Item& item, Queue::IfFull if_full) {
  // The owner itself must not wait for the room that only it can make.
  const bool own = std::this_thread::get_id() == thread_.get_id();
  if (own && if_full == Queue::IfFull::kWait) if_full = Queue::IfFull::kPass;
  return queue_.Put(item, QueueLane::kClients, if_full);
}

std::size_t Loop::queued() const { return queue_.size(); }

void Loop::Stop() {
  const std::lock_guard stop_lock(stop_mutex_);
  queue_.Stop();
  if (thread_.joinable()) thread_.join();
  planning_.Stop();
  drawing_.Stop();
  storage_.reset();
}

void Loop::Run() {
  // The first step sets the clocks of studies that ran before a restart.
  ProcessTick();
  bool stopping = false;
  while (!stopping) {
    const bool last = queue_.Await(queue_.size() > 0 ? 0 : MostWait_s());
    if (const std::optional<QueueLane> lane = queue_.TakeTurn()) Process(*lane);
    stopping = last && queue_.size() == 0;
    if (stopping) continue;
    TickIfDue();
    LookAtStorageIfDue();
    if (cleaning_) CleanUp();
  }
  AnswerAllWaits(ClosedReply());
}

// How long nothing but an item has to be done.
double Loop::MostWait_s() {
  if (cleaning_) return 0;
  const std::optional<Time> deadline = core_.NextDeadline();
  if (!deadline) return kStorageLook_s;
  return std::clamp(SecondsBetween(options_.clock(), *deadline), kMinTickInterval_s, kMaxWait_s);
}

void Loop::TickIfDue() {
  const std::optional<Time> deadline = core_.NextDeadline();
  const Time now = options_.clock();
  if (!deadline || now < *deadline) return;
  if (SecondsBetween(last_tick_, now) < kMinTickInterval_s) return;
  ProcessTick();
}

void Loop::LookAtStorageIfDue() {
  if (broken_) return;
  const Time now = options_.clock();
  if (SecondsBetween(last_look_, now) < kStorageLook_s) return;
  last_look_ = now;
  const absl::Status there = storage_->CheckStillThere();
  if (there.ok()) return;
  spdlog::critical("event=database_lost error=\"{}\"", std::string(there.message()));
  std::vector<Item> none;
  FailAll(none, {kNoDatabase, std::string(there.message()), kCommitFailedExitCode});
}

template <typename Name, typename Step>
bool Loop::Took(const Name& name, Step step) {
  const absl::Status taken = Guarded(name, step);
  if (!taken.ok()) spdlog::critical("event=step_failed in=\"{}\"", std::string(taken.message()));
  return taken.ok();
}

void Loop::Handle(EventItem& item, Outcome& outcome) {
  const std::optional<Event>& event = item.from_agent.event;
  const auto name = [&event] { return event ? NameOf(*event) : std::string("an agent's news"); };
  outcome.unsettled = true;
  outcome.failed = !Took(name, [&] {
    Note(item.from_agent);
    if (!event) return;
    StepResult result = core_.Handle(options_.clock(), *event);
    item.reply = std::move(result.reply);
    // Its request has taken the place of one that was refused in this batch.
    if (item.reply.later()) outcome.all.late.erase(item.reply.wait());
    Append(std::move(result), outcome.all);
  });
}

void Loop::Settle(Outcome& outcome) {
  if (outcome.failed || !std::exchange(outcome.unsettled, false)) return;
  const auto name = [] { return std::string("what follows from the events"); };
  outcome.failed = !Took(name, [&] { Append(core_.Settle(options_.clock()), outcome.all); });
  outcome.plan_asked = outcome.all.plan != nullptr;
  if (outcome.plan_asked) Plan(std::exchange(outcome.all.plan, nullptr));
  for (const auto& request : std::exchange(outcome.all.draws, {})) Draw(request);
  for (const auto& question : std::exchange(outcome.all.questions, {})) Answer(question);
}

void Loop::Plan(const std::shared_ptr<const PlanRequest>& request) {
  planning_.Do({[request] {
                  return absl::StrCat("plan ", request->number, " by ", TextOf(request->policy),
                                      ", ", request->pool.jobs.size(), " trials");
                },
                [this, request](const std::stop_token&) {
                  PlanMade made{std::make_shared<const espalier::Plan>(planner_.Make(*request))};
                  PostAsync({Event{std::move(made)}, {}}, nullptr);
                }});
}

void Loop::AskOutside(std::shared_ptr<const DrawRequest> request) {
  const auto answer = [this, study = request->study,
                       number = request->number](absl::StatusOr<Drawn> drawn) {
    DrawMade made{study, number, nullptr};
    if (drawn.ok()) {
      made.drawn = std::make_shared<const Drawn>(*std::move(drawn));
    } else if (!absl::IsCancelled(drawn.status())) {
      made.failure = std::string(drawn.status().message());
    }
    PostAsync({Event{std::move(made)}, {}}, nullptr);
  };
  if (options_.ask_outside) return options_.ask_outside(std::move(request), answer);
  answer(absl::FailedPreconditionError(
      "its sampler needs a Python with Optuna, which --optuna-python of `tuner serve` names"));
}

void Loop::Draw(const std::shared_ptr<const DrawRequest>& request) {
  if (request->sampler->outside() != nullptr) return AskOutside(request);
  drawing_.Do({[request] {
                 return absl::StrCat("draw of trial ", request->trial_number, " of study \"",
                                     request->study_name, "\", after ", request->ended.size());
               },
               [this, request](const std::stop_token& stop) {
                 DrawMade made{request->study, request->number,
                               std::make_shared<const Drawn>(MakeDraw(*request, stop))};
                 PostAsync({Event{std::move(made)}, {}}, nullptr);
               }});
}

void Loop::Answer(const std::shared_ptr<const TerminatorQuestion>& question) {
  drawing_.Do(
      {[question] {
         return absl::StrCat("end of study \"", question->study_name, "\", after ",
                             question->ended.size());
       },
       [this, question](const std::stop_token& stop) {
         TerminatorAnswered answered{question->study, question->number, AnswerTo(*question, stop)};
         PostAsync({Event{std::move(answered)}, {}}, nullptr);
       }});
}

void Loop::ProcessTick() {
  if (broken_) return;
  last_tick_ = options_.clock();
  Process(QueueLane::kOthers, EventItem{{Tick{}, {}}, {}, {}});
}

void Loop::Process(QueueLane lane, std::optional<EventItem> tick) {
  Outcome outcome;
  std::vector<Item> batch;
  if (tick) {
    Handle(*tick, outcome);
    batch.emplace_back(*std::move(tick));
  }
  StepWaiting(lane, batch, outcome);
  // A plan that is there at once needs no commit of its own.
  if (outcome.plan_asked && queue_.size() == 0) {
    queue_.Await(kMaxPlanWait_s);
    StepWaiting(QueueLane::kOthers, batch, outcome);
  }
  Finish(std::move(batch), outcome);
}

void Loop::StepWaiting(QueueLane lane, std::vector<Item>& batch, Outcome& outcome) {
  const auto start = std::chrono::steady_clock::now();
  const auto long_enough = [&] {
    const double most_s = options_.max_batch_s / (queue_.size(Other(lane)) > 0 ? 2 : 1);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > most_s;
  };
  // What comes meanwhile is of the next batch.
  for (std::size_t left = queue_.size(lane); left > 0; --left) {
    if (outcome.failed || batch.size() >= kMaxBatch || (!batch.empty() && long_enough())) break;
    std::optional<Item> item = queue_.Take(lane);
    if (!item) break;
    batch.push_back(*std::move(item));
    if (auto* event = std::get_if<EventItem>(&batch.back())) {
      Handle(*event, outcome);
    }
  }
  Settle(outcome);
}

void Loop::Finish(std::vector<Item> batch, const Outcome& outcome) {
  const auto events = std::count_if(batch.begin(), batch.end(), [](const Item& item) {
    return std::holds_alternative<EventItem>(item);
  });
  if (outcome.failed) {
    FailAll(batch, {kStartsAgain, kErrorOfItsOwn, kStepFailedExitCode});
    return;
  }
  const StepResult& all = outcome.all;
  if (const absl::Status stored = Commit(all.changes, static_cast<std::size_t>(events));
      !stored.ok()) {
    FailAll(batch, {kNoDatabase, std::string(stored.message()), kCommitFailedExitCode});
    return;
  }
  const bool told = !options_.committed || all.changes.empty() ||
                    Took([] { return std::string("what is told of a commit"); },
                         [&] { options_.committed(all.changes, core_.state()); });
  if (told) Answer(batch, all.late);
  if (told && SendAndAsk(all)) return;
  if (told) batch.clear();  // which is answered
  FailAll(batch, {kStartsAgain, kErrorOfItsOwn, kStepFailedExitCode});
}

bool Loop::SendAndAsk(const StepResult& all) {
  return Took([] { return std::string("commands and requests after a commit"); },
              [&] {
                if (!all.commands.empty()) send_(all.commands, core_.state());
                if (!options_.ask_engine) return;
                for (const std::string& node : all.nodes_joined) options_.tell_engine_joined(node);
                for (const NodeRequest& request : all.node_requests) options_.ask_engine(request);
              });
}

absl::Status Loop::Commit(const std::vector<Change>& changes, std::size_t events) {
  double commit_s = 0;
  if (!changes.empty()) {
    const auto start = std::chrono::steady_clock::now();
    const absl::Status status = storage_->Commit(changes);
    commit_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!status.ok()) {
      spdlog::critical("event=commit_failed changes={} error=\"{}\"", changes.size(),
                       std::string(status.message()));
      return status;
    }
  }
  if (events > 0) metrics_.CountBatch(events, commit_s);
  for (const Change& change : changes) {
    if (const auto* measured = std::get_if<ResizeMeasured>(&change)) {
      metrics_.CountResize(measured->resize.pause_s);
    }
    if (std::holds_alternative<StudyDeleted>(change)) cleaning_ = true;
  }
  return absl::OkStatus();
}

// A slice of what deleted studies left behind, between two batches.
void Loop::CleanUp() {
  const bool dropped = core_.FreeDropped();
  const absl::StatusOr<bool> more = storage_->CleanUp();
  if (!more.ok()) {
    spdlog::error("event=clean_up_failed error=\"{}\"", std::string(more.status().message()));
  }
  cleaning_ = dropped || (more.ok() && *more);
}

std::vector<std::string> Loop::TroublesOf(
    const std::function<std::vector<std::string>()>& troubles) const {
  std::vector<std::string> lines;
  if (troubles) Took([] { return std::string("warnings"); }, [&] { lines = troubles(); });
  return lines;
}

void Loop::Tell(const Answered& done, const Reply& reply, const View* view) {
  const View* shown = reply.status.ok() ? view : nullptr;
  if (Took([] { return std::string("an answer"); }, [&] { done(reply, shown); })) return;
  const Reply failed = Refusal(absl::InternalError("the request could not be answered"));
  Took([] { return std::string("an answer that says so"); }, [&] { done(failed, nullptr); });
}

void Loop::Answer(std::vector<Item>& batch, const std::map<LaterReply, Reply>& late) {
  const View view{.core = core_,
                  .now = options_.clock(),
                  .pids = pids_,
                  .gpus = gpus_,
                  .folders = folders_,
                  .hosts = hosts_,
                  .engine_troubles = TroublesOf(options_.engine_troubles),
                  .disk_troubles = TroublesOf(options_.disk_troubles),
                  .page = options_.page ? options_.page() : ServedPage{},
                  .users_add_machines = options_.users_add_machines};
  for (Item& item : batch) {
    if (const auto* read = std::get_if<ReadItem>(&item)) {
      // One that fails is answered as if there were nothing to see.
      const auto begun = std::chrono::steady_clock::now();
      if (!Took([] { return std::string("a look"); }, [&] { read->look(&view); })) {
        Took([] { return std::string("a look at nothing"); }, [&] { read->look(nullptr); });
      }
      metrics_.CountLook(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
    } else {
      Answer(std::get<EventItem>(item), view);
    }
  }
  for (const auto& [wait, reply] : late) {
    const auto waiting = waits_.extract(wait);
    if (waiting.empty()) continue;
    for (const Answered& done : waiting.mapped()) Tell(done, reply, &view);
  }
}

void Loop::Answer(EventItem& item, const View& view) {
  if (item.done && item.reply.later() && waits_ended_) {
    Tell(item.done, ClosedReply(), nullptr);
  } else if (item.done && item.reply.later()) {
    waits_[item.reply.wait()].push_back(std::move(item.done));
  } else if (item.done) {
    Tell(item.done, item.reply, &view);
  }
}

void Loop::AnswerAllWaits(const Reply& reply) {
  for (const auto& [wait, waiting] : std::exchange(waits_, {})) {
    for (const Answered& done : waiting) Tell(done, reply, nullptr);
  }
}

void Loop::EndWaits() {
  Item item = ReadItem{[this](const View*) {
    waits_ended_ = true;
    AnswerAllWaits(ClosedReply());
  }};
  // Never on this thread: a loop that takes no more answers all who wait by itself.
  Enqueue(item, Queue::IfFull::kPass).IgnoreError();
}

void Loop::AsideFailed(const std::string& what) {
  spdlog::critical("event=step_failed in=\"{}\"", what);
  if (options_.failed) options_.failed(kErrorOfItsOwn);
  options_.terminate ? options_.terminate(kStepFailedExitCode) : EndProcess(kStepFailedExitCode);
}

void Loop::FailAll(std::vector<Item>& batch, const Failure& failure) {
  // Before the answers: they may end the program that is to show it.
  Took([] { return std::string("word of the end"); },
       [&] {
         if (options_.failed) options_.failed(failure.for_user);
       });
  broken_ = true;
  cleaning_ = false;
  std::deque<Item> rest = queue_.Close();
  std::move(rest.begin(), rest.end(), std::back_inserter(batch));
  Reply failed;
  failed.status = absl::UnavailableError(failure.for_clients);
  for (Item& item : batch) {
    if (const auto* read = std::get_if<ReadItem>(&item)) {
      Took([] { return std::string("a look at nothing"); }, [&] { read->look(nullptr); });
    } else if (const auto& event = std::get<EventItem>(item); event.done) {
      Tell(event.done, failed, nullptr);
    }
  }
  AnswerAllWaits(failed);
  options_.terminate ? options_.terminate(failure.exit_code) : EndProcess(failure.exit_code);
}

void Loop::Note(const NodeHost& at) {
  hosts_[at.node_name] = at.host;
  for (const std::string& warning : PoolWarnings(core_.Nodes(), hosts_)) {
    if (warned_.insert(warning).second) spdlog::warn("event=pool_warning text=\"{}\"", warning);
  }
}

void Loop::Note(const FromAgent& from_agent) {
  if (const auto* at = std::get_if<NodeHost>(&from_agent.details)) Note(*at);
  if (const auto* started = std::get_if<ReplicaPid>(&from_agent.details)) {
    pids_[started->replica] = started->pid;
  }
  if (!from_agent.event) return;
  if (const auto* hello = std::get_if<AgentHello>(&*from_agent.event)) {
    const auto* details = std::get_if<NodeDetails>(&from_agent.details);
    const NodeDetails told = details == nullptr ? NodeDetails{} : *details;
    for (const ReplicaPid& living : told.pids) pids_[living.replica] = living.pid;
    gpus_[hello->node_name] = told.gpus;
    folders_[hello->node_name] = told.folder;
  }
  if (const auto* exited = std::get_if<ReplicaExited>(&*from_agent.event)) {
    pids_.erase(exited->replica);
    if (exited->checkpoint != CheckpointFailure::kNone) metrics_.CountCopy(/*failed=*/true, 0);
  }
  if (const auto* said = std::get_if<FromReplica>(&*from_agent.event)) {
    if (const auto* progress = std::get_if<ReplicaProgress>(&said->message)) {
      metrics_.CountChecks(progress->checks);
    }
    if (const auto* finished = std::get_if<ReplicaFinished>(&said->message)) {
      metrics_.CountChecks(finished->checks);
    }
  }
  if (const auto* copied = std::get_if<CheckpointCopied>(&*from_agent.event)) {
    metrics_.CountCopy(!copied->error.empty(), copied->bytes);
    if (!copied->error.empty()) {
      spdlog::warn("event=checkpoint_copy_failed trial={} node={} error=\"{}\"",
                   copied->trial.value, copied->node.value, copied->error);
    }
  }
  ForgetPidsOfLostNodes();
}

// Exits of lost nodes are never reported.
void Loop::ForgetPidsOfLostNodes() {
  constexpr std::size_t kSlack = 64;
  if (pids_.size() <= 2 * static_cast<std::size_t>(core_.SlotsHeld()) + kSlack) return;
  std::set<ReplicaId> living;
  for (const NodeView& node : core_.Nodes()) {
    for (const ReplicaView& replica : node.replicas) living.insert(replica.replica);
  }
  std::erase_if(pids_, [&living](const auto& entry) { return !living.contains(entry.first); });
}

}  // namespace espalier
