#pragma once

#include <string>

#include "base/status.h"

namespace espalier {

// The certificate by which the service proves its identity. Both empty: its endpoints speak in the
// clear.
struct TlsFiles {
  std::string certificate;  // PEM file: the service's own, then those that vouch for it
  std::string key;          // PEM file

  bool on() const { return !certificate.empty(); }
};

struct TlsPair {
  std::string certificate;
  std::string key;
};

// Reads both and checks that they belong together. The error names the file and what is wrong.
absl::StatusOr<TlsPair> ReadTls(const TlsFiles& files);

}  // namespace espalier
