#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "tuner/api/notes.h"
#include "tuner/api/operations.h"
#include "tuner/core/state/refusals.h"

namespace espalier::api {

namespace {

// The study whose attributes have the note, and what they say.
struct NotePlace {
  StudyId study;
  std::optional<TrialId> trial;
  AttributeTexts attributes;
};

absl::StatusOr<v1::NoteText> Write(Tuner& tuner, const NotePlace& place, const std::string& text) {
  if (text.size() > kMaxNote) {
    return absl::InvalidArgumentError(
        absl::StrCat("text: a note has at most ", kMaxNote, " bytes, got ", text.size()));
  }
  const Note note{NoteOf(place.attributes, place.trial).version + 1, text};
  for (auto& [key, json] : NoteAttributes(place.attributes, place.trial, note)) {
    const Reply reply = tuner.Post(
        SetStudyAttribute{place.study, /*system=*/true, std::move(key), std::move(json)});
    if (!reply.status.ok()) return reply.status;
  }
  v1::NoteText written;
  written.set_text(note.body);
  written.set_version(note.version);
  return written;
}

}  // namespace

absl::StatusOr<v1::NoteText> SetStudyNote(Tuner& tuner, const v1::SetStudyNoteRequest& request) {
  std::optional<NotePlace> place;
  ESPALIER_RETURN_IF_ERROR(tuner.Read([&](const View& view) {
    const Study* const study = view.core.state().FindStudy(request.study());
    if (study != nullptr) place = {study->id, {}, study->attributes.system};
  }));
  if (!place) return NoStudy(request.study());
  return Write(tuner, *place, request.text());
}

absl::StatusOr<v1::NoteText> SetTrialNote(Tuner& tuner, const v1::SetTrialNoteRequest& request) {
  const TrialId id(request.trial_id());
  std::optional<NotePlace> place;
  ESPALIER_RETURN_IF_ERROR(tuner.Read([&](const View& view) {
    const TunerState& state = view.core.state();
    const auto trial = state.trials.find(id);
    if (trial == state.trials.end()) return;
    const Study& study = state.studies.at(trial->second.study);
    place = {study.id, id, study.attributes.system};
  }));
  if (!place) return NoTrial(id);
  return Write(tuner, *place, request.text());
}

}  // namespace espalier::api
