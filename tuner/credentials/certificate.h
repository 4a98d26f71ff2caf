#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace espalier {

// The one name to which all certificates of agents are issued: an agent identifies its peer by the
// certificate itself, which the service passes from agent to agent.
inline constexpr char kAgentCertificateName[] = "agent.espalier";
// Likewise those that services make for themselves: tokens carry their hash.
inline constexpr char kServiceCertificateName[] = "tuner.espalier";

struct Certificate {
  std::string pem;
  std::string key_pem;
};

// A fresh key and a certificate signed with it, good for ten years. `also` are further names and
// addresses of its subject, as OpenSSL writes them: "DNS:localhost", "IP:127.0.0.1".
absl::StatusOr<Certificate> MakeCertificate(const std::string& name = kAgentCertificateName,
                                            const std::vector<std::string>& also = {});

// SHA-256 of the first certificate in a PEM text, in hexadecimal.
absl::StatusOr<std::string> CertificateHash(const std::string& pem);

// From when to when the first certificate in a PEM text is good.
struct Validity {
  Time from;
  Time to;
};
absl::StatusOr<Validity> CertificateValidity(const std::string& pem);

// "2026-11-23 12:00 UTC", for messages.
std::string MomentText(Time moment);

}  // namespace espalier
