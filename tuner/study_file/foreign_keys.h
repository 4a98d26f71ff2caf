#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace espalier {

// The key of a study file that other tuners call `name`; empty if none do.
constexpr std::string_view KeyOfForeign(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kForeign = {{
      {"direction", "metric.direction"},
      {"mode", "metric.direction"},
      {"n_jobs", "max_concurrent_trials"},
      {"n_trials", "trials"},
      {"num_samples", "trials"},
      {"timeout", "time_limit_s"},
  }};
  for (const auto& [foreign, own] : kForeign) {
    if (foreign == name) return own;
  }
  return "";
}

}  // namespace espalier
