#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tuner/core/state/refusals.h"
#include "tuner/web/view/heading.h"
#include "tuner/web/view/json_text.h"
#include "tuner/web/view/shown_decision.h"
#include "tuner/web/view/slices.h"
#include "tuner/web/view/views.h"

namespace espalier::view {

namespace {

constexpr std::size_t kPassedInUnit = 8;  // decisions that are only looked at
constexpr std::size_t kCopyUnits = 2;

constexpr DecisionKind kKinds[] = {
    DecisionKind::kStart,  DecisionKind::kGrow,  DecisionKind::kShrink, DecisionKind::kMove,
    DecisionKind::kPrune,  DecisionKind::kPause, DecisionKind::kResume, DecisionKind::kRestart,
    DecisionKind::kFinish, DecisionKind::kFail,  DecisionKind::kPool,   DecisionKind::kStudy};

absl::StatusOr<std::optional<DecisionKind>> ParseKind(const std::string& text) {
  if (text.empty()) return std::nullopt;
  std::vector<std::string> known;
  for (const DecisionKind kind : kKinds) {
    if (ToString(kind) == text) return kind;
    known.emplace_back(ToString(kind));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("kind \"", text, "\": needs one of ", absl::StrJoin(known, ", ")));
}

// Decisions of all studies by time, newest first. It lives within one look at the core.
class NewestFirst {
 public:
  NewestFirst(const TunerState& state, std::optional<StudyId> only,
              const std::optional<DecisionPlace>& before) {
    const auto add = [&](const Study& study) {
      std::size_t end = study.decisions.size();
      if (before) end = EndBefore(study, *before);
      if (end > 0) heads_.emplace(PlaceAt(study, end - 1), Head{&study, end - 1});
    };
    if (!only) {
      for (const auto& [id, study] : state.studies) add(study);
    } else if (const auto study = state.studies.find(*only); study != state.studies.end()) {
      add(study->second);
    }
  }

  bool empty() const { return heads_.empty(); }
  std::size_t studies() const { return heads_.size(); }
  const DecisionPlace& place() const { return heads_.rbegin()->first; }
  const Decision& decision() const { return study().decisions[index()]; }
  const Study& study() const { return *heads_.rbegin()->second.study; }
  std::size_t index() const { return heads_.rbegin()->second.index; }
  void Next() {
    Head head = heads_.rbegin()->second;
    heads_.erase(std::prev(heads_.end()));
    if (head.index-- > 0) heads_.emplace(PlaceAt(*head.study, head.index), head);
  }

 private:
  struct Head {
    const Study* study;
    std::size_t index;
  };

  // How many of the study's are before that place. Ordinals ascend; times may be set back.
  static std::size_t EndBefore(const Study& study, const DecisionPlace& before) {
    std::size_t end = study.decisions.size();
    if (study.id == before.study) {
      const std::int64_t first = study.decisions_made - std::ssize(study.decisions);
      return static_cast<std::size_t>(
          std::clamp<std::int64_t>(before.ordinal - first, 0, std::ssize(study.decisions)));
    }
    const auto at = std::partition_point(
        study.decisions.begin(), study.decisions.end(), [&](const Decision& decision) {
          return decision.at < before.at || (decision.at == before.at && study.id < before.study);
        });
    end = static_cast<std::size_t>(at - study.decisions.begin());
    return end;
  }

  std::map<DecisionPlace, Head> heads_;
};

// What is looked for, and how far the search has come.
struct Search {
  std::optional<StudyId> study;
  std::optional<std::int64_t> number;  // of the trial
  std::optional<DecisionKind> kind;
  std::optional<DecisionPlace> before;
  std::size_t rows = 0;

  std::vector<ShownDecision> found{};
  bool more = false;

  bool Wants(const Decision& decision) const {
    return (!number || decision.trial_number == *number) && (!kind || decision.kind == *kind);
  }
  // True: it has come to an end.
  bool GoOn(const TunerState& state, Slice& slice) {
    NewestFirst all(state, study, before);
    slice.Spend(all.studies());
    std::size_t passed = 0;
    for (; !all.empty(); all.Next()) {
      if (found.size() >= rows) {
        more = true;
        return true;
      }
      if (!slice.HasRoom()) return false;
      before = all.place();
      if (!Wants(all.decision())) {
        slice.Spend(++passed % kPassedInUnit == 0 ? 1 : 0);
        continue;
      }
      found.push_back(DecisionAt(state, all.study(), all.index()));
      slice.Spend(kCopyUnits);
    }
    return true;
  }
};

// The study and the number of the trial that is asked for.
absl::Status FindTrial(const TunerState& state, TrialId id, Search& search) {
  const auto trial = state.trials.find(id);
  if (trial == state.trials.end()) return NoTrial(id);
  if (search.study && *search.study != trial->second.study) {
    return absl::InvalidArgumentError(absl::StrCat("trial ", id.value, " is of study ",
                                                   trial->second.study.value, ", not of study ",
                                                   search.study->value, ": leave one of them out"));
  }
  search.study = trial->second.study;
  search.number = trial->second.number;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> DecisionsJson(const Source& source, const DecisionsWanted& wanted) {
  Search search;
  search.study = wanted.study;
  search.rows = static_cast<std::size_t>(wanted.rows);
  ESPALIER_ASSIGN_OR_RETURN(search.kind, ParseKind(wanted.kind));
  if (!wanted.before.empty()) {
    ESPALIER_ASSIGN_OR_RETURN(search.before, ParseDecisionPlace(wanted.before));
  }
  Heading heading;
  bool begun = false;
  absl::Status found = absl::OkStatus();
  ESPALIER_RETURN_IF_ERROR(ReadInSlices(source.tuner, [&](const View& view, Slice& slice) {
    const TunerState& state = view.core.state();
    if (!begun) {
      begun = true;
      heading = HeadingOf(source);
      if (wanted.study && !state.studies.contains(*wanted.study)) found = NoStudy(*wanted.study);
      if (wanted.trial) found.Update(FindTrial(state, *wanted.trial, search));
      if (!found.ok()) return true;
    }
    return search.GoOn(state, slice);
  }));
  if (!found.ok()) return found;
  JsonText json;
  json.Object([&] {
    PutHeading(json, heading);
    json.Key("next");
    search.more ? json.Value(TextOf(search.found.back().place)) : json.Null();
    json.Key("decisions");
    json.Array(search.found, [&json](const ShownDecision& decision) { Put(json, decision); });
  });
  return json.Take();
}

}  // namespace espalier::view
