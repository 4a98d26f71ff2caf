#pragma once

#include "tuner/storage/database.h"

namespace espalier {

// Makes the connection's database one of this program's schema: creates it in an empty file and
// migrates an older one, each in one transaction. Changes nothing in a file it refuses: one that is
// not Espalier's, one with a newer schema, and, when only reading, one it would have to change.
absl::Status PrepareSchema(Database& database, bool read_only);

}  // namespace espalier
