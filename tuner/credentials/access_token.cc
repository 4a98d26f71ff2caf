#include "tuner/credentials/access_token.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tuner/credentials/hexadecimal.h"

namespace espalier {
namespace {

constexpr char kTokenScheme[] = "esp1";
constexpr std::size_t kPinDigits = 64;

// "trial-3-17".
bool NamesAReplica(std::string_view id) {
  return id.starts_with("trial-") && id.size() < 50 &&
         id.find_first_not_of("0123456789-", 6) == std::string_view::npos;
}

}  // namespace

std::string AccessToken::text() const {
  const std::string open = absl::StrCat(kTokenScheme, ".", id, ".", secret);
  return certificate_hash.empty() ? open : absl::StrCat(open, ".", certificate_hash);
}

AccessToken NewAccessToken(const std::string& certificate_hash) {
  return {RandomHexadecimal(kTokenIdBytes), RandomHexadecimal(kTokenSecretBytes), certificate_hash};
}

bool LooksLikeAccessToken(std::string_view text) {
  return text.starts_with(kTokenScheme) && text.size() > 4 && text[4] == '.';
}

absl::StatusOr<AccessToken> ParseAccessToken(std::string_view text) {
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(text.data(), text.size()), '.');
  const auto wrong = [](std::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token is not whole: ", std::string(what),
                     "; it should be esp1.ID.SECRET or esp1.ID.SECRET.HASH, on one line, as "
                     "`tuner token create` prints it"));
  };
  if (parts.size() < 3 || parts.size() > 4 || parts[0] != kTokenScheme) {
    return wrong(absl::StrCat("it has ", parts.size(), " parts"));
  }
  if (!IsHexadecimal(parts[1], 2 * kTokenIdBytes) && !NamesAReplica(parts[1]))
    return wrong("its ID is none");
  if (!IsHexadecimal(parts[2], 2 * kTokenSecretBytes)) return wrong("its secret is none");
  if (parts.size() == 4 && !IsHexadecimal(parts[3], kPinDigits)) return wrong("its hash is none");
  return AccessToken{parts[1], parts[2], parts.size() == 4 ? parts[3] : ""};
}

std::string PinOf(std::string_view token) {
  if (!LooksLikeAccessToken(token)) return "";
  const auto parsed = ParseAccessToken(token);
  return parsed.ok() ? parsed->certificate_hash : "";
}

}  // namespace espalier
