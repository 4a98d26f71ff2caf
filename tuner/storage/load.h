#pragma once

#include "tuner/core/change.h"
#include "tuner/storage/database.h"

namespace espalier {

// Reads everything, as it was at one moment: writers may go on meanwhile. An error names what in
// the database does not make sense.
absl::StatusOr<TunerState> LoadState(Database& database);

}  // namespace espalier
