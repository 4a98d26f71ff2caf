#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "search_spaces/distribution.h"
#include "search_spaces/parameter.h"

namespace espalier {

inline constexpr std::size_t kMaxParameters = 256;
inline constexpr std::size_t kMaxParameterNameBytes = 128;  // of the name in its own object
inline constexpr std::size_t kMaxFlatNameBytes = 512;       // with the choices it depends on

// The parameters of a study and what each may be, in the order of the file, depth first. A value
// type: it holds only what it was made of, and every SearchSpace that exists is valid (every draw
// from it is defined).
//
// The options of a nested choice bring parameters of their own, which exist only where that option
// is chosen. They are dimensions with a condition, and their names say it: parameter "p" of option
// "A" of choice "n" is "n/A/p". Parameters that are not active are absent from a trial's.
class SearchSpace {
 public:
  // What a dimension depends on: one option of a nested choice, both given by index.
  struct Condition {
    std::size_t parent;
    std::size_t option;

    friend bool operator==(const Condition&, const Condition&) = default;
  };
  struct Dimension {
    std::string name;  // flat
    Distribution distribution;
    std::optional<Condition> condition = std::nullopt;  // nullopt: always there

    friend bool operator==(const Dimension&, const Dimension&) = default;
  };

  SearchSpace() = default;  // no parameters: only a place for a real one

  // The error is about the first of FlawsOf; it names the parameter, the value and what would be
  // right.
  static absl::StatusOr<SearchSpace> Make(std::vector<Dimension> dimensions);

  // NNI's format, {"lr": {"_type": "loguniform", "_value": [1e-5, 1]}, ...}. Keys of a parameter
  // other than these two are ignored, as in NNI. The error names the first of the flaws that
  // ReadSearchSpace (formats/nni/search_space_reading.h) finds.
  static absl::StatusOr<SearchSpace> FromJson(std::string_view json);
  std::string ToJson() const;

  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  // nullopt if there is no parameter of that name.
  std::optional<std::size_t> Find(std::string_view name) const;

  // Whether the i-th dimension is active, by the values of the choices on which it depends.
  bool IsActive(std::size_t i, const Parameters& parameters) const;
  // The name in its own object: "p" of "n/A/p".
  std::string_view OwnName(std::size_t i) const;

  Parameters Sample(Random& random) const;

  // OK if these are exactly the space's active parameters, in any order, with values it can yield.
  absl::Status Validate(const Parameters& parameters) const;
  // OK if these are some of the space's parameters: each is of the space, has a value that it can
  // yield, and comes with the choices on which it depends.
  absl::Status ValidateSome(const Parameters& parameters) const;

  // An error if two parameters that a trial may have at once would be in one environment variable
  // (base/environment.h). Variables of names that are not ASCII are not looked at: their
  // values are in the file of parameters.
  absl::Status CheckVariables() const;

  // The parameters as a trial gets them: one JSON object in the space's order, where a nested
  // choice is an object of its "_name" and its parameters: {"n": {"_name": "A", "p": 0.3}}.
  // ParametersFromJson is the inverse. Parameters that are not of the space are written as they
  // are.
  std::string NestedJson(const Parameters& parameters) const;

  // Number of different configurations (the largest uint64 if more); nullopt if not finite.
  std::optional<std::uint64_t> Cardinality() const;

  friend bool operator==(const SearchSpace&, const SearchSpace&) = default;

  // One line per parameter, for people.
  std::string Describe() const;

 private:
  explicit SearchSpace(std::vector<Dimension> dimensions) : dimensions_(std::move(dimensions)) {}

  // Whether one choice would have to be two options for both to be active.
  bool Exclude(std::size_t i, std::size_t j) const;
  // "n" is "B".
  std::string WhyInactive(std::size_t i, const Parameters& parameters) const;

  std::vector<Dimension> dimensions_;
};

// As SearchSpace::CheckVariables, for the parameters that one trial has.
absl::Status CheckVariables(const Parameters& parameters);

// One thing that is wrong with the dimensions of a space that is to be made.
struct DimensionFlaw {
  std::size_t dimension;
  std::optional<std::size_t> value;  // of its distribution; nullopt: all of it
  std::string what;                  // without the parameter's name
};

// Finds all that is wrong with dimensions whose conditions refer to nested choices before them:
// names that are empty, repeated, too long or could be mistaken for another's, and distributions
// with flaws.
std::vector<DimensionFlaw> FlawsOf(const std::vector<SearchSpace::Dimension>& dimensions);

}  // namespace espalier
