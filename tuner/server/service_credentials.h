#pragma once

#include <string>

#include "tuner/api/tuner.h"
#include "tuner/base/status.h"
#include "tuner/server/access_control.h"
#include "tuner/server/listen_address.h"
#include "tuner/server/tls.h"

namespace espalier {

// What a service is known by and lets others in with, in a folder of its user's alone: its
// certificate and key, the key of trials' tokens, and the tokens with which agents join and users
// administer.
struct CredentialOptions {
  std::string folder;      // empty: nothing is kept
  TlsFiles tls{};          // given by the user: all endpoints speak TLS with it
  bool plaintext = false;  // no endpoint makes a certificate of its own
};

struct ServiceCredentials {
  TlsFiles own_tls{};            // where it has made a certificate
  TlsFiles given_tls{};          // where it was given one
  std::string certificate_hash;  // of its own
  bool replaced = false;         // the certificate before had (nearly) ended
  std::string trial_key;
  std::string join_token;  // of agents; empty: nobody is expected from elsewhere
  std::string join_token_file;
  std::string administer_token_file;

  // What an endpoint at this address speaks: on loopback no certificate of our own is needed.
  const TlsFiles& TlsAt(const ListenAddress& address) const {
    return address.loopback() ? given_tls : given_tls.on() ? given_tls : own_tls;
  }
};

// `reachable`: some endpoint can be reached from other machines. Makes what is missing.
absl::StatusOr<ServiceCredentials> PrepareCredentials(const CredentialOptions& options,
                                                      bool reachable);

// Tokens to join and to administer with, as files in the folder: those there are if they are good
// still, else new ones.
absl::Status PrepareTokens(const std::string& folder, const AccessControl& access, Tuner& tuner,
                           ServiceCredentials& credentials);

}  // namespace espalier
