#pragma once

#include <string>

#include "base/clock.h"

namespace espalier {

// A token as it is kept: a hash of its secret and never the secret. The core does not know what its
// role means. A token that was removed stays on record, so that a caller which still shows it is
// told so.
struct KeptToken {
  std::string id;
  std::string hash;
  std::string role;
  std::string name;
  Time created;
  Time expires{};  // zero: never
  Time removed{};  // zero: it is good

  friend bool operator==(const KeptToken&, const KeptToken&) = default;
};

}  // namespace espalier
