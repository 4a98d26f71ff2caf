#include "adapters/optuna/dashboard/study_reader.h"

#include <utility>

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

absl::StatusOr<StudyCopy> ReadStudy(Tuner& tuner, StudyId id, std::int64_t full_from) {
  StudyCopier copier(full_from);
  absl::StatusOr<const Study*> study = nullptr;
  Attributes attributes;
  bool done = false;
  const auto read_slice = [&](const View& view) {
    study = FindStudy(view, id);
    done = study.ok() && copier.GoOn(view.core.state(), **study, kTrialsInSlice);
    if (done) attributes = ShownAttributes(**study);
  };
  while (!done) {
    ESPALIER_RETURN_IF_ERROR(tuner.Read(read_slice));
    ESPALIER_RETURN_IF_ERROR(study.status());
  }
  StudyCopy copy = copier.Take();
  copy.head.attributes = std::move(attributes);
  return copy;
}

absl::StatusOr<TrialCopy> ReadTrial(Tuner& tuner, TrialId id) {
  absl::StatusOr<TrialCopy> copy =
      absl::NotFoundError(absl::StrCat("trial_id=", id.value, " is not found"));
  ESPALIER_RETURN_IF_ERROR(tuner.Read([&](const View& view) {
    const auto it = view.core.state().trials.find(id);
    if (it != view.core.state().trials.end()) copy = CopyOf(it->second, true);
  }));
  return copy;
}

}  // namespace espalier::optuna_dashboard
