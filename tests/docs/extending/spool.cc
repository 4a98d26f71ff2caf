#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "absl/strings/str_join.h"
#include "tuner/server/engines/engines.h"

namespace espalier::engines {
namespace {

// Leaves the command of each node that is wanted in a file, DIRECTORY/NODE.sh, for what submits
// such files to a batch system and cancels those whose file is gone.
class Spool final : public Engine {
 public:
  explicit Spool(NodeAgents agents) : agents_(std::move(agents)) {}

  void Open(const std::string& grpc_address, const std::string&) override {
    const std::lock_guard lock(mutex_);
    address_ = grpc_address;
    for (const std::string& name : wanted_) Write(name);
  }
  void StartNode(const std::string& name) override {
    const std::lock_guard lock(mutex_);
    if (stopped_ || !wanted_.insert(name).second) return;
    if (!address_.empty()) Write(name);
  }
  void ReleaseNode(const std::string& name) override {
    const std::lock_guard lock(mutex_);
    if (wanted_.erase(name) > 0) std::filesystem::remove(File(name));
  }
  void Stop() override {
    const std::lock_guard lock(mutex_);
    for (const std::string& name : wanted_) std::filesystem::remove(File(name));
    wanted_.clear();
    stopped_ = true;
  }

 private:
  std::string File(const std::string& name) const { return agents_.directory + "/" + name + ".sh"; }
  void Write(const std::string& name) const {
    std::ofstream(File(name)) << agents_.executable << " agent --join " << address_ << " --name "
                              << name << " " << absl::StrJoin(AgentArguments(agents_), " ") << "\n";
  }

  const NodeAgents agents_;
  std::mutex mutex_;  // guards what follows
  std::string address_;
  std::set<std::string> wanted_;
  bool stopped_ = false;
};

}  // namespace

PluginRow<Engine, NodeAgents> SpoolRow() {
  return {{.name = "spool", .summary = "leaves a file with a command for each node that is wanted"},
          [](const OptionValues&, const NodeAgents& agents) {
            return std::make_unique<Spool>(agents);
          }};
}

}  // namespace espalier::engines
