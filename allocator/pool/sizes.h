#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "allocator/pool/board.h"

namespace espalier {

// For policies that decide how many slots each trial gets, and leave the places to the board. Holds
// a reference to the board.
class Sizes {
 public:
  explicit Sizes(Board& board) : board_(board), why_(board.size()) {}

  // Whether a policy may change the trial's size: it holds slots, is not being resized and does not
  // wait to leave a draining node.
  bool MayResize(std::size_t j) const;

  // Calls `divide`, then repairs and admits (admission.h), until nothing changes any more, at most
  // ten times: a place that became free may be what a waiting trial, or one on a draining node,
  // lacked.
  void Settle(bool reclaim, const std::function<void()>& divide = nullptr);

  // Brings the trial down to `slots`.
  void Shrink(std::size_t j, int slots, const std::string& why);
  // Brings it up to `slots`, or to as many as it has a legal place for. With `accept`, only to a
  // place that it approves of. Returns whether anything changed.
  bool Grow(std::size_t j, int slots, const std::string& why,
            const std::function<bool(const Shares&)>& accept = nullptr);

  // Shrinks the trials that have more than their target, then grows those with less, in order of
  // submission. Trials that may not be resized stay. `why` is called for each that changes.
  void BringTo(const std::vector<int>& targets, const std::function<std::string(std::size_t)>& why);

  // Gives each holder what is planned for it, all at once.
  void Take(const std::vector<Shares>& planned, const std::function<std::string(std::size_t)>& why);

  // The board's decisions, with the reasons given here.
  std::vector<AllocationDecision> Decisions();

 private:
  Board& board_;
  std::vector<std::string> why_;
};

}  // namespace espalier
