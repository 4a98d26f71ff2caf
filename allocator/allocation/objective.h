#pragma once

#include <cstddef>
#include <vector>

#include "allocator/pool/board.h"

namespace espalier {

// A placement as far as speed depends on it.
struct Shape {
  int nodes = 0;
  int slots = 0;
  int type = 0;       // of the nodes' GPUs, as on the board
  bool spot = false;  // some of them may be taken away
};
Shape ShapeOf(const Board& board, const Shares& shares);

// What a placement is worth to one holder of a board; an allocation is worth the sum. A value is
// finite, and the same whenever it is asked for. One owner, one thread: an objective may remember
// what it has worked out.
class Objective {
 public:
  virtual ~Objective() = default;
  // `move`: what the holder's job would have to do to be there.
  virtual double Value(std::size_t holder, const Shape& shape, Move move) = 0;
  double WorthOf(const Board& board, std::size_t holder, const Shares& shares) {
    return Value(holder, ShapeOf(board, shares), board.MoveFor(holder, shares));
  }
  // Whether a job may be left with less than its minimum, that is with nothing, in favour of
  // another.
  virtual bool MayPause() const { return false; }
};

struct PromiseObjectiveOptions {
  double min_gain = 0.05;
  double hysteresis = 0.15;
  double horizon_s = 60;
};

// The objective of tuning: the holder's weight times its speedup. A resize costs its pause, as a
// share of the time over which it must pay: the horizon, or 15 pauses if that is longer, or the
// job's end if that comes first; leaving all its nodes costs two pauses. Each slot must bring
// min_gain in speedup to be given and half of that to be kept, and what a job loses counts more by
// the hysteresis. With a deadline, a shape in which the job would get only part of its work done is
// worth that much less. Among otherwise equal places, one node is better than several, and a node
// that stays is better than one that may be taken away.
class PromiseObjective : public Objective {
 public:
  PromiseObjective(Board& board, const PromiseObjectiveOptions& options);
  double Value(std::size_t holder, const Shape& shape, Move move) override;

 private:
  struct Present {
    double weight = 0;
    double speedup = 0;  // as it was when the pool was shown
    int slots = 0;
    double gross = 0;
  };

  double Gross(std::size_t holder, double speedup) const;

  Board* board_;
  PromiseObjectiveOptions options_;
  std::vector<Present> present_;
};

}  // namespace espalier
