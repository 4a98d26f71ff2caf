#include "adapters/optuna/file/export.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "adapters/optuna/file/schema.h"
#include "search_spaces/formats/optuna/constraints.h"
#include "search_spaces/formats/optuna/trial_parameters.h"
#include "tuner/core/state/private_attributes.h"
#include "tuner/core/state/study_facts.h"
#include "tuner/storage/database.h"
#include "tuner/storage/new_file.h"
#include "tuner/storage/storage.h"

namespace espalier {

namespace {

constexpr char kTimeFormat[] = "%Y-%m-%d %H:%M:%E6S";

std::string UtcText(Time time) {
  if (time == Time{}) return "";  // stored as NULL
  return absl::FormatTime(kTimeFormat, absl::FromUnixMicros(time.us), absl::UTCTimeZone());
}

TrialState OptunaState(TrialState state) {
  return state == TrialState::kPaused ? TrialState::kRunning : state;
}

// A number as Optuna's tables take it: with the name of its kind, and NULL where that says it all.
struct TypedNumber {
  std::optional<double> value;
  std::string_view type = kFinite;

  explicit TypedNumber(double number) {
    if (std::isnan(number)) {
      type = kNotANumber;
    } else if (std::isinf(number)) {
      type = number > 0 ? kPositiveInfinity : kNegativeInfinity;
    } else {
      value = number + 0.0;  // no sign on zero: SQLite has none, and ours would be a blob
    }
  }
};

class Exporter {
 public:
  explicit Exporter(Database& file) : file_(file) {}

  absl::Status Begin();
  absl::StatusOr<ExportedStudy> Write(const Study& study, const TunerState& state);

 private:
  absl::Status WriteAttributes(Statement& user, Statement& system, std::int64_t owner,
                               const Attributes& attributes);
  absl::Status WriteTrial(const Trial& trial, const Study& study,
                          const OptunaParameters& parameters, ExportedStudy& exported);
  absl::Status WriteParameters(const Trial& trial, const Study& study,
                               const OptunaParameters& parameters);
  absl::Status WriteParameter(const Trial& trial, const std::string& name, double value,
                              const std::string& distribution);

  Database& file_;
  Statement study_, direction_, study_user_, study_system_;
  Statement trial_, trial_user_, trial_system_, parameter_, value_, intermediate_value_;
};

absl::Status Exporter::Begin() {
  ESPALIER_RETURN_IF_ERROR(file_.Execute(kOptunaSchema));
  ESPALIER_ASSIGN_OR_RETURN(
      Statement version,
      file_.Prepare("INSERT INTO version_info (version_info_id, schema_version, library_version) "
                    "VALUES (1, ?, ?)"));
  ESPALIER_RETURN_IF_ERROR(version.Bind(kOptunaSchemaVersion, kOptunaLibraryVersion).Run());
  ESPALIER_ASSIGN_OR_RETURN(Statement alembic,
                            file_.Prepare("INSERT INTO alembic_version (version_num) VALUES (?)"));
  ESPALIER_RETURN_IF_ERROR(alembic.Bind(kOptunaAlembicVersion).Run());
  const std::pair<Statement*, const char*> statements[] = {
      {&study_, "INSERT INTO studies (study_id, study_name) VALUES (?, ?)"},
      {&direction_,
       "INSERT INTO study_directions (study_id, objective, direction) VALUES (?, ?, ?)"},
      {&study_user_,
       "INSERT INTO study_user_attributes (study_id, key, value_json) VALUES (?, ?, ?)"},
      {&study_system_,
       "INSERT INTO study_system_attributes (study_id, key, value_json) VALUES (?, ?, ?)"},
      {&trial_,
       "INSERT INTO trials (trial_id, number, study_id, state, datetime_start, datetime_complete) "
       "VALUES (?, ?, ?, ?, nullif(?, ''), nullif(?, ''))"},
      {&trial_user_,
       "INSERT INTO trial_user_attributes (trial_id, key, value_json) VALUES (?, ?, ?)"},
      {&trial_system_,
       "INSERT INTO trial_system_attributes (trial_id, key, value_json) VALUES (?, ?, ?)"},
      {&parameter_,
       "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) "
       "VALUES (?, ?, ?, ?)"},
      {&value_,
       "INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (?, ?, ?, ?)"},
      {&intermediate_value_,
       "INSERT INTO trial_intermediate_values (trial_id, step, intermediate_value, "
       "intermediate_value_type) VALUES (?, ?, ?, ?)"},
  };
  for (const auto& [statement, sql] : statements) {
    ESPALIER_ASSIGN_OR_RETURN(*statement, file_.Prepare(sql));
  }
  return absl::OkStatus();
}

absl::StatusOr<ExportedStudy> Exporter::Write(const Study& study, const TunerState& state) {
  ExportedStudy exported;
  exported.name = study.spec.name;
  exported.trials = std::ssize(study.trials);
  ESPALIER_RETURN_IF_ERROR(study_.Bind(study.id, study.spec.name).Run());
  for (std::size_t i = 0; i < study.spec.directions.size(); ++i) {
    const bool least = study.spec.directions[i] == Direction::kMinimize;
    const std::string_view word = least ? "MINIMIZE" : "MAXIMIZE";
    ESPALIER_RETURN_IF_ERROR(direction_.Bind(study.id, static_cast<std::int64_t>(i), word).Run());
  }
  ESPALIER_RETURN_IF_ERROR(
      WriteAttributes(study_user_, study_system_, study.id.value, study.attributes));
  OptunaParameters parameters(study.spec.space);
  state.ForEachTrial(study, [&](const Trial& trial) { parameters.Observe(trial.parameters); });
  for (const TrialId id : study.trials) {
    ESPALIER_RETURN_IF_ERROR(WriteTrial(state.trials.at(id), study, parameters, exported));
  }
  return exported;
}

absl::Status Exporter::WriteAttributes(Statement& user, Statement& system, std::int64_t owner,
                                       const Attributes& attributes) {
  for (const auto& [key, value] : attributes.user) {
    ESPALIER_RETURN_IF_ERROR(user.Bind(owner, key, value).Run());
  }
  for (const auto& [key, value] : WithoutPrivate(attributes).system) {
    ESPALIER_RETURN_IF_ERROR(system.Bind(owner, key, value).Run());
  }
  return absl::OkStatus();
}

absl::Status Exporter::WriteTrial(const Trial& trial, const Study& study,
                                  const OptunaParameters& parameters, ExportedStudy& exported) {
  std::vector<double> values;
  if (trial.value) values.push_back(*trial.value);
  values.insert(values.end(), trial.other_values.begin(), trial.other_values.end());
  TrialState state = OptunaState(trial.state);
  if (std::any_of(values.begin(), values.end(), [](double v) { return std::isnan(v); })) {
    values.clear();
    if (state == TrialState::kComplete) state = TrialState::kFail;
    ++exported.nan_values;
  } else if (CompleteWithoutValue(study, trial)) {
    state = TrialState::kFail;
    ++exported.without_value;
  }
  const std::string started = UtcText(trial.started);
  const std::string ended = UtcText(trial.ended);
  ESPALIER_RETURN_IF_ERROR(
      trial_.Bind(trial.id, trial.number, study.id, ToString(state), started, ended).Run());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const TypedNumber number(values[i]);
    ESPALIER_RETURN_IF_ERROR(
        value_.Bind(trial.id, static_cast<std::int64_t>(i), number.value, number.type).Run());
  }
  for (const IntermediateValue& value : trial.values) {
    const TypedNumber number(value.value);
    ESPALIER_RETURN_IF_ERROR(
        intermediate_value_.Bind(trial.id, value.step, number.value, number.type).Run());
  }
  ESPALIER_RETURN_IF_ERROR(WriteParameters(trial, study, parameters));
  Attributes attributes = trial.attributes;
  AddConstraints(*trial.constraints, attributes.system);
  return WriteAttributes(trial_user_, trial_system_, trial.id.value, attributes);
}

absl::Status Exporter::WriteParameters(const Trial& trial, const Study& study,
                                       const OptunaParameters& parameters) {
  for (const OptunaParameter& parameter : parameters.Of(trial.parameters)) {
    ESPALIER_RETURN_IF_ERROR(
        WriteParameter(trial, parameter.name, parameter.stored, parameter.distribution));
  }
  for (const SuggestedValue& suggested : trial.suggested) {
    const Suggestion& from = study.suggestions[static_cast<std::size_t>(suggested.suggestion)];
    ESPALIER_RETURN_IF_ERROR(WriteParameter(trial, from.name, suggested.value, from.distribution));
  }
  return absl::OkStatus();
}

absl::Status Exporter::WriteParameter(const Trial& trial, const std::string& name, double value,
                                      const std::string& distribution) {
  if (std::isnan(value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("trial ", trial.number, " (id ", trial.id.value, "): parameter \"", name,
                     "\" is NaN, for which Optuna's files have no place; choose other studies "
                     "with --study"));
  }
  return parameter_.Bind(trial.id, name, value + 0.0, distribution).Run();
}

absl::StatusOr<std::vector<const Study*>> Choose(const TunerState& state, const std::string& from,
                                                 const std::vector<std::string>& names) {
  std::vector<const Study*> chosen;
  for (const auto& [id, study] : state.studies) {
    const bool wanted = std::find(names.begin(), names.end(), study.spec.name) != names.end();
    if (names.empty() || wanted) chosen.push_back(&study);
  }
  for (const std::string& name : names) {
    if (state.FindStudy(name) != nullptr) continue;
    const auto list = absl::StrJoin(state.study_ids, ", ", [](std::string* out, const auto& entry) {
      absl::StrAppend(out, "\"", entry.first, "\"");
    });
    return absl::NotFoundError(absl::StrCat("database ", from, ": has no study \"", name,
                                            "\"; it has ", list.empty() ? "none" : list));
  }
  return chosen;
}

absl::StatusOr<std::vector<ExportedStudy>> WriteFile(const std::string& path,
                                                     const std::vector<const Study*>& studies,
                                                     const TunerState& state) {
  ESPALIER_ASSIGN_OR_RETURN(const std::unique_ptr<Database> file,
                            Database::Open(path, /*read_only=*/false));
  std::vector<ExportedStudy> exported;
  Exporter exporter(*file);
  const absl::Status written = file->Transact([&]() -> absl::Status {
    ESPALIER_RETURN_IF_ERROR(exporter.Begin());
    for (const Study* study : studies) {
      ESPALIER_ASSIGN_OR_RETURN(exported.emplace_back(), exporter.Write(*study, state));
    }
    return absl::OkStatus();
  });
  if (!written.ok()) return written;
  return exported;
}

}  // namespace

absl::StatusOr<std::vector<ExportedStudy>> ExportOptuna(const std::string& from,
                                                        const std::string& to,
                                                        const std::vector<std::string>& names) {
  ESPALIER_ASSIGN_OR_RETURN(const std::unique_ptr<Storage> storage,
                            OpenSqliteStorage(from, /*read_only=*/true));
  ESPALIER_ASSIGN_OR_RETURN(const TunerState state, storage->Load());
  ESPALIER_ASSIGN_OR_RETURN(const std::vector<const Study*> studies, Choose(state, from, names));
  ESPALIER_ASSIGN_OR_RETURN(NewFile file, NewFile::Begin(to));
  ESPALIER_ASSIGN_OR_RETURN(std::vector<ExportedStudy> exported,
                            WriteFile(file.unfinished(), studies, state));
  ESPALIER_RETURN_IF_ERROR(file.Keep());
  return exported;
}

}  // namespace espalier
