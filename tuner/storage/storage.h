#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tuner/core/state/change.h"

namespace espalier {

using NextSlice = std::function<absl::StatusOr<std::vector<Change>>()>;

// Where the tuner's state survives. One owner thread calls it; the server loop is that owner.
//
// Commit is atomic and durable: when it returns OK, all the changes will be there after a crash of
// process or machine; when it returns an error, none of them are. Doubles come back bit for bit,
// NaN and infinities included. Load returns exactly what applying all committed changes in order to
// an empty TunerState gives.
class Storage {
 public:
  virtual ~Storage() = default;

  virtual absl::StatusOr<TunerState> Load() = 0;
  virtual absl::Status Commit(std::span<const Change> changes) = 0;
  // Commits more changes than should be in memory at a time: `next` is asked for some until it
  // gives none. If it fails, its error is returned and nothing is committed.
  virtual absl::Status CommitSlices(const NextSlice& next) = 0;
  // Frees some of what deleted studies occupied, and returns whether there is more. What it frees
  // has not been visible since the deletion, restarts included. Short, so that an owner may call it
  // between commits.
  virtual absl::StatusOr<bool> CleanUp() { return false; }
  // An error if what is committed would not be found any more, because somebody has removed or
  // replaced the file: no service goes on then. Commit looks as well. Takes microseconds.
  virtual absl::Status CheckStillThere() { return absl::OkStatus(); }
};

// Keeps everything in memory: for tests, simulation and throw-away studies.
std::unique_ptr<Storage> MakeMemoryStorage();

// An SQLite file (WAL, synchronous=FULL), created if absent. Refuses, with a message that names
// the path and the remedy: a file that is not an SQLite database, one that is not Espalier's, one
// with a newer schema, one that cannot be written, one that another service has open.
// With read_only the file must exist, may be open elsewhere, and Commit fails.
absl::StatusOr<std::unique_ptr<Storage>> OpenSqliteStorage(const std::string& path,
                                                           bool read_only = false);

// The process of the service that has the database open, as a text that may be empty if it is not
// known; nullopt: none has. Not for a process that has the database open itself: see ServiceLock.
std::optional<std::string> HolderOf(const std::string& path);

}  // namespace espalier
