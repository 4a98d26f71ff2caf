#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/random.h"
#include "search_spaces/parameter.h"

namespace espalier {

// What one parameter may be, in the types of NNI's search space format and with their meaning.
// "Rounded to q" means rounded to the nearest multiple of q, a tie to the even multiple, and then
// clipped to the bounds where there are any: quniform [2, 10, 5] yields 2, 5 and 10.
struct Choice {
  std::vector<ParameterValue> options;
  // The options are names (texts), and each may bring parameters of its own: dimensions of the
  // search space with a condition.
  bool nested = false;

  friend bool operator==(const Choice&, const Choice&) = default;
};
struct RandInt {
  std::int64_t low;
  std::int64_t high;  // exclusive

  friend bool operator==(const RandInt&, const RandInt&) = default;
};
struct Uniform {
  double low;
  double high;

  friend bool operator==(const Uniform&, const Uniform&) = default;
};
struct QUniform {
  double low;
  double high;
  double q;

  friend bool operator==(const QUniform&, const QUniform&) = default;
};
struct LogUniform {  // uniform in the logarithm
  double low;
  double high;

  friend bool operator==(const LogUniform&, const LogUniform&) = default;
};
struct QLogUniform {
  double low;
  double high;
  double q;

  friend bool operator==(const QLogUniform&, const QLogUniform&) = default;
};
struct Normal {
  double mu;
  double sigma;

  friend bool operator==(const Normal&, const Normal&) = default;
};
struct QNormal {  // not clipped: may be negative
  double mu;
  double sigma;
  double q;

  friend bool operator==(const QNormal&, const QNormal&) = default;
};
struct LogNormal {  // mu and sigma are of the logarithm
  double mu;
  double sigma;

  friend bool operator==(const LogNormal&, const LogNormal&) = default;
};
struct QLogNormal {
  double mu;
  double sigma;
  double q;

  friend bool operator==(const QLogNormal&, const QLogNormal&) = default;
};

using Distribution = std::variant<Choice, RandInt, Uniform, QUniform, LogUniform, QLogUniform,
                                  Normal, QNormal, LogNormal, QLogNormal>;

inline constexpr std::size_t kMaxOptions = 4096;       // of one choice
inline constexpr double kMaxSteps = 9007199254740992;  // of one q grid: 2^53

// The format's word for the type: "loguniform".
std::string_view TypeName(const Distribution& distribution);

// What is wrong with a distribution: "loguniform needs low > 0, got 0".
struct DistributionFlaw {
  std::optional<std::size_t> value;  // which number or option, counted from 0; nullopt: the whole
  std::string what;
};

// Finds what cannot be drawn from: empty or repeated options, high <= low, q <= 0, low <= 0 for a
// logarithm, sigma <= 0, numbers that are not finite.
std::optional<DistributionFlaw> FlawOf(const Distribution& distribution);

// The functions below require a distribution without a flaw.

ParameterValue Draw(const Distribution& distribution, Random& random);

// True if Draw can return this value. Integers count as numbers, and multiples of q may be off by a
// billionth of q, as hand-written ones are.
bool Contains(const Distribution& distribution, const ParameterValue& value);

// Number of different values; nullopt if continuous or unbounded.
std::optional<std::uint64_t> Cardinality(const Distribution& distribution);

// The values of a finite distribution by number, in ascending order (options in their own order).
// IndexOf is nullopt for values that the distribution does not contain.
ParameterValue ValueAt(const Distribution& distribution, std::uint64_t index);
std::optional<std::uint64_t> IndexOf(const Distribution& distribution, const ParameterValue& value);

// For people: loguniform 1e-05 to 1.
std::string Describe(const Distribution& distribution);

}  // namespace espalier
