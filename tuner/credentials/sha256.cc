#include "tuner/credentials/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/check.h"
#include "tuner/credentials/openssl_turn.h"

namespace espalier {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  const OpenSslTurn turn;
  ESPALIER_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1,
                 "OpenSSL has SHA-256");
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Add(std::string_view bytes) {
  EVP_DigestUpdate(state_->context, bytes.data(), bytes.size());
}

std::string Sha256::Take() {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  EVP_DigestFinal_ex(state_->context, reinterpret_cast<unsigned char*>(digest.data()), &size);
  digest.resize(size);
  return digest;
}

std::string HmacSha256(std::string_view key, std::string_view bytes) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  const OpenSslTurn turn;
  ESPALIER_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                      reinterpret_cast<unsigned char*>(digest.data()), &size) != nullptr,
                 "OpenSSL has SHA-256");
  digest.resize(size);
  return digest;
}

}  // namespace espalier
