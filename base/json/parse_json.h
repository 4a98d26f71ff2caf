#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json/json_depth.h"

namespace espalier {

// The one way into the library's parser (tests/architecture): what is no JSON, has a zero byte, or
// nests deeper than `max_depth` levels, is a value that `is_discarded()`.
template <typename Json = nlohmann::json>
Json ParseJson(std::string_view text, int max_depth = kMaxJsonDepth) {
  if (EndsEarly(text) || NestsDeeper(text, max_depth)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace espalier
