#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tuner/api/tuner.h"

namespace espalier::nni {

inline constexpr std::int64_t kMaxFileBytes = 1 << 20;  // of the end of a file

// What the trial of a study has printed on a node, from its agent: at most so many bytes.
using ReadOutput = std::function<absl::StatusOr<std::string>(
    NodeId node, const std::string& study, std::int64_t trial_number, std::int64_t max_bytes)>;

// Where a trial has run, copied from the core.
struct TrialPlaces {
  struct Place {
    NodeId node;
    std::string node_name;
    std::string folder;  // empty: the node's agent has not been here since the service started
  };
  std::string study;
  std::int64_t number = 0;
  std::vector<Place> places;
};
TrialPlaces PlacesOf(const Trial& trial, const Study& study, const View& view);

// What the trial's processes have printed. Waits for agents. NOT_FOUND says where it is, where no
// agent can be asked for it.
absl::StatusOr<std::string> OutputOf(const TrialPlaces& trial, const ReadOutput& read);

// What was decided for the trial, a line each.
std::string DecisionsOf(const Trial& trial, const Study& study);

}  // namespace espalier::nni
