#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tuner/api/operations.h"
#include "tuner/credentials/access_token.h"
#include "tuner/credentials/hexadecimal.h"
#include "tuner/credentials/roles.h"

namespace espalier::api {

namespace {

constexpr double kEndedShown_s = 30 * 86400.0;
constexpr double kLongestLife_s = 100 * 365 * 86400.0;

v1::Token ToMessage(const KeptToken& token) {
  v1::Token out;
  out.set_id(token.id);
  out.set_role(token.role);
  out.set_name(token.name);
  out.set_created_s(Seconds(token.created));
  out.set_expires_s(Seconds(token.expires));
  out.set_removed_s(Seconds(token.removed));
  return out;
}

// The token of that id, or (the newest) of that name.
absl::StatusOr<v1::Token> Show(Tuner& tuner, const std::string& wanted) {
  std::optional<KeptToken> found;
  ESPALIER_RETURN_IF_ERROR(tuner.Read([&](const View& view) {
    for (const auto& [id, token] : view.core.state().tokens) {
      if (id != wanted && token.name != wanted) continue;
      if (!found || found->created < token.created) found = token;
    }
  }));
  if (!found) return absl::NotFoundError(absl::StrCat("there is no token \"", wanted, "\""));
  return ToMessage(*found);
}

}  // namespace

absl::StatusOr<v1::Token> CreateToken(Tuner& tuner, const v1::CreateTokenRequest& request) {
  ESPALIER_RETURN_IF_ERROR(ParseRole(request.role()).status());
  const double life_s = request.expires_in_s();
  if (!(life_s >= 0) || life_s > kLongestLife_s) {
    return absl::InvalidArgumentError(
        absl::StrCat("expires_in_s ", life_s, ": must be seconds from now, or 0 for never"));
  }
  const AccessToken token = NewAccessToken(tuner.certificate_hash());
  Time now;
  ESPALIER_RETURN_IF_ERROR(tuner.Read([&now](const View& view) { now = view.now; }));
  KeptToken kept{.id = token.id,
                 .hash = HashOf(token.secret),
                 .role = request.role(),
                 .name = request.name(),
                 .created = now};
  if (life_s > 0) kept.expires = After(now, life_s);
  const Reply reply = tuner.Post(espalier::AddToken{std::move(kept)});
  if (!reply.status.ok()) return reply.status;
  ESPALIER_ASSIGN_OR_RETURN(v1::Token made, Show(tuner, token.id));
  made.set_text(token.text());
  return made;
}

absl::StatusOr<v1::ListTokensResponse> ListTokens(Tuner& tuner, const v1::ListTokensRequest&) {
  std::vector<KeptToken> shown;
  ESPALIER_RETURN_IF_ERROR(tuner.Read([&](const View& view) {
    for (const auto& [id, token] : view.core.state().tokens) {
      const Time ends = token.removed != Time{} ? token.removed : token.expires;
      if (ends == Time{} || view.now < After(ends, kEndedShown_s)) shown.push_back(token);
    }
  }));
  std::sort(shown.begin(), shown.end(), [](const KeptToken& a, const KeptToken& b) {
    return std::tie(a.name, a.created) < std::tie(b.name, b.created);
  });
  v1::ListTokensResponse response;
  for (const KeptToken& token : shown) *response.add_tokens() = ToMessage(token);
  return response;
}

absl::StatusOr<v1::Token> RemoveToken(Tuner& tuner, const v1::RemoveTokenRequest& request) {
  const Reply reply = tuner.Post(espalier::RemoveToken{request.token()});
  if (!reply.status.ok()) return reply.status;
  return Show(tuner, request.token());
}

}  // namespace espalier::api
