#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/launch_kinds.h"
#include "base/port_range.h"

namespace espalier {

// What a supervisor is to start, as its own command says it.
struct RanksOrder {
  const LaunchKind* kind = nullptr;
  std::vector<std::string> launch;  // the study's key
  // How many ranks each of the trial's nodes has, by their ranks, and which of them this one is.
  std::vector<int> ranks_of_nodes{1};
  int node_rank = 0;
  double grace_s = 0;
  double apart_s = 0;
  PortRange ports;
  std::string replica_log;
  std::vector<std::string> command;  // of each rank

  bool over_nodes() const { return ranks_of_nodes.size() > 1; }

  // The words of a process of `program` that reads them so.
  std::vector<std::string> Words(const std::string& program) const;
  // nullopt: the process was started otherwise.
  static std::optional<RanksOrder> From(int argc, const char* const* argv);
};

}  // namespace espalier
