#pragma once

#include <string>

#include "tuner/credentials/certificate.h"

namespace espalier {

// A service's own certificate, kept in a folder of its own user's: certificate.pem and key.pem.
// Made where there is none, or where the one there is ends within a month.
struct OwnCertificate {
  std::string certificate_file;
  std::string key_file;
  std::string hash;
  bool replaced = false;  // tokens with the hash of the one before are good for nothing
};

absl::StatusOr<OwnCertificate> KeepOwnCertificate(const std::string& folder);

}  // namespace espalier
