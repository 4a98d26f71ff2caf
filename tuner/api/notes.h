#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace espalier {

// Notes that people write on a study or one of its trials, in Markdown. Both are system attributes
// of the study, as those of a trial that has ended cannot be changed, and under the keys of
// optuna-dashboard, so that its pages and our own show one note.
struct Note {
  std::int64_t version = 0;  // one more each time that it is written; 0: there is none
  std::string body;
};

inline constexpr std::size_t kMaxNote = 64 << 10;  // bytes

// JSON texts by key.
using AttributeTexts = std::map<std::string, std::string>;

// Of the study or, where one is named, of that trial.
Note NoteOf(const AttributeTexts& study_attributes, std::optional<TrialId> trial);
// What must be set for it, the version last. Replaces all of a longer note before.
std::vector<std::pair<std::string, std::string>> NoteAttributes(
    const AttributeTexts& study_attributes, std::optional<TrialId> trial, const Note& note);

}  // namespace espalier
