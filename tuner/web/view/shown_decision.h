#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tuner/core/state/change.h"
#include "tuner/web/view/json_text.h"

namespace espalier::view {

// The place of a decision among all, by time. In addresses it is a text.
struct DecisionPlace {
  Time at;
  StudyId study;
  std::int64_t ordinal = 0;  // of those of its study, from 0

  friend auto operator<=>(const DecisionPlace&, const DecisionPlace&) = default;
};
std::string TextOf(const DecisionPlace& place);
absl::StatusOr<DecisionPlace> ParseDecisionPlace(std::string_view text);

// A decision, copied.
struct ShownDecision {
  DecisionPlace place;
  std::string study;
  std::optional<std::int64_t> trial;  // its id
  Decision what;
  // Those whose slots it took: as figures have them, with what else names a trial.
  struct Giver {
    std::int64_t number = 0;
    StudyId study;
  };
  std::map<TrialId, Giver> givers;
};
// The one at that index of those that the study has.
ShownDecision DecisionAt(const TunerState& state, const Study& study, std::size_t index);
DecisionPlace PlaceAt(const Study& study, std::size_t index);

void Put(JsonText& json, const ShownDecision& decision);

}  // namespace espalier::view
