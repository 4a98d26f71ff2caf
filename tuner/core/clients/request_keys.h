#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "tuner/core/state/study.h"

namespace espalier {

inline constexpr std::size_t kMaxRequestKeys = 100'000;  // of trials that are remembered
inline constexpr std::size_t kMaxRequestKeyBytes = 128;

// System attributes that hold the request keys under which a trial was created, and under which a
// WAITING one was taken.
inline constexpr char kCreationKey[] = "espalier:request_key";
inline constexpr char kAskKey[] = "espalier:ask_key";

// What a request key is as an attribute: a JSON string. Requires a key that CheckKey accepts.
std::string RequestKeyJson(std::string_view key);

// 1 to kMaxRequestKeyBytes visible ASCII characters but quote and backslash.
absl::Status CheckKey(std::string_view key);

// Which trial was made under which request key, by study and attribute. The attributes are durable,
// this index of them is not. It forgets the oldest trials when there are too many.
class RequestKeys {
 public:
  explicit RequestKeys(std::size_t most = kMaxRequestKeys) : most_(most) {}

  // Takes up what the trial's attributes say.
  void Take(const Trial& trial);

  // A zero id if there is none.
  TrialId Find(StudyId study, std::string_view attribute, std::string_view key) const;

  void Forget(StudyId study);

 private:
  using Key = std::pair<StudyId, std::string>;  // attribute and its value

  std::size_t most_;
  std::map<Key, TrialId> trials_;
  std::set<std::pair<TrialId, Key>> by_age_;
};

}  // namespace espalier
