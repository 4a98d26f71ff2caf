#include "adapters/optuna/dashboard/study_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/api/shown_attributes.h"

namespace espalier::optuna_dashboard {

namespace {

// What a list of studies shows.
StudyHead SummaryOf(const Study& study) {
  StudyHead head;
  head.id = study.id;
  head.spec.name = study.spec.name;
  head.spec.directions = study.spec.directions;
  head.attributes = ShownAttributes(study);
  return head;
}

StudyHead HeadOf(const Study& study) {
  StudyHead head = SummaryOf(study);
  head.spec = study.spec;
  head.suggestions = study.suggestions;
  return head;
}

ShownTrial Copy(const Trial& trial, bool full) {
  ShownTrial shown;
  shown.id = trial.id;
  shown.study = trial.study;
  shown.number = trial.number;
  shown.state = trial.state;
  shown.started = trial.started;
  shown.ended = trial.ended;
  if (trial.value) {
    shown.values.reserve(1 + trial.other_values.size());
    shown.values.push_back(*trial.value);
    shown.values.insert(shown.values.end(), trial.other_values.begin(), trial.other_values.end());
  }
  shown.parameters = trial.parameters;
  shown.suggested = trial.suggested;
  shown.attributes.user = trial.attributes.user;
  shown.reported = !trial.values.empty();
  if (!full) return shown;
  shown.attributes.system = trial.attributes.system;
  shown.reports.reserve(trial.values.size());
  for (const IntermediateValue& value : trial.values) {
    shown.reports.emplace_back(value.step, value.value);
  }
  return shown;
}

absl::StatusOr<const Study*> FindStudy(const View& view, StudyId id) {
  const auto it = view.core.state().studies.find(id);
  if (it != view.core.state().studies.end()) return &it->second;
  return absl::NotFoundError(absl::StrCat("study_id=", id.value, " is not found"));
}

}  // namespace

absl::StatusOr<std::vector<StudyHead>> ReadStudies(Tuner& tuner) {
  std::vector<StudyHead> heads;
  ESPALIER_RETURN_IF_ERROR(tuner.Read([&heads](const View& view) {
    for (const auto& [id, study] : view.core.state().studies) heads.push_back(SummaryOf(study));
  }));
  return heads;
}

absl::StatusOr<StudyHead> ReadHead(Tuner& tuner, StudyId id) {
  absl::StatusOr<StudyHead> head = absl::UnknownError("not read");
  ESPALIER_RETURN_IF_ERROR(tuner.Read([&](const View& view) {
    const absl::StatusOr<const Study*> study = FindStudy(view, id);
    head = study.ok() ? absl::StatusOr<StudyHead>(HeadOf(**study)) : study.status();
  }));
  return head;
}

absl::StatusOr<ShownStudy> ReadStudy(Tuner& tuner, StudyId id, std::int64_t full_from) {
  ShownStudy shown;
  absl::Status status;
  bool done = false;
  const auto read_slice = [&](const View& view) {
    const absl::StatusOr<const Study*> found = FindStudy(view, id);
    if (!found.ok()) {
      status = found.status();
      return;
    }
    const Study& study = **found;
    const std::size_t end = std::min(study.trials.size(), shown.trials.size() + kTrialsInSlice);
    for (std::size_t i = shown.trials.size(); i < end; ++i) {
      const Trial& trial = view.core.state().trials.at(study.trials[i]);
      shown.trials.push_back(Copy(trial, trial.number >= full_from));
    }
    done = end == study.trials.size();
    // Last, so that it knows all that the trials speak of.
    if (done) shown.head = HeadOf(study);
  };
  while (!done) {
    ESPALIER_RETURN_IF_ERROR(tuner.Read(read_slice));
    ESPALIER_RETURN_IF_ERROR(status);
  }
  return shown;
}

absl::StatusOr<ShownTrial> ReadTrial(Tuner& tuner, TrialId id) {
  absl::StatusOr<ShownTrial> shown =
      absl::NotFoundError(absl::StrCat("trial_id=", id.value, " is not found"));
  ESPALIER_RETURN_IF_ERROR(tuner.Read([&](const View& view) {
    const auto it = view.core.state().trials.find(id);
    if (it != view.core.state().trials.end()) shown = Copy(it->second, true);
  }));
  return shown;
}

}  // namespace espalier::optuna_dashboard
