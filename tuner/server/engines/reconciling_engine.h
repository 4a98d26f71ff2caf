#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tuner/core/pool_size/engine.h"
#include "tuner/server/engines/engines.h"
#include "tuner/server/engines/machine_book.h"
#include "tuner/server/engines/machine_provider.h"
#include "tuner/server/engines/node_directory.h"

namespace espalier {

struct LookTimes {
  double first_s = 0.25;       // between looks while something is under way; grows
  double most_s = 10;          // up to this, also while all is as it should be
  double idle_s = 30;          // while nothing is wanted and nothing there
  double stop_s = 60;          // for all machines to be gone when the engine stops,
  double stop_in_vain_s = 15;  // and where the provider does not answer
};

// Nodes that are machines of a provider. A thread of the engine's own compares what is wanted with
// what the provider lists, again and again, and asks it for the difference (MachineBook). While the
// provider does not answer nothing is concluded: what was wanted and what is there stay, and a
// trouble is told once, not each time.
//
// The machines outlive a process that dies without ending its engine. The next engine on the same
// directory and address takes them over, by their keys, which begin with an id that is kept in the
// directory; on another address it releases them, for they would dial in vain.
//
// The token that agents show is copied into the directory, for its owner alone: their command names
// that file. The machines have to see the directory, unless `agents` has paths of theirs.
class ReconcilingEngine final : public Engine {
 public:
  ReconcilingEngine(std::unique_ptr<MachineProvider> provider, NodeAgents agents,
                    NodeDirectory directory, MachineTimes times = {}, LookTimes look = {});
  ~ReconcilingEngine() override;

  EngineCapabilities capabilities() const override { return capabilities_; }
  void Open(const std::string& grpc_address, const std::string& http_address) override;
  void StartNode(const std::string& name) override;
  void ReleaseNode(const std::string& name) override;
  void NodeJoined(const std::string& name) override;
  std::vector<std::string> Troubles() const override;
  void Stop() override;
  void Leave() override;

 private:
  void End(bool with_machines);
  void Run();
  struct Pace {
    double next_s = 0;   // until the next comparison is due
    bool empty = false;  // nothing is wanted, and nothing there
  };
  Pace LookOnce();
  double MostStop_s() const;
  // Whether the provider is asked for nothing more.
  bool StopIsOver() const;
  void Perform(const MachineBook::Steps& steps);
  void Tell(const MachineBook::Steps& steps) const;
  MachineOrder OrderOf(const MachineBook::Order& order) const;
  absl::Status Prepare();
  // What is wrong with one thing, in a line for people that is logged when it is new; empty:
  // nothing any more.
  void Note(const std::string& what, const std::string& problem);
  void NoteNodes();

  const std::unique_ptr<MachineProvider> provider_;
  const EngineCapabilities capabilities_;
  const NodeAgents agents_;
  const NodeDirectory directory_;
  const MachineTimes times_;
  const LookTimes look_;

  // Used by the thread, once it runs.
  std::string family_;  // what the keys of all machines of the directory begin with
  std::string grpc_address_;
  std::string http_address_;
  bool prepared_ = false;
  double pace_s_ = 0;
  int in_vain_ = 0;                       // lists that failed, one after another
  std::map<std::string, Time> unlisted_;  // by key: requests that may still come, and since when
  bool had_machines_ = false;
  std::optional<Time> nothing_wanted_since_;
  std::set<std::string> told_of_nodes_;  // by what is affected

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::unique_ptr<MachineBook> book_;  // none: not opened
  std::set<std::string> wanted_before_;
  std::set<std::string> joined_before_;
  std::map<std::string, std::string> troubles_;  // by what is affected
  bool woken_ = false;
  bool stopping_ = false;
  Time stopping_since_;
  bool leaving_ = false;
  std::thread thread_;
};

}  // namespace espalier
