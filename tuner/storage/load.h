#pragma once

#include <optional>
#include <string>

#include "tuner/core/state/change.h"
#include "tuner/storage/database.h"

namespace espalier {

// Reads everything, as it was at one moment: writers may go on meanwhile. An error names what in
// the database does not make sense. Only as many of each study's decisions as given are read, the
// newest ones.
absl::StatusOr<TunerState> LoadState(Database& database,
                                     std::size_t decisions_of_a_study = kDecisionsShown);

// Why LoadState failed: the record, and its study; none where it belongs to no study.
struct UnloadableRecord {
  StudyId study;
  std::string text;  // "trial 12: what is wrong with it"
};
std::optional<UnloadableRecord> UnloadableRecordOf(const absl::Status& error);

}  // namespace espalier
