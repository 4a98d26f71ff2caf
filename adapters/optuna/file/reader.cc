#include "adapters/optuna/file/reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "adapters/optuna/file/schema.h"
#include "base/json/json_depth.h"
#include "search_spaces/formats/optuna/distribution.h"
#include "tuner/storage/database_file.h"
#include "tuner/storage/utf8.h"

namespace espalier {

namespace {

constexpr char kTimeToRead[] = "%Y-%m-%d %H:%M:%E*S";
constexpr std::size_t kMostQuoted = 60;

std::string Quoted(std::string_view value) {
  const bool whole = value.size() <= kMostQuoted && IsUtf8(value);
  if (whole) return absl::StrCat("\"", std::string(value), "\"");
  return IsUtf8(value) ? absl::StrCat("\"", std::string(value.substr(0, kMostQuoted)), "...\"")
                       : absl::StrCat(value.size(), " bytes that are no UTF-8");
}

absl::Status Needs(std::string_view column, std::string_view what, std::string_view got) {
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(column), " needs ", std::string(what), ", got ", std::string(got)));
}

absl::StatusOr<std::string> Text(const Statement& row, int column, std::string_view name) {
  if (row.IsNull(column)) return Needs(name, "a text", "NULL");
  std::string text = row.Text(column);
  if (!IsUtf8(text)) return Needs(name, "a text", Quoted(text));
  return text;
}

absl::StatusOr<double> Number(const Statement& row, int column, std::string_view name) {
  if (!row.IsNumber(column)) {
    return Needs(name, "a number", row.IsNull(column) ? "NULL" : Quoted(row.Text(column)));
  }
  return row.Double(column);
}

absl::StatusOr<std::int64_t> Integer(const Statement& row, int column, std::string_view name) {
  ESPALIER_ASSIGN_OR_RETURN(const double number, Number(row, column, name));
  const std::int64_t integer = row.Integer(column);
  if (static_cast<double>(integer) != number) {
    return Needs(name, "a whole number", absl::StrCat(number));
  }
  return integer;
}

// A number and, in the column after it, what kind of number it is.
absl::StatusOr<double> TypedValue(const Statement& row, int column, std::string_view name) {
  using Limits = std::numeric_limits<double>;
  const std::string type_name = absl::StrCat(std::string(name), "_type");
  ESPALIER_ASSIGN_OR_RETURN(const std::string type, Text(row, column + 1, type_name));
  if (type == kPositiveInfinity) return Limits::infinity();
  if (type == kNegativeInfinity) return -Limits::infinity();
  if (type == kNotANumber) return Limits::quiet_NaN();
  if (type != kFinite) return Needs(type_name, "FINITE, INF_POS, INF_NEG or NAN", Quoted(type));
  if (row.IsNull(column)) return Limits::quiet_NaN();
  return Number(row, column, name);
}

absl::StatusOr<TrialState> StateOf(const std::string& name) {
  for (const TrialState state : {TrialState::kRunning, TrialState::kComplete, TrialState::kPruned,
                                 TrialState::kFail, TrialState::kWaiting}) {
    if (ToString(state) == name) return state;
  }
  return Needs("state", "RUNNING, COMPLETE, PRUNED, FAIL or WAITING", Quoted(name));
}

absl::Status Refuse(const std::string& path, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("Optuna file ", path, ": ", std::string(why)));
}

}  // namespace

absl::StatusOr<OptunaFile> OptunaFile::Open(const std::string& path, OptunaTimes times) {
  const std::string canonical = CanonicalPath(path);
  ESPALIER_RETURN_IF_ERROR(
      CheckDatabaseFile(canonical, /*read_only=*/true, "an SQLite file of Optuna"));
  ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Database> database,
                            Database::Open(canonical, /*read_only=*/true));
  OptunaFile file(std::move(database));
  // From here to the end of this object all reads see the same moment.
  ESPALIER_RETURN_IF_ERROR(file.database_->Execute("BEGIN"));
  ESPALIER_RETURN_IF_ERROR(file.Check());
  if (times != OptunaTimes::kAsItsVersion) file.utc_ = times == OptunaTimes::kUtc;
  ESPALIER_RETURN_IF_ERROR(file.Prepare());
  return file;
}

absl::Status OptunaFile::Check() {
  const std::string& path = database_->path();
  ESPALIER_ASSIGN_OR_RETURN(Statement rows,
                            database_->Prepare("SELECT name FROM sqlite_schema WHERE type = "
                                               "'table'"));
  std::vector<std::string> tables;
  while (true) {
    ESPALIER_ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) break;
    tables.push_back(rows.Text(0));
  }
  for (const std::string_view table : kOptunaTables) {
    if (std::find(tables.begin(), tables.end(), table) != tables.end()) continue;
    return Refuse(path, absl::StrCat("has no table ", std::string(table),
                                     ", so it is not one of Optuna's RDBStorage; give the path in "
                                     "its sqlite:/// address"));
  }
  ESPALIER_ASSIGN_OR_RETURN(const std::string damage,
                            database_->QueryText("PRAGMA quick_check(1)"));
  if (damage != "ok") {
    return Refuse(path, absl::StrCat("is damaged (", damage, "); restore a copy"));
  }
  ESPALIER_ASSIGN_OR_RETURN(const std::string schema,
                            database_->QueryText("SELECT version_num FROM alembic_version"));
  if (schema != kOptunaAlembicVersion) {
    return Refuse(path, absl::StrCat("alembic_version needs ", std::string(kOptunaAlembicVersion),
                                     " (Optuna 3.2 to 5.0), got ", Quoted(schema),
                                     "; `optuna storage upgrade --storage sqlite:///", path,
                                     "` brings older ones up to it"));
  }
  ESPALIER_ASSIGN_OR_RETURN(const std::string version,
                            database_->QueryText("SELECT library_version FROM version_info"));
  int major = 0;
  if (!absl::SimpleAtoi(version.substr(0, version.find('.')), &major)) {
    return Refuse(path,
                  absl::StrCat("table version_info: library_version needs a version like ",
                               std::string(kOptunaLibraryVersion), ", got ", Quoted(version)));
  }
  utc_ = major >= kOptunaFirstVersionInUtc;
  return absl::OkStatus();
}

absl::Status OptunaFile::Prepare() {
  const std::pair<Statement*, const char*> statements[] = {
      {&directions_,
       "SELECT study_direction_id, direction, objective FROM study_directions WHERE study_id = ? "
       "ORDER BY objective"},
      {&study_user_,
       "SELECT study_user_attribute_id, key, value_json FROM study_user_attributes "
       "WHERE study_id = ?"},
      {&study_system_,
       "SELECT study_system_attribute_id, key, value_json FROM study_system_attributes "
       "WHERE study_id = ?"},
      {&first_start_, "SELECT min(trial_id), min(datetime_start) FROM trials WHERE study_id = ?"},
      {&trials_,
       "SELECT trial_id, number, state, datetime_start, datetime_complete FROM trials "
       "WHERE study_id = ? ORDER BY number, trial_id"},
      {&trial_user_,
       "SELECT trial_user_attribute_id, key, value_json FROM trial_user_attributes "
       "WHERE trial_id = ?"},
      {&trial_system_,
       "SELECT trial_system_attribute_id, key, value_json FROM trial_system_attributes "
       "WHERE trial_id = ?"},
      {&parameters_,
       "SELECT param_id, param_name, param_value, distribution_json FROM trial_params "
       "WHERE trial_id = ? ORDER BY param_id"},
      {&values_,
       "SELECT trial_value_id, objective, value, value_type FROM trial_values WHERE trial_id = ? "
       "ORDER BY objective"},
      {&intermediate_values_,
       "SELECT trial_intermediate_value_id, step, intermediate_value, intermediate_value_type "
       "FROM trial_intermediate_values WHERE trial_id = ?"},
  };
  for (const auto& [statement, sql] : statements) {
    ESPALIER_ASSIGN_OR_RETURN(*statement, database_->Prepare(sql));
  }
  return absl::OkStatus();
}

absl::Status OptunaFile::Broken(std::string_view table, std::int64_t row,
                                const absl::Status& why) const {
  return Refuse(database_->path(), absl::StrCat("table ", std::string(table), ", row ", row, ": ",
                                                std::string(why.message())));
}

// Calls read() for each row of `owner`; column 0 is the row's id.
template <typename Read>
absl::Status OptunaFile::ForEach(std::string_view table, Statement& rows, std::int64_t owner,
                                 Read read) {
  rows.Bind(owner);
  while (true) {
    ESPALIER_ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) return absl::OkStatus();
    if (const absl::Status status = read(std::as_const(rows)); !status.ok()) {
      return Broken(table, rows.Integer(0), status);
    }
  }
}

absl::StatusOr<std::vector<OptunaFileStudy>> OptunaFile::Studies() {
  ESPALIER_ASSIGN_OR_RETURN(
      Statement rows,
      database_->Prepare("SELECT study_id, study_name FROM studies WHERE study_id > ? "
                         "ORDER BY study_id"));
  std::vector<OptunaFileStudy> studies;
  ESPALIER_RETURN_IF_ERROR(
      ForEach("studies", rows, std::numeric_limits<std::int64_t>::min(), [&](const auto& row) {
        OptunaFileStudy study;
        study.id = row.Integer(0);
        ESPALIER_ASSIGN_OR_RETURN(study.name, Text(row, 1, "study_name"));
        studies.push_back(std::move(study));
        return absl::OkStatus();
      }));
  for (OptunaFileStudy& study : studies) {
    ESPALIER_RETURN_IF_ERROR(ReadDirections(study));
    ESPALIER_RETURN_IF_ERROR(
        ReadAttributes("study", study_user_, study_system_, study.id, study.attributes));
    ESPALIER_RETURN_IF_ERROR(ForEach("trials", first_start_, study.id, [&](const auto& row) {
      ESPALIER_ASSIGN_OR_RETURN(study.first_start, ReadTime(row, 1, "datetime_start"));
      return absl::OkStatus();
    }));
  }
  return studies;
}

absl::Status OptunaFile::ReadDirections(OptunaFileStudy& study) {
  return ForEach("study_directions", directions_, study.id, [&](const auto& row) -> absl::Status {
    ESPALIER_ASSIGN_OR_RETURN(const std::string direction, Text(row, 1, "direction"));
    ESPALIER_ASSIGN_OR_RETURN(const std::int64_t objective, Integer(row, 2, "objective"));
    if (objective != std::ssize(study.directions)) {
      return Needs("objective", absl::StrCat(study.directions.size()), absl::StrCat(objective));
    }
    if (direction != "MINIMIZE" && direction != "MAXIMIZE") {
      return Needs("direction", "MINIMIZE or MAXIMIZE", Quoted(direction));
    }
    study.directions.push_back(direction == "MINIMIZE" ? Direction::kMinimize
                                                       : Direction::kMaximize);
    return absl::OkStatus();
  });
}

absl::Status OptunaFile::ReadAttributes(std::string_view owner, Statement& user, Statement& system,
                                        std::int64_t id, Attributes& attributes) {
  const auto into = [](std::map<std::string, std::string>& space) {
    return [&space](const Statement& row) -> absl::Status {
      ESPALIER_ASSIGN_OR_RETURN(std::string key, Text(row, 1, "key"));
      ESPALIER_ASSIGN_OR_RETURN(std::string value, Text(row, 2, "value_json"));
      absl::Status status = CheckJsonDepth(value);
      if (status.ok()) status = CheckPythonJson(value);
      if (!status.ok()) {
        return absl::InvalidArgumentError(absl::StrCat("value_json ", Quoted(value), " of ",
                                                       Quoted(key), ": ",
                                                       std::string(status.message())));
      }
      space.emplace(std::move(key), std::move(value));
      return absl::OkStatus();
    };
  };
  const std::string table(owner);
  ESPALIER_RETURN_IF_ERROR(ForEach(table + "_user_attributes", user, id, into(attributes.user)));
  return ForEach(table + "_system_attributes", system, id, into(attributes.system));
}

absl::Status OptunaFile::BeginTrials(std::int64_t study) {
  trials_.Reset();
  trials_.Bind(study);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<OptunaFileTrial>> OptunaFile::NextTrial() {
  ESPALIER_ASSIGN_OR_RETURN(const bool more, trials_.Step());
  if (!more) return std::nullopt;
  ESPALIER_ASSIGN_OR_RETURN(OptunaFileTrial trial, ReadTrial());
  return trial;
}

absl::StatusOr<OptunaFileTrial> OptunaFile::ReadTrial() {
  OptunaFileTrial trial;
  trial.id = trials_.Integer(0);
  auto content = std::make_shared<TrialTemplate>();
  const auto head = [&]() -> absl::Status {
    ESPALIER_ASSIGN_OR_RETURN(trial.number, Integer(trials_, 1, "number"));
    ESPALIER_ASSIGN_OR_RETURN(const std::string state, Text(trials_, 2, "state"));
    ESPALIER_ASSIGN_OR_RETURN(content->state, StateOf(state));
    ESPALIER_ASSIGN_OR_RETURN(content->started, ReadTime(trials_, 3, "datetime_start"));
    ESPALIER_ASSIGN_OR_RETURN(content->ended, ReadTime(trials_, 4, "datetime_complete"));
    return absl::OkStatus();
  };
  if (const absl::Status status = head(); !status.ok()) return Broken("trials", trial.id, status);
  ESPALIER_RETURN_IF_ERROR(ReadValues(trial.id, *content));
  ESPALIER_RETURN_IF_ERROR(ReadParameters(trial.id, *content));
  ESPALIER_RETURN_IF_ERROR(
      ReadAttributes("trial", trial_user_, trial_system_, trial.id, content->attributes));
  trial.content = std::move(content);
  return trial;
}

absl::Status OptunaFile::ReadValues(std::int64_t trial, TrialTemplate& content) {
  ESPALIER_RETURN_IF_ERROR(
      ForEach("trial_values", values_, trial, [&](const auto& row) -> absl::Status {
        ESPALIER_ASSIGN_OR_RETURN(const std::int64_t objective, Integer(row, 1, "objective"));
        if (objective != std::ssize(content.values)) {
          return Needs("objective", absl::StrCat(content.values.size()), absl::StrCat(objective));
        }
        ESPALIER_ASSIGN_OR_RETURN(const double value, TypedValue(row, 2, "value"));
        content.values.push_back(value);
        return absl::OkStatus();
      }));
  return ForEach("trial_intermediate_values", intermediate_values_, trial, [&](const auto& row) {
    ESPALIER_ASSIGN_OR_RETURN(const std::int64_t step, Integer(row, 1, "step"));
    ESPALIER_ASSIGN_OR_RETURN(const double value, TypedValue(row, 2, "intermediate_value"));
    content.intermediate_values.emplace(step, value);
    return absl::OkStatus();
  });
}

absl::Status OptunaFile::ReadParameters(std::int64_t trial, TrialTemplate& content) {
  return ForEach("trial_params", parameters_, trial, [&](const auto& row) {
    Suggestion suggestion;
    ESPALIER_ASSIGN_OR_RETURN(suggestion.name, Text(row, 1, "param_name"));
    ESPALIER_ASSIGN_OR_RETURN(const double value, Number(row, 2, "param_value"));
    ESPALIER_ASSIGN_OR_RETURN(suggestion.distribution, Text(row, 3, "distribution_json"));
    ESPALIER_ASSIGN_OR_RETURN(suggestion.kind, KindOf(suggestion.distribution));
    content.parameters.emplace_back(std::move(suggestion), value);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::string> OptunaFile::KindOf(const std::string& distribution) {
  if (const auto known = kinds_.find(distribution); known != kinds_.end()) return known->second;
  const absl::Status depth = CheckJsonDepth(distribution);
  absl::StatusOr<OptunaDistribution> parsed =
      depth.ok() ? ParseOptunaDistribution(distribution) : depth;
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("distribution_json ", Quoted(distribution), ": ",
                                                   std::string(parsed.status().message())));
  }
  constexpr std::size_t kMostKept = 1000;  // dynamic spaces can have one a trial
  if (kinds_.size() >= kMostKept) kinds_.clear();
  return kinds_.emplace(distribution, std::move(parsed->kind)).first->second;
}

absl::StatusOr<Time> OptunaFile::ReadTime(const Statement& row, int column,
                                          std::string_view name) const {
  if (row.IsNull(column)) return Time{};
  const std::string text = row.Text(column);
  absl::Time time;
  std::string error;
  const absl::TimeZone zone = utc_ ? absl::UTCTimeZone() : absl::LocalTimeZone();
  // It would also read "infinite-future".
  const bool read = absl::ParseTime(kTimeToRead, text, zone, &time, &error);
  if (!read || time == absl::InfiniteFuture() || time == absl::InfinitePast()) {
    return Needs(name, "YYYY-MM-DD hh:mm:ss.ffffff", Quoted(text));
  }
  return Time{absl::ToUnixMicros(time)};
}

}  // namespace espalier
