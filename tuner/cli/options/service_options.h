#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "tuner/cli/options/client_options.h"

namespace espalier {

class CliCommand;

// Where `tuner run` says how it can be reached: DIR/service.json.
struct ServiceFile {
  std::string grpc_address;
  std::string http_address;
  bool needs_token = false;
};
std::string ServiceFilePath(const std::string& directory);
absl::Status WriteServiceFile(const std::string& directory, const ServiceFile& file);
absl::StatusOr<ServiceFile> ReadServiceFile(const std::string& directory);

// What a service says on standard output where other machines reach it and nothing is encrypted.
inline constexpr const char* kInTheClear =
    "in the clear: tokens and commands can be read and changed by all who are on the network "
    "(--plaintext)";

// The database of a run in this directory, and the folder of its trials' files.
std::string DatabasePath(const std::string& directory);
std::string TrialsPath(const std::string& directory);

// How a client verb finds its service: --service, --dir, ESPALIER_SERVICE or the default, in this
// order; the token from --token-file or ESPALIER_TOKEN_FILE, the roots to trust from --tls-ca or
// ESPALIER_TLS_CA. A run of one's own that needs no token is shown none that the environment names:
// that is another service's.
struct ServiceArguments {
  std::string service;
  std::string directory;
  std::string token_file;
  std::string tls_ca;

  void AddTo(CliCommand& command);
  // For a verb that also takes a run of this folder (tuner/cli/local_runs.h).
  void AddWithLocalRunTo(CliCommand& command);
  // Whether a service is named, by an option or by ESPALIER_SERVICE.
  bool named() const;
  // As they are on the command line, each with a space before it.
  std::string words() const;
  absl::StatusOr<ClientOptions> Resolve() const;
};

}  // namespace espalier
