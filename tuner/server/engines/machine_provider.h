#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "tuner/core/pool_size/engine.h"

namespace espalier {

enum class MachineState {
  kPending,  // waits for its turn, or starts
  kRunning,  // its agent has been started
  kEnding,   // it will end by itself
  kEnded,    // a provider may also leave it out
};

struct Machine {
  std::string key;   // that it was requested with
  std::string id{};  // the provider's own name for it, which may be given out again later
  MachineState state = MachineState::kPending;
  std::string host{};    // where it runs, once that is known
  std::string reason{};  // why it waits or has ended, where people should know; else empty
};

struct MachineOrder {
  std::string key;
  std::string node;                  // the name by which its agent joins
  std::vector<std::string> command;  // of the agent: a program and its arguments, for no shell
  std::string log;                   // file for what it prints
  // Files of ours that its command names by other paths (MachinePaths); empty: none. The machine
  // has to find their texts there.
  std::string token_file{};
  std::string tls_ca_file{};
};

enum class Leave {
  kInTime,  // its agent is told to end, and may take its time
  kNow,
};

// Where an engine's machines come from: a batch system or a cloud. It is asked for single machines
// by keys that we choose: letters, digits, dots and hyphens. Nothing of what it acknowledges is
// relied on: a request may be lost, doubled, or come late, and List tells. Each call returns within
// a time limit of its own. One thread.
class MachineProvider {
 public:
  virtual ~MachineProvider() = default;

  virtual EngineCapabilities capabilities() const = 0;

  // DeadlineExceeded: it may have been taken or not. Other errors, in a line for people: it was
  // not.
  virtual absl::Status Request(const MachineOrder& order) = 0;

  // The machine of that id, if it still has that key. A machine that is gone is not an error.
  virtual absl::Status Release(const Machine& machine, Leave leave) = 0;

  // All machines with a key that begins so. Ended ones may be left out, others not: if it cannot
  // tell for sure, that is an error.
  virtual absl::StatusOr<std::vector<Machine>> List(const std::string& key_prefix) = 0;
};

}  // namespace espalier
