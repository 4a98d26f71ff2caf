#include "tuner/server/access/tls.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/credentials/tls_context.h"

namespace espalier {

namespace {

absl::StatusOr<std::string> ReadPem(const std::string& path, std::string_view what) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  const auto problem = [&](std::string_view reason) {
    return absl::InvalidArgumentError(
        absl::StrCat("TLS ", std::string(what), " \"", path, "\": ", std::string(reason)));
  };
  if (!file) return problem("cannot be read");
  if (text.str().find("-----BEGIN ") == std::string::npos) {
    return problem("is no PEM file, which begins with -----BEGIN");
  }
  return std::move(text).str();
}

}  // namespace

absl::StatusOr<Certificate> ReadTls(const TlsFiles& files) {
  Certificate certificate;
  if (!files.on()) return certificate;
  ESPALIER_ASSIGN_OR_RETURN(certificate.pem, ReadPem(files.certificate, "certificate"));
  ESPALIER_ASSIGN_OR_RETURN(certificate.key_pem, ReadPem(files.key, "key"));
  const CertificateNames names{absl::StrCat("certificate \"", files.certificate, "\""),
                               absl::StrCat("key \"", files.key, "\"")};
  ESPALIER_RETURN_IF_ERROR(MakeTlsServer(certificate, names).status());
  return certificate;
}

}  // namespace espalier
