#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/pool/pool.h"
#include "tuner/core/state/study.h"

namespace espalier {

inline constexpr std::size_t kMaxSlotRequests = 4096;  // of clients that hold or wait
inline constexpr double kMaxSlotWait_s = 60;           // for one answer
inline constexpr double kUnusedSlots_s =
    5;  // that the pool's trials leave slots to clients' excess

// What the client that runs a trial has asked for, and then holds. Only the slots are stored, as
// the trial's open span: after a restart waiting clients ask again, and a full lease begins anew.
struct ClientSlots {
  int wanted = 1;
  std::string node;           // by name; empty: any
  std::int64_t order = 0;     // of arrival
  Time asked;                 // first
  std::optional<Time> heard;  // none since a restart; while a call waits: when that ends
  std::vector<Slot> slots;    // ascending; empty: waits
  bool in_turn = false;       // holds more than its side's part: see ClientSlotDesk::Serve
  // These three are of a request that waits.
  Placement reserved;           // slots that are being made free for it
  std::string waits_for;        // for its client
  bool waits_was_told = false;  // to the record
};

// One node as requests of clients see it.
struct ClientNode {
  NodeId id;
  std::string name;
  std::string gpu_type;
  int slots = 0;
  int open = 0;   // that clients may have once the pool's trials have left: not held, not reserved
  int free = 0;   // of these, slots that are unused
  int gives = 0;  // at most so many more, if elastic trials shrink to their minimum
};

// Where a request fits: on one node, on the fullest that will do; or, only where no node of the
// pool is large enough for all of it, on the fewest of one GPU type. `nodes` ascending by id.
std::optional<Placement> PlaceOnFree(const ClientSlots& request,
                                     const std::vector<ClientNode>& nodes);
// Places it on slots that others may still be on: where the fewest have to leave.
std::optional<Placement> PlaceOnOpen(const ClientSlots& request,
                                     const std::vector<ClientNode>& nodes);

}  // namespace espalier
