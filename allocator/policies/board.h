#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "allocator/policies/policy.h"
#include "allocator/policies/speedup.h"

namespace espalier {

// Slots of one job on one node, by the node's index on the board. Ascending by node, each positive.
struct Share {
  int node = 0;
  int slots = 0;
  friend bool operator==(const Share&, const Share&) = default;
};
using Shares = std::vector<Share>;

int TotalSlots(const Shares& shares);

// One job on the board.
struct Seat {
  const Job* job;
  Shares shares;
  int total = 0;
  SpeedupCurve speedup;
  bool damaged = false;  // lost slots with a node
  // What led here, for the reason.
  int free_slots_taken = 0;
  std::map<std::string, int> slots_from;  // taken from other trials
  std::vector<std::string> lost;          // why slots went, each once

  explicit Seat(const Job& j) : job(&j), speedup(j) {}
};

// The pool while a policy divides it: who holds what, what is free, and which moves are legal. A
// job that spans nodes shares none of them with another that does, and a job that holds slots keeps
// at least one of them in every move offered here, since its state lives there. Starts from the
// present placements less what is lost; a node whose capacity fell may start overfull (free < 0),
// to be mended first. Holds pointers into the pool.
class Board {
 public:
  explicit Board(const Pool& pool);

  // Seats in order of submission.
  std::size_t size() const { return seats_.size(); }
  Seat& seat(std::size_t j) { return seats_[j]; }
  const Seat& seat(std::size_t j) const { return seats_[j]; }
  std::size_t node_count() const { return nodes_.size(); }
  int free_on(std::size_t node) const { return nodes_[node].free; }
  const std::string& node_name(std::size_t node) const { return nodes_[node].name; }
  int total_free() const { return total_free_; }
  int total_capacity() const { return total_capacity_; }

  double SpeedupNow(std::size_t j) { return SpeedupWith(j, seats_[j].shares); }
  double SpeedupWith(std::size_t j, const Shares& shares);

  // Where the job would be on `slots` slots, more than it has: its own nodes first, else the fewest
  // others. None if there is no legal place.
  std::optional<Shares> Grown(std::size_t j, int slots) const;
  // Where it would be on `slots` slots, fewer than it has: it leaves the nodes it holds least on.
  Shares Shrunk(std::size_t j, int slots) const;
  void Assign(std::size_t j, Shares shares);
  std::vector<AllocationDecision> Decisions();

 private:
  struct Node {
    NodeId id;
    std::string name;
    int capacity = 0;
    int free = 0;
    int spanning = -1;  // seat that is here and elsewhere too
  };

  std::optional<Shares> Fresh(int slots) const;
  bool MaySpan(std::size_t j, const Node& node) const;
  Placement PlacementOf(const Seat& seat) const;
  std::string Reason(std::size_t j);

  std::vector<Node> nodes_;  // ascending by id
  std::vector<Seat> seats_;
  int total_free_ = 0;
  int total_capacity_ = 0;
};

}  // namespace espalier
