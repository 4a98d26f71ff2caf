// SQLite files of Optuna's, which are imported. The first bit of the first byte says whether the
// rest is such a file; else each of its lines is put into a cell of one that was whole: a byte that
// says which cell, one that says how, and the value. The second bit says whether it goes into a
// database of ours, which takes ten times as long as memory.

#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "adapters/optuna/file/import.h"
#include "adapters/optuna/file/schema.h"
#include "base/json/json_depth.h"
#include "search_spaces/formats/optuna/distribution.h"
#include "tests/adapters/optuna/file/optuna_rows.h"
#include "tests/fuzz/input.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/storage/storage.h"
#include "tuner/storage/utf8.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

// Statements that put a value into one cell each.
constexpr const char* kCells[] = {
    "UPDATE version_info SET library_version = ?",
    "UPDATE alembic_version SET version_num = ?",
    "UPDATE studies SET study_name = ? WHERE study_id = 4",
    "UPDATE studies SET study_id = ? WHERE study_id = 5",
    "UPDATE study_directions SET direction = ? WHERE study_direction_id = 1",
    "UPDATE study_directions SET objective = ? WHERE study_direction_id = 2",
    "UPDATE study_user_attributes SET key = ?",
    "UPDATE study_user_attributes SET value_json = ?",
    "UPDATE study_system_attributes SET key = ?",
    "UPDATE study_system_attributes SET value_json = ?",
    "UPDATE trials SET trial_id = ? WHERE trial_id = 10",
    "UPDATE trials SET number = ? WHERE trial_id = 8",
    "UPDATE trials SET state = ? WHERE trial_id = 7",
    "UPDATE trials SET state = ? WHERE trial_id = 8",
    "UPDATE trials SET datetime_start = ? WHERE trial_id = 7",
    "UPDATE trials SET datetime_complete = ? WHERE trial_id = 7",
    "UPDATE trial_values SET objective = ? WHERE trial_value_id = 1",
    "UPDATE trial_values SET value = ? WHERE trial_value_id = 2",
    "UPDATE trial_values SET value_type = ? WHERE trial_value_id = 2",
    "UPDATE trial_intermediate_values SET step = ? WHERE trial_intermediate_value_id = 1",
    "UPDATE trial_intermediate_values SET intermediate_value = ? WHERE trial_intermediate_value_id "
    "= 2",
    "UPDATE trial_intermediate_values SET intermediate_value_type = ? WHERE "
    "trial_intermediate_value_id = 2",
    "UPDATE trial_params SET param_name = ? WHERE param_id = 1",
    "UPDATE trial_params SET param_value = ? WHERE param_id = 2",
    "UPDATE trial_params SET distribution_json = ? WHERE param_id = 1",
    "UPDATE trial_params SET distribution_json = ? WHERE param_id = 2",
    "UPDATE trial_user_attributes SET key = ?",
    "UPDATE trial_user_attributes SET value_json = ?",
    "UPDATE trial_system_attributes SET key = ?",
    "UPDATE trial_system_attributes SET value_json = ?",
};

sqlite3* MustOpen(const fs::path& path) {
  sqlite3* connection = nullptr;
  ESPALIER_CHECK(sqlite3_open(path.c_str(), &connection) == SQLITE_OK, "memory has room");
  sqlite3_exec(connection,
               "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA page_size = 512",
               nullptr, nullptr, nullptr);
  return connection;
}

// Where the files are, with one of Optuna's that is whole.
struct Files {
  Files() {
    sqlite3* connection = MustOpen(whole);
    for (const char* sql : {kOptunaSchema, kOptunaRows}) {
      ESPALIER_CHECK(sqlite3_exec(connection, sql, nullptr, nullptr, nullptr) == SQLITE_OK,
                     "the schema is Optuna's");
    }
    sqlite3_close(connection);
  }

  // For the next input.
  void Clear() const {
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      if (entry.path() != whole) fs::remove_all(entry);
    }
  }

  const ScratchFolder folder;
  const fs::path whole = folder.File("whole.db");
  const fs::path file = folder.File("optuna.db");
  const fs::path into = folder.File("tuner.db");
};

void PutInto(sqlite3* connection, std::string_view line) {
  const std::uint8_t cell = fuzz::TakeByte(line);
  const std::uint8_t kind = fuzz::TakeByte(line);
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(connection, kCells[cell % std::size(kCells)], -1, &statement, nullptr);
  switch (kind % 4) {
    case 0:
      sqlite3_bind_text(statement, 1, line.data(), static_cast<int>(line.size()), SQLITE_STATIC);
      break;
    case 1:
      sqlite3_bind_int64(statement, 1, std::atoll(std::string(line).c_str()));
      break;
    case 2:
      sqlite3_bind_double(statement, 1, std::atof(std::string(line).c_str()));
      break;
    default:
      sqlite3_bind_blob(statement, 1, line.data(), static_cast<int>(line.size()), SQLITE_STATIC);
  }
  sqlite3_step(statement);
  sqlite3_finalize(statement);
}

void Write(const Files& files, bool all, std::string_view content) {
  if (all) {
    std::ofstream(files.file, std::ios::binary) << content;
    return;
  }
  fs::copy_file(files.whole, files.file);
  sqlite3* connection = MustOpen(files.file);
  while (!content.empty()) {
    const std::string_view line = content.substr(0, content.find('\n'));
    PutInto(connection, line);
    content.remove_prefix(std::min(line.size() + 1, content.size()));
  }
  sqlite3_close(connection);
}

void CheckText(const std::string& text) {
  ESPALIER_CHECK(IsUtf8(text), "Optuna's clients are sent no other texts");
}

void CheckJson(const std::string& json) {
  CheckText(json);
  ESPALIER_CHECK(!NestsDeeper(json) && !EndsEarly(json), "as if a client had sent it");
}

void CheckAttributes(const Attributes& attributes) {
  for (const auto* space : {&attributes.user, &attributes.system}) {
    for (const auto& [key, value] : *space) {
      CheckText(key);
      CheckJson(value);
      ESPALIER_CHECK(CheckPythonJson(value).ok(), "Optuna reads its values");
    }
  }
}

// All of it is as if clients had made it call by call.
void CheckState(const TunerState& state) {
  for (const auto& [id, study] : state.studies) {
    CheckText(study.spec.name);
    ESPALIER_CHECK(state.FindStudy(study.spec.name) == &study, "a name is of one study");
    CheckAttributes(study.attributes);
    for (const Suggestion& suggestion : study.suggestions) {
      CheckText(suggestion.name);
      CheckJson(suggestion.distribution);
      const auto read = ParseOptunaDistribution(suggestion.distribution);
      ESPALIER_CHECK(read.ok() && read->kind == suggestion.kind, "a distribution is Optuna's");
    }
    for (std::size_t number = 0; number < study.trials.size(); ++number) {
      const Trial& trial = state.trials.at(study.trials[number]);
      ESPALIER_CHECK(trial.number == static_cast<std::int64_t>(number), "numbers are dense");
      CheckAttributes(trial.attributes);
    }
  }
}

void ImportIntoMemory(const Files& files) {
  const std::unique_ptr<Storage> storage = MakeMemoryStorage();
  const bool imported =
      ImportOptunaInto(*storage, files.file, "memory", {}, Time{1'000'000'000}).ok();
  const absl::StatusOr<TunerState> state = storage->Load();
  ESPALIER_CHECK(state.ok() && (imported || state->studies.empty()), "or nothing is there");
  CheckState(*state);
}

void ImportIntoDatabase(const Files& files) {
  const auto imported = ImportOptuna(files.file, files.into, {}, Time{1'000'000'000});
  ESPALIER_CHECK(imported.ok() == fs::exists(files.into), "all is imported, or nothing");
  if (!imported.ok()) return;
  const auto storage = OpenSqliteStorage(files.into, /*read_only=*/true);
  const absl::StatusOr<TunerState> state = storage.ok() ? (*storage)->Load() : storage.status();
  ESPALIER_CHECK(state.ok(), "a service can begin with it");
  CheckState(*state);
}

}  // namespace
}  // namespace espalier

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  std::string_view input = fuzz::TextOf(data, size);
  static const Files files;
  const std::uint8_t kind = fuzz::TakeByte(input);
  Write(files, (kind & 1) != 0, input);
  (kind & 2) != 0 ? ImportIntoDatabase(files) : ImportIntoMemory(files);
  files.Clear();
  return 0;
}
