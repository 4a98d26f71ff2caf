#include "trial_runner/agent/agent_loop.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/guarded.h"
#include "base/host_port.h"
#include "base/protocol.h"
#include "base/trial_folder.h"
#include "trial_runner/agent/processes/left_processes.h"
#include "trial_runner/agent/ranks/supervisor.h"
#include "trial_runner/agent/trial_environment.h"
#include "tuner/credentials/access_token.h"

namespace espalier {
namespace {

constexpr std::chrono::milliseconds kLeaveWait{1000};    // for the last acknowledgements
constexpr std::chrono::milliseconds kLastCopyWait{500};  // for others to ask for last checkpoints
constexpr std::chrono::milliseconds kLeavingPace{200};   // between looks at whether they have them
constexpr std::chrono::milliseconds kLeftoverPace{5};

bool SpeaksInTheClear(const AgentOptions& options) {
  return options.tls_roots.empty() && PinOf(options.token).empty();
}

// What does not change while the agent runs.
v1::Hello HelloOf(const AgentOptions& options) {
  v1::Hello hello;
  hello.set_node_name(options.node_name);
  hello.set_slots(options.slots);
  hello.set_token(options.token);
  hello.set_gpu_type(options.gpu_type);
  hello.set_spot(options.spot);
  hello.set_price_per_hour(options.price_per_hour);
  hello.set_directory(options.directory);
  hello.set_spans_launches(true);
  hello.set_clones(true);
  for (const Gpu& gpu : options.gpus) {
    v1::Gpu& told = *hello.add_gpus();
    told.set_name(gpu.name);
    told.set_uuid(gpu.uuid);
    told.set_memory_bytes(gpu.memory_bytes);
  }
  return hello;
}

}  // namespace

AgentLoop::AgentLoop(AgentOptions options, AgentHome home, TrialProxy proxy, std::string mark,
                     std::string folder_mark, FileDescriptor wake)
    : options_(std::move(options)),
      inherited_environment_(OwnEnvironment()),
      home_(std::move(home)),
      proxy_(std::move(proxy)),
      incarnation_(std::move(mark)),
      wake_(std::move(wake)),
      replica_lease_(std::chrono::duration_cast<Clock::duration>(
          std::chrono::duration<double>(options_.replica_lease_s))),
      spares_(options_.spare_memory_bytes),
      zygotes_({.log_path = home_.folder() + "/zygotes.log"}),
      keeper_(options_, std::move(folder_mark), [this] { Wake(); }),
      leftovers_(incarnation_),
      watch_(options_.watched, incarnation_, inherited_environment_,
             home_.folder() + "/watch.log") {}

AgentLoop::~AgentLoop() { Stop(0); }

void AgentLoop::RunOnOwnThread() {
  owner_ = std::thread([this] { Run().IgnoreError(); });
}

void AgentLoop::Stop(double grace_s) {
  {
    const std::lock_guard lock(mutex_);
    stop_grace_s_ = grace_s;
  }
  Wake();
  const std::lock_guard lock(join_mutex_);
  if (owner_.joinable()) owner_.join();
}

void AgentLoop::LeaveWithin(double within_s) {
  {
    const std::lock_guard lock(mutex_);
    leave_within_s_ = std::max(0.0, within_s);
  }
  Wake();
}

bool AgentLoop::empty() const {
  const std::lock_guard lock(mutex_);
  return empty_;
}

bool AgentLoop::connected() const {
  const std::lock_guard lock(mutex_);
  return connected_;
}

bool AgentLoop::WaitConnected(double timeout_s) {
  std::unique_lock lock(mutex_);
  return connection_changed_.wait_for(lock, std::chrono::duration<double>(timeout_s),
                                      [this] { return connected_; });
}

void AgentLoop::SetConnected(bool connected) {
  welcomed_ = connected;
  {
    const std::lock_guard lock(mutex_);
    connected_ = connected;
  }
  connection_changed_.notify_all();
}

void AgentLoop::Wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

absl::Status AgentLoop::Run() {
  WatchGpus();
  stream_ = std::make_unique<ServiceStream>(
      options_.dial ? options_.dial
                    : DialByGrpc(options_.service_address, options_.token, options_.tls_roots),
      wake_.get());
  const absl::Status turned = Guarded([] { return std::string("the agent"); },
                                      [this] {
                                        while (Turn()) {
                                        }
                                      });
  if (!turned.ok()) {
    spdlog::critical("node {} ends with its replicas: {}", options_.node_name,
                     std::string(turned.message()));
    refused_ = turned;
  }
  stream_.reset();
  gpu_watch_.reset();
  home_.End();
  watch_.End();
  SetConnected(false);
  return refused_;
}

bool AgentLoop::Turn() {
  const Clock::time_point now = Clock::now();
  watch_.Keep(now);
  ObeyStop(now);
  ObeyLeave(now);
  ObeyReplace(now);
  TellUnusableSlots();
  EndLeftovers(now);
  TellHeldExits();
  KeepTime(now);
  if (zygotes_.TakeNews()) BeginWaiting(true);
  TakeCheckpoints();
  LookAtFolders(now);
  LimitLogs(now);
  LookAtOutputs(now);
  SendEvents();
  NoteWhetherEmpty();
  if (Finished(now)) return false;
  Wait(now);
  return true;
}

void AgentLoop::ObeyStop(Clock::time_point now) {
  std::optional<double> grace_s;
  {
    const std::lock_guard lock(mutex_);
    grace_s = std::exchange(stop_grace_s_, std::nullopt);
  }
  if (!grace_s) return;
  stopping_ = true;
  TellLeaving(*grace_s);  // before the exits, so that nothing is started here again
  for (auto& [id, replica] : running_) replica->Terminate(*grace_s, now);
  fetching_.merge(waiting_);
  for (const auto& [id, start] : std::exchange(fetching_, {})) {
    NotStarted(start, absl::OkStatus(), CheckpointFailure::kNone);
  }
  spares_.EndIf([](const ReplicaProcess&) { return true; });
  zygotes_.EndAll();
}

void AgentLoop::ObeyLeave(Clock::time_point now) {
  std::optional<double> within_s;
  {
    const std::lock_guard lock(mutex_);
    within_s = std::exchange(leave_within_s_, std::nullopt);
  }
  if (!within_s) return;
  const auto ends =
      now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*within_s));
  if (machine_ends_ && *machine_ends_ <= ends) return;
  machine_ends_ = ends;
  spdlog::info("node {} goes away in {:.0f} s: the service is asked to empty it",
               options_.node_name, *within_s);
  TellLeaving(*within_s);
  spares_.EndIf([](const ReplicaProcess&) { return true; });
}

void AgentLoop::TellLeaving(double within_s) {
  v1::AgentMessage event;
  event.mutable_leaving()->set_within_s(within_s);
  outbox_.Add(std::move(event));
}

// The service starts nothing here once it has heard, and what it had started before has arrived
// with its acknowledgement at the latest.
void AgentLoop::NoteWhetherEmpty() {
  const bool idle = machine_ends_ && welcomed_ && running_.empty() && fetching_.empty() &&
                    waiting_.empty() && held_exits_.empty() && leaving_.empty() && outbox_.empty();
  // The last checkpoints are to be on other nodes when this one goes.
  if (!idle || keeper_.giving()) busy_until_ = Clock::now() + kLastCopyWait;
  const bool empty = idle && Clock::now() >= busy_until_;
  const std::lock_guard lock(mutex_);
  empty_ = empty;
}

bool AgentLoop::Finished(Clock::time_point now) {
  if (!stopping_ || !running_.empty() || !leaving_.empty()) return false;
  if (!welcomed_ || outbox_.empty()) return true;
  if (!leave_at_) leave_at_ = now + kLeaveWait;
  return now >= *leave_at_;
}

int AgentLoop::WaitMs(Clock::time_point now) const {
  Clock::time_point until = Clock::time_point::max();
  if (welcomed_ && lease_s_ > 0) until = next_heartbeat_;
  if (leave_at_) until = std::min(until, *leave_at_);
  if (const auto ends = cut_off_.EndsAt(running_, lease_s_); ends && !welcomed_) {
    until = std::min(until, *ends);
  }
  if (machine_ends_) until = std::min(until, now + kLeavingPace);
  if (replacement_) until = std::min(until, replacement_->deadline());
  until = std::min(until, held_exits_.NextTime());
  if (!leaving_.empty()) until = std::min(until, now + kLeftoverPace);
  if (knows_orphans_) until = std::min(until, sweep_at_);
  if (options_.max_log_bytes > 0 && !running_.empty()) until = std::min(until, logs_at_);
  until = std::min(until, outputs_at_);
  if (const auto look = keeper_.folders().NextLook()) until = std::min(until, *look);
  for (const auto& [id, replica] : running_) {
    if (replica->kill_at()) until = std::min(until, *replica->kill_at());
    if (const auto left = replica->LeaseLeft(replica_lease_); left && !outbox_.full()) {
      until = std::min(until, now + std::min(*left, replica_lease_ / kTurnsPerLease));
    }
  }
  if (!outbox_.full()) until = std::min(until, spares_.NextTime(now, replica_lease_));
  until = std::min({until, zygotes_.NextTime(), watch_.NextTime()});
  if (until == Clock::time_point::max()) return -1;
  // Rounded up: waking a little early would turn the loop until the moment has come.
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
  return static_cast<int>(std::clamp<std::int64_t>(wait, 0, 3'600'000));
}

void AgentLoop::Wait(Clock::time_point now) {
  std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}, {watch_.pidfd(), POLLIN, 0}};
  std::vector<std::int64_t> ids;
  const bool listen = !outbox_.full();
  for (const auto& [id, replica] : running_) {
    const int events = (listen ? POLLIN : 0) | (replica->has_waiting_commands() ? POLLOUT : 0);
    // A socket that is not waited for is left out (-1), or its hang-up would keep the loop awake.
    fds.push_back({events != 0 ? replica->control_fd() : -1, static_cast<short>(events), 0});
    fds.push_back({replica->pidfd(), POLLIN, 0});
    ids.push_back(id);
  }
  const std::size_t first_spare = fds.size();
  spares_.Watch(fds);
  const std::size_t first_zygote = fds.size();
  zygotes_.Watch(fds);
  if (replacement_) fds.push_back({replacement_->pidfd(), POLLIN, 0});
  const int ready = poll(fds.data(), fds.size(), WaitMs(now));
  ListenedSince(listen);
  if (ready <= 0) return;
  spares_.Hear(std::span(fds).subspan(first_spare));
  zygotes_.Hear(std::span(fds).subspan(first_zygote));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ReplicaProcess& replica = *running_.at(ids[i]);
    const short socket = fds[2 + 2 * i].revents;
    if ((socket & POLLOUT) != 0) replica.Flush();
    if (listen && (socket & (POLLIN | POLLHUP | POLLERR)) != 0) Hear(ids[i]);
    // If it has parked, its end is its own affair.
    if (fds[3 + 2 * i].revents != 0 && running_.contains(ids[i])) ReplicaEnded(ids[i]);
  }
  if (fds[0].revents != 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof count);
    TakeArrivals();
  }
}

void AgentLoop::ListenedSince(bool listening) {
  const Clock::time_point now = Clock::now();
  // An agent that was itself stopped or starved for a while learns nothing about its replicas from
  // that: of a late turn no more than half a lease counts, and then they are read.
  const Clock::duration time = std::min(now - listened_until_, replica_lease_ / 2);
  listened_until_ = now;
  if (!listening) return;
  for (auto& [id, replica] : running_) replica->ListenedInVain(time);
  spares_.ListenedInVain(time);
}

void AgentLoop::KeepTime(Clock::time_point now) {
  for (auto& [id, replica] : running_) {
    replica->KillIfDue(now);
    replica->KillIfSilent(replica_lease_);
  }
  spares_.KeepTime(now, replica_lease_);
  zygotes_.KeepTime(now);
  if (!welcomed_) cut_off_.EndWhenDue(running_, lease_s_, options_.node_name, now);
  if (!welcomed_ || lease_s_ <= 0 || now < next_heartbeat_) return;
  const std::chrono::duration<double> lease(lease_s_);
  const auto third = std::chrono::duration_cast<Clock::duration>(lease / 3);
  next_heartbeat_ = now + third;
  // A service that beats and then falls silent is gone, whatever the connection still believes.
  if (service_sends_heartbeats_ && now - last_heard_ > lease) {
    spdlog::warn("service {} has been silent for longer than its lease of {} s: dialling again",
                 options_.service_address, lease_s_);
    last_heard_ = now;
    stream_->Break();
    return;
  }
  if (now - event_sent_ < third) return;  // which says as much
  v1::AgentMessage beat;
  beat.mutable_heartbeat();
  stream_->Send(stream_number_, beat);
}

void AgentLoop::TakeArrivals() {
  for (const ServiceStream::Arrival& arrival : stream_->TakeArrivals()) {
    switch (arrival.kind) {
      case ServiceStream::ArrivalKind::kOpened:
        SendHello(arrival.stream);
        break;
      case ServiceStream::ArrivalKind::kMessage:
        last_heard_ = Clock::now();
        cut_off_.ServiceHeard(last_heard_);
        if (arrival.message.has_welcome()) LearnHostAddress(arrival.peer);
        ObeyOrRefuse(arrival.message);
        break;
      case ServiceStream::ArrivalKind::kBroken:
        Broken(arrival.status);
        break;
    }
  }
}

void AgentLoop::SendHello(std::int64_t stream) {
  stream_number_ = stream;
  v1::AgentMessage message;
  v1::Hello& hello = *message.mutable_hello() = HelloOf(options_);
  hello.set_incarnation(incarnation_);
  keeper_.Describe(hello);
  if (machine_ends_) {
    const std::chrono::duration<double> left = *machine_ends_ - Clock::now();
    hello.set_leaves_in_s(std::max(0.0, left.count()));
  }
  *hello.mutable_unusable() = UnusableSlots();
  // Also those that have ended but whose end the service has not confirmed: the events that tell
  // of it follow, and must find a replica that the service knows.
  for (const auto& [id, replica] : unfinished_) {
    const auto running = running_.find(id);
    *hello.add_replicas() = running == running_.end() ? replica : running->second->identity();
  }
  stream_->Send(stream_number_, message);
}

void AgentLoop::ObeyOrRefuse(const v1::ServiceMessage& message) {
  const auto name = [&message] {
    const auto* kind = v1::ServiceMessage::descriptor()->FindFieldByNumber(message.kind_case());
    return kind == nullptr ? std::string("a message") : kind->name();
  };
  const absl::Status obeyed = Guarded(name, [&] { Obey(message); });
  if (obeyed.ok()) return;
  spdlog::error("node {} cannot do what the service says: {}", options_.node_name,
                std::string(obeyed.message()));
  if (!message.has_start() || running_.contains(message.start().replica_id())) return;
  fetching_.erase(message.start().replica_id());
  waiting_.erase(message.start().replica_id());
  NotStarted(message.start(), obeyed, CheckpointFailure::kNone);
}

void AgentLoop::Obey(const v1::ServiceMessage& message) {
  switch (message.kind_case()) {
    case v1::ServiceMessage::kWelcome:
      return Welcomed(message.welcome());
    case v1::ServiceMessage::kStart:
      return StartReplica(message.start());
    case v1::ServiceMessage::kToReplica: {
      const auto replica = running_.find(message.to_replica().replica_id());
      if (replica != running_.end()) replica->second->Send(message.to_replica().command());
      return;
    }
    case v1::ServiceMessage::kStop:
      return StopReplica(message.stop());
    case v1::ServiceMessage::kAcknowledge:
      return Acknowledged(message.acknowledge().sequence());
    case v1::ServiceMessage::kHeartbeat:
      service_sends_heartbeats_ = true;
      return;
    case v1::ServiceMessage::kReadOutput:
      return SendOutput(message.read_output());
    case v1::ServiceMessage::kAllowRead:
      return keeper_.Allow(message.allow_read());
    case v1::ServiceMessage::kCopy:
      return CopyCheckpoint(message.copy());
    case v1::ServiceMessage::kDrop:
      return keeper_.Drop(message.drop());
    case v1::ServiceMessage::kEndSpares:
      return EndSparesBeside(message.end_spares().slot());
    case v1::ServiceMessage::KIND_NOT_SET:
      spdlog::warn("service {} sent a message of an unknown kind", options_.service_address);
      return;
  }
}

void AgentLoop::Welcomed(const v1::Welcome& welcome) {
  spdlog::info("node {} is number {} of the pool at {}", options_.node_name, welcome.node_id(),
               options_.service_address);
  node_id_ = welcome.node_id();
  ever_welcomed_ = true;
  if (keeper_.on()) {
    v1::AgentMessage opened;
    *opened.mutable_checkpoint_server() = keeper_.OpenServer(host_);
    stream_->Send(stream_number_, opened);
  }
  lease_s_ = welcome.lease_s();
  next_heartbeat_ = Clock::now();
  service_sends_heartbeats_ = welcome.sends_heartbeats();
  last_break_.clear();
  outbox_.SendAllAgain();
  SetConnected(true);
}

void AgentLoop::LearnHostAddress(const std::string& service_peer) {
  const absl::StatusOr<HostAddress> host = ChooseHostAddress(options_, service_peer);
  if (!host.ok()) {
    spdlog::warn("node {}: where other machines reach it is not known, {} stays: {}",
                 options_.node_name, host_.address, std::string(host.status().message()));
    return;
  }
  if (*host == host_) return;
  host_ = *host;
  spdlog::info("other machines reach the replicas of node {} at {} ({})", options_.node_name,
               host_.address, host_.interface);
  if (!running_.empty()) {
    spdlog::warn("{} replicas listen at an older address until they end", running_.size());
  }
  spares_.EndIf([](const ReplicaProcess&) { return true; });  // they listen at an older one as well
}

void AgentLoop::Broken(const absl::Status& status) {
  SetConnected(false);
  std::string reason(status.message());
  const std::string http1 = Http1At(options_.service_address, reason);
  if (!http1.empty()) reason = http1;
  if (!ever_welcomed_ && SpeaksInTheClear(options_) && absl::IsUnavailable(status) &&
      IsShutOut(reason)) {
    absl::StrAppend(
        &reason,
        "; if it speaks TLS, show the token of its agents with --token-file FILE: it is "
        "in DATABASE.credentials/join.token there");
  }
  if ((absl::IsAborted(status) || !http1.empty()) && !ever_welcomed_ && running_.empty()) {
    refused_ = absl::FailedPreconditionError(reason);
    stopping_ = true;
    return;
  }
  if (reason == last_break_ && !reason.empty()) return;
  last_break_ = std::move(reason);
  if (stopping_) return;
  spdlog::warn("no connection to the service at {} ({}); replicas run on, trying again",
               options_.service_address, last_break_);
}

void AgentLoop::Acknowledged(std::int64_t sequence) {
  for (const std::int64_t id : outbox_.Acknowledge(sequence)) {
    unfinished_.erase(id);
    ended_.insert(id);
    if (ended_.size() > kMaxRememberedReplicas) ended_.erase(ended_.begin());
  }
}

void AgentLoop::SendEvents() {
  if (!welcomed_) return;
  while (const v1::AgentMessage* event = outbox_.NextToSend()) {
    if (!stream_->Send(stream_number_, *event))
      return;  // an arrival or room in its queue wakes this thread
    outbox_.MarkSent();
    event_sent_ = Clock::now();
  }
}

bool AgentLoop::AdoptSpare(const v1::StartReplica& start) {
  const auto on_this_gpu = [&, gpu = GpuOfSlot(options_, start.slot())](const auto& spare) {
    return GpuOfSlot(options_, spare.identity().slot()) == gpu;
  };
  std::unique_ptr<ReplicaProcess> spare = spares_.Take(start, on_this_gpu);
  EndSparesBeside(start.slot());
  for (const int slot : start.more_slots()) EndSparesBeside(slot);
  if (spare == nullptr) return false;
  // The process goes on writing to its old log, which is also found under the new replica's name.
  if (const absl::StatusOr<TrialFiles> files = MakeTrialFiles(options_, proxy_.access(), start);
      files.ok()) {
    std::error_code error;
    std::filesystem::create_symlink(std::filesystem::path(spare->log_path()).filename(), files->log,
                                    error);
  }
  spare->Adopt(start);
  Running(std::move(spare));
  return true;
}

void AgentLoop::Running(std::unique_ptr<ReplicaProcess> replica) {
  const v1::LiveReplica& identity = replica->identity();
  v1::AgentMessage event;
  v1::ReplicaStarted& started = *event.mutable_started();
  started.set_replica_id(identity.replica_id());
  started.set_trial_id(identity.trial_id());
  started.set_pid(identity.pid());
  outbox_.Add(std::move(event));
  if (replica->output() != nullptr || replica->files() != nullptr) outputs_at_ = Clock::now();
  running_.emplace(identity.replica_id(), std::move(replica));
}

absl::StatusOr<std::unique_ptr<ReplicaProcess>> AgentLoop::LaunchReplica(
    const v1::StartReplica& start, bool may_wait) {
  const absl::StatusOr<TrialFiles> made = MakeTrialFiles(options_, proxy_.access(), start);
  if (!made.ok()) return OfTheMachine(made.status());
  const TrialFiles& files = *made;
  ESPALIER_ASSIGN_OR_RETURN(v1::StartReplica resolved, WithPathsOf(files, start));
  LaunchOrder order;
  ESPALIER_ASSIGN_OR_RETURN(order.command, TrialCommand(start, files));
  order.expects_elastic = start.expects_elastic();
  order.directory = start.directory().empty() ? files.directory : start.directory();
  order.log_path = files.log;
  order.cpus = CpusNear(GpusOf(options_, start));
  ESPALIER_ASSIGN_OR_RETURN(order.environment,
                            TrialEnvironment(inherited_environment_, options_, proxy_.access(),
                                             node_id_, host_, start, files));
  order.environment[kRunMarkVariable] = RunMarks(inherited_environment_, incarnation_);
  std::unique_ptr<FileWatch> values = FileWatch::Of(resolved);
  ESPALIER_RETURN_IF_ERROR(SuperviseRanks(start, options_.ports, order));
  std::optional<LaunchedProcess> process;
  if (!start.own_interpreter() && (!start.has_launch() || !order.rank_command.empty())) {
    const std::vector<std::string> modules(start.preload().begin(), start.preload().end());
    if (may_wait && zygotes_.Awaited(order, modules, Clock::now())) return nullptr;
    process = zygotes_.Fork(start.replica_id(), order, modules);
  }
  if (!process) {
    ESPALIER_ASSIGN_OR_RETURN(process, Launch(order));
  }
  return std::make_unique<ReplicaProcess>(*std::move(process), std::move(resolved), files.log,
                                          std::move(values));
}

void AgentLoop::Hear(std::int64_t replica_id) {
  const absl::Status heard =
      Guarded([replica_id] { return absl::StrCat("what replica ", replica_id, " says"); },
              [&] { Forward(replica_id, running_.at(replica_id)->Read()); });
  const auto replica = running_.find(replica_id);
  if (heard.ok() || replica == running_.end()) return;
  spdlog::error("node {} ends a replica: {}", options_.node_name, std::string(heard.message()));
  replica->second->Terminate(0, Clock::now());
}

void AgentLoop::Forward(std::int64_t replica_id, std::vector<v1::ReplicaMessage> messages) {
  const ReplicaProcess& replica = *running_.at(replica_id);
  const std::int64_t trial_id = replica.identity().trial_id();
  if (replica.has_greeted())
    zygotes_.Spoke(replica_id, Clock::now(), replica.identity().pid(), replica.fork_obstacle());
  for (v1::ReplicaMessage& message : messages) {
    if (message.has_parked()) {  // which is its last word
      return Park(replica_id, message.parked().device_memory_bytes());
    }
    if (message.has_finished()) spares_.EndTrial(trial_id);
    // It says by itself what it saves.
    if (message.has_ready() || message.has_checkpoint()) keeper_.folders().Remove(replica_id);
    if (message.has_checkpoint() &&
        !keeper_.Complete(running_.at(replica_id)->start(), *message.mutable_checkpoint())) {
      continue;
    }
    v1::AgentMessage event;
    v1::FromReplica& from = *event.mutable_from_replica();
    from.set_replica_id(replica_id);
    from.set_trial_id(trial_id);
    *from.mutable_message() = std::move(message);
    outbox_.Add(std::move(event));
  }
}

}  // namespace espalier
