#pragma once

#include <cstdint>
#include <string_view>

namespace espalier {

// A seeded generator with the few distributions that Espalier uses, written out so that one seed
// gives the same draws with every compiler and library. SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next();
  // In [0, 1), 53 bits.
  double Uniform();
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }
  // In [0, n), without bias. Requires n > 0.
  std::uint64_t Below(std::uint64_t n);
  // Standard normal (Box-Muller, cosine branch: one draw of it takes two of Uniform).
  double Normal();

 private:
  std::uint64_t state_;
};

// Mixes numbers and names into one seed, so that e.g. trial 7 of a study has draws of its own that
// do not depend on what was drawn before.
std::uint64_t MixSeed(std::uint64_t seed, std::uint64_t salt);
std::uint64_t MixSeed(std::uint64_t seed, std::string_view salt);

}  // namespace espalier
