#include "tuner/storage/deleted_studies.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace espalier {

namespace {

// A table and the columns that tell its rows of one trial or study apart.
struct Table {
  const char* name;
  const char* keys;
};
constexpr Table kOfTrial[] = {{"trial_values", "step"},      {"trial_attributes", "system, key"},
                              {"spans", "number"},           {"resizes", "number"},
                              {"figures", "name"},           {"suggested", "position"},
                              {"other_values", "number"},    {"extra_figures", "step, name"},
                              {"checkpoint_copies", "node"}, {"rank_values", "step, rank"}};
constexpr Table kOfStudy[] = {
    {"decisions", "number"}, {"study_attributes", "system, key"}, {"suggestions", "number"}};

std::string DeleteSome(const Table& table, const char* owner) {
  return absl::StrCat("DELETE FROM ", table.name, " WHERE ", owner, " = ?1 AND (", table.keys,
                      ") IN (SELECT ", table.keys, " FROM ", table.name, " WHERE ", owner,
                      " = ?1 LIMIT ?2)");
}

}  // namespace

absl::StatusOr<DeletedStudies> DeletedStudies::Make(Database& database) {
  DeletedStudies made(database);
  const std::pair<Statement*, const char*> statements[] = {
      {&made.next_study_, "SELECT study FROM deleted_studies LIMIT 1"},
      {&made.next_trial_, "SELECT id FROM trials WHERE study = ? LIMIT 1"},
      {&made.delete_trial_, "DELETE FROM trials WHERE id = ?"},
      {&made.delete_mark_, "DELETE FROM deleted_studies WHERE study = ?"},
      {&made.delete_study_, "DELETE FROM studies WHERE id = ?"},
  };
  for (const auto& [statement, sql] : statements) {
    ESPALIER_ASSIGN_OR_RETURN(*statement, database.Prepare(sql));
  }
  for (const Table& table : kOfTrial) {
    ESPALIER_ASSIGN_OR_RETURN(Statement statement, database.Prepare(DeleteSome(table, "trial")));
    made.of_trial_.push_back(std::move(statement));
  }
  for (const Table& table : kOfStudy) {
    ESPALIER_ASSIGN_OR_RETURN(Statement statement, database.Prepare(DeleteSome(table, "study")));
    made.of_study_.push_back(std::move(statement));
  }
  return made;
}

absl::StatusOr<bool> DeletedStudies::RemoveSome() {
  ESPALIER_ASSIGN_OR_RETURN(const bool found, next_study_.Step());
  if (!found) return false;
  const std::int64_t study = next_study_.Integer(0);
  next_study_.Reset();
  ESPALIER_RETURN_IF_ERROR(database_->Transact([&] { return RemoveFrom(study); }));
  return true;
}

absl::Status DeletedStudies::RemoveAll(Database& database) {
  ESPALIER_ASSIGN_OR_RETURN(DeletedStudies deleted, Make(database));
  while (true) {
    ESPALIER_ASSIGN_OR_RETURN(const bool more, deleted.RemoveSome());
    if (!more) return absl::OkStatus();
  }
}

absl::Status DeletedStudies::RemoveFrom(std::int64_t study) {
  std::int64_t rows = kRowsRemovedAtOnce;
  while (true) {
    ESPALIER_ASSIGN_OR_RETURN(const bool found, next_trial_.Bind(study).Step());
    if (!found) break;
    const std::int64_t trial = next_trial_.Integer(0);
    next_trial_.Reset();
    for (Statement& statement : of_trial_) {
      ESPALIER_RETURN_IF_ERROR(RunLimited(statement, trial, rows));
    }
    if (rows <= 0) return absl::OkStatus();
    ESPALIER_RETURN_IF_ERROR(delete_trial_.Bind(trial).Run());
    --rows;
  }
  for (Statement& statement : of_study_) {
    ESPALIER_RETURN_IF_ERROR(RunLimited(statement, study, rows));
  }
  if (rows <= 0) return absl::OkStatus();
  ESPALIER_RETURN_IF_ERROR(delete_mark_.Bind(study).Run());
  return delete_study_.Bind(study).Run();
}

absl::Status DeletedStudies::RunLimited(Statement& statement, std::int64_t id, std::int64_t& rows) {
  if (rows <= 0) return absl::OkStatus();
  ESPALIER_RETURN_IF_ERROR(statement.Bind(id, rows).Run());
  rows -= database_->Changes();
  return absl::OkStatus();
}

}  // namespace espalier
