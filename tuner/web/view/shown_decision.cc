#include "tuner/web/view/shown_decision.h"

#include <charconv>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace espalier::view {

std::string TextOf(const DecisionPlace& place) {
  return absl::StrCat(place.at.us, "-", place.study.value, "-", place.ordinal);
}

absl::StatusOr<DecisionPlace> ParseDecisionPlace(std::string_view text) {
  const std::string given(text);
  const std::vector<std::string> parts = absl::StrSplit(given, '-');
  DecisionPlace place;
  if (parts.size() == 3 && absl::SimpleAtoi(parts[0], &place.at.us) &&
      absl::SimpleAtoi(parts[1], &place.study.value) &&
      absl::SimpleAtoi(parts[2], &place.ordinal)) {
    return place;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "before \"", given, "\": needs the \"cursor\" of a decision, or the \"next\" of an answer"));
}

DecisionPlace PlaceAt(const Study& study, std::size_t index) {
  const std::int64_t first = study.decisions_made - std::ssize(study.decisions);
  return {study.decisions[index].at, study.id, first + static_cast<std::int64_t>(index)};
}

ShownDecision DecisionAt(const Study& study, std::size_t index) {
  ShownDecision shown{PlaceAt(study, index), study.spec.name, {}, study.decisions[index]};
  const std::int64_t number = shown.what.trial_number;
  if (number >= 0 && number < std::ssize(study.trials)) {
    shown.trial = study.trials[static_cast<std::size_t>(number)].value;
  }
  return shown;
}

void Put(JsonText& json, const ShownDecision& decision) {
  const Decision& what = decision.what;
  json.Object([&] {
    json.Member("cursor", TextOf(decision.place));
    json.Member("at", what.at);
    json.Member("study_id", decision.place.study.value);
    json.Member("study", decision.study);
    json.Member("trial_id", decision.trial);
    json.Key("trial");
    what.trial_number >= 0 ? json.Value(what.trial_number) : json.Null();
    json.Member("kind", ToString(what.kind));
    json.Member("from_slots", what.from_slots);
    json.Member("to_slots", what.to_slots);
    json.Member("reason", what.reason);
    json.Key("figures");
    json.Null();
  });
}

}  // namespace espalier::view
