#pragma once

#include <sstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "trial_runner/torch/state.h"

namespace espalier {

// A program's state as bytes. What Save throws is the caller's.
inline std::string BytesOf(const State& state) {
  std::ostringstream out;
  state.Save(out);
  return std::move(out).str();
}

inline absl::Status LoadBytes(State& state, const std::string& bytes) {
  std::istringstream in(bytes);
  try {
    state.Load(in);
  } catch (const std::exception& e) {
    return absl::DataLossError(absl::StrCat("state \"", state.name(), "\": ", e.what()));
  }
  return absl::OkStatus();
}

}  // namespace espalier
