#include "tuner/credentials/certificate.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>

#include "absl/strings/str_cat.h"
#include "tuner/credentials/hexadecimal.h"
#include "tuner/credentials/openssl_free.h"
#include "tuner/credentials/sha256.h"

namespace espalier {
namespace {

// Clocks of machines differ, and agents run for months.
constexpr long kBefore_s = 86400L;
constexpr long kAfter_s = 3650L * 86400L;

using Key = std::unique_ptr<EVP_PKEY, OpenSslFree<EVP_PKEY_free>>;
using X509Certificate = std::unique_ptr<X509, OpenSslFree<X509_free>>;
using Buffer = std::unique_ptr<BIO, OpenSslFree<BIO_free_all>>;
using Extension = std::unique_ptr<X509_EXTENSION, OpenSslFree<X509_EXTENSION_free>>;

absl::Status Failed(const char* what) {
  const char* reason = ERR_reason_error_string(ERR_get_error());
  return absl::InternalError(
      absl::StrCat("cannot make a certificate: ", what, ": ", reason == nullptr ? "?" : reason));
}

std::string TextOf(BIO* buffer) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(buffer, &text);
  return {text, static_cast<std::size_t>(size)};
}

bool Describe(X509* certificate, EVP_PKEY* key, const std::string& common_name,
              const std::vector<std::string>& also) {
  X509_NAME* name = X509_get_subject_name(certificate);
  const auto* common = reinterpret_cast<const unsigned char*>(common_name.c_str());
  std::string alternatives = absl::StrCat("DNS:", common_name);
  for (const std::string& other : also) absl::StrAppend(&alternatives, ",", other);
  const Extension names(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, alternatives.c_str()));
  return X509_set_version(certificate, 2) == 1 &&
         ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) == 1 &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -kBefore_s) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), kAfter_s) != nullptr &&
         X509_set_pubkey(certificate, key) == 1 &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, common, -1, -1, 0) == 1 &&
         X509_set_issuer_name(certificate, name) == 1 && names != nullptr &&
         X509_add_ext(certificate, names.get(), -1) == 1 &&
         X509_sign(certificate, key, EVP_sha256()) != 0;
}

absl::StatusOr<X509Certificate> ReadCertificate(const std::string& pem) {
  const Buffer text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  X509Certificate certificate(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (certificate == nullptr) return absl::InvalidArgumentError("there is no PEM certificate");
  return certificate;
}

Time TimeOf(const ASN1_TIME* moment) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(moment, &parts) != 1) return Time{};
  return Time{static_cast<std::int64_t>(timegm(&parts)) * 1'000'000};
}

}  // namespace

absl::StatusOr<Certificate> MakeCertificate(const std::string& name,
                                            const std::vector<std::string>& also) {
  const Key key(EVP_EC_gen("P-256"));
  const X509Certificate certificate(X509_new());
  if (key == nullptr || certificate == nullptr) return Failed("no key");
  if (!Describe(certificate.get(), key.get(), name, also)) return Failed("its contents");
  const Buffer pem(BIO_new(BIO_s_mem()));
  const Buffer key_pem(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(pem.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key_pem.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
          1) {
    return Failed("as text");
  }
  return Certificate{TextOf(pem.get()), TextOf(key_pem.get())};
}

absl::StatusOr<std::string> CertificateHash(const std::string& pem) {
  ESPALIER_ASSIGN_OR_RETURN(const X509Certificate certificate, ReadCertificate(pem));
  unsigned char* encoded = nullptr;
  const int size = i2d_X509(certificate.get(), &encoded);
  if (size <= 0) return Failed("its encoding");
  Sha256 sum;
  sum.Add({reinterpret_cast<const char*>(encoded), static_cast<std::size_t>(size)});
  OPENSSL_free(encoded);
  return Hexadecimal(sum.Take());
}

absl::StatusOr<Validity> CertificateValidity(const std::string& pem) {
  ESPALIER_ASSIGN_OR_RETURN(const X509Certificate certificate, ReadCertificate(pem));
  return Validity{TimeOf(X509_get0_notBefore(certificate.get())),
                  TimeOf(X509_get0_notAfter(certificate.get()))};
}

std::string MomentText(Time moment) {
  const auto seconds = static_cast<std::time_t>(Seconds(moment));
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &parts);
  return text;
}

}  // namespace espalier
