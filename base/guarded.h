#pragma once

#include <exception>

#include "absl/strings/str_cat.h"
#include "base/check_scope.h"
#include "base/status.h"

namespace espalier {

// Takes a step of a thread that many depend on, or calls what others have handed to it: what it
// throws ends the step with INTERNAL, which says `name()` and why, and not the process. A check
// that fails meanwhile says the name, too.
template <typename Name, typename Step>
absl::Status Guarded(const Name& name, Step&& step) {
  const CheckScope scope(name);
  try {
    step();
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(name(), ": ", error.what()));
  }
}

}  // namespace espalier
