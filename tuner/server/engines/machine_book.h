#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "tuner/server/engines/machine_provider.h"

namespace espalier {

struct MachineTimes {
  double settle_s = 2;       // an acknowledged request that is not listed by then is lost
  double retry_s = 1;        // until a request is tried again; doubles
  double most_retry_s = 60;  // up to this
  double end_grace_s = 30;   // between telling an agent to end and ending its machine
  double wait_s = 15;        // for a place, before people are told why: one may be about to leave
  double join_s = 60;        // for the agent of a machine that runs to join
  double successor_wait_s =
      90;  // for a node's last machine to be gone before its next is requested
};

// The machines that are wanted, and what to do about those that exist. Level-triggered: each look
// compares the two, whatever was done before. Pure: the caller asks the provider, and tells the
// time.
//
// A key is PREFIX.NODE.INCARNATION. It is made for each requested node, and kept until the node is
// released or its machine has ended: a request that was lost is thus repeated with the same key,
// and of several machines with one key, one stays. A machine with a key that is not wanted is
// released.
class MachineBook {
 public:
  // `prefix` is the pool's. What is listed of other prefixes is released: it is of a time when the
  // pool had another address. `new_incarnation` gives texts that are never the same.
  MachineBook(std::string prefix, MachineTimes times, std::function<std::string()> new_incarnation);

  void Want(const std::string& node);
  void Release(const std::string& node);
  void ReleaseAll();
  // The node's agent has joined; it may be that of a machine that is not known yet.
  void Joined(const std::string& node);

  struct Order {
    std::string key;
    std::string node;
  };
  struct Steps {
    std::vector<std::pair<Machine, Leave>> releases{};
    std::vector<Order> requests{};
    std::vector<std::pair<std::string, Machine>> taken_over{};  // by node: of an earlier process
    std::vector<std::pair<std::string, Machine>> ended{};       // by node: not by us
    std::vector<std::string> lost{};  // keys that had been acknowledged and are not there
    bool complete = false;            // all that is wanted is there, or waits
    bool settled = false;             // it runs, and nothing else is there
  };
  // What to do now that these are there. The first look takes over what the pool's machines of an
  // earlier process are, as if they had been wanted.
  Steps Look(Time now, const std::vector<Machine>& there);

  // What became of a request. A refusal postpones all others.
  void Requested(const std::string& key, Time now, const absl::Status& status);

  bool wants_any() const { return !wanted_.empty(); }
  // The reasons why wanted nodes have waited for a while, as of the last look, by node.
  const std::map<std::string, std::string>& reasons() const { return reasons_; }
  // Machines, by node, that run for longer than an agent may take to join, and whose agents have
  // not joined; as of the last look.
  const std::map<std::string, Machine>& silent() const { return silent_; }

 private:
  struct WantedMachine {
    std::string key{};  // empty: not requested yet
    std::optional<Time> requested{};
    bool seen = false;    // in a look
    double settle_s = 0;  // doubles with each loss
    // As far as looks have told: since when it waits for a reason that people should know, or runs.
    std::optional<Time> waits_since{};
    std::optional<Time> runs_since{};
  };

  std::optional<std::string> NodeOf(const std::string& key) const;
  void TakeOver(const std::vector<Machine>& there, Steps& steps);
  void ReleaseUnwanted(Time now, const std::vector<Machine>& there, Steps& steps);
  void NoteReason(Time now, const std::string& node, const Machine& machine, WantedMachine& wanted);
  void NoteSilent(Time now, const std::string& node, const Machine& machine, WantedMachine& wanted);
  void NoteWanted(Time now, Steps& steps);
  void RequestMissing(Time now, Steps& steps);
  bool PredecessorLeft(const std::string& node, Time now);

  const std::string prefix_;
  const MachineTimes times_;
  const std::function<std::string()> new_incarnation_;
  std::map<std::string, WantedMachine> wanted_;  // by node
  std::set<std::string> released_early_;         // before the first look
  bool looked_ = false;
  std::map<std::string, Machine> kept_;         // of this look: by key, the one that stays
  std::map<std::string, Machine> ended_;        // of this look: by key
  std::map<std::string, int> leaving_;          // of this look: by node, those that are to go
  std::map<std::string, std::string> reasons_;  // by node
  std::set<std::string> joined_;                // nodes whose agents have, since they were wanted
  std::map<std::string, Machine> silent_;       // by node
  std::map<std::string, Time> told_;            // by id: machines that were told to end
  std::map<std::string, Time> waits_;           // by node: since when for its predecessor
  std::optional<Time> next_request_;            // after a refusal
  double retry_s_;
};

}  // namespace espalier
