#include "tuner/web/view/shown_decision.h"

#include <charconv>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace espalier::view {

namespace {

void PutFigures(JsonText& json, const AllocationFigures& figures,
                const std::map<TrialId, ShownDecision::Giver>& givers) {
  json.Object([&] {
    json.Member("promise", figures.promise);
    json.Member("speedup_before", figures.speedup_before);
    json.Member("speedup_after", figures.speedup_after);
    json.Member("gain", figures.gain);
    json.Member("resize_cost_s", figures.resize_cost_s);
    json.Key("from");
    json.Array(figures.from, [&](const SlotsTaken& taken) {
      const auto giver = givers.find(taken.trial);
      const bool known = giver != givers.end();
      json.Object([&] {
        json.Member("trial_id", taken.trial.value);
        json.Key("trial");
        known ? json.Value(giver->second.number) : json.Null();
        json.Key("study_id");
        known ? json.Value(giver->second.study.value) : json.Null();
        json.Member("slots", taken.slots);
        json.Member("promise", taken.promise);
      });
    });
  });
}

}  // namespace

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

ShownDecision DecisionAt(const TunerState& state, const Study& study, std::size_t index) {
  ShownDecision shown;
  shown.place = PlaceAt(study, index);
  shown.study = study.spec.name;
  shown.what = study.decisions[index];
  const std::int64_t number = shown.what.trial_number;
  if (number >= 0 && number < std::ssize(study.trials)) {
    shown.trial = study.trials[static_cast<std::size_t>(number)].value;
  }
  if (!shown.what.figures) return shown;
  for (const SlotsTaken& taken : shown.what.figures->from) {
    const auto trial = state.trials.find(taken.trial);
    if (trial == state.trials.end()) continue;
    shown.givers[taken.trial] = {trial->second.number, trial->second.study};
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
    if (what.figures) {
      PutFigures(json, *what.figures, decision.givers);
    } else {
      json.Null();
    }
  });
}

}  // namespace espalier::view
