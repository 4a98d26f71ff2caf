#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "search_spaces/search_space.h"

namespace espalier {

// Numbers the combinations of a space's parameters, where each parameter has a given number of
// values. Numbers count like an odometer, the last parameter fastest; each option of a nested
// choice counts the combinations of its own parameters, so values of inactive parameters make no
// combinations.
class Combinations {
 public:
  // The number of each dimension's value, by dimension; nullopt where it is inactive.
  using Indices = std::vector<std::optional<std::uint64_t>>;

  // `counts` is the number of values of each dimension, at least 1; a nested choice has one per
  // option. The space must outlive this.
  Combinations(const SearchSpace& space, std::vector<std::uint64_t> counts);

  // How many combinations there are; the largest uint64 if there are more.
  std::uint64_t count() const { return Product(roots_); }

  // nullopt past the last one.
  std::optional<Indices> At(std::uint64_t number) const;

  // Requires the indices of a combination, and a count that a uint64 holds.
  std::uint64_t NumberOf(const Indices& indices) const;

 private:
  using Group = std::vector<std::size_t>;  // dimensions under one condition

  std::uint64_t Product(const Group& group) const;
  std::uint64_t Place(const Group& group, std::uint64_t number, Indices& indices) const;
  std::uint64_t Number(const Group& group, const Indices& indices) const;

  std::vector<std::uint64_t> sizes_;          // of a dimension with all that depends on it
  std::vector<std::vector<Group>> branches_;  // of a nested choice, by option
  Group roots_;
};

}  // namespace espalier
