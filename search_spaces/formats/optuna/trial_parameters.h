#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "search_spaces/distribution.h"
#include "search_spaces/search_space.h"

namespace espalier {

inline constexpr std::size_t kMaxObservedChoices = 100;

// The values that one parameter was observed to have.
class ObservedValues {
 public:
  void Add(const ParameterValue& value);
  // Contains `value`, which was added. It is the same for all values if they are numbers, or no
  // more than kMaxObservedChoices. Otherwise it contains this value alone, since Optuna keeps the
  // whole distribution with each trial.
  Distribution DistributionOf(const ParameterValue& value) const;

 private:
  std::vector<ParameterValue> choices_;  // the different ones, and at most one more than may be
  bool numbers_ = true;
  bool integers_ = true;
  std::int64_t least_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t most_ = std::numeric_limits<std::int64_t>::min();
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

// A trial's parameter as Optuna keeps it.
struct OptunaParameter {
  std::string name;
  std::string distribution;  // JSON
  double stored = 0;
};

// How Optuna sees the parameters of trials whose values the tuner keeps by name. Those that the
// search space describes have its distributions. Others, as in a queue without a space, have one of
// the values that were observed.
class OptunaParameters {
 public:
  // The space must outlive it.
  explicit OptunaParameters(const SearchSpace& space) : space_(space) {}

  void Observe(const Parameters& parameters);
  // In their order. A value of a parameter that was not observed has a distribution of its own.
  std::vector<OptunaParameter> Of(const Parameters& parameters) const;

 private:
  const SearchSpace& space_;
  std::map<std::string, ObservedValues> observed_;  // of those that are not in the space
};

}  // namespace espalier
