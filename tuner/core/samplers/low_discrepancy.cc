#include "tuner/core/samplers/low_discrepancy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "tuner/core/samplers/sobol_directions.h"

namespace espalier::samplers {
namespace {

constexpr std::size_t kBits = 53;  // of a coordinate: those of a double
constexpr double kBelowOne = 1 - 0x1.0p-53;

using Directions = std::array<std::uint64_t, kBits>;

// The first `count` direction numbers, each with its point before the highest of kBits bits: m_k is
// from the recurrence of the polynomial x^s + a_1 x^(s-1) + ... + 1,
//   m_k = 2 a_1 m_(k-1) ^ 4 a_2 m_(k-2) ^ ... ^ 2^s m_(k-s) ^ m_(k-s).
Directions DirectionsOf(std::size_t dimension, std::size_t count) {
  Directions m{};
  if (dimension == 0) {
    m.fill(1);
  } else {
    const auto& [polynomial, first] = SobolDirections()[dimension - 1];
    const auto degree = static_cast<std::size_t>(std::bit_width(polynomial)) - 1;
    for (std::size_t k = 0; k < count; ++k) {
      if (k < degree) {
        m[k] = first[k];
        continue;
      }
      m[k] = m[k - degree];
      for (std::size_t i = 1; i <= degree; ++i) {
        if ((polynomial >> (degree - i)) & 1) m[k] ^= m[k - i] << i;
      }
    }
  }
  for (std::size_t k = 0; k < count; ++k) m[k] <<= kBits - 1 - k;
  return m;
}

// As kBits bits behind the point.
std::uint64_t SobolBits(std::uint64_t n, std::size_t dimension) {
  ESPALIER_CHECK(dimension < kSobolDimensions, "as many dimensions as there are direction numbers");
  const std::uint64_t gray = n ^ (n >> 1);
  const auto count = std::min<std::size_t>(kBits, static_cast<std::size_t>(std::bit_width(gray)));
  const Directions directions = DirectionsOf(dimension, count);
  std::uint64_t bits = 0;
  for (std::size_t k = 0; k < count; ++k) {
    if ((gray >> k) & 1) bits ^= directions[k];
  }
  return bits;
}

double Fraction(std::uint64_t bits) { return static_cast<double>(bits) * 0x1.0p-53; }

std::uint64_t PrimeOf(std::size_t dimension) {
  static const std::vector<std::uint64_t> primes = [] {
    std::vector<std::uint64_t> found;
    for (std::uint64_t n = 2; found.size() < kSobolDimensions; ++n) {
      const bool prime = std::none_of(found.begin(), found.end(),
                                      [n](std::uint64_t smaller) { return n % smaller == 0; });
      if (prime) found.push_back(n);
    }
    return found;
  }();
  ESPALIER_CHECK(dimension < primes.size(), "as many dimensions as there are primes at hand");
  return primes[dimension];
}

}  // namespace

double SobolCoordinate(std::uint64_t n, std::size_t dimension) {
  return Fraction(SobolBits(n, dimension));
}

double ScrambledSobolCoordinate(std::uint64_t n, std::size_t dimension, std::uint64_t seed) {
  const std::uint64_t bits = SobolBits(n, dimension);
  const std::uint64_t own = MixSeed(seed, dimension);
  std::uint64_t turned = 0;
  for (std::size_t k = 0; k < kBits; ++k) {
    const std::size_t place = kBits - 1 - k;
    // The bits before this one, after a 1, so that no two places have the same.
    const std::uint64_t before = (std::uint64_t{1} << k) | (bits >> (place + 1));
    turned |= (((bits >> place) ^ (MixSeed(own, before) >> 63)) & 1) << place;
  }
  return Fraction(turned);
}

double HaltonCoordinate(std::uint64_t n, std::size_t dimension) {
  const std::uint64_t base = PrimeOf(dimension);
  double sum = 0;
  for (double unit = 1 / static_cast<double>(base); n > 0; n /= base) {
    sum += static_cast<double>(n % base) * unit;
    unit /= static_cast<double>(base);
  }
  return sum;
}

double ScrambledHaltonCoordinate(std::uint64_t n, std::size_t dimension, std::uint64_t seed) {
  const std::uint64_t base = PrimeOf(dimension);
  Random random(MixSeed(seed, dimension));
  double sum = 0;
  // Up to the places that a double does not see: zeros before the digits are permuted as well.
  for (double unit = 1 / static_cast<double>(base); 1 - unit < 1; n /= base) {
    const std::uint64_t a = 1 + random.Below(base - 1);
    const std::uint64_t b = random.Below(base);
    sum += static_cast<double>((a * (n % base) + b) % base) * unit;
    unit /= static_cast<double>(base);
  }
  return std::min(sum, kBelowOne);
}

}  // namespace espalier::samplers
