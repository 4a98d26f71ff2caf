#include "tuner/api/shown_attributes.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "tuner/api/json.h"

namespace espalier {

Attributes ShownAttributes(const Trial& trial) {
  Attributes shown = trial.attributes;
  if (trial.held) shown.system.emplace("espalier:held", "true");
  if (trial.environment.empty()) return shown;
  std::string json = "{";
  for (const auto& [name, value] : trial.environment) {
    absl::StrAppend(&json, json.size() > 1 ? "," : "", QuoteJson(name), ":", QuoteJson(value));
  }
  shown.system.emplace("espalier:environment", json + "}");
  return shown;
}

}  // namespace espalier
