#include "tuner/study_file/key_value.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/near_name.h"
#include "tuner/study_file/foreign_keys.h"
#include "tuner/study_file/words.h"

namespace espalier {

namespace {

using search_spaces_json::Json;
using search_spaces_json::Quote;

constexpr double kMaxPrice = 1e12;

}  // namespace

bool OpenStudyFile::ByClients() const { return json.value("ask_and_tell", Json(false)) == true; }

absl::Status OpenStudyFile::Bad(std::string_view key, std::string_view problem) const {
  return absl::InvalidArgumentError(
      absl::StrCat(label, ": \"", std::string(key), "\": ", std::string(problem)));
}

absl::Status OpenStudyFile::CheckKeys(std::string_view where, const Json& object,
                                      std::span<const std::string_view> known) const {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string problem = "unknown key";
    std::string_view meant = where.empty() ? KeyOfForeign(key) : "";
    if (meant.empty()) meant = NearName(key, known);
    if (!meant.empty()) {
      absl::StrAppend(&problem, ", did you mean \"", std::string(meant), "\"?");
    } else {
      absl::StrAppend(&problem, ";");
    }
    absl::StrAppend(&problem, " Known: ", absl::StrJoin(known, ", ", [](auto* out, auto name) {
      out->append(name);
    }));
    return Bad(absl::StrCat(std::string(where), key), problem);
  }
  return absl::OkStatus();
}

absl::Status KeyValue::Needs(std::string_view what, const Json& got) const {
  return Bad(absl::StrCat("needs ", std::string(what), ", got ", Quote(got)));
}

absl::Status KeyValue::CheckKeys(std::span<const std::string_view> known) const {
  return file_.CheckKeys(absl::StrCat(std::string(key_), "."), json_, known);
}

absl::Status KeyValue::Integer(std::int64_t low, std::int64_t high, std::int64_t& result) const {
  if (!json_.is_number_integer()) return Needs(absl::StrCat("an integer >= ", low));
  const absl::StatusOr<ParameterValue> number = search_spaces_json::ToParameterValue(json_);
  if (!number.ok() || std::get<std::int64_t>(*number) > high) {
    return Needs(absl::StrCat("an integer <= ", high));
  }
  result = std::get<std::int64_t>(*number);
  if (result < low) return Needs(absl::StrCat("an integer >= ", low));
  return absl::OkStatus();
}

absl::Status KeyValue::Integer(std::int64_t low, std::int64_t high, int& result) const {
  std::int64_t count = 0;
  ESPALIER_RETURN_IF_ERROR(Integer(low, high, count));
  result = static_cast<int>(count);
  return absl::OkStatus();
}

absl::Status KeyValue::Number(double& result) const {
  if (!json_.is_number()) return Needs("a number");
  result = json_.get<double>();
  return absl::OkStatus();
}

absl::Status KeyValue::Range(const char* what, double low, double high, double& result) const {
  ESPALIER_RETURN_IF_ERROR(Number(result));
  if (result >= low && result <= high) return absl::OkStatus();
  return Needs(absl::StrCat(what, " from ", low, " to ", high));
}

absl::Status KeyValue::Price(double& result) const {
  ESPALIER_RETURN_IF_ERROR(Number(result));
  if (result > 0 && result <= kMaxPrice) return absl::OkStatus();
  return Needs(absl::StrCat("a price, more than 0 and at most ", kMaxPrice));
}

absl::Status KeyValue::Text(std::size_t max_bytes, std::string& result) const {
  if (!json_.is_string()) return Needs("a string");
  result = json_.get<std::string>();
  if (result.empty() || HasNul(result)) return Needs("a string that is not empty");
  if (result.size() > max_bytes) {
    return Bad(absl::StrCat("needs at most ", max_bytes, " bytes, got ", result.size()));
  }
  return absl::OkStatus();
}

std::string KeyValue::Word() const { return json_.is_string() ? json_.get<std::string>() : ""; }

}  // namespace espalier
