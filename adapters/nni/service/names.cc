#include "adapters/nni/service/names.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/json/parse_json.h"

namespace espalier::nni {

namespace {

constexpr std::string_view kStudyPrefix = "nni-";

bool IsId(std::string_view id) {
  return !id.empty() && id.size() <= kMaxId && std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
  });
}

}  // namespace

absl::Status CheckId(std::string_view what, std::string_view id) {
  if (IsId(id)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(what), " id \"", std::string(id.substr(0, kMaxId)),
                   "\": needs 1 to ", kMaxId, " letters, digits, \"_\" and \"-\""));
}

std::string StudyName(std::string_view experiment) {
  return std::string(kStudyPrefix) + std::string(experiment);
}

std::optional<std::string> ExperimentOf(const StudySpec& spec) {
  if (!spec.queued() || !spec.name.starts_with(kStudyPrefix)) return std::nullopt;
  std::string experiment = spec.name.substr(kStudyPrefix.size());
  if (!IsId(experiment)) return std::nullopt;
  return experiment;
}

const std::string* Attribute(const Attributes& attributes, const char* name) {
  const auto it = attributes.system.find(name);
  return it == attributes.system.end() ? nullptr : &it->second;
}

std::string TextAttribute(const Attributes& attributes, const char* name) {
  const std::string* json = Attribute(attributes, name);
  if (json == nullptr) return "";
  const auto text = ParseJson(*json, kMaxRecordDepth);
  return text.is_string() ? text.get<std::string>() : "";
}

std::optional<std::int64_t> IntegerAttribute(const Attributes& attributes, const char* name) {
  const std::string* json = Attribute(attributes, name);
  if (json == nullptr) return std::nullopt;
  const auto number = ParseJson(*json, kMaxRecordDepth);
  if (!number.is_number_integer()) return std::nullopt;
  return number.get<std::int64_t>();
}

}  // namespace espalier::nni
