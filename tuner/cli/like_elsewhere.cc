#include "tuner/cli/like_elsewhere.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

#include "tuner/cli/local_runs.h"
#include "tuner/cli/options/service_options.h"
#include "tuner/core/studies/like.h"
#include "tuner/storage/storage.h"
#include "tuner/study_file/study_file.h"

namespace espalier {

absl::Status TakeTrialsOfRun(const v1::ListStudiesResponse& known, const std::string& label,
                             StudySpec& spec) {
  if (spec.like.study.empty() || !spec.like.trials.empty()) return absl::OkStatus();
  const bool is_known = std::ranges::any_of(known.studies(), [&](const v1::Study& study) {
    return study.name() == spec.like.study || study.name() == spec.name;
  });
  if (is_known) return absl::OkStatus();
  const std::string path = DatabasePath(RunFolder(spec.like.study));
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return absl::InvalidArgumentError(
        fmt::format("\"like\": there is no study \"{}\" in this run, and no {} of a run of it",
                    spec.like.study, path));
  }
  ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Storage> storage,
                            OpenSqliteStorage(path, /*read_only=*/true));
  ESPALIER_ASSIGN_OR_RETURN(const TunerState state, storage->Load());
  ESPALIER_ASSIGN_OR_RETURN(spec.like, TrialsLike(state, spec));
  ESPALIER_ASSIGN_OR_RETURN(spec, WithWording(spec, label));
  return absl::OkStatus();
}

}  // namespace espalier
