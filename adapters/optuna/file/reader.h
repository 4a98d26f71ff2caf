#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "tuner/core/state/event.h"
#include "tuner/storage/database.h"

namespace espalier {

// How the datetimes of a file are meant.
enum class OptunaTimes {
  kAsItsVersion,  // UTC if the file was made by 5.0 or later, else this host's time zone
  kUtc,
  kLocal,
};

struct OptunaFileStudy {
  std::int64_t id = 0;
  std::string name;
  std::vector<Direction> directions;
  Attributes attributes;
  Time first_start;  // of its trials; zero: none has started
};

struct OptunaFileTrial {
  std::int64_t id = 0;
  std::int64_t number = 0;
  std::shared_ptr<const TrialTemplate> content;
};

// Reads an SQLite file of Optuna's RDBStorage, as it was at one moment. The file is never changed.
// Whatever in it does not make sense is InvalidArgument, with table, row and value. One thread.
//
// Final values that are NULL though their type says FINITE are NaN: so Optuna stores NaN, and
// cannot read it again.
class OptunaFile {
 public:
  // Refuses what is not such a file, what is damaged, and schemas other than kOptunaAlembicVersion.
  static absl::StatusOr<OptunaFile> Open(const std::string& path, OptunaTimes times);

  absl::StatusOr<std::vector<OptunaFileStudy>> Studies();  // by id

  // The study's trials one after the other, by number; absent after the last.
  absl::Status BeginTrials(std::int64_t study);
  absl::StatusOr<std::optional<OptunaFileTrial>> NextTrial();

 private:
  explicit OptunaFile(std::unique_ptr<Database> database) : database_(std::move(database)) {}

  absl::Status Check();
  absl::Status Prepare();
  absl::Status Broken(std::string_view table, std::int64_t row, const absl::Status& why) const;
  template <typename Read>
  absl::Status ForEach(std::string_view table, Statement& rows, std::int64_t owner, Read read);
  absl::Status ReadDirections(OptunaFileStudy& study);
  absl::Status ReadAttributes(std::string_view owner, Statement& user, Statement& system,
                              std::int64_t id, Attributes& attributes);
  absl::Status ReadValues(std::int64_t trial, TrialTemplate& content);
  absl::Status ReadParameters(std::int64_t trial, TrialTemplate& content);
  absl::StatusOr<Time> ReadTime(const Statement& row, int column, std::string_view name) const;
  absl::StatusOr<OptunaFileTrial> ReadTrial();
  // Parsed once a text: studies have few different ones.
  absl::StatusOr<std::string> KindOf(const std::string& distribution);

  std::unique_ptr<Database> database_;
  bool utc_ = true;
  std::map<std::string, std::string> kinds_;
  Statement directions_, study_user_, study_system_, first_start_;
  Statement trials_, trial_user_, trial_system_, parameters_, values_, intermediate_values_;
};

}  // namespace espalier
