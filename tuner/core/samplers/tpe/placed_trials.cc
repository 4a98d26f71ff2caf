#include "tuner/core/samplers/tpe/placed_trials.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "tuner/core/samplers/configurations.h"

namespace espalier::samplers {
namespace {

constexpr double kNotThere = std::numeric_limits<double>::quiet_NaN();

// What identifies a value among those of its distribution.
std::uint64_t BitsOf(const Distribution& distribution, const ParameterValue& value) {
  if (std::holds_alternative<Choice>(distribution)) return *IndexOf(distribution, value);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    if (std::holds_alternative<RandInt>(distribution)) return static_cast<std::uint64_t>(*whole);
  }
  return std::bit_cast<std::uint64_t>(*NumberOf(value));
}

struct SortedPlace {
  double at;
  std::uint32_t i;
};

// Sorts by place, none of which is negative, equal ones as they stand: digit by digit of the bits,
// the last one first, in which doubles of one sign are ordered as numbers are. Thousands take a
// fifth of the time that comparisons take.
void SortByDigits(std::vector<SortedPlace>& places, std::vector<SortedPlace>& spare) {
  constexpr int kDigitBits = 11;
  constexpr std::size_t kDigits = 6;
  constexpr std::size_t kValues = std::size_t{1} << kDigitBits;
  const auto digit_of = [](double at, std::size_t digit) {
    return (std::bit_cast<std::uint64_t>(at) >> (digit * kDigitBits)) % kValues;
  };
  std::vector<std::uint32_t> counts(kDigits * kValues);
  for (const SortedPlace& place : places) {
    for (std::size_t digit = 0; digit < kDigits; ++digit) {
      ++counts[digit * kValues + digit_of(place.at, digit)];
    }
  }
  spare.resize(places.size());
  for (std::size_t digit = 0; digit < kDigits; ++digit) {
    std::uint32_t* const next = counts.data() + digit * kValues;
    std::uint32_t before = 0;
    for (std::size_t value = 0; value < kValues; ++value) {
      before += std::exchange(next[value], before);
    }
    for (const SortedPlace& place : places) spare[next[digit_of(place.at, digit)]++] = place;
    places.swap(spare);
  }
}

void SortPlaces(std::vector<SortedPlace>& places, std::vector<SortedPlace>& spare) {
  constexpr std::size_t kFew = 256;
  if (places.size() > kFew) return SortByDigits(places, spare);
  std::stable_sort(places.begin(), places.end(),
                   [](const SortedPlace& a, const SortedPlace& b) { return a.at < b.at; });
}

}  // namespace

PlacedTrials::PlacedTrials(SearchSpace space, bool order_numbers) : space_(std::move(space)) {
  for (const auto& dimension : space_.dimensions()) {
    axes_.emplace_back(dimension.distribution, order_numbers);
  }
  columns_.resize(axes_.size());
}

PlacedTrials::Placed PlacedTrials::Place(std::size_t axis, const Parameters& parameters) const {
  const ParameterValue* value = ValueOf(space_, axis, parameters);
  if (value == nullptr) return {kNotThere, 0};
  const Coordinate coordinate = axes_[axis].Place(*value);
  const double at = axes_[axis].unordered() ? static_cast<double>(coordinate.cell) : coordinate.at;
  return {at, BitsOf(space_.dimensions()[axis].distribution, *value)};
}

std::vector<double> PlacedTrials::PlacesOf(const Parameters& parameters) const {
  std::vector<double> places(axes_.size());
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) places[axis] = Place(axis, parameters).at;
  return places;
}

bool PlacedTrials::Holds(std::size_t axis, Slot slot, const ParameterValue& value) const {
  const Distribution& distribution = space_.dimensions()[axis].distribution;
  const std::uint64_t held = columns_[axis].value[slot];
  if (const auto* choice = std::get_if<Choice>(&distribution)) {
    return SameValue(choice->options[held], value);
  }
  if (const auto* real = std::get_if<double>(&value)) {
    return std::bit_cast<std::uint64_t>(*real) == held &&
           !std::holds_alternative<RandInt>(distribution);
  }
  const auto* whole = std::get_if<std::int64_t>(&value);
  return whole != nullptr && BitsOf(distribution, value) == held;
}

bool PlacedTrials::LiesAt(Slot slot, const Parameters& parameters) const {
  // As samplers draw them: those that are there, in the space's order, and no others.
  std::size_t next = 0;
  bool drawn = true;
  for (std::size_t axis = 0; axis < axes_.size() && drawn; ++axis) {
    if (std::isnan(columns_[axis].at[slot])) continue;
    drawn = next < parameters.size() && parameters[next].name == space_.dimensions()[axis].name &&
            Holds(axis, slot, parameters[next].value);
    ++next;
  }
  if (drawn && next == parameters.size()) return true;
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    const Placed placed = Place(axis, parameters);
    const double at = columns_[axis].at[slot];
    if (std::isnan(placed.at) != std::isnan(at)) return false;
    if (!std::isnan(at) && placed.value != columns_[axis].value[slot]) return false;
  }
  return true;
}

PlacedTrials::Slot PlacedTrials::NewSlot() {
  if (!free_.empty()) {
    const Slot slot = free_.back();
    free_.pop_back();
    return slot;
  }
  numbers_.push_back(0);
  for (Column& column : columns_) {
    column.at.push_back(kNotThere);
    column.width.push_back(0);
    column.constant.push_back(0);
    column.value.push_back(0);
  }
  return static_cast<Slot>(numbers_.size() - 1);
}

void PlacedTrials::Fill(Slot slot, const Observation& trial) {
  numbers_[slot] = trial.trial_number;
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    const Placed placed = Place(axis, *trial.parameters);
    Column& column = columns_[axis];
    column.at[slot] = placed.at;
    column.value[slot] = placed.value;
    column.width[slot] = 0;  // of no kernel
  }
}

void PlacedTrials::Remove(const std::vector<Slot>& slots) {
  if (slots.empty()) return;
  std::vector<bool> gone(numbers_.size());
  for (const Slot slot : slots) gone[slot] = true;
  for (Column& column : columns_) {
    std::erase_if(column.ascending, [&gone](Slot slot) { return gone[slot]; });
  }
  free_.insert(free_.end(), slots.begin(), slots.end());
}

// `added` is in the order of the trials' numbers.
void PlacedTrials::Order(const std::vector<Slot>& added) {
  std::vector<SortedPlace> places;
  std::vector<SortedPlace> spare;
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    if (axes_[axis].unordered()) continue;
    Column& column = columns_[axis];
    places.clear();
    for (std::uint32_t i = 0; i < added.size(); ++i) {
      const double at = column.at[added[i]];
      if (!std::isnan(at)) places.push_back({at + 0.0, i});  // no negative zero
    }
    SortPlaces(places, spare);
    std::vector<Slot>& ascending = column.ascending;
    const auto old = static_cast<std::ptrdiff_t>(ascending.size());
    for (const SortedPlace& place : places) ascending.push_back(added[place.i]);
    if (old == 0) continue;
    std::inplace_merge(ascending.begin(), ascending.begin() + old, ascending.end(),
                       [&](Slot a, Slot b) {
                         return column.at[a] != column.at[b] ? column.at[a] < column.at[b]
                                                             : numbers_[a] < numbers_[b];
                       });
  }
}

void PlacedTrials::Follow(std::span<const Observation> ended) {
  ended_.resize(ended.size());
  std::iota(ended_.begin(), ended_.end(), std::size_t{0});
  const auto earlier = [&ended](std::size_t a, std::size_t b) {
    return ended[a].trial_number < ended[b].trial_number;
  };
  if (!std::is_sorted(ended_.begin(), ended_.end(), earlier)) {
    std::stable_sort(ended_.begin(), ended_.end(), earlier);
  }
  const std::vector<Slot> known = std::exchange(slots_, {});
  slots_.reserve(ended.size());
  std::vector<Slot> removed;
  std::vector<std::size_t> new_at;  // in slots_
  std::size_t next = 0;
  for (const std::size_t i : ended_) {
    const Observation& trial = ended[i];
    while (next < known.size() && numbers_[known[next]] < trial.trial_number) {
      removed.push_back(known[next++]);
    }
    const bool seen = next < known.size() && numbers_[known[next]] == trial.trial_number;
    if (seen && LiesAt(known[next], *trial.parameters)) {
      slots_.push_back(known[next++]);
      continue;
    }
    if (seen) removed.push_back(known[next++]);
    new_at.push_back(slots_.size());
    slots_.push_back(0);
  }
  removed.insert(removed.end(), known.begin() + static_cast<std::ptrdiff_t>(next), known.end());
  Remove(removed);
  std::vector<Slot> added;
  for (const std::size_t at : new_at) {
    added.push_back(slots_[at] = NewSlot());
    Fill(slots_[at], ended[ended_[at]]);
  }
  if (!added.empty()) Order(added);
}

}  // namespace espalier::samplers
