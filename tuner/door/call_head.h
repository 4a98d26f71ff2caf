#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace espalier {

// What decides who is let in, of the fields at the head of a gRPC call.
struct CallHead {
  std::string path;                           // "/PACKAGE.SERVICE/METHOD"; empty: it has none
  std::vector<std::string> authorizations{};  // the values of all its fields "authorization"
};

// Reads the first header block of a connection (HPACK, RFC 7541), whole: no table of an earlier one
// is needed. The time that it takes is proportional to the block; of fields that are not asked for
// nothing is kept. INVALID_ARGUMENT: the block is malformed.
absl::StatusOr<CallHead> ReadCallHead(std::string_view block);

}  // namespace espalier
