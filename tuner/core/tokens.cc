#include "tuner/core/tokens.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace espalier {

namespace {

constexpr std::size_t kMostTokens = 10'000;
constexpr std::size_t kLongestTokenName = 100;

bool GoodTokenName(const std::string& name) {
  return !name.empty() && name.size() <= kLongestTokenName &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return c > 32 && c < 127; });
}

bool IsGood(const KeptToken& token, Time now) {
  return token.removed == Time{} && (token.expires == Time{} || now < token.expires);
}

}  // namespace

void Tokens::On(const AddToken& event) {
  const KeptToken& token = event.token;
  if (!GoodTokenName(token.name)) {
    turn_.reply().status = absl::InvalidArgumentError(
        absl::StrCat("token name \"", token.name.substr(0, kLongestTokenName), "\": must be 1 to ",
                     kLongestTokenName, " characters of ASCII, without blanks"));
    return;
  }
  if (token.expires != Time{} && token.expires <= turn_.now()) {
    turn_.reply().status =
        absl::InvalidArgumentError(absl::StrCat("token ", token.name, ": its end must lie ahead"));
    return;
  }
  std::size_t good = 0;
  for (const auto& [id, other] : turn_.state().tokens) {
    if (!IsGood(other, turn_.now())) continue;
    ++good;
    if (id == token.name) {
      turn_.reply().status = absl::AlreadyExistsError(
          absl::StrCat("token name \"", id, "\": is the id of the token ", other.name,
                       ", and `tuner token rm` takes both: choose another name"));
      return;
    }
    if (other.name != token.name && id != token.id) continue;
    turn_.reply().status = absl::AlreadyExistsError(absl::StrCat(
        "there is a token named ", other.name,
        " already: choose another name, or end it with `tuner token rm ", other.name, "`"));
    return;
  }
  if (good >= kMostTokens) {
    turn_.reply().status = absl::FailedPreconditionError(
        absl::StrCat("there are ", good, " tokens already: remove those that nobody needs"));
    return;
  }
  KeptToken kept = token;
  kept.created = turn_.now();
  turn_.Emit(TokenKept{std::move(kept)});
}

void Tokens::On(const RemoveToken& event) {
  for (const auto& [id, token] : turn_.state().tokens) {
    if (!IsGood(token, turn_.now()) || (id != event.token && token.name != event.token)) continue;
    KeptToken removed = token;
    removed.removed = turn_.now();
    turn_.Emit(TokenKept{std::move(removed)});
    return;
  }
  turn_.reply().status = absl::NotFoundError(absl::StrCat(
      "there is no token \"", event.token, "\"; `tuner token ls` shows those there are"));
}

}  // namespace espalier
