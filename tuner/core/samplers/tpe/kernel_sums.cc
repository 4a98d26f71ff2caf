#include "tuner/core/samplers/tpe/kernel_sums.h"

#include <cstdint>
#include <cstring>

namespace espalier::samplers {
namespace {

// What every 64-bit processor of today works on at once.
using TwoDoubles = double __attribute__((vector_size(16)));
using TwoWords = std::int64_t __attribute__((vector_size(16)));

TwoDoubles LoadTwo(const double* from) {
  TwoDoubles pair;
  std::memcpy(&pair, from, sizeof pair);
  return pair;
}

void StoreTwo(TwoDoubles pair, double* to) { std::memcpy(to, &pair, sizeof pair); }

TwoDoubles TwiceThe(double x) { return TwoDoubles{x, x}; }

TwoDoubles Larger(TwoDoubles a, TwoDoubles b) { return a > b ? a : b; }

// For x <= 0. As QuickExp, but that 2^k is added to the exponent's bits: k stands in the last bits
// of what x / ln 2 becomes beside so large a number that nothing after the point is left.
[[gnu::always_inline]] inline TwoDoubles ExpOfNegative(TwoDoubles x) {
  constexpr double kLeast = -700;
  constexpr double kRounding = 0x1.8p52;
  constexpr int kMantissaBits = 52;
  x = Larger(x, TwiceThe(kLeast));
  const TwoDoubles shifted = x * TwiceThe(1.4426950408889634) + TwiceThe(kRounding);
  const TwoDoubles k = shifted - TwiceThe(kRounding);
  const TwoDoubles r =
      (x - k * TwiceThe(0x1.62e42fee00000p-1)) - k * TwiceThe(0x1.a39ef35793c76p-33);
  const TwoDoubles square = r * r;
  // 1/n!, even and odd powers side by side.
  TwoDoubles even = TwiceThe(1.0 / 479001600);
  TwoDoubles odd = TwiceThe(1.0 / 39916800);
  even = even * square + TwiceThe(1.0 / 3628800);
  odd = odd * square + TwiceThe(1.0 / 362880);
  even = even * square + TwiceThe(1.0 / 40320);
  odd = odd * square + TwiceThe(1.0 / 5040);
  even = even * square + TwiceThe(1.0 / 720);
  odd = odd * square + TwiceThe(1.0 / 120);
  even = even * square + TwiceThe(1.0 / 24);
  odd = odd * square + TwiceThe(1.0 / 6);
  even = even * square + TwiceThe(0.5);
  odd = odd * square + TwiceThe(1.0);
  even = even * square + TwiceThe(1.0);
  const TwoDoubles power = even + r * odd;
  return reinterpret_cast<TwoDoubles>(reinterpret_cast<TwoWords>(power) +
                                      (reinterpret_cast<TwoWords>(shifted) << kMantissaBits));
}

}  // namespace

void SubtractSquares(const KernelBlock* blocks, std::size_t axes, const double* point,
                     std::size_t terms, double* term) {
  for (std::size_t k = 0; k < terms; k += kKernelsAbreast, blocks += axes) {
    TwoDoubles first = LoadTwo(term + k);
    TwoDoubles second = LoadTwo(term + k + 2);
    for (std::size_t axis = 0; axis < axes; ++axis) {
      const KernelBlock& block = blocks[axis];
      const TwoDoubles at = TwiceThe(point[axis]);
      const TwoDoubles first_distance = (at - LoadTwo(block.at)) * LoadTwo(block.scale);
      const TwoDoubles second_distance = (at - LoadTwo(block.at + 2)) * LoadTwo(block.scale + 2);
      first -= first_distance * first_distance;
      second -= second_distance * second_distance;
    }
    StoreTwo(first, term + k);
    StoreTwo(second, term + k + 2);
  }
}

double LargestTerm(const double* term, std::size_t terms) {
  TwoDoubles first = LoadTwo(term);
  TwoDoubles second = LoadTwo(term + 2);
  for (std::size_t k = kKernelsAbreast; k < terms; k += kKernelsAbreast) {
    first = Larger(first, LoadTwo(term + k));
    second = Larger(second, LoadTwo(term + k + 2));
  }
  const TwoDoubles both = Larger(first, second);
  return both[0] > both[1] ? both[0] : both[1];
}

double WeightedSum(const double* term, const double* weight, double largest, std::size_t terms) {
  TwoDoubles first = TwiceThe(0);
  TwoDoubles second = TwiceThe(0);
  const TwoDoubles shift = TwiceThe(largest);
  for (std::size_t k = 0; k < terms; k += kKernelsAbreast) {
    const TwoDoubles one = LoadTwo(term + k) - shift;
    const TwoDoubles other = LoadTwo(term + k + 2) - shift;
    const TwoDoubles most = Larger(one, other);
    if (most[0] < -kNegligibleTerm && most[1] < -kNegligibleTerm) continue;
    first += LoadTwo(weight + k) * ExpOfNegative(one);
    second += LoadTwo(weight + k + 2) * ExpOfNegative(other);
  }
  const TwoDoubles both = first + second;
  return both[0] + both[1];
}

}  // namespace espalier::samplers
