#include "allocator/policies/settings.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace espalier {

absl::Status ReadSettings(std::string_view policy, const Options& options,
                          std::span<const SettingRow> known) {
  const std::string name_of_policy(policy);
  for (const auto& [name, value] : options) {
    const auto row = std::find_if(known.begin(), known.end(),
                                  [&](const SettingRow& r) { return r.name == name; });
    if (row == known.end()) {
      if (known.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat("policy \"", name_of_policy, "\" takes no options, got \"", name, "\""));
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "policy \"", name_of_policy, "\" has no option \"", name, "\"; it has ",
          absl::StrJoin(known, ", ",
                        [](std::string* out, const SettingRow& r) { out->append(r.name); })));
    }
    if (!std::isfinite(value) || value < row->least || value > row->most) {
      std::string needed = absl::StrCat(">= ", row->least);
      if (std::isfinite(row->most)) {
        needed = absl::StrCat("between ", row->least, " and ", row->most);
      }
      return absl::InvalidArgumentError(absl::StrCat("policy \"", name_of_policy, "\" option \"",
                                                     name, "\": needs a number ", needed, ", got ",
                                                     value));
    }
    *row->value = value;
  }
  return absl::OkStatus();
}

}  // namespace espalier
