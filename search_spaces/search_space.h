#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "search_spaces/distribution.h"
#include "search_spaces/parameter.h"
#include "tuner/base/random.h"

namespace espalier {

inline constexpr std::size_t kMaxParameters = 256;
inline constexpr std::size_t kMaxParameterNameBytes = 128;

// The parameters of a study and what each may be, in the order of the file. A value: it holds only
// what it was made of, and one that exists is valid (every draw from it is defined).
class SearchSpace {
 public:
  struct Dimension {
    std::string name;
    Distribution distribution;
  };

  SearchSpace() = default;  // no parameters: only a place for a real one

  // An error names the parameter, the value and what would be right. Names are not empty, not
  // repeated and at most kMaxParameterNameBytes long; there are 1 to kMaxParameters of them.
  static absl::StatusOr<SearchSpace> Make(std::vector<Dimension> dimensions);

  // NNI's format, {"lr": {"_type": "loguniform", "_value": [1e-5, 1]}, ...}. Other keys of a
  // parameter than these two are ignored, as NNI does.
  static absl::StatusOr<SearchSpace> FromJson(std::string_view json);
  std::string ToJson() const;

  const std::vector<Dimension>& dimensions() const { return dimensions_; }

  Parameters Sample(Random& random) const;

  // OK if these are exactly the space's parameters, in any order, with values it can yield.
  absl::Status Validate(const Parameters& parameters) const;

  // Number of different configurations (the largest uint64 if more); nullopt if not finite.
  std::optional<std::uint64_t> Cardinality() const;

  // One line a parameter, for people.
  std::string Describe() const;

 private:
  explicit SearchSpace(std::vector<Dimension> dimensions) : dimensions_(std::move(dimensions)) {}

  std::vector<Dimension> dimensions_;
};

}  // namespace espalier
