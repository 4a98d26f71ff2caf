#include "tests/trial_runner/control/replica_harness.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "trial_runner/agent/processes/launch.h"
#include "trial_runner/agent/zygotes/zygotes.h"
#include "tuner/messages/wire/replica_wire.h"

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

// As an agent has it: programs are forked once the first of their kind has spoken. All tests of a
// process share them, since a process that has imported PyTorch takes seconds to make.
Zygotes& SharedZygotes() {
  static Zygotes zygotes({.log_path = "/dev/stderr"});
  return zygotes;
}

LaunchedProcess ForkOrLaunch(std::int64_t process, const LaunchOrder& order) {
  Zygotes& zygotes = SharedZygotes();
  std::vector<pollfd> news;
  zygotes.Watch(news);
  poll(news.data(), news.size(), 0);
  zygotes.Hear(news);
  if (std::optional<LaunchedProcess> forked = zygotes.Fork(process, order, {})) {
    return *std::move(forked);
  }
  absl::StatusOr<LaunchedProcess> launched = Launch(order);
  ESPALIER_CHECK(launched.ok(), launched.status().ToString().c_str());
  return *std::move(launched);
}

}  // namespace

ReplicaHarness::ReplicaHarness(std::vector<std::string> command,
                               std::map<std::string, std::string> environment)
    : command_(std::move(command)), environment_(std::move(environment)) {}

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
  LaunchOrder order;
  order.command = command_;
  order.directory = std::filesystem::current_path();
  order.environment = OwnEnvironment();
  for (const auto& [name, value] : environment_) order.environment[name] = value;
  for (const auto& [name, value] : extra) order.environment[name] = value;
  order.environment["ESPALIER_REPLICA_ID"] = std::to_string(id);
  order.environment["ESPALIER_CONTROL_FD"] = std::to_string(kControlFd);
  order.log_path = "/dev/stderr";
  static std::int64_t processes = 0;  // of all harnesses, which each number their replicas from 1
  const std::int64_t process = ++processes;
  LaunchedProcess launched = ForkOrLaunch(process, order);
  Replica& replica = replicas_[id];
  replica.process = launched.pid;
  replica.number = process;
  // Its reader waits for what comes.
  const int socket = launched.control.Release();
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) & ~O_NONBLOCK);
  replica.socket = socket;
  replica.identity = std::make_shared<std::atomic<std::int64_t>>(id);
  replica.reader =
      std::thread([this, identity = replica.identity, socket] { Read(identity, socket); });
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
      } else if (message.has_greeting()) {  // that is for its agent alone
        if (message.greeting().has_fork_obstacle()) {
          fork_obstacles_[id] = message.greeting().fork_obstacle();
        }
      } else {
        std::optional<ReplicaMessage> said = FromProto(message);
        ESPALIER_CHECK(said.has_value(), "a replica sent what it should not");
        said_.push_back({id, *std::move(said), std::chrono::steady_clock::now()});
      }
      last_heard_.push_back("replica " + std::to_string(id) + ": " + message.ShortDebugString());
      if (last_heard_.size() > kShownAtGivingUp) last_heard_.pop_front();
    }
    heard_.notify_all();
  }
  {
    const std::lock_guard lock(mutex_);
    silent_.insert(socket);
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
    const auto* ready = std::get_if<ReplicaReady>(&said.message);
    if (said.replica != replica || ready == nullptr) return false;
    replicas_.at(replica).address = ready->address;
    return true;
  });
  const Replica& ready = replicas_.at(replica);
  std::unique_lock lock(mutex_);
  const auto said = fork_obstacles_.find(replica);
  const std::optional<std::string> obstacle =
      said == fork_obstacles_.end() ? std::nullopt : std::optional(said->second);
  lock.unlock();
  SharedZygotes().Spoke(ready.number, std::chrono::steady_clock::now(), ready.process, obstacle);
}

std::int64_t ReplicaHarness::Regroup(const std::vector<std::int64_t>& members, bool abandon,
                                     const std::vector<std::int64_t>& tell) {
  ++generation_;
  members_ = members;
  Membership membership{
      generation_, {}, abandon, "secret of generation " + std::to_string(generation_)};
  for (const std::int64_t id : members) {
    membership.members.push_back({ReplicaId(id), NodeId(1), replicas_.at(id).address});
  }
  const v1::ReplicaCommand command = ToProto(membership);
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
            const auto* regrouped = std::get_if<ReplicaRegrouped>(&s.message);
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
  SendCommand(node.mapped().socket, ToProto(Adoption{ReplicaId(id), checkpoint}));
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
  Reap(replicas_.at(replica));
}

int ReplicaHarness::AwaitExit(std::int64_t id) {
  Replica& replica = replicas_.at(id);
  const int exit_code = Reap(replica);
  // In vain where it has left a process behind that holds the socket.
  std::unique_lock lock(mutex_);
  heard_.wait_for(lock, kPatience, [&] { return silent_.contains(replica.socket); });
  return exit_code;
}

int ReplicaHarness::Reap(Replica& replica) {
  if (!replica.exit_code) {
    int status = 0;
    waitpid(replica.process, &status, 0);
    replica.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return *replica.exit_code;
}

}  // namespace espalier
