#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/benchmarks/power_cuts/story.h"

namespace espalier::power_cuts {

// What is found on a disk when everything starts again.
struct Found {
  std::string refused;            // why the service does not start; empty: it does
  std::vector<std::string> half;  // what is there, and not whole
  SharedState state;
  Story::Credentials credentials;
  std::map<std::string, std::string> files;  // outside the database, by path
};

// Starts the agents of both machines and the service on the disk, which is changed by it.
Found Restart(const std::string& root);

// What was told and is not there, and what is there and was never whole.
struct Verdict {
  std::vector<std::string> lost;
  std::vector<std::string> half;
};

// `now`: the moment at which the power was cut.
Verdict Judge(const Story& story, std::int64_t now, const Found& found);

}  // namespace espalier::power_cuts
