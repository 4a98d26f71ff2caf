#include "tuner/server/access/service_credentials.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/private_files.h"
#include "spdlog/spdlog.h"
#include "tuner/api/operations.h"
#include "tuner/credentials/access_token.h"
#include "tuner/credentials/hexadecimal.h"
#include "tuner/credentials/own_certificate.h"

namespace espalier {

namespace {

std::string FirstLineOf(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string InFolder(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

absl::StatusOr<std::string> KeepTrialKey(const std::string& folder) {
  const std::string path = InFolder(folder, "trial.key");
  std::string key = FirstLineOf(path);
  if (IsHexadecimal(key, 2 * kTokenSecretBytes)) return key;
  ESPALIER_RETURN_IF_ERROR(MakePrivateFolders(folder));
  key = RandomHexadecimal(kTokenSecretBytes);
  ESPALIER_RETURN_IF_ERROR(KeepPrivateFile(path, key + "\n"));
  return key;
}

// The token in the file, if it opens `call` and names the certificate; else a new one.
absl::StatusOr<std::string> KeepToken(const std::string& file, Role role, const std::string& name,
                                      std::string_view call, const AccessControl& access,
                                      Tuner& tuner) {
  const std::string kept = FirstLineOf(file);
  if (LooksLikeAccessToken(kept) && PinOf(kept) == tuner.certificate_hash() &&
      access.Admit(call, {false, kept}).ok()) {
    return kept;
  }
  v1::RemoveTokenRequest stale;
  stale.set_token(name);
  const absl::Status removed = api::RemoveToken(tuner, stale).status();
  if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  v1::CreateTokenRequest request;
  request.set_role(RoleName(role));
  request.set_name(name);
  ESPALIER_ASSIGN_OR_RETURN(const v1::Token made, api::CreateToken(tuner, request));
  ESPALIER_RETURN_IF_ERROR(KeepPrivateFile(file, made.text() + "\n"));
  return made.text();
}

}  // namespace

std::string ServiceCredentials::own_user_token_file() const {
  if (!own_tls.on()) return "";
  std::error_code error;
  return std::filesystem::absolute(administer_token_file, error).string();
}

absl::StatusOr<ServiceCredentials> PrepareCredentials(const CredentialOptions& options,
                                                      bool reachable) {
  ServiceCredentials credentials;
  credentials.given_tls = options.tls;
  if (options.folder.empty()) return credentials;
  ESPALIER_ASSIGN_OR_RETURN(credentials.trial_key, KeepTrialKey(options.folder));
  if (reachable) credentials.administer_token_file = InFolder(options.folder, "administer.token");
  if (!reachable || options.plaintext || options.tls.on()) return credentials;
  ESPALIER_ASSIGN_OR_RETURN(const OwnCertificate own, KeepOwnCertificate(options.folder));
  credentials.own_tls = {own.certificate_file, own.key_file};
  credentials.certificate_hash = own.hash;
  credentials.replaced = own.replaced;
  if (own.replaced) {
    spdlog::warn(
        "event=certificate_replaced reason=\"the one before ends or has ended\" "
        "remedy=\"tokens made before are for that one: make new ones with tuner token create\"");
  }
  return credentials;
}

absl::Status PrepareTokens(const std::string& folder, const AccessControl& access, Tuner& tuner,
                           ServiceCredentials& credentials) {
  credentials.join_token_file = InFolder(folder, "join.token");
  ESPALIER_ASSIGN_OR_RETURN(credentials.join_token,
                            KeepToken(credentials.join_token_file, Role::kAgent, "join",
                                      "/espalier.v1.Tuner/Agent", access, tuner));
  return KeepToken(credentials.administer_token_file, Role::kAdminister, "administer",
                   "/espalier.v1.Tuner/CreateToken", access, tuner)
      .status();
}

}  // namespace espalier
