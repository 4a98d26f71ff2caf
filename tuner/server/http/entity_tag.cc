#include "tuner/server/http/entity_tag.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tuner/credentials/sha256.h"

namespace espalier {

namespace {

constexpr std::size_t kBytes = 12;  // of the sum
constexpr char kWeak[] = "W/";

}  // namespace

std::string EntityTag(std::string_view text) {
  Sha256 sum;
  sum.Add(text);
  return absl::StrCat(kWeak, "\"", absl::BytesToHexString(sum.Take().substr(0, kBytes)), "\"");
}

bool NamesTag(std::string_view if_none_match, std::string_view tag) {
  const absl::string_view wanted =
      absl::StripPrefix(absl::string_view(tag.data(), tag.size()), kWeak);
  const absl::string_view header(if_none_match.data(), if_none_match.size());
  for (const absl::string_view part : absl::StrSplit(header, ',')) {
    const absl::string_view named = absl::StripAsciiWhitespace(part);
    if (named == "*" || absl::StripPrefix(named, kWeak) == wanted) return true;
  }
  return false;
}

}  // namespace espalier
