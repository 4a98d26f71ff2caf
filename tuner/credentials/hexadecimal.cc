#include "tuner/credentials/hexadecimal.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "base/check.h"
#include "tuner/credentials/openssl_turn.h"
#include "tuner/credentials/sha256.h"

namespace espalier {

std::string Hexadecimal(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4];
    text += kDigits[value & 15];
  }
  return text;
}

bool IsHexadecimal(std::string_view text, std::size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string HashOf(std::string_view text) {
  Sha256 sum;
  sum.Add(text);
  return Hexadecimal(sum.Take());
}

std::string KeyedHash(std::string_view key, std::string_view text) {
  return Hexadecimal(HmacSha256(key, text));
}

std::string RandomBytes(std::size_t count) {
  std::string random(count, '\0');
  const OpenSslTurn turn;
  ESPALIER_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(random.data()),
                            static_cast<int>(random.size())) == 1,
                 "the system has random bytes");
  return random;
}

std::string RandomHexadecimal(std::size_t bytes) { return Hexadecimal(RandomBytes(bytes)); }

bool SameText(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace espalier
