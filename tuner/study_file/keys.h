#pragma once

// Private to this folder: it shows the JSON library.

#include <span>
#include <string>
#include <string_view>

#include "tuner/study_file/key_value.h"

namespace espalier {

// What README.md says of a key.
struct KeyDocument {
  std::string_view value;
  std::string_view when_absent;
};

// The texts of a study's keys that a study file does not keep as its user wrote them.
enum class KeyText {
  kAsWritten,
  kByField,        // from the field, so that it no longer depends on where the file lay
  kAlwaysByField,  // also where the user's text has no such key
};

struct KeyWriting {
  search_spaces_json::Json (*field)(const StudySpec& spec);
  KeyText text = KeyText::kAsWritten;

  search_spaces_json::Json operator()(const StudySpec& spec) const { return field(spec); }
};

// A key that a study file may have: the only place where its name, its field in StudySpec, its form
// and its documentation meet.
struct StudyKey {
  std::string_view name;
  absl::Status (*read)(const KeyValue& value, StudySpec& spec);
  // The field as JSON, in the one form that all wordings of it have in common; null: nothing.
  KeyWriting write;
  KeyDocument document;
};

// All of them, in the order in which they are read and written.
std::span<const StudyKey> StudyKeys();

// Gives the study the name, if it may have it. `value` need not be in the file.
absl::Status ReadName(const KeyValue& value, StudySpec& spec);

}  // namespace espalier
