#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "search_spaces/formats/optuna/distribution.h"
#include "tuner/storage/database.h"
#include "tuner/storage/database_file.h"
#include "tuner/storage/load.h"
#include "tuner/storage/schema.h"
#include "tuner/storage/upkeep.h"
#include "tuner/storage/utf8.h"

namespace espalier {

namespace {

constexpr std::size_t kMostTold = 20;  // of one point

// What is wrong at one point, line by line; what comes after kMostTold is counted.
class Faults {
 public:
  void Add(std::string_view fault) {
    if (count_++ < kMostTold) absl::StrAppend(&text_, count_ > 1 ? "\n" : "", std::string(fault));
  }
  void Add(const absl::Status& status) {
    if (!status.ok()) Add(std::string(status.message()));
  }
  Finding Found(std::string point, std::string if_none) const {
    if (count_ == 0) return {std::move(point), true, std::move(if_none)};
    if (count_ <= kMostTold) return {std::move(point), false, text_};
    return {std::move(point), false, absl::StrCat(text_, "\nand ", count_ - kMostTold, " more")};
  }

 private:
  std::size_t count_ = 0;
  std::string text_;
};

// Calls tell(row) for each row of the query.
template <typename Tell>
absl::Status ForEach(Database& database, const std::string& sql, Tell tell) {
  ESPALIER_ASSIGN_OR_RETURN(Statement rows, database.Prepare(sql));
  while (true) {
    ESPALIER_ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) return absl::OkStatus();
    tell(std::as_const(rows));
  }
}

Finding CheckStructure(Database& database) {
  Faults faults;
  faults.Add(ForEach(database, "PRAGMA integrity_check", [&](const Statement& row) {
    if (const std::string fault = row.Text(0); fault != "ok") faults.Add(fault);
  }));
  const auto pages = database.QueryInteger("PRAGMA page_count");
  return faults.Found("structure", pages.ok() ? absl::StrCat(*pages, " pages") : "");
}

Finding CheckReferences(Database& database) {
  Faults faults;
  faults.Add(ForEach(database, "PRAGMA foreign_key_check", [&](const Statement& row) {
    const std::string id = row.IsNull(1) ? "" : absl::StrCat(" ", row.Integer(1));
    faults.Add(
        absl::StrCat("row", id, " of ", row.Text(0), " belongs to nothing in ", row.Text(2)));
  }));
  return faults.Found("references", "every row belongs to a study or node that is there");
}

// Rows that count from 0 within their trial or study.
struct Counted {
  const char* table;
  const char* owner;
  const char* number;
};
constexpr Counted kCounted[] = {{"suggestions", "study", "number"},
                                {"decisions", "study", "number"},
                                {"suggested", "trial", "position"},
                                {"other_values", "trial", "number"},
                                {"resizes", "trial", "number"}};

Finding CheckNumbers(Database& database) {
  Faults faults;
  for (const Counted& counted : kCounted) {
    const std::string_view owner = counted.owner;
    // Some rows of studies that are being removed are gone.
    const std::string gone =
        absl::StrCat(owner == "study" ? "" : "SELECT id FROM trials WHERE study IN (",
                     "SELECT study FROM deleted_studies", owner == "study" ? "" : ")");
    faults.Add(ForEach(
        database,
        absl::StrCat("SELECT ", counted.owner, ", count(*), max(", counted.number, ") FROM ",
                     counted.table, " WHERE ", counted.owner, " NOT IN (", gone, ") GROUP BY ",
                     counted.owner, " HAVING min(", counted.number, ") != 0 OR max(",
                     counted.number, ") != count(*) - 1"),
        [&](const Statement& row) {
          faults.Add(absl::StrCat(counted.table, " of ", counted.owner, " ", row.Integer(0), ": ",
                                  row.Integer(1), " rows, the last is number ", row.Integer(2)));
        }));
  }
  return faults.Found("numbering", "dense");
}

void CheckAttributes(const std::string& of, const Attributes& attributes, Faults& faults) {
  for (const auto* space : {&attributes.user, &attributes.system}) {
    for (const auto& [key, value] : *space) {
      absl::Status status = CheckPythonJson(value);
      if (status.ok() && !(IsUtf8(key) && IsUtf8(value))) {
        status = absl::InvalidArgumentError("not UTF-8");
      }
      if (status.ok()) continue;
      faults.Add(
          absl::StrCat("attribute \"", key, "\" of ", of, ": ", std::string(status.message())));
    }
  }
}

void CheckStudy(const Study& study, Faults& faults) {
  const std::string of = absl::StrCat("study ", study.id.value, " (\"", study.spec.name, "\")");
  for (const Suggestion& suggestion : study.suggestions) {
    const auto parsed = ParseOptunaDistribution(suggestion.distribution);
    if (parsed.ok() && parsed->kind == suggestion.kind) continue;
    faults.Add(absl::StrCat("parameter \"", suggestion.name, "\" of ", of, ": ",
                            parsed.ok()
                                ? absl::StrCat("is kept as \"", suggestion.kind,
                                               "\", its distribution is \"", parsed->kind, "\"")
                                : std::string(parsed.status().message())));
  }
  CheckAttributes(of, study.attributes, faults);
}

void CheckTrial(const Trial& trial, const Study& study, Faults& faults) {
  const std::string of = absl::StrCat("trial ", trial.id.value, " (number ", trial.number, " of \"",
                                      study.spec.name, "\")");
  std::set<std::string_view> names;
  for (const SuggestedValue& suggested : trial.suggested) {
    const std::string& name =
        study.suggestions[static_cast<std::size_t>(suggested.suggestion)].name;
    if (!names.insert(name).second) {
      faults.Add(absl::StrCat(of, " has parameter \"", name, "\" twice"));
    }
  }
  const auto not_above = std::adjacent_find(
      trial.values.begin(), trial.values.end(),
      [](const IntermediateValue& a, const IntermediateValue& b) { return a.step >= b.step; });
  if (not_above != trial.values.end()) {
    faults.Add(absl::StrCat(of, ": step ", not_above->step, " is not below the next"));
  }
  CheckAttributes(of, trial.attributes, faults);
}

Finding CheckContents(Database& database) {
  Faults faults;
  const absl::StatusOr<TunerState> state = LoadState(database);
  if (!state.ok()) {
    faults.Add(state.status());
    return faults.Found("contents", "");
  }
  std::size_t values = 0;
  for (const auto& [id, study] : state->studies) CheckStudy(study, faults);
  for (const auto& [id, trial] : state->trials) {
    CheckTrial(trial, state->studies.at(trial.study), faults);
    values += trial.values.size();
  }
  const auto leaving = database.QueryInteger("SELECT count(*) FROM deleted_studies");
  return faults.Found(
      "contents",
      absl::StrCat("studies: ", state->studies.size(), ", trials: ", state->trials.size(),
                   ", intermediate values: ", values, "; ids given so far: studies to ",
                   state->last_study.value, ", trials to ", state->last_trial.value,
                   leaving.ok() && *leaving > 0
                       ? absl::StrCat("; ", *leaving, " deleted studies are still being removed")
                       : ""));
}

}  // namespace

absl::StatusOr<std::vector<Finding>> CheckDatabase(const std::string& path) {
  const std::string canonical = CanonicalPath(path);
  ESPALIER_RETURN_IF_ERROR(CheckDatabaseFile(canonical, /*read_only=*/true));
  ESPALIER_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database,
                            Database::Open(canonical, /*read_only=*/true));
  const absl::StatusOr<std::int64_t> version = SchemaVersion(*database);
  if (absl::IsDataLoss(version.status())) {
    return std::vector<Finding>{{"structure", false, std::string(version.status().message())}};
  }
  ESPALIER_RETURN_IF_ERROR(version.status());
  if (const std::int64_t is = *version; is > 0 && is < kLatestSchema) {
    return std::vector<Finding>{
        CheckStructure(*database),
        {"schema", true,
         absl::StrCat("version ", *version, ", older than this program's ", kLatestSchema,
                      ": contents were not looked at; a service brings it up to date")},
        CheckReferences(*database)};
  }
  ESPALIER_RETURN_IF_ERROR(PrepareSchema(*database, /*read_only=*/true));
  return std::vector<Finding>{CheckStructure(*database),
                              {"schema", true, absl::StrCat("version ", *version)},
                              CheckReferences(*database),
                              CheckNumbers(*database),
                              CheckContents(*database)};
}

}  // namespace espalier
