#include "adapters/optuna/file/trial_ids.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace espalier {

namespace {

using NewIds = std::map<std::int64_t, std::int64_t>;

constexpr std::string_view kDashboard = "dashboard:";
constexpr std::string_view kArtifacts = "dashboard:artifacts:";
constexpr std::string_view kParents = "Sampler:parent:";

std::size_t DigitsAt(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  return end - at;
}

std::string NewId(const NewIds& new_ids, std::string_view digits) {
  std::int64_t id = 0;
  if (absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), &id)) {
    if (const auto it = new_ids.find(id); it != new_ids.end()) return absl::StrCat(it->second);
  }
  return std::string(digits);
}

std::string NewKey(const NewIds& new_ids, const std::string& key) {
  for (const std::string_view prefix : {kArtifacts, kDashboard}) {
    if (key.compare(0, prefix.size(), prefix) != 0) continue;
    const std::size_t digits = DigitsAt(key, prefix.size());
    if (digits == 0 || key[prefix.size() + digits] != ':') continue;
    return absl::StrCat(key.substr(0, prefix.size()),
                        NewId(new_ids, std::string_view(key).substr(prefix.size(), digits)),
                        key.substr(prefix.size() + digits));
  }
  return key;
}

// A list of ids with the new ones in place; anything else is left alone.
std::string NewList(const NewIds& new_ids, const std::string& value) {
  if (value.find_first_not_of("[]0123456789, ") != std::string::npos) return value;
  std::string list;
  for (std::size_t i = 0; i < value.size();) {
    const std::size_t digits = DigitsAt(value, i);
    if (digits == 0) {
      list += value[i++];
      continue;
    }
    list += NewId(new_ids, std::string_view(value).substr(i, digits));
    i += digits;
  }
  return list;
}

}  // namespace

void FollowTrialIds(const NewIds& new_ids, std::map<std::string, std::string>& system_attributes) {
  std::map<std::string, std::string> followed;
  for (auto& [key, value] : system_attributes) {
    const bool parents = key.find(kParents) != std::string::npos;
    followed.emplace(NewKey(new_ids, key), parents ? NewList(new_ids, value) : std::move(value));
  }
  system_attributes = std::move(followed);
}

}  // namespace espalier
