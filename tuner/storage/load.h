#pragma once

#include <optional>
#include <string>

#include "tuner/core/change.h"
#include "tuner/storage/database.h"

namespace espalier {

// Reads everything, as it was at one moment: writers may go on meanwhile. An error names what in
// the database does not make sense.
// Of the decisions of each study as many as given are read, the newest.
absl::StatusOr<TunerState> LoadState(Database& database,
                                     std::size_t decisions_of_a_study = kDecisionsShown);

// Why LoadState failed: a record, and of which study. None: it is of no study.
struct UnloadableRecord {
  StudyId study;
  std::string text;  // "trial 12: what is wrong with it"
};
std::optional<UnloadableRecord> UnloadableRecordOf(const absl::Status& error);

}  // namespace espalier
