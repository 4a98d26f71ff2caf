#include "tuner/server/loop.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <iterator>
#include <set>
#include <utility>

#include "spdlog/spdlog.h"

namespace espalier {

namespace {

absl::Status Closed() { return absl::UnavailableError("the tuner service is shutting down"); }

Reply ClosedReply() {
  Reply reply;
  reply.status = Closed();
  return reply;
}

void EndProcess() {
  spdlog::shutdown();
  std::_Exit(kCommitFailedExitCode);
}

}  // namespace

Loop::Loop(std::unique_ptr<Storage> storage, TunerState state, LoopOptions options,
           Metrics& metrics, SendCommands send)
    : options_(std::move(options)),
      metrics_(metrics),
      send_(std::move(send)),
      storage_(std::move(storage)),
      core_(std::move(state), options_.core),
      thread_([this] { Run(); }) {}

Loop::~Loop() { Stop(); }

Reply Loop::Post(Event event) {
  auto answered = std::make_shared<std::promise<Reply>>();
  std::future<Reply> reply = answered->get_future();
  PostThen(std::move(event), [answered](const Reply& r) { answered->set_value(r); });
  return reply.get();
}

void Loop::PostAsync(FromAgent from_agent, Done done) {
  Item item = EventItem{std::move(from_agent), std::move(done), {}};
  if (Enqueue(item)) return;
  const EventItem& refused = std::get<EventItem>(item);
  if (refused.done) refused.done(ClosedReply());
}

absl::Status Loop::Read(const std::function<void(const View&)>& look) {
  auto seen = std::make_shared<std::promise<absl::Status>>();
  std::future<absl::Status> status = seen->get_future();
  ReadThen([seen, &look](const View* view) {
    if (view != nullptr) look(*view);
    seen->set_value(view != nullptr ? absl::OkStatus() : Closed());
  });
  return status.get();
}

void Loop::PostThen(Event event, std::function<void(const Reply&)> done) {
  FromAgent from_client;
  from_client.event = std::move(event);
  PostAsync(std::move(from_client), std::move(done));
}

void Loop::ReadThen(std::function<void(const View*)> look) {
  Item item = ReadItem{std::move(look)};
  if (!Enqueue(item)) std::get<ReadItem>(item).look(nullptr);
}

absl::StatusOr<std::string> Loop::ReadOutput(NodeId node, const std::string& study,
                                             std::int64_t trial_number, std::int64_t max_bytes) {
  if (!options_.read_output) return Tuner::ReadOutput(node, study, trial_number, max_bytes);
  return options_.read_output(node, study, trial_number, max_bytes);
}

// False, with `item` untouched, when the loop takes no more.
bool Loop::Enqueue(Item& item) {
  std::unique_lock lock(mutex_);
  // The owner itself must not wait for the room that only it can make.
  const bool own = std::this_thread::get_id() == thread_.get_id();
  not_full_.wait(lock, [&] { return queue_.size() < kMaxQueue || own || stopping_ || broken_; });
  if (stopping_ || broken_) return false;
  queue_.push_back(std::move(item));
  not_empty_.notify_one();
  return true;
}

std::size_t Loop::queued() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

void Loop::Stop() {
  const std::lock_guard stop_lock(stop_mutex_);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  not_empty_.notify_all();
  not_full_.notify_all();
  if (thread_.joinable()) thread_.join();
  storage_.reset();
}

void Loop::Run() {
  // The first step sets the clocks of studies that ran before a restart.
  Process({});
  bool stopping = false;
  while (!stopping) {
    std::vector<Item> batch = NextBatch(stopping);
    if (!batch.empty()) Process(std::move(batch));
    if (stopping) continue;
    TickIfDue();
    if (cleaning_) CleanUp();
  }
  AnswerAllWaits(ClosedReply());
}

// Waits for items or the core's next deadline. Sets `stopping` once nothing is left to do.
std::vector<Loop::Item> Loop::NextBatch(bool& stopping) {
  const std::optional<Time> deadline = core_.NextDeadline();
  std::unique_lock lock(mutex_);
  const auto awake = [this] { return !queue_.empty() || stopping_ || cleaning_; };
  if (deadline) {
    const double wait_s =
        std::clamp(SecondsBetween(options_.clock(), *deadline), kMinTickInterval_s, kMaxWait_s);
    not_empty_.wait_for(lock, std::chrono::duration<double>(wait_s), awake);
  } else {
    not_empty_.wait(lock, awake);
  }
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), kMaxBatch));
  std::vector<Item> batch(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
  queue_.erase(queue_.begin(), end);
  stopping = stopping_ && queue_.empty();
  not_full_.notify_all();
  return batch;
}

void Loop::TickIfDue() {
  const std::optional<Time> deadline = core_.NextDeadline();
  const Time now = options_.clock();
  if (!deadline || now < *deadline) return;
  if (SecondsBetween(last_tick_, now) < kMinTickInterval_s) return;
  Process({});
}

void Loop::Step(EventItem& item, Outcome& outcome) {
  NotePids(item.from_agent);
  if (!item.from_agent.event) return;
  StepResult result = core_.Step(options_.clock(), *item.from_agent.event);
  item.reply = std::move(result.reply);
  item.late = std::move(result.late);
  const auto append = [](auto& from, auto& to) {
    std::move(from.begin(), from.end(), std::back_inserter(to));
  };
  append(result.changes, outcome.changes);
  append(result.commands, outcome.commands);
  append(result.node_requests, outcome.node_requests);
}

// An empty batch is a tick.
void Loop::Process(std::vector<Item> batch) {
  {
    const std::lock_guard lock(mutex_);
    if (broken_) return;
  }
  Outcome outcome;
  EventItem tick{{Tick{}, {}}, {}, {}};
  if (batch.empty()) {
    Step(tick, outcome);
    last_tick_ = options_.clock();
  }
  std::size_t events = 0;
  for (Item& item : batch) {
    if (auto* event = std::get_if<EventItem>(&item)) {
      Step(*event, outcome);
      ++events;
    }
  }
  if (!Commit(outcome.changes, events)) {
    FailAll(batch);
    return;
  }
  if (options_.committed && !outcome.changes.empty()) {
    options_.committed(outcome.changes, core_.state());
  }
  Answer(batch);
  Answer(tick);
  if (!outcome.commands.empty()) send_(outcome.commands, core_.state());
  if (!options_.ask_engine) return;
  for (const NodeRequest& request : outcome.node_requests) options_.ask_engine(request);
}

bool Loop::Commit(const std::vector<Change>& changes, std::size_t events) {
  double commit_s = 0;
  if (!changes.empty()) {
    const auto start = std::chrono::steady_clock::now();
    const absl::Status status = storage_->Commit(changes);
    commit_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!status.ok()) {
      spdlog::critical("event=commit_failed changes={} error=\"{}\"", changes.size(),
                       std::string(status.message()));
      return false;
    }
  }
  if (events > 0) metrics_.CountBatch(events, commit_s);
  for (const Change& change : changes) {
    if (const auto* measured = std::get_if<ResizeMeasured>(&change)) {
      metrics_.CountResize(measured->resize.pause_s);
    }
    if (std::holds_alternative<StudyDeleted>(change)) cleaning_ = true;
  }
  return true;
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

void Loop::Answer(std::vector<Item>& batch) {
  const View view{core_, options_.clock(), pids_, gpus_, folders_};
  for (Item& item : batch) {
    if (const auto* read = std::get_if<ReadItem>(&item)) {
      read->look(&view);
    } else {
      Answer(std::get<EventItem>(item));
    }
  }
}

void Loop::Answer(EventItem& item) {
  if (item.done && item.reply.later && waits_ended_) {
    item.done(ClosedReply());
  } else if (item.done && item.reply.later) {
    waits_[item.reply.trial].push_back(std::move(item.done));
  } else if (item.done) {
    item.done(item.reply);
  }
  for (const auto& [trial, reply] : item.late) {
    const auto waiting = waits_.extract(trial);
    if (waiting.empty()) continue;
    for (const Done& done : waiting.mapped()) done(reply);
  }
}

void Loop::AnswerAllWaits(const Reply& reply) {
  for (const auto& [trial, waiting] : std::exchange(waits_, {})) {
    for (const Done& done : waiting) done(reply);
  }
}

void Loop::EndWaits() {
  ReadThen([this](const View*) {
    waits_ended_ = true;
    AnswerAllWaits(ClosedReply());
  });
}

void Loop::FailAll(std::vector<Item>& batch) {
  std::deque<Item> rest;
  {
    const std::lock_guard lock(mutex_);
    broken_ = true;
    cleaning_ = false;
    rest = std::exchange(queue_, {});
  }
  not_full_.notify_all();
  std::move(rest.begin(), rest.end(), std::back_inserter(batch));
  Reply failed;
  failed.status = absl::UnavailableError("the tuner service cannot write its database");
  for (Item& item : batch) {
    if (const auto* read = std::get_if<ReadItem>(&item)) {
      read->look(nullptr);
    } else if (const auto& event = std::get<EventItem>(item); event.done) {
      event.done(failed);
    }
  }
  AnswerAllWaits(failed);
  options_.terminate ? options_.terminate() : EndProcess();
}

void Loop::NotePids(const FromAgent& from_agent) {
  for (const ReplicaPid& noted : from_agent.pids) pids_[noted.replica] = noted.pid;
  if (!from_agent.event) return;
  if (const auto* hello = std::get_if<AgentHello>(&*from_agent.event)) {
    gpus_[hello->node_name] = from_agent.gpus;
    folders_[hello->node_name] = from_agent.folder;
  }
  if (const auto* exited = std::get_if<ReplicaExited>(&*from_agent.event)) {
    pids_.erase(exited->replica);
  }
  // Exits of lost nodes are never reported.
  constexpr std::size_t kSlack = 64;
  if (pids_.size() <= 2 * static_cast<std::size_t>(core_.SlotsHeld()) + kSlack) return;
  std::set<ReplicaId> living;
  for (const NodeView& node : core_.Nodes()) {
    for (const ReplicaView& replica : node.replicas) living.insert(replica.replica);
  }
  std::erase_if(pids_, [&living](const auto& entry) { return !living.contains(entry.first); });
}

}  // namespace espalier
