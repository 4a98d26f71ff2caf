#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tuner/core/state/change.h"
#include "tuner/server/access/service_credentials.h"

namespace espalier::power_cuts {

using SharedState = std::shared_ptr<const TunerState>;

// Moments are numbers of calls that had been done (Recorder::Now).
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// What a session did and what was told meanwhile: what has to be found again after a power cut.
struct Story {
  // What the database was given. After the moment `done` it is there; after `begun` it may be.
  struct Commit {
    std::int64_t begun = 0;
    std::int64_t done = kNever;
    SharedState after;
  };
  // What a client or an agent was told, and the state at that moment as readers see it.
  struct Answer {
    std::int64_t at = 0;
    SharedState seen;
    std::size_t commits = 0;  // that lead to what was seen (NumberAnswers)
  };
  // Of the service, from that moment on; empty: may be any.
  struct Credentials {
    std::int64_t at = 0;
    std::string trial_key{};
    std::string certificate_hash{};
    std::string join_token{};
  };
  // A file that is there, whole, from one moment to another.
  struct Promise {
    std::string path;  // below the root
    std::string content;
    std::int64_t from = 0;
    std::int64_t until = kNever;
  };

  SharedState begin;
  std::vector<Commit> commits{};
  std::vector<Answer> answers{};
  std::vector<Credentials> credentials{};
  std::vector<Promise> promises{};
  // A folder whose files come together, by the name of their version.
  struct Folder {
    std::string path;
    std::set<std::string> versions;  // empty: there need not be one yet
    std::int64_t from = 0;
    std::int64_t until = kNever;
  };
  std::vector<Folder> folders{};

  // The state after the last commit.
  SharedState end() const { return commits.empty() ? begin : commits.back().after; }
};

// Finds out after which commit the states of the answers are. To be called at the end.
void NumberAnswers(Story& story);

// Whether two states say the same. The doubles of these runs are none that equal themselves not.
bool Same(const TunerState& a, const TunerState& b);

}  // namespace espalier::power_cuts
