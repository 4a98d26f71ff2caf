#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "trial_runner/collectives/rendezvous/rendezvous.h"
#include "trial_runner/elastic/control_plane.h"
#include "trial_runner/torch/group/program_place.h"

namespace espalier {

// What the members of a group that have waited for one another for long tell each other, in the
// table of their rendezvous: where each of them waits. One thread uses it, but for Cancel().
class PlaceExchange {
 public:
  struct Finding {
    std::string text;
    // All members wait, and not at the same place: none of them will ever go on. They find this out
    // within a second or two of each other; a member that is certain need not ask any more.
    bool hopeless = false;
    bool certain = false;
  };

  // To be called once a second while this member waits. `wait` tells one of its waits from the
  // next. Nothing: there is nothing to say that has not been said of this wait.
  std::optional<Finding> Look(const Membership& group, int rank, std::int64_t wait,
                              const ProgramPlace& place);

  // This member waits no more.
  void End(int rank);

  // Ends a Look that waits for the rendezvous, now and later, within seconds: also one that waits
  // for an answer of a rank 0 that is silent.
  void Cancel() { cancelled_ = true; }

 private:
  // What another member's notes have said so far.
  struct Seen {
    std::int64_t wait = 0;
    std::int64_t tick = 0;
    ProgramPlace place;
    int times = 0;   // that it was seen to go on waiting there
    int absent = 0;  // that it was seen not to wait
  };

  bool Connect(const Membership& group);
  bool Read(int other);
  std::optional<Finding> Judge(int rank, int size, const ProgramPlace& place);

  std::atomic<bool> cancelled_{false};
  std::int64_t generation_ = 0;
  std::unique_ptr<RendezvousClient> client_;  // of that generation's table
  std::map<int, Seen> seen_;                  // by rank, during one wait of this member's
  std::int64_t wait_ = 0;
  std::int64_t tick_ = 0;
  bool noted_ = false;
  bool said_ = false;
};

}  // namespace espalier
