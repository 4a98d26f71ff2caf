#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "search_spaces/distribution.h"
#include "search_spaces/parameter.h"
#include "tuner/base/random.h"

namespace espalier {

inline constexpr std::size_t kMaxParameters = 256;
inline constexpr std::size_t kMaxParameterNameBytes = 128;  // of the name in its own object
inline constexpr std::size_t kMaxFlatNameBytes = 512;       // with the choices it depends on

// The parameters of a study and what each may be, in the order of the file, depth first. A value:
// it holds only what it was made of, and one that exists is valid (every draw from it is defined).
//
// The options of a nested choice bring parameters of their own, which are there only where that
// option is chosen. They are dimensions with a condition, and their names say it: parameter "p" of
// option "A" of choice "n" is "n/A/p". Parameters that are not active are absent from a trial's.
class SearchSpace {
 public:
  // What a dimension depends on: one option of a nested choice, both by their place.
  struct Condition {
    std::size_t parent;
    std::size_t option;

    friend bool operator==(const Condition&, const Condition&) = default;
  };
  struct Dimension {
    std::string name;  // flat
    Distribution distribution;
    std::optional<Condition> condition = std::nullopt;  // nullopt: always there
  };

  SearchSpace() = default;  // no parameters: only a place for a real one

  // An error names the parameter, the value and what would be right: the first of FlawsOf.
  static absl::StatusOr<SearchSpace> Make(std::vector<Dimension> dimensions);

  // NNI's format, {"lr": {"_type": "loguniform", "_value": [1e-5, 1]}, ...}. Other keys of a
  // parameter than these two are ignored, as NNI does. The error names the first of the flaws that
  // ReadSearchSpace (formats/nni/search_space_reading.h) finds.
  static absl::StatusOr<SearchSpace> FromJson(std::string_view json);
  std::string ToJson() const;

  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  // nullopt if there is none of that name.
  std::optional<std::size_t> Find(std::string_view name) const;

  // Whether the i-th dimension is there, by the values of the choices it depends on.
  bool IsActive(std::size_t i, const Parameters& parameters) const;
  // The name in its own object: "p" of "n/A/p".
  std::string_view OwnName(std::size_t i) const;

  Parameters Sample(Random& random) const;

  // OK if these are exactly the space's active parameters, in any order, with values it can yield.
  absl::Status Validate(const Parameters& parameters) const;
  // OK if they are some of them: each is of the space, has a value it can yield, and comes with the
  // choices that it depends on.
  absl::Status ValidateSome(const Parameters& parameters) const;

  // The parameters as a trial gets them: one JSON object in the space's order, with an object of
  // its "_name" and its parameters for a nested choice: {"n": {"_name": "A", "p": 0.3}}.
  // ParametersFromJson is the other way. Parameters that are not of the space come as they are.
  std::string NestedJson(const Parameters& parameters) const;

  // Number of different configurations (the largest uint64 if more); nullopt if not finite.
  std::optional<std::uint64_t> Cardinality() const;

  // One line a parameter, for people.
  std::string Describe() const;

 private:
  explicit SearchSpace(std::vector<Dimension> dimensions) : dimensions_(std::move(dimensions)) {}

  // "n" is "B".
  std::string WhyInactive(std::size_t i, const Parameters& parameters) const;

  std::vector<Dimension> dimensions_;
};

// One thing wrong with the dimensions of a space to be.
struct DimensionFlaw {
  std::size_t dimension;
  std::optional<std::size_t> value;  // of its distribution; nullopt: the whole
  std::string what;                  // without the parameter's name
};

// All that is wrong, for any dimensions whose conditions are those of nested choices before them:
// names that are empty, repeated, too long or could be mistaken for another's, and distributions
// with flaws.
std::vector<DimensionFlaw> FlawsOf(const std::vector<SearchSpace::Dimension>& dimensions);

}  // namespace espalier
