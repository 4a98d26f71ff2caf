#include "tuner/server/access/access_control.h"

#include <charconv>
#include <mutex>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tuner/credentials/access_token.h"
#include "tuner/credentials/certificate.h"
#include "tuner/credentials/hexadecimal.h"

namespace espalier {

namespace {

constexpr std::string_view kTrialTokenId = "trial-";
constexpr char kHowToGetOne[] =
    "`tuner token create --role ROLE --name NAME`, by the service's own user, makes one";

absl::Status NothingShown() {
  return absl::UnauthenticatedError(
      absl::StrCat("this tuner service needs its token: metadata or header \"authorization: Bearer "
                   "TOKEN\" (tuner: --token-file FILE). Only its own user, on loopback, may be let "
                   "in without one; ",
                   kHowToGetOne));
}

// What the service's own user may do instead, whose environment may name another service's token.
absl::Status AddOwnUsersWay(const absl::Status& refused, const std::string& own_token_file) {
  const std::string way =
      own_token_file.empty()
          ? "you need none: leave out --token-file, and unset ESPALIER_TOKEN_FILE"
          : absl::StrCat("show the one in ", own_token_file, " (tuner: --token-file)");
  return absl::Status(refused.code(), absl::StrCat(std::string(refused.message()),
                                                   "; as the service's own user ", way));
}

AccessControlOptions WithKey(AccessControlOptions options) {
  if (options.trial_key.empty()) options.trial_key = RandomHexadecimal(kTokenSecretBytes);
  return options;
}

}  // namespace

AccessControl::AccessControl(AccessControlOptions options)
    : options_(WithKey(std::move(options))) {}

void AccessControl::Load(const TunerState& state) {
  const std::unique_lock lock(mutex_);
  tokens_ = state.tokens;
}

void AccessControl::Take(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    const auto* kept = std::get_if<TokenKept>(&change);
    if (kept == nullptr) continue;
    const std::unique_lock lock(mutex_);
    tokens_.insert_or_assign(kept->token.id, kept->token);
  }
}

bool AccessControl::Trusts(const Peer& peer) const {
  // A shared token, where there is one, has to be shown by every caller.
  if (!options_.shared_token.empty() || options_.no_loopback_trust) return false;
  return peer.kind == PeerKind::kOwnUser ||
         (options_.open_loopback && peer.kind == PeerKind::kOtherUser);
}

absl::Status AccessControl::Admit(std::string_view call, const Shown& shown) const {
  const Permission* permission = FindPermission(call);
  if (permission != nullptr && permission->needed == Role::kNobody) return absl::OkStatus();
  if (shown.token.empty()) return shown.own_user ? absl::OkStatus() : NothingShown();
  const absl::Status admitted = AdmitToken(permission, shown.token);
  return admitted.ok() || !shown.own_user ? admitted
                                          : AddOwnUsersWay(admitted, options_.own_token_file);
}

absl::Status AccessControl::AdmitToken(const Permission* permission,
                                       const std::string& token) const {
  ESPALIER_ASSIGN_OR_RETURN(const Caller caller, Recognise(token));
  if (permission == nullptr) {
    if (caller.role == Role::kAdminister) return absl::OkStatus();
    return absl::PermissionDeniedError(
        absl::StrCat("this service knows nothing of what ", caller.name,
                     " asks for: the client may be of another release"));
  }
  if (Allows(caller.role, permission->needed)) return absl::OkStatus();
  if (caller.role == Role::kTrial && permission->trial) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      caller.name, " has the role ", RoleName(caller.role), ", and what is asked for needs ",
      RoleName(permission->needed), ": show another token; ", kHowToGetOne));
}

bool AccessControl::SeesSecrets(const Shown& shown) const {
  return Allows(RoleOf(shown), Role::kSubmit);
}

Role AccessControl::RoleOf(const Shown& shown) const {
  if (shown.token.empty()) return shown.own_user ? Role::kAdminister : Role::kNobody;
  const absl::StatusOr<Caller> caller = Recognise(shown.token);
  return caller.ok() ? caller->role : Role::kNobody;
}

absl::StatusOr<AccessControl::Caller> AccessControl::Recognise(const std::string& token) const {
  // A stranger's guess may be as long as a head of HTTP.
  if (token.size() > kMaxTokenBytes) {
    return absl::UnauthenticatedError(absl::StrCat("a token has at most ", kMaxTokenBytes,
                                                   " bytes, and what is shown has ", token.size()));
  }
  if (!LooksLikeAccessToken(token)) {
    if (!options_.shared_token.empty() && SameText(HashOf(token), HashOf(options_.shared_token))) {
      return Caller{Role::kAdminister, "the service's token"};
    }
    return absl::UnauthenticatedError(absl::StrCat(
        "this tuner service needs its token, and the one that is shown is not it: look whether the "
        "file holds another service's; ",
        kHowToGetOne));
  }
  const absl::StatusOr<AccessToken> shown = ParseAccessToken(token);
  if (!shown.ok()) return absl::UnauthenticatedError(shown.status().message());
  if (shown->id.starts_with(kTrialTokenId)) {
    if (SameText(shown->secret, TrialSecret(shown->id))) return Caller{Role::kTrial, shown->id};
    return absl::UnauthenticatedError(
        absl::StrCat("the token of ", shown->id, " is not of this service's making"));
  }
  const std::string hash = HashOf(shown->secret);
  const std::shared_lock lock(mutex_);
  const auto found = tokens_.find(shown->id);
  if (found == tokens_.end() || !SameText(hash, found->second.hash)) {
    return absl::UnauthenticatedError(
        absl::StrCat("token ", shown->id,
                     " is none of this pool's: it is another pool's, or the "
                     "service's database is a new one; ",
                     kHowToGetOne));
  }
  const KeptToken& kept = found->second;
  const std::string name = absl::StrCat("token ", kept.name, " (", kept.id, ")");
  if (kept.removed != Time{}) {
    return absl::UnauthenticatedError(
        absl::StrCat(name, " was ended, with `tuner token rm` or as the database was restored, on ",
                     MomentText(kept.removed), "; ", kHowToGetOne));
  }
  if (kept.expires != Time{} && kept.expires <= options_.clock()) {
    return absl::UnauthenticatedError(
        absl::StrCat(name, " ended on ", MomentText(kept.expires), "; ", kHowToGetOne));
  }
  const absl::StatusOr<Role> role = ParseRole(kept.role);
  return Caller{role.ok() ? *role : Role::kNobody, name};
}

std::string AccessControl::CookieName() const {
  constexpr std::size_t kDigits = 8;
  return KeyedHash(options_.trial_key, "name of cookies").substr(0, kDigits);
}

std::string AccessControl::TrialSecret(std::string_view id) const {
  return KeyedHash(options_.trial_key, id);
}

std::string AccessControl::TrialToken(TrialId trial, ReplicaId replica,
                                      const std::string& certificate_hash) const {
  const std::string id = absl::StrCat(std::string(kTrialTokenId), trial.value, "-", replica.value);
  return AccessToken{id, TrialSecret(id), certificate_hash}.text();
}

std::string AccessControl::GroupSecret(const Membership& group) const {
  // Replicas' numbers tell groups of different trials apart, their addresses those of an earlier
  // database with the same key. No token's id has a space.
  std::string text = absl::StrCat("group ", group.generation);
  for (const Member& member : group.members) {
    absl::StrAppend(&text, " ", member.replica.value, "@", member.address);
  }
  return KeyedHash(options_.trial_key, text);
}

std::optional<TrialId> AccessControl::TrialOf(const std::string& token) const {
  if (!LooksLikeAccessToken(token)) return std::nullopt;
  const absl::StatusOr<AccessToken> shown = ParseAccessToken(token);
  if (!shown.ok() || !shown->id.starts_with(kTrialTokenId)) return std::nullopt;
  std::int64_t number = 0;
  const char* begin = shown->id.data() + kTrialTokenId.size();
  std::from_chars(begin, shown->id.data() + shown->id.size(), number);
  return TrialId(number);
}

std::string BearerToken(std::string_view authorization) {
  constexpr std::string_view kScheme = "Bearer ";
  if (!authorization.starts_with(kScheme)) return "";
  return std::string(authorization.substr(kScheme.size()));
}

std::string TokenIn(std::string_view authorization) {
  constexpr std::string_view kBasic = "Basic ";
  if (!authorization.starts_with(kBasic)) return BearerToken(authorization);
  std::string pair;
  if (!absl::Base64Unescape(std::string(authorization.substr(kBasic.size())), &pair)) return "";
  const std::size_t colon = pair.find(':');
  return colon == std::string::npos ? "" : pair.substr(colon + 1);
}

}  // namespace espalier
