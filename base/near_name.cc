#include "base/near_name.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/ascii.h"

namespace espalier {

namespace {

// Nobody misspells a name at this length; it also bounds the work below.
constexpr std::size_t kLongestSlip = 64;

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const bool same = absl::ascii_tolower(static_cast<unsigned char>(a[i])) ==
                        absl::ascii_tolower(static_cast<unsigned char>(b[j]));
      const std::size_t replaced = diagonal + (same ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view NearName(std::string_view name, std::span<const std::string_view> known) {
  if (name.size() > kLongestSlip) return {};
  std::string_view nearest;
  std::size_t fewest = 0;
  for (const std::string_view candidate : known) {
    const std::size_t edits = EditDistance(name, candidate);
    if (edits > std::max<std::size_t>(1, candidate.size() / 3)) continue;
    if (nearest.empty() || edits < fewest) {
      nearest = candidate;
      fewest = edits;
    }
  }
  return nearest;
}

}  // namespace espalier
