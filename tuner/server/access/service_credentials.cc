#include "tuner/server/access/service_credentials.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/folder_entries.h"
#include "base/private_files.h"
#include "base/sync_path.h"
#include "spdlog/spdlog.h"
#include "tuner/api/operations.h"
#include "tuner/credentials/access_token.h"
#include "tuner/credentials/hexadecimal.h"
#include "tuner/credentials/own_certificate.h"

namespace espalier {

namespace {

namespace fs = std::filesystem;

constexpr const char* kTrialKey = "trial.key";
constexpr const char* kJoinToken = "join.token";
constexpr const char* kAdministerToken = "administer.token";

std::string FirstLineOf(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string InFolder(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

absl::Status Failed(const std::string& path, std::string_view what, const std::error_code& error) {
  return absl::FailedPreconditionError(
      absl::StrCat("credentials ", path, ": ", std::string(what), " failed: ", error.message()));
}

// `error`: what syncing the names in the folder, or in those above it too, has come to.
absl::Status Synced(const std::string& folder, int error) {
  if (error == 0) return absl::OkStatus();
  return Failed(folder, "syncing", std::error_code(error, std::generic_category()));
}

absl::Status SyncNames(const std::string& folder) { return Synced(folder, SyncPath(folder)); }

absl::StatusOr<std::string> KeepTrialKey(const std::string& folder) {
  const std::string path = InFolder(folder, kTrialKey);
  std::string key = FirstLineOf(path);
  if (IsHexadecimal(key, 2 * kTokenSecretBytes)) return key;
  ESPALIER_RETURN_IF_ERROR(KeepPrivateFolders(folder));
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

// Files alone, as the service makes no folders there.
absl::Status CopyFiles(const std::string& from, const std::string& to,
                       const std::set<std::string>& but) {
  std::error_code error;
  for (const fs::directory_entry& entry : FolderEntries(from, error)) {
    const std::string name = entry.path().filename().string();
    std::error_code unread;
    const bool copied = entry.is_regular_file(unread) && !but.contains(name);
    if (!unread && !copied) continue;
    const std::string text = TextOfFile(entry.path().string());
    if (unread || text.size() != entry.file_size(unread))
      return Failed(entry.path().string(), "reading", unread);
    ESPALIER_RETURN_IF_ERROR(KeepPrivateFile((fs::path(to) / name).string(), text));
  }
  return error ? Failed(from, "reading", error) : absl::OkStatus();
}

// The folder has its name only when it is complete.
absl::Status CopyFolder(const std::string& from, const std::string& to,
                        const std::set<std::string>& but) {
  std::error_code error;
  const std::string whole = fs::absolute(to, error).lexically_normal().string();
  const std::string unfinished = absl::StrCat(whole, ".unfinished-", getpid());
  fs::remove_all(unfinished, error);
  ESPALIER_RETURN_IF_ERROR(KeepPrivateFolders(unfinished));
  absl::Status status = CopyFiles(from, unfinished, but);
  if (status.ok()) {
    fs::rename(unfinished, whole, error);
    if (error) status = Failed(to, "making", error);
  }
  if (status.ok()) return SyncNames(fs::path(whole).parent_path().string());
  fs::remove_all(unfinished, error);
  return status;
}

}  // namespace

std::string CredentialsFolderOf(const std::string& database) { return database + ".credentials"; }

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
  // Also of what is there already: a start before may have been killed, or failed, just before it
  // was safe.
  ESPALIER_RETURN_IF_ERROR(
      Synced(options.folder, SyncFoldersAbove(InFolder(options.folder, kTrialKey))));
  if (reachable || options.own_user_shows_token) {
    credentials.administer_token_file = InFolder(options.folder, kAdministerToken);
  }
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
  credentials.join_token_file = InFolder(folder, kJoinToken);
  ESPALIER_ASSIGN_OR_RETURN(credentials.join_token,
                            KeepToken(credentials.join_token_file, Role::kAgent, "join",
                                      "/espalier.v1.Tuner/Agent", access, tuner));
  return KeepToken(credentials.administer_token_file, Role::kAdminister, "administer",
                   "/espalier.v1.Tuner/CreateToken", access, tuner)
      .status();
}

absl::StatusOr<bool> BackUpCredentials(const std::string& folder, const std::string& to) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(to, error))) {
    return absl::AlreadyExistsError(
        absl::StrCat("folder ", to, ": exists already and is not overwritten; give another name"));
  }
  // As for the copy of the database: a disk that is not mounted is not written beside.
  const fs::path above = fs::absolute(to).parent_path();
  if (!fs::is_directory(above, error)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "folder ", to, ": its folder ", above.string(), " does not exist; create it first"));
  }
  if (!fs::exists(folder, error)) return false;
  ESPALIER_RETURN_IF_ERROR(CopyFolder(folder, to, {}));
  return true;
}

absl::Status RestoreCredentials(const std::string& backup, const std::string& folder,
                                bool keep_tokens) {
  std::error_code error;
  if (fs::exists(folder, error)) {
    const std::string key = InFolder(folder, kTrialKey);
    fs::remove(key, error);
    return error ? Failed(key, "removing", error) : SyncNames(folder);
  }
  if (!fs::exists(backup, error)) return absl::OkStatus();
  std::set<std::string> but = {kTrialKey};
  if (!keep_tokens) but.insert({kJoinToken, kAdministerToken});
  return CopyFolder(backup, folder, but);
}

}  // namespace espalier
