#pragma once

#include <cstddef>
#include <cstdint>

namespace espalier::samplers {

// Sequences of points that fill a cube more evenly than random ones do. Each function gives one
// coordinate of the n-th point (n from 0), in [0, 1), by itself: nothing is kept. The same on every
// machine.

inline constexpr std::size_t kSobolDimensions = 256;

// Of Sobol's sequence (1967) with the direction numbers of Joe and Kuo 2008, its points in the
// order of the Gray code (Antonov and Saleev 1979). Requires dimension < kSobolDimensions. The
// first point is 0.
double SobolCoordinate(std::uint64_t n, std::size_t dimension);

// The same, scrambled as in Owen 1995 ("Randomly permuted (t,m,s)-nets and (t,s)-sequences"): each
// bit is turned over or not by a draw that depends on the bits before it. Each point is uniform by
// itself, and 2^k points in a row, from a multiple of that, fill the cube as evenly as before.
double ScrambledSobolCoordinate(std::uint64_t n, std::size_t dimension, std::uint64_t seed);

// Of Halton's sequence (1960): the digits of n in the dimension's own prime, mirrored at the point.
double HaltonCoordinate(std::uint64_t n, std::size_t dimension);

// The same, with a permutation of the digits for each place, as in Owen 2017 ("A randomized Halton
// algorithm in R"). It is a random linear one, a x + b modulo the prime (Matousek 1998), which
// takes any two digits to any two with the same probability, as a random permutation does, and has
// to be kept nowhere.
double ScrambledHaltonCoordinate(std::uint64_t n, std::size_t dimension, std::uint64_t seed);

}  // namespace espalier::samplers
