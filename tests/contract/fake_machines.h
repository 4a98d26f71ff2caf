#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "tuner/server/engines/machine_provider.h"

namespace espalier {

// A batch system that is one of ours: jobs, and what becomes of requests that are not simply done.
// It outlives the provider that talks to it, as the real one outlives the service. Thread-safe.
class FakeMachines {
 public:
  enum class Fate {
    kDone,
    kLost,     // acknowledged, and forgotten, as by a controller that is killed before it has saved
    kDoubled,  // two jobs
    kLate,     // acknowledged, and not listed before a few looks
    kUnheard,  // done, but the answer does not come
    kRefused,
  };

  explicit FakeMachines(std::uint64_t seed = 0) : random_(seed) {}

  // From now on any fate may befall a request, and lists fail now and then; or never more.
  void SetFaulty(bool faulty) {
    Locked([&] { faulty_ = faulty; });
  }
  void SetReachable(bool reachable) {
    Locked([&] { reachable_ = reachable; });
  }
  void SetFate(Fate fate) {
    Locked([&] { fate_ = fate; });
  }
  void KillAt(const std::string& node) {
    Locked([&] { std::erase_if(jobs_, [&](const Machine& job) { return NodeOf(job) == node; }); });
  }
  int Joined(const std::string& node) {
    int joined = 0;
    Locked([&] { joined = joined_[node]; });
    return joined;
  }
  // How many jobs there are for each node, those that come late among them.
  std::map<std::string, int> Nodes() {
    std::map<std::string, int> nodes;
    Locked([&] {
      for (const Machine& job : jobs_) ++nodes[NodeOf(job)];
      for (const auto& [job, looks] : late_) ++nodes[NodeOf(job)];
    });
    return nodes;
  }

  std::unique_ptr<MachineProvider> Provider();

 private:
  class ProviderOfThese;

  static std::string NodeOf(const Machine& job) {
    const std::size_t end = job.key.rfind('.');
    const std::size_t begin = job.key.rfind('.', end - 1) + 1;
    return job.key.substr(begin, end - begin);
  }
  template <typename Do>
  void Locked(Do what) {
    const std::lock_guard lock(mutex_);
    what();
  }

  absl::Status Request(const std::string& key) {
    const std::lock_guard lock(mutex_);
    if (!reachable_) return absl::UnavailableError("unable to contact the controller");
    const Fate fate = faulty_ ? static_cast<Fate>(random_.Below(6)) : fate_;
    if (fate == Fate::kRefused) return absl::UnavailableError("quota exceeded");
    const auto job = [&] {
      return Machine{.key = key, .id = absl::StrCat(++last_id_), .state = MachineState::kRunning};
    };
    if (fate == Fate::kLate) late_.emplace_back(job(), 3);
    const int jobs = fate == Fate::kDoubled ? 2 : fate == Fate::kDone || fate == Fate::kUnheard;
    for (int i = 0; i < jobs; ++i) Add(job());
    if (fate == Fate::kUnheard) return absl::DeadlineExceededError("no answer");
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Machine>> List(const std::string& prefix) {
    const std::lock_guard lock(mutex_);
    if (!reachable_ || (faulty_ && random_.Below(4) == 0)) {
      return absl::UnavailableError("unable to contact the controller");
    }
    for (auto it = late_.begin(); it != late_.end();) {
      if (--it->second > 0) {
        ++it;
        continue;
      }
      Add(it->first);
      it = late_.erase(it);
    }
    std::vector<Machine> listed;
    for (const Machine& job : jobs_) {
      if (job.key.starts_with(prefix)) listed.push_back(job);
    }
    return listed;
  }

  absl::Status Release(const Machine& machine) {
    const std::lock_guard lock(mutex_);
    if (!reachable_) return absl::UnavailableError("unable to contact the controller");
    // A controller that takes it may still lose it.
    if (faulty_ && random_.Below(4) == 0) return absl::OkStatus();
    std::erase_if(
        jobs_, [&](const Machine& job) { return job.id == machine.id && job.key == machine.key; });
    return absl::OkStatus();
  }

  void Add(const Machine& job) {
    jobs_.push_back(job);
    ++joined_[NodeOf(job)];
  }

  std::mutex mutex_;  // guards what follows
  Random random_;
  bool faulty_ = false;
  bool reachable_ = true;
  Fate fate_ = Fate::kDone;
  std::vector<Machine> jobs_;
  std::vector<std::pair<Machine, int>> late_;  // and after how many looks
  std::map<std::string, int> joined_;
  int last_id_ = 0;
};

class FakeMachines::ProviderOfThese final : public MachineProvider {
 public:
  explicit ProviderOfThese(FakeMachines& machines) : machines_(machines) {}
  EngineCapabilities capabilities() const override { return {.most_nodes = 8}; }
  absl::Status Request(const MachineOrder& order) override { return machines_.Request(order.key); }
  absl::Status Release(const Machine& machine, Leave) override {
    return machines_.Release(machine);
  }
  absl::StatusOr<std::vector<Machine>> List(const std::string& key_prefix) override {
    return machines_.List(key_prefix);
  }

 private:
  FakeMachines& machines_;
};

inline std::unique_ptr<MachineProvider> FakeMachines::Provider() {
  return std::make_unique<ProviderOfThese>(*this);
}

}  // namespace espalier
