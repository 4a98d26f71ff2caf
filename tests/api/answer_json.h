#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace espalier {

inline void DropNulls(nlohmann::json& json) {
  for (auto part = json.begin(); part != json.end();) {
    if (json.is_object() && part->is_null()) {
      part = json.erase(part);
      continue;
    }
    if (part->is_structured()) DropNulls(*part);
    ++part;
  }
}

// An answer as a request would say the same: absent numbers are null in answers alone.
inline std::string WithoutNulls(const std::string& answer) {
  nlohmann::json json = nlohmann::json::parse(answer);
  if (json.is_structured()) DropNulls(json);
  return json.dump();
}

}  // namespace espalier
