#include "tests/trial_runner/control/replica_harness.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "control.pb.h"
#include "tuner/base/check.h"

extern char** environ;

namespace espalier {
namespace {

constexpr std::size_t kPrefixBytes = 4;

bool ReceiveAll(int socket, char* start, std::size_t size) {
  while (size > 0) {
    const ssize_t got = recv(socket, start, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    start += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

ProfileEntry EntryOf(const v1::ProfileEntry& from) {
  return {.key = {from.nodes(), from.replicas(), from.atomic_batch_size()},
          .accumulation_count = from.accumulation_count(),
          .accumulation_time_s = from.accumulation_time_s(),
          .optimizer_count = from.optimizer_count(),
          .optimizer_time_s = from.optimizer_time_s(),
          .sync_time_s = from.sync_time_s()};
}

ReplicaWord WordOf(const v1::ReplicaMessage& message) {
  switch (message.kind_case()) {
    case v1::ReplicaMessage::kReady: {
      const v1::Ready& m = message.ready();
      const v1::BatchBounds& b = m.batch();
      return ReplicaReady{m.address(),
                          {.initial = b.initial_batch_size(),
                           .max_global = b.max_batch_size(),
                           .min_atomic = b.min_atomic_batch_size(),
                           .max_atomic = b.max_atomic_batch_size(),
                           .accumulation = b.accumulation(),
                           .max_unsplit = b.max_unsplit_batch_size()},
                          m.total_steps()};
    }
    case v1::ReplicaMessage::kRegrouped: {
      const v1::Regrouped& m = message.regrouped();
      return ReplicaRegrouped{m.generation(), m.step(),        m.pause_s(),
                              m.form_s(),     m.broadcast_s(), m.lost_step_s()};
    }
    case v1::ReplicaMessage::kReport: {
      const v1::Report& m = message.report();
      return ReplicaReport{
          m.generation(), m.step(), m.value(), m.progress(), {m.extra().begin(), m.extra().end()}};
    }
    case v1::ReplicaMessage::kProgress: {
      const v1::Progress& m = message.progress();
      ReplicaProgress word;
      word.generation = m.generation();
      word.step = m.step();
      word.progress = m.progress();
      word.epoch = m.epoch();
      word.global_batch_size = m.global_batch_size();
      word.atomic_batch_size = m.atomic_batch_size();
      word.accumulation_steps = m.accumulation_steps();
      word.learning_rate = m.learning_rate();
      word.gradient_sqr = m.gradient_sqr();
      word.gradient_var = m.gradient_var();
      word.goodput = m.goodput();
      word.memory_bytes = m.memory_bytes();
      word.device_memory_bytes = m.device_memory_bytes();
      word.skipped_steps = m.skipped_steps();
      word.loss_scale = m.loss_scale();
      for (const v1::ProfileEntry& entry : m.profile()) word.profile.push_back(EntryOf(entry));
      for (const v1::ReplicaTime& time : m.replica_times()) {
        word.replica_times.push_back(
            {ReplicaId(time.replica_id()), time.steps(), time.compute_time_s()});
      }
      return word;
    }
    case v1::ReplicaMessage::kCheckpoint:
      return ReplicaCheckpoint{message.checkpoint().generation(), message.checkpoint().path(),
                               message.checkpoint().step()};
    case v1::ReplicaMessage::kFinished: {
      const v1::Finished& m = message.finished();
      return ReplicaFinished{m.generation(),
                             m.has_value() ? std::optional(m.value()) : std::nullopt, m.failure()};
    }
    case v1::ReplicaMessage::kStuck:
      return ReplicaStuck{message.stuck().generation(), message.stuck().waited_s()};
    case v1::ReplicaMessage::kHeartbeat:
    case v1::ReplicaMessage::kParked:
      break;  // no word of the trial's; the first only to agents that ask for it
    case v1::ReplicaMessage::KIND_NOT_SET:
      break;
  }
  ESPALIER_CHECK(false, "a replica sent what it should not");
}

// Four bytes of length, least significant first, and the message.
void SendCommand(int socket, const v1::ReplicaCommand& command) {
  const std::string body = command.SerializeAsString();
  std::string message;
  for (std::size_t i = 0; i < kPrefixBytes; ++i) {
    message.push_back(static_cast<char>((body.size() >> (8 * i)) & 0xFF));
  }
  message += body;
  // A replica may just have ended; whoever waits for it will see.
  (void)!send(socket, message.data(), message.size(), MSG_NOSIGNAL);
}

}  // namespace

ReplicaHarness::ReplicaHarness(std::string program, std::vector<std::string> arguments,
                               std::map<std::string, std::string> environment)
    : program_(std::move(program)),
      arguments_(std::move(arguments)),
      environment_(std::move(environment)) {}

ReplicaHarness::~ReplicaHarness() {
  for (auto& [id, replica] : replicas_) {
    if (!replica.exit_code) kill(replica.process, SIGKILL);
  }
  for (auto& [id, replica] : replicas_) {
    if (!replica.exit_code) waitpid(replica.process, nullptr, 0);
    shutdown(replica.socket, SHUT_RDWR);
    replica.reader.join();
    close(replica.socket);
  }
}

std::int64_t ReplicaHarness::Start(const std::map<std::string, std::string>& extra) {
  const std::int64_t id = next_replica_++;
  int sockets[2];
  ESPALIER_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0, "socketpair");

  // All memory is got before the fork: this process has threads.
  std::map<std::string, std::string> variables = environment_;
  for (const auto& [name, value] : extra) variables[name] = value;
  variables["ESPALIER_REPLICA_ID"] = std::to_string(id);
  variables["ESPALIER_CONTROL_FD"] = std::to_string(sockets[1]);
  std::vector<std::string> lines;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string line = *e;
    if (!variables.contains(line.substr(0, line.find('=')))) lines.push_back(line);
  }
  for (const auto& [name, value] : variables) lines.push_back(name + "=" + value);
  std::vector<char*> child_environment;
  for (std::string& line : lines) child_environment.push_back(line.data());
  child_environment.push_back(nullptr);
  std::vector<std::string> words = arguments_;
  words.insert(words.begin(), program_);
  std::vector<char*> child_arguments;
  for (std::string& word : words) child_arguments.push_back(word.data());
  child_arguments.push_back(nullptr);

  const pid_t process = fork();
  ESPALIER_CHECK(process >= 0, "fork");
  if (process == 0) {
    fcntl(sockets[1], F_SETFD, 0);
    execve(program_.c_str(), child_arguments.data(), child_environment.data());
    _exit(127);
  }
  close(sockets[1]);
  Replica& replica = replicas_[id];
  replica.process = process;
  replica.socket = sockets[0];
  replica.identity = std::make_shared<std::atomic<std::int64_t>>(id);
  replica.reader = std::thread(
      [this, identity = replica.identity, socket = sockets[0]] { Read(identity, socket); });
  return id;
}

void ReplicaHarness::Read(const Identity& identity, int socket) {
  while (true) {
    unsigned char prefix[kPrefixBytes];
    if (!ReceiveAll(socket, reinterpret_cast<char*>(prefix), sizeof prefix)) break;
    std::size_t size = 0;
    for (std::size_t i = 0; i < kPrefixBytes; ++i) {
      size |= static_cast<std::size_t>(prefix[i]) << (8 * i);
    }
    std::string body(size, '\0');
    if (!ReceiveAll(socket, body.data(), size)) break;
    v1::ReplicaMessage message;
    ESPALIER_CHECK(message.ParseFromString(body), "a replica sent what is no message");
    {
      const std::lock_guard lock(mutex_);
      const std::int64_t id = *identity;
      if (message.has_parked()) {
        parked_.insert(id);
      } else {
        said_.push_back({id, WordOf(message), std::chrono::steady_clock::now()});
      }
      last_heard_.push_back("replica " + std::to_string(id) + ": " + message.ShortDebugString());
      if (last_heard_.size() > kShownAtGivingUp) last_heard_.pop_front();
    }
    heard_.notify_all();
  }
  heard_.notify_all();
}

void ReplicaHarness::Await(const std::string& what,
                           const std::function<bool(const std::deque<Said>&)>& condition) {
  std::unique_lock lock(mutex_);
  if (heard_.wait_for(lock, kPatience, [&] { return condition(said_); })) return;
  std::fprintf(stderr, "gave up waiting for %s; heard last:\n", what.c_str());
  for (const std::string& line : last_heard_) std::fprintf(stderr, "%s\n", line.c_str());
  std::abort();
}

void ReplicaHarness::AwaitMessage(const std::string& what,
                                  const std::function<bool(const Said&)>& condition) {
  Await(what, [&](const std::deque<Said>& said) {
    return std::any_of(said.begin(), said.end(), condition);
  });
}

std::deque<ReplicaHarness::Said> ReplicaHarness::EverythingSaid() {
  const std::lock_guard lock(mutex_);
  return said_;
}

void ReplicaHarness::AwaitReady(std::int64_t replica) {
  AwaitMessage("Ready of replica " + std::to_string(replica), [&](const Said& said) {
    const auto* ready = std::get_if<ReplicaReady>(&said.word);
    if (said.replica != replica || ready == nullptr) return false;
    replicas_.at(replica).address = ready->address;
    return true;
  });
}

std::int64_t ReplicaHarness::Regroup(const std::vector<std::int64_t>& members, bool abandon,
                                     const std::vector<std::int64_t>& tell) {
  ++generation_;
  members_ = members;
  v1::ReplicaCommand command;
  command.mutable_regroup()->set_generation(generation_);
  command.mutable_regroup()->set_abandon(abandon);
  for (const std::int64_t id : members) {
    v1::Member& member = *command.mutable_regroup()->add_members();
    member.set_replica_id(id);
    member.set_node_id(1);
    member.set_address(replicas_.at(id).address);
  }
  for (const auto& [id, replica] : replicas_) {
    if (replica.exit_code) continue;
    if (!tell.empty() && std::find(tell.begin(), tell.end(), id) == tell.end()) continue;
    SendCommand(replica.socket, command);
  }
  return generation_;
}

double ReplicaHarness::AwaitRegrouped(const std::vector<std::int64_t>& training) {
  double longest_s = 0;
  Await("Regrouped of generation " + std::to_string(generation_),
        [&](const std::deque<Said>& said) {
          std::vector<std::int64_t> missing = members_;
          longest_s = 0;
          for (const Said& s : said) {
            const auto* regrouped = std::get_if<ReplicaRegrouped>(&s.word);
            if (regrouped == nullptr || regrouped->generation != generation_) continue;
            std::erase(missing, s.replica);
            const bool counts = training.empty() || std::find(training.begin(), training.end(),
                                                              s.replica) != training.end();
            if (counts) longest_s = std::max(longest_s, regrouped->pause_s);
          }
          return missing.empty();
        });
  return longest_s;
}

void ReplicaHarness::AwaitParked(std::int64_t replica) {
  Await("replica " + std::to_string(replica) + " to park",
        [&](const std::deque<Said>&) { return parked_.contains(replica); });
}

std::int64_t ReplicaHarness::Adopt(std::int64_t parked, const std::string& checkpoint) {
  const std::int64_t id = next_replica_++;
  auto node = replicas_.extract(parked);
  node.key() = id;
  *node.mapped().identity = id;
  v1::ReplicaCommand command;
  command.mutable_adopt()->set_replica_id(id);
  command.mutable_adopt()->set_checkpoint(checkpoint);
  SendCommand(node.mapped().socket, command);
  replicas_.insert(std::move(node));
  return id;
}

void ReplicaHarness::Signal(std::int64_t replica, int signal) {
  kill(replicas_.at(replica).process, signal);
}

void ReplicaHarness::HangUp(std::int64_t replica) {
  shutdown(replicas_.at(replica).socket, SHUT_RDWR);
}

void ReplicaHarness::Kill(std::int64_t replica) {
  Signal(replica, SIGKILL);
  AwaitExit(replica);
}

int ReplicaHarness::AwaitExit(std::int64_t id) {
  Replica& replica = replicas_.at(id);
  if (!replica.exit_code) {
    int status = 0;
    waitpid(replica.process, &status, 0);
    replica.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return *replica.exit_code;
}

}  // namespace espalier
