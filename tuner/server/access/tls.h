#pragma once

#include <string>

#include "base/status.h"
#include "tuner/credentials/certificate.h"

namespace espalier {

// The certificate by which the service proves its identity. Both empty: its endpoints speak in the
// clear.
struct TlsFiles {
  std::string certificate;  // PEM file: the service's own, then those that vouch for it
  std::string key;          // PEM file

  bool on() const { return !certificate.empty(); }
};

// Reads both and checks that they belong together; an empty certificate where both are empty. The
// error names the file and what is wrong.
absl::StatusOr<Certificate> ReadTls(const TlsFiles& files);

}  // namespace espalier
