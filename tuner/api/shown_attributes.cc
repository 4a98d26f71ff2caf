#include "tuner/api/shown_attributes.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "search_spaces/formats/optuna/constraints.h"
#include "tuner/api/json.h"
#include "tuner/core/state/private_attributes.h"
#include "tuner/study_file/study_file.h"

namespace espalier {

Attributes ShownAttributes(const Study& study) { return WithoutPrivate(study.attributes); }

Attributes ShownAttributes(const Trial& trial, bool shows_secrets) {
  Attributes shown = WithoutPrivate(trial.attributes);
  AddConstraints(*trial.constraints, shown.system);
  if (trial.held) shown.system.emplace("espalier:held", "true");
  if (trial.environment.empty()) return shown;
  std::string json = "{";
  for (const auto& [name, value] : trial.environment) {
    absl::StrAppend(&json, json.size() > 1 ? "," : "", QuoteJson(name), ":",
                    QuoteJson(shows_secrets ? value : kMaskedValue));
  }
  shown.system.insert_or_assign("espalier:environment", json + "}");
  return shown;
}

}  // namespace espalier
