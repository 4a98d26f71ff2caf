// A pool of many agents, as the service sees it: bench_pool_load ADDRESS CA AGENTS SLOTS SECONDS.
// Each agent is a connection and a stream of its own and speaks the real protocol; its replicas
// start, meet, report once a second and stop as those of programs do, without computing anything.
// SLOTS are dealt evenly among the AGENTS. Of the trials every second begins with what is not a
// number: its pruner ends such a trial, and counted is the time from sending it until the first
// command that ends a replica of the trial. Of the others' reports one in 140 is the last, so that
// about as many trials end, and begin, in each second. With "ready" on a line of its own it says
// that all agents are in the pool and as many trials train as find room; one line of JSON ends it
// SECONDS later. CA: a file of certificates to trust; "-": no TLS.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/random.h"
#include "grpcpp/grpcpp.h"
#include "tuner.grpc.pb.h"

namespace {

namespace v1 = espalier::v1;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::int64_t kLastStep = 120;
constexpr double kNotANumber = 0.5;  // of the trials' first reports
constexpr double kLast = 1.0 / 140;  // of the others
constexpr double kReport_s = 1;
constexpr double kHeartbeat_s = 2;
constexpr std::chrono::milliseconds kTick{20};
constexpr std::chrono::seconds kStartLimit{180};

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "bench_pool_load: %s\n", what.c_str());
  std::exit(1);
}

// From reports that end a trial to the command that does.
class Verdicts {
 public:
  void Expect(std::int64_t trial) { asked_.emplace(trial, Clock::now()); }

  void Arrived(std::int64_t trial) {
    const auto asked = asked_.find(trial);
    if (asked == asked_.end()) return;
    took_s_.push_back(Seconds(Clock::now() - asked->second).count());
    asked_.erase(asked);
  }

  bool Waits(std::int64_t trial) const { return asked_.contains(trial); }
  void Forget() { took_s_.clear(); }
  std::size_t count() const { return took_s_.size(); }
  std::size_t open() const { return asked_.size(); }

  // There must be some.
  double Quantile_s(double q) {
    std::sort(took_s_.begin(), took_s_.end());
    const auto last = static_cast<double>(took_s_.size() - 1);
    return took_s_[static_cast<std::size_t>(std::ceil(q * last))];
  }

 private:
  std::map<std::int64_t, Clock::time_point> asked_;  // by trial
  std::vector<double> took_s_;
};

struct Replica {
  std::int64_t trial = 0;
  std::int64_t generation = 0;
  std::vector<std::int64_t> members;  // of its group, by rank
  std::int64_t step = 0;              // that its trial has reported
  Clock::time_point next_report;
};

struct Totals {
  std::atomic<std::int64_t> welcome = 0;
  std::atomic<std::int64_t> lost = 0;
  std::atomic<std::int64_t> reports = 0;
  std::atomic<std::int64_t> training = 0;  // trials that have a group
};

// What all agents share, under one lock: this program is light beside the service.
struct Pool {
  std::mutex mutex;
  Verdicts verdicts;
  std::map<std::int64_t, std::int64_t> steps;  // by trial: its last report
  espalier::Random random{7};
  Totals totals;
};

class Agent : public grpc::ClientBidiReactor<v1::AgentMessage, v1::ServiceMessage> {
 public:
  Agent(Pool& pool, const std::string& address,
        const std::shared_ptr<grpc::ChannelCredentials>& credentials, int number, int slots)
      : pool_(pool), next_heartbeat_(Clock::now()) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    stub_ = v1::Tuner::NewStub(grpc::CreateCustomChannel(address, credentials, arguments));
    stub_->async()->Agent(&context_, this);
    v1::AgentMessage message;
    v1::Hello& hello = *message.mutable_hello();
    hello.set_node_name("node-" + std::to_string(number));
    hello.set_slots(slots);
    hello.set_incarnation("1");
    hello.set_directory("/nowhere");
    Queue(std::move(message));
    StartRead(&incoming_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    {
      const std::lock_guard lock(pool_.mutex);
      Take(incoming_);
    }
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(pool_.mutex);
    outgoing_.pop_front();
    if (ok && !outgoing_.empty()) StartWrite(&outgoing_.front());
  }

  void OnDone(const grpc::Status& status) override {
    if (leaving_) return;
    ++pool_.totals.lost;
    std::fprintf(stderr, "bench_pool_load: an agent's stream ended: %s\n",
                 status.error_message().c_str());
  }

  // Under the pool's lock.
  void Tick(Clock::time_point now) {
    if (now >= next_heartbeat_) {
      const auto interval = std::chrono::duration_cast<Clock::duration>(Seconds(kHeartbeat_s));
      next_heartbeat_ = now + interval;
      if (now - event_sent_ >= interval) {
        v1::AgentMessage message;
        message.mutable_heartbeat();
        Queue(std::move(message));
      }
    }
    std::vector<std::int64_t> ended;
    for (auto& [id, replica] : replicas_) {
      if (replica.members.empty() || replica.members.front() != id) continue;
      if (now < replica.next_report || pool_.verdicts.Waits(replica.trial)) continue;
      if (Report(id, replica, now)) ended.push_back(id);
    }
    for (const std::int64_t id : ended) Exit(id, 0, 0);
  }

  void Leave() {
    leaving_ = true;
    context_.TryCancel();
  }

  // Under the pool's lock: an event of another agent's replica, which had its trial end.
  void EndOfTrial(std::int64_t trial) {
    std::vector<std::int64_t> ended;
    for (const auto& [id, replica] : replicas_) {
      if (replica.trial == trial && !replica.members.empty()) ended.push_back(id);
    }
    for (const std::int64_t id : ended) Exit(id, 0, 0);
  }

  std::vector<std::int64_t> TakeEndedTrials() { return std::exchange(ended_trials_, {}); }

 private:
  void Queue(v1::AgentMessage message) {
    outgoing_.push_back(std::move(message));
    if (outgoing_.size() == 1) StartWrite(&outgoing_.front());
  }

  void QueueEvent(v1::AgentMessage message) {
    message.set_sequence(++sequence_);
    event_sent_ = Clock::now();
    Queue(std::move(message));
  }

  v1::AgentMessage From(std::int64_t id, const Replica& replica) {
    v1::AgentMessage message;
    message.mutable_from_replica()->set_replica_id(id);
    message.mutable_from_replica()->set_trial_id(replica.trial);
    return message;
  }

  void Take(const v1::ServiceMessage& message) {
    if (message.has_welcome()) ++pool_.totals.welcome;
    if (message.has_start()) Start(message.start());
    if (message.has_to_replica()) Obey(message.to_replica());
    if (!message.has_stop()) return;
    const auto it = replicas_.find(message.stop().replica_id());
    if (it == replicas_.end()) return;
    pool_.verdicts.Arrived(it->second.trial);
    Exit(it->first, -1, 15);
  }

  void Start(const v1::StartReplica& start) {
    Replica& replica = replicas_[start.replica_id()];
    replica.trial = start.trial_id();
    v1::AgentMessage started;
    started.mutable_started()->set_replica_id(start.replica_id());
    started.mutable_started()->set_trial_id(start.trial_id());
    started.mutable_started()->set_pid(1);
    QueueEvent(std::move(started));
    v1::AgentMessage ready = From(start.replica_id(), replica);
    v1::Ready& says = *ready.mutable_from_replica()->mutable_message()->mutable_ready();
    says.set_address("192.0.2.1:" + std::to_string(1024 + start.replica_id() % 60000));
    says.set_total_steps(kLastStep);
    v1::BatchBounds& batch = *says.mutable_batch();
    batch.set_initial_batch_size(128);
    batch.set_max_batch_size(2048);
    batch.set_min_atomic_batch_size(16);
    batch.set_max_atomic_batch_size(256);
    batch.set_accumulation(true);
    QueueEvent(std::move(ready));
  }

  void Obey(const v1::ToReplica& command) {
    const auto it = replicas_.find(command.replica_id());
    if (it == replicas_.end() || !command.command().has_regroup()) return;
    Replica& replica = it->second;
    const v1::Regroup& regroup = command.command().regroup();
    if (regroup.generation() <= replica.generation) return;
    replica.generation = regroup.generation();
    replica.members.clear();
    for (const v1::Member& member : regroup.members())
      replica.members.push_back(member.replica_id());
    if (std::count(replica.members.begin(), replica.members.end(), it->first) == 0) {
      if (replica.members.empty()) {
        pool_.verdicts.Arrived(replica.trial);
        v1::AgentMessage saved = From(it->first, replica);
        auto& checkpoint = *saved.mutable_from_replica()->mutable_message()->mutable_checkpoint();
        checkpoint.set_path("step-" + std::to_string(pool_.steps[replica.trial]));
        checkpoint.set_step(pool_.steps[replica.trial]);
        QueueEvent(std::move(saved));
      }
      return Exit(it->first, 0, 0);
    }
    v1::AgentMessage message = From(it->first, replica);
    v1::Regrouped& regrouped =
        *message.mutable_from_replica()->mutable_message()->mutable_regrouped();
    regrouped.set_generation(replica.generation);
    regrouped.set_step(pool_.steps[replica.trial]);
    regrouped.set_pause_s(0.01);
    QueueEvent(std::move(message));
    // Spread over the second.
    replica.next_report =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(pool_.random.Uniform()));
  }

  // Whether that was the trial's last.
  bool Report(std::int64_t id, Replica& replica, Clock::time_point now) {
    replica.next_report = now + std::chrono::duration_cast<Clock::duration>(Seconds(kReport_s));
    const std::int64_t step = ++pool_.steps[replica.trial];
    ++pool_.totals.reports;
    v1::AgentMessage message = From(id, replica);
    v1::Report& report = *message.mutable_from_replica()->mutable_message()->mutable_report();
    report.set_step(step);
    report.set_progress(static_cast<double>(step) * 100);
    const bool ends = step == 1 && pool_.random.Uniform() < kNotANumber;
    report.set_value(ends ? std::numeric_limits<double>::quiet_NaN()
                          : 1 / static_cast<double>(step + 1));
    if (ends) pool_.verdicts.Expect(replica.trial);
    QueueEvent(std::move(message));
    QueueEvent(Progress(id, replica, step));
    if (ends || (step < kLastStep && pool_.random.Uniform() >= kLast)) return false;
    v1::AgentMessage finished = From(id, replica);
    finished.mutable_from_replica()->mutable_message()->mutable_finished();
    QueueEvent(std::move(finished));
    ended_trials_.push_back(replica.trial);
    return true;
  }

  v1::AgentMessage Progress(std::int64_t id, const Replica& replica, std::int64_t step) {
    v1::AgentMessage message = From(id, replica);
    v1::Progress& progress = *message.mutable_from_replica()->mutable_message()->mutable_progress();
    const auto replicas = static_cast<std::int64_t>(replica.members.size());
    progress.set_generation(replica.generation);
    progress.set_step(10 * step);
    progress.set_progress(static_cast<double>(step) * 100);
    progress.set_global_batch_size(32 * replicas);
    progress.set_atomic_batch_size(32);
    progress.set_gradient_sqr(1);
    progress.set_gradient_var(100);
    v1::ProfileEntry& entry = *progress.add_profile();
    entry.set_nodes(1);
    entry.set_replicas(static_cast<std::int32_t>(replicas));
    entry.set_atomic_batch_size(32);
    entry.set_optimizer_count(10);
    entry.set_optimizer_time_s(1);
    entry.set_sync_time_s(0.1);
    for (const std::int64_t member : replica.members) {
      v1::ReplicaTime& time = *progress.add_replica_times();
      time.set_replica_id(member);
      time.set_steps(10);
      time.set_compute_time_s(0.9);
    }
    return message;
  }

  void Exit(std::int64_t id, int code, int signal) {
    const auto it = replicas_.find(id);
    if (it == replicas_.end()) return;
    v1::AgentMessage message;
    v1::ReplicaExited& exited = *message.mutable_exited();
    exited.set_replica_id(id);
    exited.set_trial_id(it->second.trial);
    exited.set_exit_code(code);
    exited.set_signal(signal);
    QueueEvent(std::move(message));
    replicas_.erase(it);
  }

  Pool& pool_;
  std::unique_ptr<v1::Tuner::Stub> stub_;
  grpc::ClientContext context_;
  v1::ServiceMessage incoming_;
  std::deque<v1::AgentMessage> outgoing_;
  std::map<std::int64_t, Replica> replicas_;
  std::vector<std::int64_t> ended_trials_;
  std::int64_t sequence_ = 0;
  Clock::time_point next_heartbeat_;
  Clock::time_point event_sent_;
  std::atomic<bool> leaving_ = false;
};

std::shared_ptr<grpc::ChannelCredentials> Credentials(const std::string& ca) {
  if (ca == "-") return grpc::InsecureChannelCredentials();
  std::ifstream file(ca);
  if (!file) Die("cannot read " + ca);
  std::stringstream roots;
  roots << file.rdbuf();
  return grpc::SslCredentials({roots.str(), "", ""});
}

class Load {
 public:
  Load(const std::string& address, const std::string& ca, int agents, int slots) {
    const auto credentials = Credentials(ca);
    for (int i = 0; i < agents; ++i) {
      const int more = i < slots % agents ? 1 : 0;
      agents_.push_back(
          std::make_unique<Agent>(pool_, address, credentials, i, slots / agents + more));
    }
    AwaitWelcome();
  }

  void RunFor(double seconds) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
    while (Clock::now() < end) {
      Tick();
      std::this_thread::sleep_for(kTick);
    }
  }

  // Until the number of reports a second no longer grows: every trial that finds room trains.
  void WarmUp() {
    std::int64_t before = -1;
    for (;;) {
      const std::int64_t at = pool_.totals.reports;
      RunFor(5);
      const std::int64_t made = pool_.totals.reports - at;
      if (made > 0 && before > 0 && made < before + before / 20) break;
      before = made;
    }
    const std::lock_guard lock(pool_.mutex);
    pool_.verdicts.Forget();
    pool_.totals.reports = 0;
  }

  void Print(double seconds) {
    const std::lock_guard lock(pool_.mutex);
    std::printf(
        "{\"reports_per_s\": %.1f, \"verdicts\": %zu, \"open_verdicts\": %zu, "
        "\"report_to_decision_p50_ms\": %s, \"report_to_decision_p99_ms\": %s, "
        "\"lost_agents\": %lld}\n",
        static_cast<double>(pool_.totals.reports) / seconds, pool_.verdicts.count(),
        pool_.verdicts.open(), Milliseconds(0.5).c_str(), Milliseconds(0.99).c_str(),
        static_cast<long long>(pool_.totals.lost));
    std::fflush(stdout);
  }

 private:
  // JSON has no NaN: where no trial was ended there is no such time.
  std::string Milliseconds(double q) {
    if (pool_.verdicts.count() == 0) return "null";
    char text[32];
    std::snprintf(text, sizeof(text), "%.1f", 1000 * pool_.verdicts.Quantile_s(q));
    return text;
  }

  void AwaitWelcome() {
    const auto end = Clock::now() + kStartLimit;
    while (pool_.totals.welcome < static_cast<std::int64_t>(agents_.size())) {
      if (Clock::now() > end) {
        Die(std::to_string(pool_.totals.welcome) + " of " + std::to_string(agents_.size()) +
            " agents were welcome");
      }
      Tick();
      std::this_thread::sleep_for(kTick);
    }
  }

  void Tick() {
    const std::lock_guard lock(pool_.mutex);
    const auto now = Clock::now();
    for (const auto& agent : agents_) {
      agent->Tick(now);
      for (const std::int64_t trial : agent->TakeEndedTrials()) {
        for (const auto& other : agents_) other->EndOfTrial(trial);
      }
    }
  }

  Pool pool_;
  std::vector<std::unique_ptr<Agent>> agents_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) Die("usage: bench_pool_load ADDRESS CA AGENTS SLOTS SECONDS");
  // As in `tuner`: Debian's absl is built to look for deadlocks at each lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // Never destroyed: the streams end with the process.
  static Load* load = new Load(argv[1], argv[2], std::atoi(argv[3]), std::atoi(argv[4]));
  load->WarmUp();
  std::printf("ready\n");
  std::fflush(stdout);
  const double seconds = std::atof(argv[5]);
  load->RunFor(seconds);
  load->Print(seconds);
  std::_Exit(0);
}
