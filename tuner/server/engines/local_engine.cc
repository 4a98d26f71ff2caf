#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "spdlog/spdlog.h"
#include "tuner/server/engines/engines.h"
#include "tuner/server/engines/node_directory.h"
#include "tuner/server/engines/node_process.h"

namespace espalier::engines {

namespace {

// An agent's arguments, where all nodes share a machine.
std::vector<std::string> WordsOf(const NodeAgents& agents) {
  std::vector<std::string> words = AgentArguments(agents);
  words.insert(words.end(), agents.on_one_machine.begin(), agents.on_one_machine.end());
  for (const std::string& word : NoticeArguments(agents, 0)) words.push_back(word);
  return words;
}

std::string SharedFolder(const NodeAgents& agents) {
  return agents.checkpoints.empty() ? agents.directory + "/checkpoints" : agents.checkpoints;
}

// Nodes that are processes of this machine. They outlive a process that dies without ending its
// engine: which they are is written down in their folders, and the next engine of the same
// directory takes them over if they dial the same address, and else ends them. What an agent prints
// goes to agent.log in its folder. What is wanted is said by any thread; one thread of the engine's
// own compares it with what is there.
class LocalEngine final : public Engine {
 public:
  LocalEngine(NodeAgents agents, double end_grace_s, NodeDirectory directory)
      : agents_(std::move(agents)),
        end_grace_s_(end_grace_s),
        directory_(std::move(directory)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~LocalEngine() override {
    Stop();
    close(wake_);
  }

  void Open(const std::string& grpc_address, const std::string& http_address) override {
    const std::lock_guard lock(mutex_);
    if (thread_.joinable() || stopping_) return;
    grpc_address_ = grpc_address;
    http_address_ = http_address;
    for (NodeProcess& node : NodeProcess::Find(agents_.directory)) {
      const bool dials_here = node.service_address() == grpc_address;
      spdlog::info("event=node_taken_over node=\"{}\" pid={} ends={}", node.name(), node.pid(),
                   !dials_here);
      if (dials_here) wanted_.insert(node.name());
      nodes_.emplace(node.name(), std::move(node));
    }
    thread_ = std::thread([this] { Run(); });
  }

  void StartNode(const std::string& name) override { Want(name, true); }
  void ReleaseNode(const std::string& name) override { Want(name, false); }

  void Stop() override {
    std::thread thread;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      wanted_.clear();
      thread = std::move(thread_);
    }
    Wake();
    if (thread.joinable()) thread.join();
  }

 private:
  void Want(const std::string& name, bool wanted) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      if (wanted ? !wanted_.insert(name).second : wanted_.erase(name) == 0) return;
      // Should its name be wanted again before the thread looks, another node is meant.
      if (!wanted && nodes_.contains(name)) released_.insert(name);
    }
    Wake();
  }

  bool MustEnd(const std::string& name) const {
    return released_.contains(name) || !wanted_.contains(name);
  }

  void Wake() const { eventfd_write(wake_, 1); }

  void Run() {
    while (true) {
      Wait();
      const std::lock_guard lock(mutex_);
      Bury();
      StartWanted();
      EndUnwanted();
      if (stopping_ && nodes_.empty()) return;
    }
  }

  // Until a process ends, something else is wanted, or one has had its time.
  void Wait() {
    std::vector<pollfd> watched = {{wake_, POLLIN, 0}};
    int timeout_ms = -1;
    {
      const std::lock_guard lock(mutex_);
      const bool to_do = std::any_of(nodes_.begin(), nodes_.end(), [this](const auto& node) {
        return MustEnd(node.first) && !ends_.contains(node.first);
      });
      if (to_do) timeout_ms = 0;
      for (const auto& [name, node] : nodes_) watched.push_back({node.descriptor(), POLLIN, 0});
      for (const auto& [name, until] : ends_) {
        const double left_s = std::max(0.0, SecondsBetween(Now(), until));
        const int left_ms = static_cast<int>(std::ceil(left_s * 1000));
        timeout_ms = timeout_ms < 0 ? left_ms : std::min(timeout_ms, left_ms);
      }
    }
    poll(watched.data(), watched.size(), timeout_ms);
    eventfd_t ignored = 0;
    eventfd_read(wake_, &ignored);
  }

  // A node that ended by itself is not started again: the core will see that it is gone.
  void Bury() {
    for (auto it = nodes_.begin(); it != nodes_.end();) {
      if (!it->second.Ended()) {
        ++it;
        continue;
      }
      spdlog::info("event=node_ended node=\"{}\" pid={}", it->first, it->second.pid());
      if (ends_.erase(it->first) + released_.erase(it->first) == 0) wanted_.erase(it->first);
      it = nodes_.erase(it);
    }
  }

  void StartWanted() {
    for (auto it = wanted_.begin(); it != wanted_.end();) {
      if (nodes_.contains(*it)) {
        ++it;
        continue;
      }
      absl::StatusOr<NodeProcess> node = NodeProcess::Start({.executable = agents_.executable,
                                                             .arguments = WordsOf(agents_),
                                                             .directory = agents_.directory,
                                                             .checkpoints = SharedFolder(agents_),
                                                             .name = *it,
                                                             .grpc_address = grpc_address_,
                                                             .http_address = http_address_});
      if (node.ok()) {
        spdlog::info("event=node_started node=\"{}\" pid={}", *it, node->pid());
        nodes_.emplace(*it, *std::move(node));
        ++it;
      } else {
        spdlog::error("event=node_not_started node=\"{}\" error=\"{}\"", *it,
                      std::string(node.status().message()));
        it = wanted_.erase(it);
      }
    }
  }

  void EndUnwanted() {
    for (auto& [name, node] : nodes_) {
      const auto until = ends_.find(name);
      if (until != ends_.end()) {
        if (until->second > Now()) continue;
        spdlog::warn("event=node_killed node=\"{}\" pid={} grace_s={}", name, node.pid(),
                     end_grace_s_);
        node.Signal(SIGKILL);
        until->second = After(Now(), end_grace_s_);
      } else if (MustEnd(name)) {
        node.Signal(SIGTERM);
        ends_[name] = After(Now(), end_grace_s_);
      }
    }
  }

  const NodeAgents agents_;
  const double end_grace_s_;       // between SIGTERM and SIGKILL
  const NodeDirectory directory_;  // others are kept out of it
  const int wake_;
  std::mutex mutex_;  // guards what follows
  std::string grpc_address_;
  std::string http_address_;
  std::set<std::string> wanted_;
  std::set<std::string> released_;  // of `nodes_`
  std::map<std::string, NodeProcess> nodes_;
  std::map<std::string, Time> ends_;  // of those that were told to end: when they are killed
  bool stopping_ = false;
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<Engine>> MakeLocal(const OptionValues& options, NodeAgents agents) {
  ESPALIER_ASSIGN_OR_RETURN(NodeDirectory directory, NodeDirectory::Open(agents.directory));
  agents.directory = directory.path();
  return std::make_unique<LocalEngine>(std::move(agents), options["end_grace_s"],
                                       std::move(directory));
}

}  // namespace

PluginRow<Engine, NodeAgents> LocalRow() {
  return {{.name = "local",
           .summary = "nodes are `tuner agent` processes on the service's own machine",
           .options = {{.name = "end_grace_s",
                        .default_value = 20,
                        .meaning = "seconds that an agent gets to end before it is killed"}}},
          MakeLocal};
}

}  // namespace espalier::engines
