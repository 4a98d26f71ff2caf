#pragma once

#include <cstdint>

#include "tuner/storage/database.h"

namespace espalier {

inline constexpr std::int64_t kLatestSchema = 18;

// The schema that the database has, 0 if it is empty. Refuses a file that is not Espalier's, and
// one with a newer schema.
absl::StatusOr<std::int64_t> SchemaVersion(Database& database);

// Makes the connection's database one of this program's schema: creates it in an empty file and
// migrates an older one, each in one transaction. Changes nothing in a file it refuses: one that is
// not Espalier's, one with a newer schema, and, when only reading, one it would have to change.
absl::Status PrepareSchema(Database& database, bool read_only);

}  // namespace espalier
