#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/optuna/dashboard/study_reader.h"
#include "tuner/api/notes.h"

namespace espalier::optuna_dashboard {

// What the dashboard and optuna.artifacts keep in the attributes of programs. The keys are theirs;
// so what either writes the other reads. Notes are in tuner/api/notes.h, as our own pages show them
// too.

using Texts = std::map<std::string, std::string>;  // JSON by key

// A file that belongs to a study or trial; its content is where artifacts are kept.
struct Artifact {
  std::string id;
  std::string filename;
  std::string mimetype;
  std::string encoding;  // empty: none
};
std::vector<Artifact> ArtifactsOf(const Texts& study_attributes);
std::vector<Artifact> ArtifactsOf(const Texts& study_attributes, const TrialCopy& trial);
// JSON that stands for an artifact that was removed: attributes cannot be taken away.
inline constexpr std::string_view kRemovedArtifact = "\"null\"";
std::string RemovedArtifactKey(TrialId trial, const std::string& id);  // of the study
std::string ArtifactKey(const std::string& id);
std::string ArtifactJson(const Artifact& artifact);

// Figures of plotly that a program saved, JSON by id.
std::map<std::string, std::string> PlotsOf(const Texts& study_attributes);

// Human preferences: which of two trials somebody found better.
bool IsPreferential(const Texts& study_attributes);
std::vector<std::pair<std::int64_t, std::int64_t>> PreferencesOf(const Texts& study_attributes);
std::vector<std::int64_t> SkippedTrialIds(const Texts& study_attributes);
// Numbers of trials that were preferred and never found worse, ascending; without the skipped.
std::vector<std::int64_t> PreferredTrials(const Texts& study_attributes,
                                          const std::vector<TrialCopy>& trials);
inline constexpr std::string_view kPreferencePrefix = "preference:values";
inline constexpr std::string_view kHistoryPrefix = "preference:history";
inline constexpr std::string_view kSkipPrefix = "preference:skip_trial:";
inline constexpr std::string_view kFeedbackKey = "preference:component";

// Names of the objectives, or nothing.
std::vector<std::string> ObjectiveNames(const Texts& study_attributes);

// The texts whose keys begin so, keys without that.
Texts WithPrefix(const Texts& attributes, std::string_view prefix);
// Or nothing.
const std::string* FindText(const Texts& attributes, std::string_view key);

}  // namespace espalier::optuna_dashboard
