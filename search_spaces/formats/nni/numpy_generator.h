#pragma once

#include <cstdint>

namespace espalier {

// The draws of numpy.random.default_rng(seed): PCG64 (O'Neill 2014) seeded by SeedSequence, with
// numpy's bounded integers (Lemire 2019), uniform doubles and ziggurat normals (Marsaglia and Tsang
// 2000). NNI's tuners draw with it. Integers and uniform doubles equal numpy's to the bit; normals
// agree to 12 digits, because the tables of numpy's ziggurat carry rounding errors that ours do
// not.
class NumpyGenerator {
 public:
  explicit NumpyGenerator(std::uint64_t seed);

  // integers(n): in [0, n). Requires n > 0.
  std::uint64_t Integers(std::uint64_t n);
  double Uniform(double low, double high);
  double Normal(double mu, double sigma);

 private:
  struct Word128 {
    std::uint64_t high;
    std::uint64_t low;
  };

  void Step();
  std::uint64_t Next64();
  std::uint32_t Next32();
  double NextDouble();
  double StandardNormal();
  double NormalTail(bool negative);

  Word128 state_{};
  Word128 increment_{};
  // The second half of a 64-bit draw of which Next32 has returned the first.
  bool has_half_ = false;
  std::uint32_t half_ = 0;
};

}  // namespace espalier
