#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tuner/core/state/study.h"

namespace espalier {

// Study files: JSON to StudySpec, with every error naming the file, the key, the value and what
// would be right. README.md of this folder lists the keys.
//
// `label` names the text in messages (usually the file's path); `directory` is the absolute
// folder that relative paths in it are taken from. search_space may name a file, on this machine:
// not where the text is a client's.
enum class SpaceFiles { kRead, kRefused };
absl::StatusOr<StudySpec> ParseStudy(std::string_view json, const std::string& label,
                                     const std::string& directory,
                                     SpaceFiles files = SpaceFiles::kRead);

// How many texts this process has given to ParseStudy. From any thread.
std::int64_t StudyTextsParsed();

// The file may be JSON with comments, or YAML (yaml_text.h) by its name. YAML with an apiVersion is
// a job of AdaptDL's (adaptdl_job.h); `unused` is then what it asks for that a pool has no use for.
absl::StatusOr<StudySpec> ReadStudyFile(const std::string& path,
                                        std::vector<std::string>* unused = nullptr);

// A study file, or a job of AdaptDL's, as ReadStudyFile reads it, for a service that will parse it:
// here it is only seen whether it is JSON, and a search space in a file of its own takes the place
// of that file's name.
struct StudyForService {
  std::string json;
  std::string folder;               // from which relative paths in it are taken, absolute
  std::vector<std::string> unused;  // see ReadStudyFile
};
absl::StatusOr<StudyForService> ReadForService(const std::string& path);

// Of a study that a service has taken, what CheckCommand and DirectionNote go by.
absl::StatusOr<StudySpec> ReadForNotes(std::string_view study_json);

// The study file of a study, its search space inline, which reads the same wherever it lies: what
// storage keeps and users are shown. Keys come in one order, worded as they were where the study
// was read from a file that has them; else those are written that are not as they are by default.
std::string WriteStudy(const StudySpec& spec);

// What stands for the value of an environment variable where it may be a secret.
inline constexpr char kMaskedValue[] = "***";

// A study file with the values of its environment variables masked, for readers who may look at a
// study but not run programs. Of what is no JSON only a masked text is left.
std::string MaskEnvironment(const std::string& study_json);

// Whether the study has its text with it (StudyWording): ParseStudy leaves it so, and a change of
// a field ends it. WriteStudy then only copies the text.
bool IsWorded(const StudySpec& spec);

// A key by which two studies differ, with its value in each as JSON: "null" where it has none.
struct KeyDifference {
  std::string key;
  std::string before;
  std::string after;
};

// All of them, in the order in which WriteStudy writes the keys. Values count, however they are
// worded.
std::vector<KeyDifference> DifferencesOf(const StudySpec& before, const StudySpec& after);

// Whether the study file is short enough for ParseStudy. `label` is as for ParseStudy.
absl::Status CheckStudySize(const StudySpec& spec, std::string_view label);

// The study with its text. Fails where ParseStudy would not read that text as the same study:
// storage keeps no such study. For studies that are made otherwise than by ParseStudy, or are
// changed after it.
absl::StatusOr<StudySpec> WithWording(const StudySpec& spec, std::string_view label);
absl::Status CheckReadBack(const StudySpec& spec, std::string_view label);

// What to tell a user whose study file names a metric but not its direction; empty: it gives one,
// or names no metric.
std::string DirectionNote(const StudySpec& spec);

// What to tell a user whose study file names some parameters in the command and others not, so that
// the program, which does not use the library, may never read those; empty: nothing.
std::string ParameterNote(const StudySpec& spec);

// A study whose trials its clients run, as Optuna's users make them: the name may be any text.
absl::StatusOr<StudySpec> StudyOfClients(std::string name, std::vector<Direction> directions);

// Whether the names in braces in the study's command are of parameters or of any trial
// (base/json/command_words.h). For studies that are to be created: of one that is stored already
// only its trials are refused.
absl::Status CheckPlaceholders(const StudySpec& spec);

// Whether the study's command can be started: found in its directory or PATH, and executable. Of
// `python3 train.py` and the like, also whether the script is there.
absl::Status CheckCommand(const StudySpec& spec);

// Whether the files that the study says its trials need are there; if not, which and what to do.
absl::Status CheckNeeds(const StudySpec& spec);

}  // namespace espalier
