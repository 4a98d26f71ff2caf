#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/benchmarks/power_cuts/recorder.h"
#include "tests/benchmarks/power_cuts/service.h"
#include "tests/benchmarks/power_cuts/story.h"

namespace espalier::power_cuts {

// Where a session plays: one disk, with the service's database at its root and the folders "a" and
// "b" of two machines' agents.
struct Stage {
  std::string root;
  Recorder* recorder = nullptr;
  Story* story = nullptr;
  SharedState restored = nullptr;  // what a restore makes of the backup; null: not known yet

  std::string Path(const std::string& name) const { return root + "/" + name; }
  std::int64_t Now() const { return recorder->Now(); }

  std::unique_ptr<TestedService> StartService() const;  // null: it does not start

  // What is there whole from now on, and what is only until now.
  void Promise(const std::string& path) const;
  void EndPromises(const std::string& folder, const std::set<std::string>& but) const;
  // A folder whose files come together: from Begin on it may be of that version, from End on it is.
  // All of its files begin with their version's name.
  void BeginFolder(const std::string& folder, const std::string& version) const;
  void EndFolder(const std::string& folder, const std::string& version) const;
};

// One stretch of the recorded run, from one start of the service to the next. Scripts go on after
// errors, as the programs' users would.
struct Session {
  const char* name;
  void (*play)(const Stage& stage);
  // Before it: to a database that nobody has open.
  void (*prepare)(const std::string& root) = nullptr;
};

// What is done after a session that failed: the service starts again, and clients are told more.
void GoOn(const Stage& stage);

// In their order; each begins on the disk that the one before has left.
const std::vector<Session>& Sessions();

}  // namespace espalier::power_cuts
