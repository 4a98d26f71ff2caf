#include "tuner/study_file/constraint_key.h"

#include <cmath>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tuner/study_file/words.h"

namespace espalier {

namespace {

using search_spaces_json::Json;
using search_spaces_json::Quote;

constexpr std::string_view kForm = R"("FIGURE <= NUMBER" or "FIGURE >= NUMBER")";

// A figure may be named by any text: the last operator counts.
absl::Status ReadConstraint(const KeyValue& value, Constraint& constraint) {
  const std::string text = value.Word();
  const std::size_t most = text.rfind("<=");
  const std::size_t least = text.rfind(">=");
  constraint.at_least = least != std::string::npos && (most == std::string::npos || least > most);
  const std::size_t at = constraint.at_least ? least : most;
  if (at == std::string::npos) return value.Needs(kForm);
  constraint.figure = std::string(absl::StripAsciiWhitespace(text.substr(0, at)));
  if (constraint.figure.empty() || HasNul(constraint.figure)) return value.Needs(kForm);
  if (!absl::SimpleAtod(text.substr(at + 2), &constraint.bound) ||
      !std::isfinite(constraint.bound)) {
    return value.Bad(absl::StrCat("needs a finite number behind \"",
                                  constraint.at_least ? ">=" : "<=", "\", got ",
                                  Quote(value.json())));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadConstraints(const KeyValue& value, StudySpec& spec) {
  const Json& json = value.json();
  if (!json.is_array()) return value.Needs(R"(a list like ["latency_ms <= 20"])");
  if (json.size() > kMostConstraints) {
    return value.Bad(
        absl::StrCat("needs at most ", kMostConstraints, " constraints, got ", json.size()));
  }
  spec.constraints.clear();
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string place = absl::StrCat("constraints[", i, "]");
    ESPALIER_RETURN_IF_ERROR(
        ReadConstraint(KeyValue(value.file(), place, json[i]), spec.constraints.emplace_back()));
  }
  return absl::OkStatus();
}

Json ConstraintsJson(const StudySpec& spec) {
  if (spec.constraints.empty()) return {};
  Json constraints = Json::array();
  for (const Constraint& constraint : spec.constraints) constraints.push_back(ToText(constraint));
  return constraints;
}

}  // namespace espalier
