#include "tuner/credentials/tls_context.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuner/credentials/openssl_free.h"

namespace espalier {
namespace {

using testing::StartsWith;

using Text = std::unique_ptr<BIO, OpenSslFree<BIO_free>>;

std::string WithPassword(const std::string& key_pem) {
  const Text in(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  const std::unique_ptr<EVP_PKEY, OpenSslFree<EVP_PKEY_free>> key(
      PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr));
  const Text out(BIO_new(BIO_s_mem()));
  std::string password = "secret";
  PEM_write_bio_PKCS8PrivateKey(out.get(), key.get(), EVP_aes_256_cbc(), password.data(),
                                static_cast<int>(password.size()), nullptr, nullptr);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

TEST(TlsContext, HoldsTheWholeChain) {
  const Certificate own = *MakeCertificate();
  const auto context = MakeTlsServer({own.pem + MakeCertificate()->pem, own.key_pem});
  ASSERT_TRUE(context.ok()) << context.status();
  STACK_OF(X509)* chain = nullptr;
  ASSERT_EQ(SSL_CTX_get0_chain_certs(context->get(), &chain), 1);
  EXPECT_EQ(sk_X509_num(chain), 1);
  EXPECT_EQ(SSL_CTX_get_min_proto_version(context->get()), TLS1_2_VERSION);
}

TEST(TlsContext, IsNoneWithoutACertificate) {
  const auto context = MakeTlsServer({});
  ASSERT_TRUE(context.ok());
  EXPECT_EQ(*context, nullptr);
}

TEST(TlsContext, NamesWhichOfThemIsWrong) {
  const Certificate own = *MakeCertificate();
  const Certificate other = *MakeCertificate();
  const std::string damaged = std::string(other.pem).replace(100, 8, "########");
  const CertificateNames names{"certificate \"a.pem\"", "key \"b.pem\""};
  for (const auto& [certificate, error] : std::vector<std::pair<Certificate, const char*>>{
           {{"no PEM", own.key_pem}, "TLS certificate \"a.pem\": no start line"},
           {{damaged, own.key_pem}, "TLS certificate \"a.pem\": "},
           {{own.pem + damaged, own.key_pem}, "TLS certificate \"a.pem\": "},
           {{own.pem, ""}, "TLS key \"b.pem\": "},
           {{own.pem, own.pem}, "TLS key \"b.pem\": "},
           {{own.pem, other.key_pem}, "TLS key \"b.pem\": key values mismatch"},
           {{own.pem, WithPassword(own.key_pem)}, "TLS key \"b.pem\": "}}) {
    const auto made = MakeTlsServer(certificate, names);
    EXPECT_THAT(std::string(made.status().message()), StartsWith(error));
  }
}

}  // namespace
}  // namespace espalier
