#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tuner/core/samplers/axis.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {

// Where trials that have ended lie on the axes of a space, and their order along each. It follows
// the trials of a study: what is known of those that were there before is kept, so that one more
// costs little. What it says follows from the trials it was last told of alone.
class PlacedTrials {
 public:
  // Trials have slots, which stay theirs as long as they are here.
  using Slot = std::uint32_t;

  struct Column {            // of one axis
    std::vector<double> at;  // by slot: place, or option where there is no order; NaN: not there
    std::vector<Slot> ascending;  // of those that are: by place, then by number
    // By slot, for who works on kernels: a width, and what was worked out of place and width.
    std::vector<double> width;
    std::vector<double> constant;
    std::vector<std::uint64_t> value;  // by slot: the value that was placed
  };

  PlacedTrials(SearchSpace space, bool order_numbers);
  PlacedTrials(const PlacedTrials&) = delete;
  PlacedTrials& operator=(const PlacedTrials&) = delete;

  bool IsOf(const SearchSpace& space) const { return space == space_; }

  // From now on these are the trials.
  void Follow(std::span<const Observation> ended);

  const SearchSpace& space() const { return space_; }
  const std::vector<Axis>& axes() const { return axes_; }
  std::vector<Column>& columns() { return columns_; }

  std::size_t size() const { return slots_.size(); }
  std::size_t slots() const { return numbers_.size(); }
  // Of the i-th by number: its slot, and its index in what Follow was told.
  Slot slot(std::size_t i) const { return slots_[i]; }
  std::size_t ended(std::size_t i) const { return ended_[i]; }

  // Where these lie: NaN on the axes that they have no value on.
  std::vector<double> PlacesOf(const Parameters& parameters) const;

 private:
  struct Placed {
    double at;
    std::uint64_t value;
  };
  Placed Place(std::size_t axis, const Parameters& parameters) const;
  bool Holds(std::size_t axis, Slot slot, const ParameterValue& value) const;
  bool LiesAt(Slot slot, const Parameters& parameters) const;
  Slot NewSlot();
  void Fill(Slot slot, const Observation& trial);
  void Remove(const std::vector<Slot>& slots);
  void Order(const std::vector<Slot>& added);

  SearchSpace space_;
  std::vector<Axis> axes_;
  std::vector<Column> columns_;
  std::vector<std::int64_t> numbers_;  // by slot
  std::vector<Slot> free_;
  std::vector<Slot> slots_;         // by number of the trial
  std::vector<std::size_t> ended_;  // of each of these
};

}  // namespace espalier::samplers
