#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "tuner/core/pool_size/engine.h"

namespace espalier {

// Nodes on virtual time: each joins so long after it was asked for, and leaves at once when it is
// released. One owner, one thread.
class SimulatedEngine final : public Engine {
 public:
  struct Happening {
    std::string name;
    bool joins = false;  // else leaves
  };

  // `clock` tells virtual time. `wake` is told after how many seconds TakeDue has something,
  // perhaps.
  SimulatedEngine(std::function<double(const std::string&)> start_s, std::function<Time()> clock,
                  std::function<void(double)> wake);

  void Open(const std::string& /*grpc_address*/, const std::string& /*http_address*/) override {}
  void StartNode(const std::string& name) override;
  void ReleaseNode(const std::string& name) override;
  void Stop() override;

  // What has come about since it was last asked, in order: a name that leaves and joins does so in
  // that order.
  std::vector<Happening> TakeDue();

 private:
  const std::function<double(const std::string&)> start_s_;  // of a node, by its name
  const std::function<Time()> clock_;
  const std::function<void(double)> wake_;
  std::map<std::string, Time> starting_;  // until when
  std::set<std::string> here_;
  std::set<std::string> leaving_;
  bool stopped_ = false;
};

}  // namespace espalier
