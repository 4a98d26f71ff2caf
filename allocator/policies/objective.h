#pragma once

#include <cstddef>
#include <vector>

#include "allocator/policies/board.h"

namespace espalier {

// What a placement is worth to one seat of a board; the whole is worth the sum. Pure and finite.
class Objective {
 public:
  virtual ~Objective() = default;
  // `slots` slots on which the seat's job is `speedup` times as fast as on one. `moved`: it would
  // have to be resized or moved to be there. No slots: worth of having none.
  virtual double Value(std::size_t seat, double speedup, int slots, bool moved) const = 0;
  // Whether a job may be left with less than its minimum, that is with nothing, for another's sake.
  virtual bool MayPause() const { return false; }
};

struct PromiseObjectiveOptions {
  double min_gain = 0.05;
  double hysteresis = 0.15;
  double horizon_s = 60;
};

// The objective of tuning: weight times speedup, where the weight is the seat's. A resize costs its
// pause, as the share of the time over which it must pay: the horizon, or the job's end if that
// comes first. Each slot must bring min_gain in speedup to be given and half of it to be kept, and
// what a job loses counts more by the hysteresis. With a deadline, a shape in which the job would
// get only part of its work done is worth so much less.
class PromiseObjective : public Objective {
 public:
  PromiseObjective(Board& board, const PromiseObjectiveOptions& options);
  double Value(std::size_t seat, double speedup, int slots, bool moved) const override;

 private:
  struct Present {
    double weight = 0;
    double speedup = 0;  // as it was when the pool was shown
    int slots = 0;
    double gross = 0;
  };

  double Gross(std::size_t seat, double speedup) const;

  const Board* board_;
  PromiseObjectiveOptions options_;
  std::vector<Present> present_;
};

// Pollux's fitness as a sum: the power mean with exponent -1 of u + 1e-3 is greatest where
// -1 / (u + 1e-3) sums up to most. u is the speedup relative to a fair share of the pool, scaled so
// that the share of a node counts as one, less the share of its age that a job loses by restarts of
// 30 s when its placement changes (petuum/adaptdl, branch osdi21-artifact, simulator/pollux.py).
class PolluxObjective : public Objective {
 public:
  explicit PolluxObjective(Board& board);
  double Value(std::size_t seat, double speedup, int slots, bool moved) const override;
  bool MayPause() const override { return true; }

 private:
  struct Terms {
    double unit = 0;     // of u, for a speedup of one
    double restart = 1;  // factor when the placement changes
  };
  std::vector<Terms> terms_;
};

}  // namespace espalier
