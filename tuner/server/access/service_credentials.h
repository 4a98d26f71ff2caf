#pragma once

#include <string>

#include "base/status.h"
#include "tuner/api/tuner.h"
#include "tuner/server/access/access_control.h"
#include "tuner/server/access/listen_address.h"
#include "tuner/server/access/tls.h"

namespace espalier {

// The credentials of a service, in a folder that only its user can read: its certificate and key,
// the key of trials' tokens, and the tokens with which agents join and users administer.
struct CredentialOptions {
  std::string folder;                 // empty: nothing is kept
  TlsFiles tls{};                     // given by the user: all endpoints speak TLS with it
  bool plaintext = false;             // no endpoint makes a certificate of its own
  bool own_user_shows_token = false;  // though none can be reached from other machines
};

struct ServiceCredentials {
  TlsFiles own_tls{};            // where it has made a certificate
  TlsFiles given_tls{};          // where it was given one
  std::string certificate_hash;  // of its own
  bool replaced = false;         // the certificate before had (nearly) ended
  std::string trial_key;
  std::string join_token;  // of agents; empty: none is expected from other machines
  std::string join_token_file;
  std::string administer_token_file;

  // What the service's own user shows, too, which tells it the certificate of our own; empty: it
  // needs none for that.
  std::string own_user_token_file() const;
  // The certificate of an endpoint at this address: on loopback it needs none of our own.
  const TlsFiles& TlsAt(const ListenAddress& address) const {
    return address.loopback() ? given_tls : given_tls.on() ? given_tls : own_tls;
  }
};

// They lie beside the database.
std::string CredentialsFolderOf(const std::string& database);

// Reads the credentials and makes those that are missing. `reachable`: some endpoint can be reached
// from other machines.
absl::StatusOr<ServiceCredentials> PrepareCredentials(const CredentialOptions& options,
                                                      bool reachable);

// Tokens to join and to administer with, as files in the folder: the present ones if they are still
// good, else new ones.
absl::Status PrepareTokens(const std::string& folder, const AccessControl& access, Tuner& tuner,
                           ServiceCredentials& credentials);

// Copies all credentials to a new folder, for this user alone. False: there are none.
absl::StatusOr<bool> BackUpCredentials(const std::string& folder, const std::string& to);

// For a database that was restored. What is in the folder stays; where there is no such folder, the
// certificate comes from the backup's, and with `keep_tokens` the tokens too. The key of trials'
// tokens goes in any case: the next start makes another one.
absl::Status RestoreCredentials(const std::string& backup, const std::string& folder,
                                bool keep_tokens);

}  // namespace espalier
