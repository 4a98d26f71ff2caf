#include "search_spaces/formats/nni/numpy_generator.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"
#include "search_spaces/portable_math.h"

namespace espalier {
namespace {

__extension__ using Uint128 = unsigned __int128;

// numpy's SeedSequence: spreads an integer over as many words as a generator wants.
class SeedSequence {
 public:
  explicit SeedSequence(std::uint64_t seed) {
    std::vector<std::uint32_t> entropy = {static_cast<std::uint32_t>(seed)};
    if (seed >> 32 != 0) entropy.push_back(static_cast<std::uint32_t>(seed >> 32));
    for (std::size_t i = 0; i < pool_.size(); ++i) {
      pool_[i] = Hash(i < entropy.size() ? entropy[i] : 0);
    }
    for (std::size_t from = 0; from < pool_.size(); ++from) {
      for (std::size_t to = 0; to < pool_.size(); ++to) {
        if (from != to) pool_[to] = Mix(pool_[to], Hash(pool_[from]));
      }
    }
  }

  std::array<std::uint64_t, 4> Words() const {
    std::array<std::uint64_t, 4> words{};
    std::uint32_t multiplier = 0x8b51f9dd;
    for (std::size_t i = 0; i < 2 * words.size(); ++i) {
      std::uint32_t word = pool_[i % pool_.size()] ^ multiplier;
      multiplier *= 0x58f38ded;
      word *= multiplier;
      word ^= word >> 16;
      words[i / 2] |= std::uint64_t{word} << (i % 2 == 0 ? 0 : 32);
    }
    return words;
  }

 private:
  std::uint32_t Hash(std::uint32_t value) {
    value ^= multiplier_;
    multiplier_ *= 0x931e8875;
    value *= multiplier_;
    return value ^ (value >> 16);
  }

  static std::uint32_t Mix(std::uint32_t x, std::uint32_t y) {
    const std::uint32_t mixed = 0xca01f9dd * x - 0x4973f715 * y;
    return mixed ^ (mixed >> 16);
  }

  std::array<std::uint32_t, 4> pool_{};
  std::uint32_t multiplier_ = 0x43b0d7e5;
};

// The density's layers of equal area, the lowest with the tail beyond `kTail`.
constexpr double kTail = 3.6541528853610087963519472518;
constexpr double kLayerArea = 0.0049286732339746549315909134318;
constexpr double kWidth = 4503599627370496;  // 2^52

struct Ziggurat {
  std::array<double, 256> scale{};          // an integer's step in the layer
  std::array<std::uint64_t, 256> inside{};  // integers below it are under the density at once
  std::array<double, 256> density{};

  Ziggurat() {
    double right = kTail;
    scale[255] = right / kWidth;
    density[255] = PortableExp(-0.5 * right * right);
    inside[0] = static_cast<std::uint64_t>(right * density[255] / kLayerArea * kWidth);
    scale[0] = kLayerArea / density[255] / kWidth;
    density[0] = 1;
    for (std::size_t i = 254; i > 0; --i) {
      const double x = std::sqrt(-2 * PortableLog(kLayerArea / right + density[i + 1]));
      inside[i + 1] = static_cast<std::uint64_t>(x / right * kWidth);
      scale[i] = x / kWidth;
      density[i] = PortableExp(-0.5 * x * x);
      right = x;
    }
  }
};

const Ziggurat& Layers() {
  static const Ziggurat layers;
  return layers;
}

}  // namespace

NumpyGenerator::NumpyGenerator(std::uint64_t seed) {
  const std::array<std::uint64_t, 4> words = SeedSequence(seed).Words();
  const Uint128 sequence = (Uint128{words[2]} << 64 | words[3]) << 1 | 1;
  increment_ = {static_cast<std::uint64_t>(sequence >> 64), static_cast<std::uint64_t>(sequence)};
  Step();
  const Uint128 state =
      (Uint128{state_.high} << 64 | state_.low) + (Uint128{words[0]} << 64 | words[1]);
  state_ = {static_cast<std::uint64_t>(state >> 64), static_cast<std::uint64_t>(state)};
  Step();
}

void NumpyGenerator::Step() {
  constexpr Uint128 kMultiplier = Uint128{0x2360ED051FC65DA4} << 64 | 0x4385DF649FCCF645;
  const Uint128 increment = Uint128{increment_.high} << 64 | increment_.low;
  const Uint128 state = (Uint128{state_.high} << 64 | state_.low) * kMultiplier + increment;
  state_ = {static_cast<std::uint64_t>(state >> 64), static_cast<std::uint64_t>(state)};
}

std::uint64_t NumpyGenerator::Next64() {
  Step();
  const std::uint64_t word = state_.high ^ state_.low;
  const auto rotation = static_cast<unsigned>(state_.high >> 58);
  return word >> rotation | word << (-rotation & 63);
}

std::uint32_t NumpyGenerator::Next32() {
  if (has_half_) {
    has_half_ = false;
    return half_;
  }
  const std::uint64_t word = Next64();
  has_half_ = true;
  half_ = static_cast<std::uint32_t>(word >> 32);
  return static_cast<std::uint32_t>(word);
}

double NumpyGenerator::NextDouble() { return static_cast<double>(Next64() >> 11) * 0x1.0p-53; }

std::uint64_t NumpyGenerator::Integers(std::uint64_t n) {
  ESPALIER_CHECK(n > 0, "an integer of none");
  constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();
  if (n == 1) return 0;
  if (n == kMost32 + 1) return Next32();
  if (n <= kMost32) {
    std::uint64_t product = Next32() * n;
    const std::uint64_t least = (kMost32 + 1) % n;
    while ((product & kMost32) < least) product = Next32() * n;
    return product >> 32;
  }
  Uint128 product = Uint128{Next64()} * n;
  const std::uint64_t least = (std::numeric_limits<std::uint64_t>::max() - n + 1) % n;
  while (static_cast<std::uint64_t>(product) < least) product = Uint128{Next64()} * n;
  return static_cast<std::uint64_t>(product >> 64);
}

double NumpyGenerator::Uniform(double low, double high) {
  return low + (high - low) * NextDouble();
}

double NumpyGenerator::Normal(double mu, double sigma) { return mu + sigma * StandardNormal(); }

double NumpyGenerator::StandardNormal() {
  const Ziggurat& layers = Layers();
  for (;;) {
    const std::uint64_t word = Next64();
    const auto layer = static_cast<std::size_t>(word & 0xff);
    const bool negative = (word >> 8 & 1) != 0;
    const std::uint64_t at = word >> 9 & 0x000fffffffffffff;
    const double x = (negative ? -1.0 : 1.0) * static_cast<double>(at) * layers.scale[layer];
    if (at < layers.inside[layer]) return x;
    // numpy takes the tail's sign from another bit than the layers'.
    if (layer == 0) return NormalTail((at >> 8 & 1) != 0);
    const double top = layers.density[layer - 1] - layers.density[layer];
    if (top * NextDouble() + layers.density[layer] < PortableExp(-0.5 * x * x)) return x;
  }
}

double NumpyGenerator::NormalTail(bool negative) {
  for (;;) {
    // 1 - u is exact.
    const double x = -PortableLog(1 - NextDouble()) / kTail;
    const double y = -PortableLog(1 - NextDouble());
    if (y + y > x * x) return negative ? -(kTail + x) : kTail + x;
  }
}

}  // namespace espalier
