#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allocator/pool/pool.h"
#include "allocator/pool/speedup.h"

namespace espalier {

// Slots of one job on one node, by the node's index on the board. Ascending by node, each positive.
struct Share {
  int node = 0;
  int slots = 0;
  friend bool operator==(const Share&, const Share&) = default;
};
using Shares = std::vector<Share>;

int TotalSlots(const Shares& shares);
int SlotsOn(const Shares& shares, int node);  // none where the job is not on it

// What a placement asks of a job, compared with the one it was shown with.
enum class Move {
  kStay,
  kResize,    // some of its nodes stay
  kRelocate,  // it leaves them all; a job that starts has none to leave
};

// One job on the board.
struct Holder {
  const Job* job;
  Shares shares;
  int total = 0;
  std::shared_ptr<SpeedupCurve> speedup;
  double weight =
      0;  // what a unit of its speedup is worth; its promise unless a policy says otherwise
  bool damaged = false;  // lost slots with a node
  // What led here, for the reason.
  int free_slots_taken = 0;
  std::map<std::string, int> slots_from;  // taken from other trials
  std::vector<std::string> lost;          // why slots were lost, each reason once
  std::optional<AllocationFigures> figures;
};

// The promise as a weight: within [0, 1], and 0 for a NaN.
double Weight(const Job& job);

// The pool while a policy divides it: which job holds what, what is free, and which moves are
// legal. A job that spans nodes shares none of them with another that does; one that holds slots
// stays on their GPU type and island and keeps at least one of them in Grown and Shrunk, since its
// state lives there; free slots of a draining node are given to no job. Starts from the present
// placements less what is lost; a node that lost capacity may start overfull (free < 0), which must
// be repaired first. Holds pointers into the pool. With a cache, speedups are kept from one board
// to the next.
class Board {
 public:
  explicit Board(const Pool& pool, SpeedupCache* cache = nullptr);

  // Holders in order of submission.
  std::size_t size() const { return holders_.size(); }
  Holder& holder(std::size_t j) { return holders_[j]; }
  const Holder& holder(std::size_t j) const { return holders_[j]; }
  std::size_t node_count() const { return nodes_.size(); }
  // How many slots may be given out there.
  int free_on(std::size_t node) const;
  int capacity_of(std::size_t node) const { return nodes_[node].capacity; }
  // How many of them the job may hold: where slots share GPUs, no two of one GPU, unless it needs
  // more to run at all; and no more than its study allows on one node.
  int most_for(std::size_t j, std::size_t node) const;
  bool draining(std::size_t node) const { return nodes_[node].draining; }
  bool spot(std::size_t node) const { return nodes_[node].spot; }
  // GPU types in ascending order of their names, each once for every island that has it; a node's
  // is an index into them.
  const std::vector<std::string>& types() const { return types_; }
  int type_of(std::size_t node) const { return nodes_[node].type; }
  // The type of the nodes that the job is on; -1 where it is on none.
  int type_of(const Shares& shares) const;
  NodeId node_id(std::size_t node) const { return nodes_[node].id; }
  const std::string& node_name(std::size_t node) const { return nodes_[node].name; }
  int total_free() const { return total_free_; }
  int free_of_type(int type) const { return free_of_type_[static_cast<std::size_t>(type)]; }
  int total_capacity() const { return total_capacity_; }
  // The most slots that the job could hold if it were alone.
  int largest_hold(std::size_t j) const;

  double SpeedupIn(std::size_t j, int nodes, int slots, int type) {
    return holders_[j].speedup->At(nodes, slots, types_[static_cast<std::size_t>(type)]);
  }
  double SpeedupNow(std::size_t j) { return SpeedupWith(j, holders_[j].shares); }
  double SpeedupWith(std::size_t j, const Shares& shares);

  // Where the job would be with `slots` slots, more than it has: on its own nodes first, then on as
  // few others as possible. None if there is no legal place.
  std::optional<Shares> Grown(std::size_t j, int slots) const;
  // Where it would be if it left what it has: on one node of the type if one has room, else on as
  // few as possible; none where it waits for one node (Job::undivided). Slots that it holds now do
  // not count as free.
  std::optional<Shares> Fresh(std::size_t j, int slots, int type) const;
  // Whether so many slots must not be spread, since a node of the type could hold them.
  bool MustBeOnOne(std::size_t j, int slots, int type) const;
  // Where it would be with `slots` slots, fewer than it has: it leaves draining nodes first, then
  // whole nodes as far as possible.
  Shares Shrunk(std::size_t j, int slots) const;
  void Assign(std::size_t j, Shares shares);
  // What it held when the pool was shown, less what is lost.
  const Shares& HeldAtFirst(std::size_t j) const { return held_at_first_[j]; }
  bool AsShown(std::size_t j, const Shares& shares) const {
    return intact_[j] && shares == held_at_first_[j];
  }
  Move MoveFor(std::size_t j, const Shares& shares) const;
  // The holder that is on this node and on others too; -1: none.
  int spanning_on(int node) const { return nodes_[static_cast<std::size_t>(node)].spanning; }
  // Whether the job may be on this node and on others too.
  bool MaySpan(std::size_t j, int node) const {
    return MaySpan(j, nodes_[static_cast<std::size_t>(node)]);
  }

  std::vector<AllocationDecision> Decisions();

 private:
  struct Node {
    NodeId id;
    std::string name;
    int type = 0;
    bool draining = false;
    bool spot = false;
    int capacity = 0;
    int most_of_one_trial = 0;
    int free = 0;
    int spanning = -1;  // the holder that is on this node and on others too
  };
  using NodeSet = std::vector<std::uint64_t>;  // a bit for each node

  void AddNodes(const Pool& pool);
  void SetFree(std::size_t node, int free);
  void SetSpanning(std::size_t node, int holder);
  // Visits nodes of the type with exactly so many free slots, ascending, until `visit` says true;
  // only those in `within`, if given.
  template <typename Visit>
  bool AnyWithFree(int type, int free, Visit visit, const NodeSet* within = nullptr) const;
  std::optional<int> OneNodeFor(std::size_t j, int slots, int type) const;
  // Adds `slots` to `shares` on as few further nodes of the type as possible. Returns whether there
  // is room.
  bool Spread(std::size_t j, int slots, int type, Shares& shares) const;
  bool MaySpan(std::size_t j, const Node& node) const;
  // Types in the order in which the job would like them.
  std::vector<int> TypesFor(std::size_t j) const;
  Placement PlacementOf(const Holder& holder) const;
  std::string Reason(std::size_t j);

  std::vector<Node> nodes_;  // ascending by id
  std::vector<std::string> types_;
  std::vector<std::vector<NodeSet>>
      by_free_;        // by type and free slots: nodes that are not draining
  NodeSet unspanned_;  // nodes that carry no spanning job
  std::vector<int> free_of_type_;
  std::vector<Holder> holders_;
  std::vector<Shares> held_at_first_;
  std::vector<bool> intact_;
  int total_free_ = 0;
  int total_capacity_ = 0;
  int largest_hold_ = 0;
};

}  // namespace espalier
