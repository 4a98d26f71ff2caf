#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace espalier {

struct ReplicaView {
  ReplicaId replica;  // none: the client that runs the trial holds the slot
  TrialId trial;
  int slot = 0;
};
struct NodeView {
  NodeId id;
  std::string name;
  int slots = 0;
  bool connected = false;
  std::vector<ReplicaView> replicas;
  std::string gpu_type{};  // empty: CPU slots
  bool spot = false;
  double price_per_hour = 0;  // 0: not told
  bool draining = false;
  Time drain_ends{};                      // when it goes away; zero: not known
  std::map<int, std::string> unusable{};  // slots on which nothing is started, and why
};

}  // namespace espalier
