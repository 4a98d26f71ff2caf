#include "tuner/core/state/lineage.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace espalier {

std::string ToText(const Lineage& lineage) {
  if (!lineage.cloned()) return "";
  const std::string of = absl::StrCat(lineage.parent, " ", lineage.founder);
  return lineage.awaited() ? of : absl::StrCat(of, " ", lineage.step, " ", lineage.fingerprint);
}

absl::StatusOr<Lineage> ReadLineage(std::string_view text) {
  Lineage lineage;
  if (text.empty()) return lineage;
  constexpr int kWords = 4;  // the last one may have spaces of its own
  const std::vector<std::string> words =
      absl::StrSplit(std::string(text), absl::MaxSplits(' ', kWords - 1));
  bool good = (words.size() == 2 || words.size() == kWords) &&
              absl::SimpleAtoi(words[0], &lineage.parent) && lineage.parent >= 0 &&
              absl::SimpleAtoi(words[1], &lineage.founder) && lineage.founder >= 0;
  if (good && words.size() == kWords) {
    good = absl::SimpleAtoi(words[2], &lineage.step) && lineage.step >= 0;
    lineage.fingerprint = words[3];
  }
  if (good) return lineage;
  return absl::DataLossError(absl::StrCat("\"", std::string(text), "\" is no trial's lineage"));
}

}  // namespace espalier
