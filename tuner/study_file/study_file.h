#pragma once

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

// A file whose name ends in .yaml or .yml is a job of AdaptDL's (adaptdl_job.h); `unused` is then
// what it asks for that a pool has no use for.
absl::StatusOr<StudySpec> ReadStudyFile(const std::string& path,
                                        std::vector<std::string>* unused = nullptr);

// The study file of a study, its search space inline, which reads the same wherever it lies: what
// storage keeps and users are shown. Keys come in one order, worded as they were where the study
// was read from a file that has them; else those are written that are not as they are by default.
std::string WriteStudy(const StudySpec& spec);

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

// Whether ParseStudy reads the study file as the same study. Storage keeps no other: who makes a
// study of what a client gives refuses it by this.
absl::Status CheckReadBack(const StudySpec& spec, std::string_view label);

// What to tell a user whose study file names a metric but not its direction; empty: it gives one,
// or names no metric.
std::string DirectionNote(const StudySpec& spec);

// A study whose trials its clients run, as Optuna's users make them: the name may be any text.
absl::StatusOr<StudySpec> StudyOfClients(std::string name, std::vector<Direction> directions);

// Whether the study's command can be started: found in its directory or PATH, and executable.
absl::Status CheckCommand(const StudySpec& spec);

// Whether the files that the study says its trials need are there; if not, which and what to do.
absl::Status CheckNeeds(const StudySpec& spec);

}  // namespace espalier
