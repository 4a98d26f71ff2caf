#include "adapters/optuna/file/import.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/optuna/file/trial_ids.h"
#include "tuner/core/core.h"
#include "tuner/core/state/private_attributes.h"
#include "tuner/study_file/study_file.h"

namespace espalier {

namespace {

constexpr std::size_t kChangesInSlice = 10'000;

struct PlannedStudy {
  OptunaFileStudy source;
  std::string name;
};

absl::Status NoSuchStudy(const std::string& from, const std::string& name,
                         const std::vector<OptunaFileStudy>& studies) {
  const auto list = absl::StrJoin(studies, ", ", [](std::string* out, const OptunaFileStudy& s) {
    absl::StrAppend(out, "\"", s.name, "\"");
  });
  return absl::NotFoundError(absl::StrCat("Optuna file ", from, ": has no study \"", name,
                                          "\"; it has ", list.empty() ? "none" : list));
}

// Those that are asked for, under their new names, in the order of the file.
absl::StatusOr<std::vector<PlannedStudy>> Choose(const std::string& from,
                                                 std::vector<OptunaFileStudy> studies,
                                                 const OptunaImportOptions& options) {
  std::set<std::string> wanted(options.studies.begin(), options.studies.end());
  const auto has = [&](const std::string& name) {
    return std::any_of(studies.begin(), studies.end(),
                       [&](const OptunaFileStudy& s) { return s.name == name; });
  };
  for (const std::string& name : wanted) {
    if (!has(name)) return NoSuchStudy(from, name, studies);
  }
  for (const auto& [name, new_name] : options.names) {
    if (!has(name) || (!wanted.empty() && !wanted.contains(name))) {
      return NoSuchStudy(from, name, studies);
    }
  }
  std::vector<PlannedStudy> planned;
  for (OptunaFileStudy& study : studies) {
    if (!wanted.empty() && !wanted.contains(study.name)) continue;
    const auto renamed = options.names.find(study.name);
    std::string name = renamed == options.names.end() ? study.name : renamed->second;
    planned.push_back({std::move(study), std::move(name)});
  }
  return planned;
}

absl::Status CheckNames(const std::vector<PlannedStudy>& studies, const TunerState& state,
                        const std::string& into) {
  std::set<std::string> names;
  for (const PlannedStudy& study : studies) {
    const bool taken = state.FindStudy(study.name) != nullptr;
    if (!taken && names.insert(study.name).second) continue;
    const std::string problem =
        taken ? absl::StrCat("database ", into, ": has a study \"", study.name, "\" already")
              : absl::StrCat("two studies to import would be \"", study.name, "\"");
    return absl::AlreadyExistsError(
        absl::StrCat(problem, "; give the new one another name with --rename \"", study.source.name,
                     "=NEW\", or choose with --study"));
  }
  return absl::OkStatus();
}

// Turns studies into changes by the core, which never sees the database's other studies: an import
// must not age them.
class Importer {
 public:
  Importer(OptunaFile& file, std::vector<PlannedStudy> studies, const TunerState& into, Time now)
      : file_(file), studies_(std::move(studies)), now_(now) {
    begin_.last_study = into.last_study;
    begin_.last_trial = into.last_trial;
  }

  // Some changes more; none at the end.
  absl::StatusOr<std::vector<Change>> Next() {
    slice_.clear();
    while (slice_.size() < kChangesInSlice && next_ < studies_.size()) {
      if (core_ == nullptr) ESPALIER_RETURN_IF_ERROR(BeginStudy());
      ESPALIER_ASSIGN_OR_RETURN(const std::optional<OptunaFileTrial> trial, file_.NextTrial());
      ESPALIER_RETURN_IF_ERROR(trial ? TakeTrial(*trial) : EndStudy());
    }
    return std::move(slice_);
  }

  std::vector<ImportedStudy> TakeImported() { return std::move(imported_); }

 private:
  absl::StatusOr<Reply> Step(const Event& event) {
    StepResult result = core_->Step(now_, event);
    if (!result.reply.status.ok()) return result.reply.status;
    std::move(result.changes.begin(), result.changes.end(), std::back_inserter(slice_));
    return std::move(result.reply);
  }

  absl::Status BeginStudy() {
    const PlannedStudy& study = studies_[next_];
    core_ = std::make_unique<Core>(begin_, CoreOptions{});
    if (study.source.first_start != Time{}) now_ = study.source.first_start;
    ESPALIER_ASSIGN_OR_RETURN(StudySpec spec, StudyOfClients(study.name, study.source.directions));
    ESPALIER_ASSIGN_OR_RETURN(const Reply reply, Step(CreateStudy{std::move(spec), false}));
    study_ = reply.study();
    new_ids_.clear();
    imported_.push_back({study.name, study.source.name, 0, 0});
    return file_.BeginTrials(study.source.id);
  }

  absl::Status TakeTrial(const OptunaFileTrial& trial) {
    if (trial.content->started != Time{}) now_ = trial.content->started;
    ESPALIER_ASSIGN_OR_RETURN(const Reply reply, Step(CreateTrial{study_, trial.content}));
    ImportedStudy& imported = imported_.back();
    new_ids_[trial.id] = reply.trial().value;
    if (trial.number != imported.trials) ++imported.renumbered;
    ++imported.trials;
    return absl::OkStatus();
  }

  absl::Status EndStudy() {
    Attributes attributes = WithoutPrivate(studies_[next_].source.attributes);
    FollowTrialIds(new_ids_, attributes.system);
    for (const bool system : {false, true}) {
      for (const auto& [key, value] : system ? attributes.system : attributes.user) {
        ESPALIER_RETURN_IF_ERROR(Step(SetStudyAttribute{study_, system, key, value}).status());
      }
    }
    begin_.last_study = core_->state().last_study;
    begin_.last_trial = core_->state().last_trial;
    core_.reset();
    ++next_;
    return absl::OkStatus();
  }

  OptunaFile& file_;
  const std::vector<PlannedStudy> studies_;
  Time now_;
  TunerState begin_;  // nothing but the ids that have been given
  std::size_t next_ = 0;
  std::unique_ptr<Core> core_;  // of the study that is under way
  StudyId study_;
  std::map<std::int64_t, std::int64_t> new_ids_;  // of its trials
  std::vector<Change> slice_;
  std::vector<ImportedStudy> imported_;
};

// What is to be imported: nothing of it is read yet but the studies themselves.
struct Source {
  OptunaFile file;
  std::vector<PlannedStudy> studies;
};

absl::StatusOr<Source> OpenSource(const std::string& from, const OptunaImportOptions& options) {
  ESPALIER_ASSIGN_OR_RETURN(OptunaFile file, OptunaFile::Open(from, options.times));
  ESPALIER_ASSIGN_OR_RETURN(std::vector<OptunaFileStudy> all, file.Studies());
  ESPALIER_ASSIGN_OR_RETURN(std::vector<PlannedStudy> studies,
                            Choose(from, std::move(all), options));
  return Source{std::move(file), std::move(studies)};
}

absl::StatusOr<std::vector<ImportedStudy>> ImportInto(Storage& storage, Source source,
                                                      const std::string& into, Time now) {
  TunerState last;
  {
    ESPALIER_ASSIGN_OR_RETURN(const TunerState state, storage.Load());
    ESPALIER_RETURN_IF_ERROR(CheckNames(source.studies, state, into));
    last.last_study = state.last_study;
    last.last_trial = state.last_trial;
  }
  Importer importer(source.file, std::move(source.studies), last, now);
  ESPALIER_RETURN_IF_ERROR(storage.CommitSlices([&] { return importer.Next(); }));
  return importer.TakeImported();
}

}  // namespace

absl::StatusOr<std::vector<ImportedStudy>> ImportOptunaInto(Storage& storage,
                                                            const std::string& from,
                                                            const std::string& into,
                                                            const OptunaImportOptions& options,
                                                            Time now) {
  ESPALIER_ASSIGN_OR_RETURN(Source source, OpenSource(from, options));
  return ImportInto(storage, std::move(source), into, now);
}

absl::StatusOr<std::vector<ImportedStudy>> ImportOptuna(const std::string& from,
                                                        const std::string& into,
                                                        const OptunaImportOptions& options,
                                                        Time now) {
  ESPALIER_ASSIGN_OR_RETURN(Source source, OpenSource(from, options));
  std::error_code ignored;
  const bool existed = std::filesystem::exists(into, ignored);
  ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Storage> storage, OpenSqliteStorage(into));
  absl::StatusOr<std::vector<ImportedStudy>> imported =
      ImportInto(*storage, std::move(source), into, now);
  storage.reset();
  if (!imported.ok() && !existed) std::filesystem::remove(into, ignored);
  return imported;
}

}  // namespace espalier
