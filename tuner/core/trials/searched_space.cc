#include "tuner/core/trials/searched_space.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace espalier {

SearchSpace SearchedSpace(const StudySpec& spec) {
  if (spec.fixed.empty()) return spec.space;
  std::vector<SearchSpace::Dimension> left;
  std::vector<std::optional<std::size_t>> places;  // in `left`, of each dimension of the space
  for (SearchSpace::Dimension dimension : spec.space.dimensions()) {
    auto& condition = dimension.condition;
    places.emplace_back();
    if (condition) {
      if (!places[condition->parent]) continue;
      const SearchSpace::Dimension& whole = spec.space.dimensions()[condition->parent];
      if (const ParameterValue* held = Find(spec.fixed, whole.name)) {
        const auto& options = std::get<Choice>(whole.distribution).options;
        if (!SameValue(options[condition->option], *held)) continue;
        condition->option = 0;  // the only one
      }
      condition->parent = *places[condition->parent];
    }
    if (const ParameterValue* held = Find(spec.fixed, dimension.name)) {
      const auto* choice = std::get_if<Choice>(&dimension.distribution);
      const bool nested = choice != nullptr && choice->nested;
      dimension.distribution = Choice{{*held}, nested};
    }
    places.back() = left.size();
    left.push_back(std::move(dimension));
  }
  absl::StatusOr<SearchSpace> searched = SearchSpace::Make(std::move(left));
  ESPALIER_CHECK(searched.ok(), "a study is validated before it is created");
  return *std::move(searched);
}

}  // namespace espalier
