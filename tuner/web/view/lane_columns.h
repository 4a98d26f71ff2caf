#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "tuner/core/state/study.h"

namespace espalier::view {

// A stretch of time, cut into columns of equal length.
class TimeColumns {
 public:
  // Requires from < to and columns >= 1.
  TimeColumns(Time from, Time to, int columns);

  Time from() const { return from_; }
  Time to() const { return to_; }
  int columns() const { return columns_; }
  // Whether any of the time from `from` to `to` is in it.
  bool Touches(Time from, Time to) const { return from <= to_ && to >= from_; }
  // Moments outside of it are in the first or the last one.
  int Of(Time at) const;
  Time Begin(int column) const;
  double column_s() const;

 private:
  Time from_, to_;
  int columns_;
};

// Spans in which a slot was held, for lanes: those that are shorter than a column, and begin in the
// same one, are one span with a count. So there are no more than two for a slot and column.
class LaneSpans {
 public:
  struct Lane {
    Slot slot;
    Time from;
    Time to;  // zero: still
    TrialId trial;
    std::int64_t number = 0;
    StudyId study;
    std::int64_t count = 1;  // more: of the trial and the study nothing is said but one of them
  };

  explicit LaneSpans(const TimeColumns& columns) : columns_(columns) {}

  // `now`: until when one that lasts is held so far.
  void Add(const Lane& span, Time now);
  // By slot and time.
  std::vector<Lane> Sorted() const;

 private:
  TimeColumns columns_;
  std::vector<Lane> long_ones_;
  std::map<std::tuple<Slot, int>, Lane> short_ones_;  // by the column in which they begin
};

// How many slots were held in each column, on the mean of its time.
class SlotUse {
 public:
  explicit SlotUse(const TimeColumns& columns);

  // One slot.
  void Add(Time from, Time to);
  std::vector<double> Mean() const;
  const TimeColumns& columns() const { return columns_; }

 private:
  TimeColumns columns_;
  std::vector<double> part_s_;        // of columns that were held in part
  std::vector<std::int64_t> change_;  // of the number held for a whole column
};

}  // namespace espalier::view
