#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "allocator/allocation/objective.h"
#include "allocator/pool/board.h"

namespace espalier {

// What a holder may be given, and whether it may be changed at all.
struct HolderLimits {
  bool movable = false;
  int least = 0;
  int most = 0;
};

// What a search may spend; spending more finds little more.
struct ExchangeEffort {
  int rounds = 50;
  std::size_t nodes_tried = 64;  // looked at for one job's growth at others' expense
  int near_counts = 8;           // larger counts that are tried one by one; then in such shares
  bool relocate = true;          // tries to move whole jobs for the sake of speed
};

// Improves an allocation of the pool step by step: jobs let go of slots that are not worth their
// cost, move to a better place, grow on free slots, and take slots on a node from the jobs that
// miss them least there, which shrink or move elsewhere. Every step raises the objective by more
// than rounding, so this ends.
class Exchange {
 public:
  // Keeps references; `limits` has one entry for each holder.
  Exchange(Board& board, Objective& objective, const std::vector<HolderLimits>& limits,
           const ExchangeEffort& effort);

  void Run();
  // Brings the holder to `slots` slots in the best of the places that are free for that; false if
  // there is none.
  bool Place(std::size_t j, int slots);
  void Assign(std::size_t j, Shares shares);
  // The sum over all holders.
  double Total();

 private:
  // What a resident may do for others to have slots of its node.
  struct Release {
    int freed = 0;
    double loss = 0;
    Shares shares{};
  };
  // The cheapest ways to free exactly so many slots of a node: at [slots], the loss, which is
  // infinite if there is none; and by resident and slots the index of the resident's release, -1
  // for none.
  struct ReleasePlan {
    std::vector<double> loss{};
    std::vector<int> enough{};  // by slots: the cheapest number to free that is as many or more
    std::vector<std::size_t> residents{};
    std::vector<std::vector<Release>> releases{};
    std::vector<std::vector<int>> chosen{};
  };
  struct Transfer {
    double net = 0;
    int freed = 0;
    Shares shares{};
  };

  double ValueOf(std::size_t j, const Shares& shares);
  double ValueNow(std::size_t j) { return ValueOf(j, board_.holder(j).shares); }
  bool Better(double a, double b) const;
  bool FitsNow(std::size_t j, const Shares& shares) const;
  int MostOnNode(std::size_t j) const;
  std::vector<Shares> Places(std::size_t j, int slots);
  std::vector<int> LargerCounts(std::size_t j) const;
  // What so many slots would be worth in the best conceivable place.
  double AtBest(std::size_t j, int slots);
  double HopedFor(std::size_t j);
  double GainPerSlot(std::size_t j, int slots, int type, double now);

  bool LetGo();
  bool Relocate();
  bool GiveFree();
  // transfers.cc, with what follows
  bool TakeFromOthers();
  bool TakeOn(std::size_t j, int node);
  bool MoveTo(std::size_t j, int node);
  std::vector<Release> ReleasesOf(std::size_t resident, int node);
  // The job `beside` gives nothing; the job `leaving` gives all it has there.
  ReleasePlan PlanRelease(int node, std::size_t beside, int leaving = -1);
  // Frees the slots; false, with nothing changed, if the releases are not compatible.
  bool Free(const ReleasePlan& plan, int slots,
            std::vector<std::pair<std::size_t, Shares>>& before);

  Board& board_;
  Objective& objective_;
  const std::vector<HolderLimits>& limits_;
  const ExchangeEffort effort_;
  int most_on_node_ = 0;
  std::vector<std::vector<std::size_t>> residents_;  // by node
};

}  // namespace espalier
