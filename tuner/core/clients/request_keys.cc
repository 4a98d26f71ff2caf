#include "tuner/core/clients/request_keys.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace espalier {

std::string RequestKeyJson(std::string_view key) {
  return absl::StrCat("\"", std::string(key), "\"");
}

absl::Status CheckKey(std::string_view key) {
  const bool good = !key.empty() && key.size() <= kMaxRequestKeyBytes &&
                    std::all_of(key.begin(), key.end(), [](char c) {
                      return c > ' ' && c < '\x7f' && c != '"' && c != '\\';
                    });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a request key has 1 to ", kMaxRequestKeyBytes,
      " visible ASCII characters, no quote or backslash among them; got ", key.size(), " bytes"));
}

void RequestKeys::Take(const Trial& trial) {
  for (const char* attribute : {kCreationKey, kAskKey}) {
    const auto value = trial.attributes.system.find(attribute);
    if (value == trial.attributes.system.end()) continue;
    const Key key(trial.study, absl::StrCat(attribute, value->second));
    // The first trial stands: its attributes may have been copied to another.
    if (trials_.emplace(key, trial.id).second) by_age_.emplace(trial.id, key);
  }
  while (by_age_.size() > most_) {
    trials_.erase(by_age_.begin()->second);
    by_age_.erase(by_age_.begin());
  }
}

TrialId RequestKeys::Find(StudyId study, std::string_view attribute, std::string_view key) const {
  const auto it =
      trials_.find(Key(study, absl::StrCat(std::string(attribute), RequestKeyJson(key))));
  return it == trials_.end() ? TrialId{} : it->second;
}

void RequestKeys::Forget(StudyId study) {
  std::erase_if(trials_, [&](const auto& entry) { return entry.first.first == study; });
  std::erase_if(by_age_, [&](const auto& entry) { return entry.second.first == study; });
}

}  // namespace espalier
