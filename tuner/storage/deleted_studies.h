#pragma once

#include <cstdint>
#include <vector>

#include "tuner/storage/database.h"

namespace espalier {

inline constexpr std::int64_t kRowsRemovedAtOnce = 500;

// The two statements, bound to a study's id, that mark it as deleted. Its name is free then,
// because it becomes a blob, which equals no text.
inline constexpr char kFreeNameSql[] =
    "UPDATE studies SET name = CAST('deleted ' || id AS BLOB) WHERE id = ?";
inline constexpr char kMarkDeletedSql[] = "INSERT INTO deleted_studies (study) VALUES (?)";

// The rows of deleted studies. A deletion only marks its study, which takes no time however many
// trials there are; the rows are removed here, a few per transaction. LoadState leaves out what is
// marked.
class DeletedStudies {
 public:
  // `database` must have the schema, and outlive this.
  static absl::StatusOr<DeletedStudies> Make(Database& database);

  // Removes about kRowsRemovedAtOnce rows, durably; false when none are left.
  absl::StatusOr<bool> RemoveSome();
  // Removes all rows of deleted studies, in a file that nothing else has open.
  static absl::Status RemoveAll(Database& database);

 private:
  explicit DeletedStudies(Database& database) : database_(&database) {}

  absl::Status RemoveFrom(std::int64_t study);
  // Runs the statement for at most `rows` rows, and subtracts from `rows` how many it removed.
  absl::Status RunLimited(Statement& statement, std::int64_t id, std::int64_t& rows);

  Database* database_;
  Statement next_study_, next_trial_, delete_trial_, delete_mark_, delete_study_;
  std::vector<Statement> of_trial_, of_study_;  // bind an id, and how many rows to remove
};

}  // namespace espalier
