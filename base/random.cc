#include "base/random.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"

namespace espalier {

std::uint64_t Random::Next() {
  state_ += 0x9E3779B97F4A7C15ULL;
  std::uint64_t x = state_;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

double Random::Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

std::uint64_t Random::Below(std::uint64_t n) {
  ESPALIER_CHECK(n > 0, "Random::Below needs n > 0");
  // Draws past the last whole multiple of n are thrown away: every remainder is equally likely.
  const std::uint64_t limit = std::numeric_limits<std::uint64_t>::max() -
                              (std::numeric_limits<std::uint64_t>::max() % n + 1) % n;
  std::uint64_t x = Next();
  while (x > limit) x = Next();
  return x % n;
}

double Random::Normal() {
  const double u = 1.0 - Uniform();
  const double v = Uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

std::uint64_t MixSeed(std::uint64_t seed, std::uint64_t salt) {
  Random mix(seed ^ (salt * 0xD1B54A32D192ED03ULL));
  mix.Next();
  return mix.Next();
}

std::uint64_t MixSeed(std::uint64_t seed, std::string_view salt) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a
  for (const char c : salt) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  return MixSeed(seed, hash);
}

}  // namespace espalier
