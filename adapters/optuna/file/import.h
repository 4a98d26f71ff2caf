#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "adapters/optuna/file/reader.h"
#include "base/status.h"
#include "tuner/storage/storage.h"

namespace espalier {

struct OptunaImportOptions {
  std::vector<std::string> studies;          // none: all that the file has
  std::map<std::string, std::string> names;  // new ones, by those in the file
  OptunaTimes times = OptunaTimes::kAsItsVersion;
};

struct ImportedStudy {
  std::string name;
  std::string name_in_file;
  std::int64_t trials = 0;
  std::int64_t renumbered = 0;  // trials whose numbers had to change, as the file's had gaps
};

// Copies studies of an Optuna file into a database of ours, which is created if absent and which no
// service may have open. They become ask-and-tell studies with ids of their own; attributes in
// which trial ids are known to stand follow them. `now` is for studies in which nothing has started
// yet.
//
// All or nothing, in one transaction: a name that is taken, a study that the file does not have,
// and whatever does not make sense in the file is refused, and the database is as it was.
absl::StatusOr<std::vector<ImportedStudy>> ImportOptuna(const std::string& from,
                                                        const std::string& into,
                                                        const OptunaImportOptions& options,
                                                        Time now);

// The same into a storage that is open, and is called `into` in errors.
absl::StatusOr<std::vector<ImportedStudy>> ImportOptunaInto(Storage& storage,
                                                            const std::string& from,
                                                            const std::string& into,
                                                            const OptunaImportOptions& options,
                                                            Time now);

}  // namespace espalier
