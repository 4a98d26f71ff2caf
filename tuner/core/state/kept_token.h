#pragma once

#include <string>

#include "tuner/base/clock.h"

namespace espalier {

// A token as it is kept: a hash of its secret and never the secret. What its role means is not the
// core's affair. One that was removed stays, so that who still shows it is told so.
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
